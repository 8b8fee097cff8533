"""Keys at a glance: what is wrong with rows together is never overlooked, whatever the buckets."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph.errors import LoadError
from omnigraph.load.bucket_validation import glance, is_beyond_glancing, keys_of
from omnigraph.load.prepare import emptied
from omnigraph.load.reading import RowStore, read_piece
from omnigraph.load.sources import JsonText
from omnigraph.load.splits import cut_sources
from tests.unit.load.inputs import DENSE, dense_inputs
from tests.unit.load.loading import (
    WORKSHOP_RECORDS,
    CommittedTables,
    W,
    catalog_of,
    load,
    workshop,
)

DENSE_CATALOG = catalog_of(DENSE)
MODES = st.sampled_from(["append", "merge", "overwrite"])


def is_suspicious(text, catalog, mode, committed, *, step, buckets):
    """What the pieces of a load look like to those who compare their keys."""
    contents: dict[int, list[bytes]] = {}
    present: set[str] = set()
    sources = [JsonText(text.encode())]
    for piece in cut_sources(sources, step):
        store = RowStore()
        for part in read_piece(piece, catalog, "job", threads=1):
            for found in part.rows:
                store.add(found.declared, found.rows)
        tables = store.tables()
        present |= {*tables}
        for bucket, content in keys_of(catalog, tables, buckets):
            contents.setdefault(bucket, []).append(content)
    present |= {*emptied(sources, present)}
    glances = [glance(catalog, mode, committed, parts) for parts in contents.values()]
    return (
        any(seen.suspicious for seen in glances)
        or any(is_beyond_glancing(catalog.entity(key)) for key in present)
        or (mode == "overwrite" and any(seen.leaning & present for seen in glances))
    )


def is_refused(text, catalog, mode, committed):
    try:
        load(text, catalog, mode, committed, load_id="job")
    except LoadError as error:
        return not all(e.code in RECORD_CODES for e in error.load_errors)
    return False


RECORD_CODES = {
    "invalid_json", "unknown_type", "missing_endpoint", "bad_record", "bad_value",
    "missing_value", "bad_key", "range", "check", "enum",
}  # fmt: skip


@settings(max_examples=100)
@given(
    earlier=dense_inputs(),
    text=dense_inputs(),
    mode=MODES,
    step=st.sampled_from([60, 300, 10_000]),
    buckets=st.sampled_from([1, 2, 7]),
)
def test_nothing_that_is_wrong_with_rows_together_is_overlooked(earlier, text, mode, step, buckets):
    committed = CommittedTables(DENSE_CATALOG)
    with suppress(LoadError):
        committed = committed.after(load(earlier, DENSE_CATALOG, "merge", committed))
    if is_refused(text, DENSE_CATALOG, mode, committed):
        assert is_suspicious(text, DENSE_CATALOG, mode, committed, step=step, buckets=buckets)


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_a_load_of_new_rows_raises_no_suspicion(mode):
    committed = CommittedTables(W)
    assert not is_suspicious(WORKSHOP_RECORDS, W, mode, committed, step=200, buckets=3)


def test_loading_the_same_rows_again_raises_no_suspicion():
    nodes = "\n".join(r for r in WORKSHOP_RECORDS.splitlines() if '"type"' in r)
    assert not is_suspicious(nodes, W, "merge", workshop(), step=200, buckets=3)
