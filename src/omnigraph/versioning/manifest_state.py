"""The state of a branch: which version of which table belongs to the graph, replayed from rows.

A handle that knows nothing yet starts from the newest checkpoint, so that replaying takes no longer
as history grows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import ManifestDamaged
from omnigraph.json_structs import described, struct_from
from omnigraph.limits import MANIFEST_SCANNED_ROWS, MANIFEST_SMALL_ROWS
from omnigraph.storage.filters import And, Comparison, Filter
from omnigraph.storage.indexes import damaged_indexes
from omnigraph.storage.table import Table
from omnigraph.storage.versions import ObjectWatch, VersionObject, VersionWatch
from omnigraph.versioning.commits import CommitId, TableId
from omnigraph.versioning.rows import (
    FORMAT_STAMP,
    KEY_COLUMN,
    RegistrationMetadata,
    TableRegistration,
    TableVersion,
)

COLUMNS = [
    KEY_COLUMN,
    "object_type",
    "location",
    "metadata",
    "table_key",
    "table_version",
    "table_branch",
    "row_count",
    "commit_seq",
]


@dataclass(frozen=True, slots=True)
class ManifestState:
    """One branch at one version: which version of which table belongs to the graph."""

    branch: str | None
    sequence: int
    head: CommitId
    tables: Mapping[TableId, TableVersion]
    registered: Mapping[TableId, TableRegistration]
    schema_ref: str | None = None
    """The schema the head was made under; None when a checkpoint of a converted graph starts here."""
    origin: object = field(default_factory=object, repr=False, compare=False)
    """The same for states that were replayed from each other. A branch that was deleted and made
    again has another one, even if its tables have the same names and versions."""

    def to_checkpoint(self) -> Checkpoint:
        return Checkpoint(
            seq=self.sequence,
            head=self.head,
            schema_ref=self.schema_ref,
            tables=tuple(self.tables[t] for t in sorted(self.tables)),
            registered=tuple(self.registered[t] for t in sorted(self.registered)),
        )

    @classmethod
    def from_checkpoint(cls, branch: str | None, stored: Checkpoint) -> ManifestState:
        return cls(
            branch=branch,
            sequence=stored.seq,
            head=stored.head,
            tables={t.table_id: t for t in stored.tables},
            registered={t.table_id: t for t in stored.registered},
            schema_ref=stored.schema_ref,
        )


class Checkpoint(msgspec.Struct, frozen=True, kw_only=True):
    """The JSON object of a state."""

    seq: int
    head: CommitId
    schema_ref: str | None = None
    tables: tuple[TableVersion, ...]
    registered: tuple[TableRegistration, ...]


class HeadNote(msgspec.Struct, frozen=True):
    """The state of a branch at a version of its manifest, as a writer leaves it for other processes.

    It saves them reading the rows. It counts only together with that very version.
    """

    version: int
    token: str | None
    written_at: int
    """Microseconds since 1970."""
    rows: int
    newest_fragment: int
    small_fragments: int
    state: Checkpoint
    format: int = FORMAT_STAMP

    @classmethod
    def parse(cls, text: str) -> HeadNote | None:
        """A note, if it is one that this version can use."""
        try:
            note = msgspec.json.decode(text, type=described(cls))
        except msgspec.DecodeError:
            return None
        return note if note.format == FORMAT_STAMP else None


class _SchemaRef(msgspec.Struct, frozen=True):
    """What a replay needs of the JSON object of a commit."""

    schema_ref: str


def replay(state: ManifestState, rows: Iterable[Mapping[str, Any]]) -> ManifestState:
    """The state after the given rows, which must all come after `state`."""
    tables = dict(state.tables)
    registered = dict(state.registered)
    sequence, head, schema_ref = state.sequence, state.head, state.schema_ref
    for row in sorted(rows, key=lambda r: r["commit_seq"]):
        match row["object_type"]:
            case "table":
                registration = _registration(row)
                registered[registration.table_id] = registration
            case "table_version":
                entry = _table_version(row)
                tables[entry.table_id] = entry
            case "table_tombstone":
                tables.pop(TableId(row["table_key"]), None)
            case "graph_commit":
                sequence = row["commit_seq"]
                head = CommitId(row["table_key"].removeprefix("commit:"))
                schema_ref = msgspec.json.decode(
                    row["metadata"], type=described(_SchemaRef)
                ).schema_ref
    missing = sorted(set(tables) - set(registered))
    if missing:
        raise ManifestDamaged(f"the manifest names versions of unregistered tables {missing}")
    return replace(
        state,
        sequence=sequence,
        head=head,
        tables=tables,
        registered=registered,
        schema_ref=schema_ref,
    )


def cold_state(table: Table, sequence: int | None) -> ManifestState:
    """Replay from the newest checkpoint at or below the wanted sequence."""
    if table.lineage.is_remote and table.row_count() <= MANIFEST_SCANNED_ROWS:
        return _scanned_state(table, sequence)
    checkpoints = table.read(
        ["commit_seq"], filter=Comparison("object_type", "=", "checkpoint")
    ).column("commit_seq")
    start = _newest_checkpoint(checkpoints, sequence)
    at_start = And(
        (
            Comparison("commit_seq", "=", start),
            Comparison("object_type", "=", "checkpoint"),
        )
    )
    checkpoint = read_rows(table, at_start)[0]
    state = _checkpoint_state(table, checkpoint["metadata"])
    wanted: Filter = after(start)
    if sequence is not None:
        wanted = And((wanted, Comparison("commit_seq", "<=", sequence)))
    return replay(state, read_rows(table, wanted))


def _scanned_state(table: Table, sequence: int | None) -> ManifestState:
    """The same in one pass over all rows, without any index."""
    rows = table.read(COLUMNS)
    numbers = rows.column("commit_seq")
    is_checkpoint = pc.equal(rows.column("object_type"), "checkpoint")
    start = _newest_checkpoint(numbers.filter(is_checkpoint), sequence)
    at_start = rows.filter(pc.and_(is_checkpoint, pc.equal(numbers, start)))
    state = _checkpoint_state(table, at_start.column("metadata")[0].as_py())
    later = pc.greater(numbers, start)
    if sequence is not None:
        later = pc.and_(later, pc.less_equal(numbers, sequence))
    return replay(state, rows.filter(later).to_pylist())


def _checkpoint_state(table: Table, text: str) -> ManifestState:
    return ManifestState.from_checkpoint(
        table.branch, msgspec.json.decode(text, type=described(Checkpoint))
    )


def _newest_checkpoint(checkpoints: pa.ChunkedArray, sequence: int | None) -> int:
    usable = [s for s in checkpoints.to_pylist() if sequence is None or s <= sequence]
    if not usable:
        raise ManifestDamaged("the manifest has no checkpoint to start from")
    return int(max(usable))


def after(sequence: int) -> Comparison:
    return Comparison("commit_seq", ">", sequence)


def read_rows(table: Table, wanted: Filter) -> list[dict[str, Any]]:
    found: pa.Table = table.read(COLUMNS, filter=wanted)
    rows: list[dict[str, Any]] = found.to_pylist()
    return rows


def _registration(row: Mapping[str, Any]) -> TableRegistration:
    if row["location"] is None or row["metadata"] is None:
        raise ManifestDamaged(f"the registration of table {row['table_key']} is incomplete")
    noted = msgspec.json.decode(row["metadata"], type=described(RegistrationMetadata))
    table_id = TableId(row["table_key"])
    return struct_from(TableRegistration, noted, table_id=table_id, location=row["location"])


def _table_version(row: Mapping[str, Any]) -> TableVersion:
    if row["metadata"] is None or row["table_version"] is None or row["row_count"] is None:
        raise ManifestDamaged(f"a version row of table {row['table_key']} is incomplete")
    return TableVersion(
        table_id=TableId(row["table_key"]),
        version=row["table_version"],
        branch=row["table_branch"],
        row_count=row["row_count"],
        info=row["metadata"],
    )


@dataclass(frozen=True, slots=True)
class KnownState:
    """A state and the stored version it was read from.

    The number alone does not tell: a branch that was deleted and made again starts from the number
    its source has reached, which may be one the old branch had as well.
    """

    storage_version: int
    written_at: datetime
    state: ManifestState
    row_count: int
    newest_fragment: int
    small_fragment_count: int
    watch: VersionWatch | None = None
    table: Table | None = None
    """None for a state that another process has noted down."""
    has_damaged_indexes: bool = False

    @classmethod
    def of(cls, table: Table, state: ManifestState, watch: VersionWatch | None) -> KnownState:
        fragments = table.fragments()
        return cls(
            storage_version=table.version,
            written_at=table.written_at,
            state=state,
            row_count=table.row_count(),
            newest_fragment=max((fragment.id for fragment in fragments), default=-1),
            small_fragment_count=sum(fragment.rows < MANIFEST_SMALL_ROWS for fragment in fragments),
            watch=watch,
            table=table,
            # Where comparing checksums takes requests, a writer relies on what scans have found.
            has_damaged_indexes=table.lineage.is_local and bool(damaged_indexes(table)),
        )

    @classmethod
    def noted(cls, note: HeadNote, branch: str | None) -> KnownState:
        return cls(
            storage_version=note.version,
            written_at=datetime.fromtimestamp(note.written_at / 1_000_000),
            state=ManifestState.from_checkpoint(branch, note.state),
            row_count=note.rows,
            newest_fragment=note.newest_fragment,
            small_fragment_count=note.small_fragments,
        )

    def note(self) -> HeadNote:
        watch = self.watch
        return HeadNote(
            version=self.storage_version,
            token=watch.token if isinstance(watch, ObjectWatch) else None,
            written_at=round(self.written_at.timestamp() * 1_000_000),
            rows=self.row_count,
            newest_fragment=self.newest_fragment,
            small_fragments=self.small_fragment_count,
            state=self.state.to_checkpoint(),
        )

    def is_of(self, table: Table) -> bool:
        return (self.storage_version, self.written_at) == (table.version, table.written_at)

    def is_before(self, other: KnownState) -> bool:
        """Whether another version came after this one. A branch that was made again was written later."""
        is_lower = self.storage_version < other.storage_version
        return is_lower and (self.state.branch is None or self.written_at <= other.written_at)

    def is_found(self, found: VersionObject) -> bool:
        """Whether a look at an object store has found the very version."""
        return isinstance(self.watch, ObjectWatch) and self.watch.matches(found)
