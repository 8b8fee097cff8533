"""An index of texts as bytes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from omnigraph.text.analyse import words_of_query
from omnigraph.text.index import (
    StoredIndex,
    TextIndex,
    any_word,
    bm25,
    build_index,
    from_bytes,
    phrase,
    to_bytes,
)

TEXTS = ["copper kettle", None, "kettle of copper kettle", "", "garden hose"]


def stored(index: TextIndex) -> StoredIndex:
    rows = np.arange(index.size)
    return StoredIndex(index, rows.astype(np.uint64), (rows % 2).astype(np.int32))


def seen(index: TextIndex) -> list[object]:
    scored = bm25(index, ["kettl", "hose"], None)
    return [
        (scored.rows.tolist(), scored.scores.tolist()),
        any_word(index, ["copper"]).tolist(),
        phrase(index, words_of_query("copper kettle")).tolist(),
        index.lengths.tolist(),
        sorted(index.words),
    ]


def test_what_was_written_is_read():
    made = build_index(pa.array(TEXTS))
    found = from_bytes(bytes(to_bytes(stored(made))))
    assert seen(found.index) == seen(made)
    assert (found.row_ids.tolist(), found.fragments.tolist()) == ([0, 1, 2, 3, 4], [0, 1, 0, 1, 0])


def test_rows_that_changed_are_kept_apart_and_no_longer_twice():
    changed = build_index(pa.array(TEXTS)).with_rows(
        np.array([0, 5]), pa.array(["hose", "copper"]), 6
    )
    found = from_bytes(bytes(to_bytes(stored(changed))))
    assert seen(found.index)[:4] == seen(changed)[:4]
    assert all(segment.current is None for segment in found.index.segments)
    assert [None if s.owned is None else s.owned.tolist() for s in found.index.segments] == [
        None,
        [0, 5],
    ]


def test_rows_move_and_go():
    made = stored(build_index(pa.array(TEXTS)))
    moved = made.remapped(np.array([1, -1, 2, -1, 6]), 7)
    later = [None, TEXTS[0], TEXTS[2], None, None, None, TEXTS[4]]
    assert seen(moved)[:4] == seen(build_index(pa.array(later)))[:4]


def test_no_texts():
    found = from_bytes(bytes(to_bytes(stored(build_index(pa.array([], pa.utf8()))))))
    assert (found.index.size, found.index.words) == (0, [])


@pytest.mark.parametrize("content", [b"", b"no index at all"])
def test_anything_else_is_refused(content):
    with pytest.raises(ValueError):
        from_bytes(content)


def test_another_kind_of_table_is_refused():
    out = pa.BufferOutputStream()
    for _ in range(2):
        with pa.ipc.new_stream(out, pa.schema([("x", pa.int32())])) as writer:
            writer.write_batch(pa.record_batch({"x": pa.array([1], pa.int32())}))
    with pytest.raises(ValueError, match="columns"):
        from_bytes(out.getvalue().to_pybytes())
