"""A version that is removed between being listed and being read."""

from __future__ import annotations

import pytest

from omnigraph.errors import TableMissing
from omnigraph.storage.failures import Failure, classify, naming_failures

TEXT = (
    "LanceError(IO): Generic N/A error: Not found: "
    "/g/__manifest/tree/b7/_versions/18446744073709551610.manifest, /x/object_reader.rs:335:56"
)


def test_it_counts_as_missing_and_not_as_a_failure_of_the_store():
    assert classify(ValueError(TEXT)) is Failure.NOT_FOUND
    with pytest.raises(TableMissing), naming_failures("open", "/g/__manifest/tree/b7"):
        raise ValueError(TEXT)


def test_a_missing_data_file_is_still_a_failure_of_the_store():
    assert classify(ValueError("Not found: /g/nodes/1/data/ab.lance")) is Failure.OTHER
