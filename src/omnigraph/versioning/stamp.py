"""The format stamp: which generation of the on-disk format a graph was written in."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from omnigraph.errors import ManifestDamaged, NewerFormat, TornVersion
from omnigraph.versioning.rows import FORMAT_STAMP, MANIFEST_PATH, STAMP_KEY

if TYPE_CHECKING:
    from omnigraph.storage.table import Table
    from omnigraph.storage.tables import TableStore

SEQUENCE_COLUMN = "commit_seq"


def check_stamp(schema: pa.Schema) -> None:
    """Refuse a manifest that is not of the present format."""
    if is_older_format(schema):
        stamp = read_stamp(schema)
        raise ManifestDamaged(f"the manifest has format stamp {stamp}, expected {FORMAT_STAMP}")


def is_older_format(schema: pa.Schema) -> bool:
    """Whether a manifest has to be converted before it can be read.

    Raises `NewerFormat`, and `ManifestDamaged` for one whose stamp and columns contradict each other.
    """
    stamp = read_stamp(schema)
    if stamp > FORMAT_STAMP:
        raise NewerFormat(stamp, FORMAT_STAMP)
    is_older = stamp < FORMAT_STAMP
    if is_older == (SEQUENCE_COLUMN in schema.names):
        raise ManifestDamaged(f"the manifest has format stamp {stamp}, and columns of another one")
    return is_older


def is_older_graph(tables: TableStore) -> bool:
    """Whether a graph is stored in an older format. Raises `NewerFormat` or `TableMissing`."""
    return is_older_format(newest_manifest(tables).schema)


def newest_manifest(tables: TableStore, branch: str | None = None) -> Table:
    """The newest version that can be read: one that a power loss has torn is passed over."""
    try:
        return tables.open(MANIFEST_PATH, branch)
    except TornVersion as torn:
        if torn.previous is None:
            raise
        return tables.open(MANIFEST_PATH, branch, torn.previous)


def read_stamp(schema: pa.Schema) -> int:
    """The stamp of a manifest; graphs older than the stamp itself count as 1."""
    text = (schema.metadata or {}).get(STAMP_KEY.encode(), b"1")
    if not text.isdigit():
        raise ManifestDamaged(f"the manifest has the format stamp {text!r}, which is no number")
    return int(text)
