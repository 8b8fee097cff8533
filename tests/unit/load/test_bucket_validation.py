"""Keys in buckets: no violation of rows together is missed, whatever the buckets."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph.errors import LoadError
from omnigraph.load.bucket_validation import check_bucket, keys_of, needs_full_validation
from omnigraph.load.sources import JsonSource
from omnigraph.load.splits import RowStore, read_split, split_sources
from omnigraph.load.validation import emptied_types
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


def asks_for_validation(text, catalog, mode, committed, *, step, buckets):
    """Whether the buckets of a load, or its types, ask for full validation."""
    contents: dict[int, list[bytes]] = {}
    present: set[str] = set()
    sources = [JsonSource(text.encode())]
    for split in split_sources(sources, step):
        store = RowStore()
        for part in read_split(split, catalog, "job", threads=1):
            store.add(part.rows)
        tables = store.tables()
        present |= {*tables}
        for bucket, content in keys_of(catalog, tables, buckets):
            contents.setdefault(bucket, []).append(content)
    present |= {*emptied_types(sources, present)}
    checks = [check_bucket(catalog, mode, committed, parts) for parts in contents.values()]
    return (
        any(check.suspects for check in checks)
        or any(needs_full_validation(catalog.entity(key)) for key in present)
        or (mode == "overwrite" and any(check.endpoint_types & present for check in checks))
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
        assert asks_for_validation(text, DENSE_CATALOG, mode, committed, step=step, buckets=buckets)


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_a_load_of_new_rows_passes_in_buckets(mode):
    committed = CommittedTables(W)
    assert not asks_for_validation(WORKSHOP_RECORDS, W, mode, committed, step=200, buckets=3)


def test_loading_the_same_rows_again_passes_in_buckets():
    nodes = "\n".join(r for r in WORKSHOP_RECORDS.splitlines() if '"type"' in r)
    assert not asks_for_validation(nodes, W, "merge", workshop(), step=200, buckets=3)
