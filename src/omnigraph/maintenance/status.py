"""Graph status: sizes, index coverage, recommended actions.

Reads only and takes no lock. Rows are read only for the state of embeddings.
Tests: tests/behaviour/test_status.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from omnigraph.catalog.model import EntityType, NodeType
from omnigraph.diagnostics import counted
from omnigraph.embedding.vectors import StateCounts, count_states
from omnigraph.graph.parts import GraphParts
from omnigraph.limits import INDEX_LAG_ROWS, SMALL_FRAGMENT_ROWS
from omnigraph.maintenance.cleanup import abandoned_scratch
from omnigraph.maintenance.indexes import IndexState, index_states
from omnigraph.providers.configured import stored_name
from omnigraph.providers.documents import DocumentVectors
from omnigraph.read.text_indexes import TextIndexStore
from omnigraph.read.view import ReadView
from omnigraph.rows.bindings import embedded_properties
from omnigraph.storage.columns import fragments_with_dropped
from omnigraph.storage.compact import small_fragments
from omnigraph.storage.table import Table
from omnigraph.storage.tables import TableStore
from omnigraph.versioning.locks import LeaseNote, held_leases
from omnigraph.versioning.recovery.recover import RecoveryStatus
from omnigraph.versioning.rows import FORMAT_STAMP
from omnigraph.versioning.snapshot import Snapshot

_MAX_SMALL_FRAGMENTS = 16
"""Small fragments per table before optimize is recommended."""


@dataclass(frozen=True, slots=True)
class VectorStatus:
    """The embeddings of one property."""

    property: str
    source: str
    counts: StateCounts

    def to_json(self) -> dict[str, Any]:
        return {"property": self.property, "source": self.source, **self.counts.to_json()}


@dataclass(frozen=True, slots=True)
class TableStatus:
    """One type: its rows, storage, indexes and embeddings."""

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
    """A branch that cannot be used because it was created at another address."""

    branch: str
    made_at: str

    def to_json(self) -> dict[str, Any]:
        return {"branch": self.branch, "made_at": self.made_at}


@dataclass(frozen=True, slots=True)
class Advice:
    """A recommended action: the call that does it, the shell command if there is one, the reason."""

    call: str
    command: str | None
    reason: str

    def __str__(self) -> str:
        return f"{self.call}: {self.reason}"

    def as_command(self) -> str:
        """The advice for the shell, where every write command recovers first."""
        action = "run any write" if self.command is None else f"`{self.command}`"
        return f"{action}: {self.reason}"


@dataclass(frozen=True, slots=True, repr=False)
class GraphStatus:
    """The status of one branch, and of the graph as a whole."""

    uri: str
    snapshot: Snapshot
    branches: int
    moved: tuple[MovedBranch, ...]
    tables: tuple[TableStatus, ...]
    recovery: RecoveryStatus
    leases: tuple[LeaseNote, ...]
    scratch: tuple[str, ...]
    """Files of loads that were killed at least a day ago."""
    cached_bytes: int

    def __repr__(self) -> str:
        rows = sum(table.rows for table in self.tables)
        advice = f", {counted(len(self.advice), 'recommendation')}" if self.advice else ""
        return f"<GraphStatus {self.snapshot.branch}: {counted(rows, 'row')}{advice}>"

    @property
    def advice(self) -> tuple[Advice, ...]:
        """Recommended actions, most urgent first."""
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
            "advice": [advice.as_command() for advice in self.advice],
        }


def graph_status(
    parts: GraphParts, snapshot: Snapshot, cached_bytes: int, view: ReadView = ReadView.ALL
) -> GraphStatus:
    """The status of the branch whose head is `snapshot`, of types that a reader sees all rows of."""
    shown = view.restrict(snapshot.catalog)
    if not view.sees_all:
        whole = {found.table_key for found in shown if not view.filters(found)}
        entries = {key: entry for key, entry in snapshot.entries.items() if key in whole}
        snapshot = replace(snapshot, catalog=shown, entries=entries)
    return GraphStatus(
        uri=parts.tables.root.uri,
        snapshot=snapshot,
        branches=len(parts.branches.list()),
        moved=tuple(MovedBranch(m.branch, m.made_at) for m in parts.branches.moved()),
        tables=table_statuses(snapshot, parts.tables, parts.texts),
        # What waits for recovery is named with its tables.
        recovery=parts.recovery.status() if view.sees_all else RecoveryStatus((), ()),
        leases=tuple(held_leases(parts.objects)),
        scratch=tuple(abandoned_scratch(parts.objects)),
        cached_bytes=cached_bytes,
    )


def table_statuses(
    snapshot: Snapshot, tables: TableStore, texts: TextIndexStore
) -> tuple[TableStatus, ...]:
    """The status of every type, by table key."""
    # A graph without embeddings needs no provider settings.
    has_vectors = any(embedded_properties(declared) for declared in snapshot.catalog)
    configured = DocumentVectors().model if has_vectors else None
    return tuple(
        _table_status(snapshot, tables, texts, snapshot.catalog.entity(key), configured)
        for key in snapshot.entries
    )


def _table_status(
    snapshot: Snapshot,
    tables: TableStore,
    texts: TextIndexStore,
    declared: EntityType,
    configured: str | None,
) -> TableStatus:
    table = snapshot.open(tables, declared.table_key)
    indexes, missing = index_states(texts, table, declared)
    return TableStatus(
        table_key=declared.table_key,
        rows=snapshot.entry(declared.table_key).row_count,
        fragments=len(table.fragments()),
        small_fragments=small_fragments(table, SMALL_FRAGMENT_ROWS),
        has_dropped=bool(fragments_with_dropped(table)),
        bytes=table.stored_bytes(),
        indexes=indexes,
        missing_indexes=tuple(intent.column for intent in missing),
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


def _advice(status: GraphStatus) -> Iterator[Advice]:
    for found in status.recovery.quarantined:
        reason = f"{found.name} needs a decision ({found.reason})"
        yield Advice("graph.maintenance.repair()", "omnigraph repair", reason)
    if status.recovery.pending:
        reason = f"interrupted writes wait for recovery ({len(status.recovery.pending)})"
        yield Advice("graph.maintenance.recover()", None, reason)
    for moved in status.moved:
        yield Advice(
            f"graph.branches.delete({moved.branch!r})",
            f"omnigraph branch delete {moved.branch}",
            f"created when the graph was at '{moved.made_at}', so it cannot be used here",
        )
    if status.scratch:
        reason = f"scratch files of killed loads ({len(status.scratch)})"
        yield Advice("graph.maintenance.cleanup(…)", "omnigraph cleanup", reason)
    for reason in _optimize_reasons(status):
        yield Advice("graph.maintenance.optimize()", "omnigraph optimize", reason)
    waiting = [
        f"{table.table_key}.{vectors.property} ({vectors.counts.pending + vectors.counts.stale})"
        for table in status.tables
        for vectors in table.embeddings
        if vectors.counts.pending or vectors.counts.stale
    ]
    if waiting:
        reason = f"missing or stale vectors in {', '.join(waiting)}"
        yield Advice("graph.embed()", "omnigraph embed", reason)


def _optimize_reasons(status: GraphStatus) -> Iterator[str]:
    small = [t.table_key for t in status.tables if t.small_fragments > _MAX_SMALL_FRAGMENTS]
    if small:
        yield f"many small files in {', '.join(small)}"
    dropped = [t.table_key for t in status.tables if t.has_dropped]
    if dropped:
        yield f"values of dropped properties in {', '.join(dropped)}"
    behind = [
        f"{t.table_key}.{index.column}"
        for t in status.tables
        for index in t.indexes
        if index.unindexed_rows > INDEX_LAG_ROWS
    ]
    if behind:
        yield f"rows without an index entry in {', '.join(behind)}"
