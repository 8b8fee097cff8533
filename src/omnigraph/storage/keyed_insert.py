"""Inserting rows only if none of their keys exists: the compare-and-swap that publishing rests on.

It is one call of the library, never a staged change: only that call checks keys against commits it
has not read. Used by the publisher alone.
Tests: tests/substrate/test_keyed_insert.py, tests/storage/tables/test_keyed_insert.py.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import InputError, KeyTaken
from omnigraph.storage.conflicts import Failure, cause_of, classify, naming_failures
from omnigraph.storage.fragments import fit_rows
from omnigraph.storage.table import Table

__all__ = ["KeyTaken", "insert_if_absent"]


def insert_if_absent(table: Table, rows: pa.Table, key: str) -> Table:
    """Insert rows whose keys are new; `key` is the column declared as the table's primary key.

    Of several inserts of one key exactly one succeeds. Raises `KeyTaken`: nothing was inserted.
    The caller confirms by reading, whatever this call reported.
    """
    _check_keys(table, rows.column(key))
    lineage = table.lineage
    handle = table.writable_handle()
    if lineage.sync:
        lineage.sync.commit(lineage, handle)
    with naming_failures("insert", lineage.uri):
        try:
            (
                handle.merge_insert(key)
                .when_matched_fail()
                .when_not_matched_insert_all()
                # With an index on the key the library takes another path, whose commit no longer
                # knows which keys it inserted: two inserters of one key would both succeed.
                .use_index(False)
                .conflict_retries(0)
                .execute(fit_rows(rows, table.schema))
            )
        except OSError as error:
            if classify(error) not in (Failure.KEY_EXISTS, Failure.CONFLICT):
                raise
            raise KeyTaken(lineage.name, cause_of(error)) from error
    if lineage.sync:
        lineage.sync.commit(lineage, handle)
    return Table(lineage, handle)


def _check_keys(table: Table, keys: pa.ChunkedArray) -> None:
    """The library compares with stored rows only and would insert a key twice."""
    if not len(keys) or keys.null_count or len(pc.unique(keys)) != len(keys):
        raise InputError(f"rows inserted into {table.path} need distinct keys")
