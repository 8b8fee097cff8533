"""How a graph is doing: how much is stored in how many pieces, and what somebody should see to.

Reads only, and takes no lock. Rows are looked at for the state of vectors alone.
Tests: tests/behaviour/test_status.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from omnigraph.catalog.indexes import index_intents
from omnigraph.catalog.model import EntityType, NodeType
from omnigraph.embed.configured import stored_name
from omnigraph.embed.documents import DocumentVectors
from omnigraph.engine.maintain.index_report import IndexState
from omnigraph.engine.maintain.indexes import unindexed_rows
from omnigraph.engine.read.stored_texts import StoredTexts
from omnigraph.engine.vector_states import StateCounts, count_states
from omnigraph.limits import FOLD_SMALL_ROWS, INDEX_LAG_ROWS
from omnigraph.rows.bindings import embedded_properties
from omnigraph.storage.compact import small_fragments
from omnigraph.storage.dropped_columns import fragments_with_dropped
from omnigraph.storage.table import Table
from omnigraph.storage.tables import TableStore
from omnigraph.versioning.locks import LeaseNote
from omnigraph.versioning.recovery.heal import RecoveryStatus
from omnigraph.versioning.rows import FORMAT_STAMP
from omnigraph.versioning.snapshot import Snapshot

_MANY_PIECES = 16
"""Small pieces of a table from which optimizing is worth a line of advice."""


@dataclass(frozen=True, slots=True)
class VectorStatus:
    """The vectors of one property that are computed from texts."""

    property: str
    source: str
    counts: StateCounts

    def to_json(self) -> dict[str, Any]:
        return {"property": self.property, "source": self.source, **self.counts.to_json()}


@dataclass(frozen=True, slots=True)
class TableStatus:
    """One type: its rows, how they are stored, and the indexes and vectors it has."""

    table_key: str
    rows: int
    fragments: int
    small_fragments: int
    has_dropped: bool
    """Whether values of dropped properties are still stored with the rows."""
    bytes: int
    indexes: tuple[IndexState, ...]
    missing_indexes: tuple[str, ...]
    embeddings: tuple[VectorStatus, ...]

    def to_json(self) -> dict[str, Any]:
        return {
            "table_key": self.table_key,
            "rows": self.rows,
            "fragments": self.fragments,
            "bytes": self.bytes,
            "indexes": [index.to_json() for index in self.indexes],
            "missing_indexes": list(self.missing_indexes),
            "embeddings": [vectors.to_json() for vectors in self.embeddings],
        }


@dataclass(frozen=True, slots=True)
class MovedBranch:
    """A branch that cannot be used, because the graph was at another address when it was made."""

    branch: str
    made_at: str

    def to_json(self) -> dict[str, Any]:
        return {"branch": self.branch, "made_at": self.made_at}


@dataclass(frozen=True, slots=True)
class GraphStatus:
    """How one branch of a graph is doing, and what concerns all of them."""

    uri: str
    snapshot: Snapshot
    branches: int
    moved: tuple[MovedBranch, ...]
    tables: tuple[TableStatus, ...]
    recovery: RecoveryStatus
    leases: tuple[LeaseNote, ...]
    scratch: tuple[str, ...]
    """Files of loads that were killed a day ago or longer."""
    cached_bytes: int

    @property
    def advice(self) -> tuple[str, ...]:
        """What somebody should do, most urgent first."""
        return tuple(_advice(self))

    def to_json(self) -> dict[str, Any]:
        return {
            "uri": self.uri,
            "branch": self.snapshot.branch,
            "graph_commit_id": self.snapshot.commit_id,
            "manifest_version": self.snapshot.version,
            "format_version": FORMAT_STAMP,
            "schema_hash": self.snapshot.catalog.hash,
            "branches": self.branches,
            "moved_branches": [moved.to_json() for moved in self.moved],
            "tables": [table.to_json() for table in self.tables],
            "recovery": {
                "pending": len(self.recovery.pending),
                "quarantined": len(self.recovery.quarantined),
            },
            "leases": [
                {"name": lease.name, "owner": lease.owner, "expires_at": lease.expires_at}
                for lease in self.leases
            ],
            "scratch": list(self.scratch),
            "cached_bytes": self.cached_bytes,
            "advice": list(self.advice),
        }


def table_statuses(
    snapshot: Snapshot, tables: TableStore, texts: StoredTexts
) -> tuple[TableStatus, ...]:
    """Every type of a snapshot by key."""
    # A graph without such vectors needs no provider, not even the settings of one.
    has_vectors = any(embedded_properties(declared) for declared in snapshot.catalog)
    configured = DocumentVectors().model if has_vectors else None
    return tuple(
        _table_status(snapshot, tables, texts, snapshot.catalog.entity(key), configured)
        for key in snapshot.entries
    )


def _table_status(
    snapshot: Snapshot,
    tables: TableStore,
    texts: StoredTexts,
    declared: EntityType,
    configured: str | None,
) -> TableStatus:
    table = snapshot.open(tables, declared.table_key)
    indexes, missing = [], []
    for intent in index_intents(declared):
        unknown = unindexed_rows(texts, table, intent)
        if unknown is not None:
            indexes.append(IndexState(intent.column, intent.kind, unknown))
        else:
            missing.append(intent.column)
    return TableStatus(
        table_key=declared.table_key,
        rows=snapshot.entry(declared.table_key).row_count,
        fragments=len(table.fragments()),
        small_fragments=small_fragments(table, FOLD_SMALL_ROWS),
        has_dropped=bool(fragments_with_dropped(table)),
        bytes=table.stored_bytes(),
        indexes=tuple(indexes),
        missing_indexes=tuple(missing),
        embeddings=tuple(_vectors(table, declared, configured)),
    )


def _vectors(table: Table, declared: EntityType, configured: str | None) -> Iterator[VectorStatus]:
    if not isinstance(declared, NodeType):
        return
    for prop in embedded_properties(declared):
        assert prop.embed_source is not None
        named = prop.embed_model
        model = configured if named is None else stored_name(named)
        counts = count_states(table, declared, prop, model)
        yield VectorStatus(prop.name, prop.embed_source, counts)


def _advice(status: GraphStatus) -> Iterator[str]:
    for found in status.recovery.quarantined:
        yield f"`omnigraph repair`: only a person can judge {found.name} ({found.reason})"
    if status.recovery.pending:
        count = len(status.recovery.pending)
        yield f"open the graph for writing: interrupted writes wait to be settled ({count})"
    for moved in status.moved:
        yield (
            f"`omnigraph branch delete {moved.branch}`: it was made when the graph was at "
            f"'{moved.made_at}' and cannot be used here"
        )
    if status.scratch:
        yield f"`omnigraph cleanup`: scratch files of loads that were killed ({len(status.scratch)})"
    pieces = [t.table_key for t in status.tables if t.small_fragments > _MANY_PIECES]
    if pieces:
        yield f"`omnigraph optimize`: many small pieces in {', '.join(pieces)}"
    dropped = [t.table_key for t in status.tables if t.has_dropped]
    if dropped:
        yield f"`omnigraph optimize`: values of dropped properties in {', '.join(dropped)}"
    behind = [
        f"{t.table_key}.{index.column}"
        for t in status.tables
        for index in t.indexes
        if index.unindexed_rows > INDEX_LAG_ROWS
    ]
    if behind:
        yield f"`omnigraph optimize`: rows that no index knows in {', '.join(behind)}"
    waiting = [
        f"{table.table_key}.{vectors.property} ({vectors.counts.pending + vectors.counts.stale})"
        for table in status.tables
        for vectors in table.embeddings
        if vectors.counts.pending or vectors.counts.stale
    ]
    if waiting:
        yield f"`omnigraph embed`: vectors to compute in {', '.join(waiting)}"
