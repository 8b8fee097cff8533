"""Manifests of either format, as long as some branches are converted and others are not."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from omnigraph.storage.filters import Comparison
from omnigraph.storage.table import Table
from omnigraph.storage.tables import TableStore
from omnigraph.versioning.rows import RegistrationMetadata
from omnigraph.versioning.stamp import is_older_format, newest_manifest


def known_table_keys(tables: TableStore, branches: Iterable[str]) -> set[str]:
    """The keys (`node:Person`) of all tables that main or one of the branches has or had."""
    keys: set[str] = set()
    for branch in [None, *branches]:
        keys |= _keys(newest_manifest(tables, branch))
    return keys


def _keys(manifest: Table) -> set[str]:
    wanted = Comparison("object_type", "=", "table")
    rows = manifest.read(["table_key", "metadata"], filter=wanted).to_pylist()
    if is_older_format(manifest.schema):
        return {row["table_key"] for row in rows}
    registered = (msgspec.json.decode(r["metadata"], type=RegistrationMetadata) for r in rows)
    return {f"{table.kind}:{table.name}" for table in registered}
