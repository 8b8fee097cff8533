"""A Ctrl-C that arrives while the table library calls back into Python."""

from __future__ import annotations

import lance
import pyarrow as pa
import pytest

from omnigraph.storage.failures import naming_failures


def test_it_stays_an_interrupt(tmp_path):
    def batches():
        yield pa.record_batch({"n": [1]})
        raise KeyboardInterrupt

    reader = pa.RecordBatchReader.from_batches(pa.schema([("n", pa.int64())]), batches())
    with pytest.raises(KeyboardInterrupt), naming_failures("write", str(tmp_path)):
        lance.write_dataset(reader, str(tmp_path / "t"))


def test_it_stays_one_in_the_words_of_a_callback():
    with pytest.raises(KeyboardInterrupt), naming_failures("commit", "/g/nodes/1"):
        raise OSError("LanceError(IO): External error: KeyboardInterrupt: , /x/commit.rs:1:2")
