"""Sidecars: the record a writer creates before its first effect.

A sidecar is written once, never edited and deleted last. It is addressed by its operation id, which
also marks every table commit of the operation. For a schema change it also records what happens besides
the table commits. A sidecar that recovery cannot decide on is quarantined: it stays where it is, is
reported, and blocks only the tables it names.
Tests: tests/unit/versioning/test_sidecar.py.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Final

import msgspec
from msgspec import UNSET, Struct, UnsetType, structs

from omnigraph.errors import ObjectMissing, StorageError
from omnigraph.faults import declare
from omnigraph.json_structs import described, json_lines, struct_from
from omnigraph.storage.objects import ObjectStore
from omnigraph.versioning.branch_names import MAIN, public_name
from omnigraph.versioning.commits import (
    CommitDraft,
    CommitId,
    Counts,
    LoadNote,
    OperationId,
    OperationKind,
    TableId,
    Warning,
    WriteKey,
    stored_counts,
)
from omnigraph.versioning.rows import RECOVERY_DIR, TableRegistration, VersionRef


class DroppedTable(Struct, frozen=True, rename={"version": "expected_version"}):
    """A table that leaves the graph, and the version it had."""

    table_key: str
    table_id: TableId
    version: int


class StoredTable(Struct, frozen=True):
    """A table that comes, as a sidecar names it."""

    table_key: str
    table_id: TableId
    table_path: str
    name: str

    @classmethod
    def of(cls, table: TableRegistration) -> StoredTable:
        return cls(f"{table.kind}:{table.name}", table.table_id, table.location, table.name)

    def registration(self) -> TableRegistration:
        """Raises `ValueError` for a table id without a number."""
        kind, _, number = self.table_id.partition("#")
        return TableRegistration(self.table_id, self.table_path, kind, int(number), self.name)


@dataclass(frozen=True, slots=True)
class SchemaChange:
    """Tables that come and go, and the schema to return to if the change is undone."""

    previous_hash: str
    previous_ref: str
    added: tuple[TableRegistration, ...] = ()
    dropped: tuple[DroppedTable, ...] = ()


SIDECAR_WRITE = declare("recovery.sidecar_write", "before the sidecar is written")
SIDECAR_WRITTEN = declare("recovery.sidecar_written", "the sidecar is there, no table has moved")
SIDECAR_DELETE = declare("recovery.sidecar_delete", "before a sidecar is deleted")
SIDECAR_LIST = declare("recovery.sidecar_list", "before the sidecars are listed")

SIDECAR_VERSION: Final = 2
SHARED_SIDECAR_VERSION: Final = 3
"""Of sidecars that several writers share. Earlier releases would complete them as one write."""

_SUFFIX: Final = ".json"


class WriterKind(Enum):
    """The kind of writer, which decides what its table commits look like."""

    MUTATION = "Mutation"
    LOAD = "Load"
    SCHEMA_APPLY = "SchemaApply"
    BRANCH_MERGE = "BranchMerge"
    ENSURE_INDICES = "EnsureIndices"
    OPTIMIZE = "Optimize"


class _Fork(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The version that a line of a table is cut from."""

    table_branch: str | None = None
    table_version: int


_TABLE_KEYS: Final = {
    "location": "table_path",
    "branch": "table_branch",
    "version": "table_version",
}


class SidecarTable(Struct, frozen=True, kw_only=True, omit_defaults=True, rename=_TABLE_KEYS):
    """A table the operation moves: from which version, on which line, by how many data commits.

    `before` is the version the graph had. Where the operation makes the branch's own line of the
    table first, `forks` is true and that line is cut from `before`. Lines of the main branch are left
    out of the file instead of written as null.
    """

    table_key: str
    table_id: TableId
    location: str
    expected_version: int
    expected_branch: str | None = None
    branch: str | None = None
    data_commits: int
    post_commit_pin: int | UnsetType = UNSET
    """For people who read the file."""
    fork_from: _Fork | None = None

    @classmethod
    def of(
        cls,
        table_key: str,
        table_id: TableId,
        location: str,
        before: VersionRef,
        branch: str | None,
        *,
        data_commits: int = 1,
        forks: bool = False,
    ) -> SidecarTable:
        fork = _Fork(table_branch=before.branch, table_version=before.version) if forks else None
        return cls(
            table_key=table_key,
            table_id=table_id,
            location=location,
            expected_version=before.version,
            expected_branch=before.branch,
            branch=branch,
            data_commits=data_commits,
            post_commit_pin=before.version + 1,
            fork_from=fork,
        )

    @property
    def before(self) -> VersionRef:
        return VersionRef(self.expected_version, self.expected_branch)

    @property
    def forks(self) -> bool:
        return self.fork_from is not None


class Pointer(Struct, frozen=True, rename=_TABLE_KEYS):
    """A table of which a merge takes a version of the main line as it is. Nothing moves for it."""

    table_id: TableId
    location: str
    version: int
    expected_version: int
    expected_branch: str | None

    @property
    def before(self) -> VersionRef:
        return VersionRef(self.expected_version, self.expected_branch)


@dataclass(frozen=True, slots=True)
class Sidecar:
    """One unfinished operation. `branch` and `physical` are None for main."""

    owner: str
    branch: str | None
    physical: str | None
    base_sequence: int
    writer_kind: WriterKind
    tables: tuple[SidecarTable, ...]
    draft: CommitDraft
    pointers: tuple[Pointer, ...] = ()
    schema: SchemaChange | None = None
    """What a schema apply does besides; its draft names the new schema."""
    is_shared: bool = False
    """Whether several writers share it. Their commits are prepared one after the other, so it cannot
    describe them: recovery undoes such an operation unless it was published. The tables are those
    that the writers may move, and the draft is that of the first commit."""

    @property
    def undone(self) -> CommitDraft:
        """The draft of the undo: under the schema there was before."""
        if self.schema is None:
            return self.draft
        before = self.schema
        return replace(
            self.draft, schema_ir_hash=before.previous_hash, schema_ref=before.previous_ref
        )

    @property
    def operation_id(self) -> OperationId:
        return self.draft.operation_id

    @property
    def name(self) -> str:
        return f"{self.operation_id}{_SUFFIX}"

    def to_text(self) -> str:
        """The text of the file."""
        draft, schema = self.draft, self.schema
        stored = _StoredSidecar(
            schema_version=SHARED_SIDECAR_VERSION if self.is_shared else SIDECAR_VERSION,
            operation_id=self.operation_id,
            owner=self.owner,
            started_at=str(draft.created_at),
            branch=self.branch,
            branch_physical=self.physical,
            base_seq=self.base_sequence,
            actor_id=draft.actor_id,
            writer_kind=self.writer_kind,
            commit=struct_from(_StoredDraft, draft, counts=stored_counts(draft)),
            tables=self.tables,
        )
        if self.writer_kind is WriterKind.BRANCH_MERGE:
            merged = draft.merged_parent_commit_id
            stored = structs.replace(stored, merge_source_commit_id=merged, pointers=self.pointers)
        if schema is not None:
            stored = structs.replace(
                stored,
                target_schema_hash=draft.schema_ir_hash,
                previous_schema_hash=schema.previous_hash,
                previous_schema_ref=schema.previous_ref,
                additional_registrations=tuple(map(StoredTable.of, schema.added)) or UNSET,
                tombstones=schema.dropped or UNSET,
            )
        return json_lines(stored)

    @classmethod
    def from_text(cls, text: str) -> Sidecar:
        """Raises `ValueError` for a text that does not describe a sidecar."""
        version = msgspec.json.decode(text, type=described(_Stamp)).schema_version
        if version not in (SIDECAR_VERSION, SHARED_SIDECAR_VERSION):
            raise ValueError(
                f"its format is {version}, this release reads {SIDECAR_VERSION} and {SHARED_SIDECAR_VERSION}"
            )
        stored = msgspec.json.decode(text, type=described(_StoredSidecar))
        draft = CommitDraft(
            operation_id=stored.operation_id,
            created_at=int(stored.started_at),
            actor_id=stored.actor_id,
            merged_parent_commit_id=stored.merge_source_commit_id or None,
            **structs.asdict(stored.commit),
        )
        return cls(
            owner=stored.owner,
            branch=None if stored.branch == MAIN else stored.branch,
            physical=stored.branch_physical,
            base_sequence=stored.base_seq,
            writer_kind=stored.writer_kind,
            tables=stored.tables,
            draft=draft,
            pointers=stored.pointers or (),
            schema=stored.schema_change(),
            is_shared=version == SHARED_SIDECAR_VERSION,
        )


class _Stamp(Struct, frozen=True):
    schema_version: int


class _StoredDraft(Struct, frozen=True, kw_only=True):
    """The commit of a sidecar, without what the sidecar says itself."""

    graph_commit_id: CommitId
    message: str | None
    counts: dict[TableId, Counts]
    load_id: str | None
    load_note: LoadNote | None = None
    operation: OperationKind
    schema_ir_hash: str
    schema_ref: str
    warnings: tuple[Warning, ...]
    write_key: WriteKey | None = None


class _StoredSidecar(Struct, frozen=True):
    """The JSON object of a sidecar. What only merges and schema changes have comes last."""

    schema_version: int
    operation_id: OperationId
    owner: str
    started_at: str
    branch: str | None
    branch_physical: str | None
    base_seq: int
    actor_id: str | None
    writer_kind: WriterKind
    commit: _StoredDraft
    tables: tuple[SidecarTable, ...]
    merge_source_commit_id: CommitId | UnsetType | None = UNSET
    pointers: tuple[Pointer, ...] | UnsetType = UNSET
    target_schema_hash: str | UnsetType = UNSET
    previous_schema_hash: str | UnsetType = UNSET
    previous_schema_ref: str | UnsetType = UNSET
    additional_registrations: tuple[StoredTable, ...] | UnsetType = UNSET
    tombstones: tuple[DroppedTable, ...] | UnsetType = UNSET

    def schema_change(self) -> SchemaChange | None:
        """Raises `ValueError` for a schema change that does not name the schema before it."""
        if self.writer_kind is not WriterKind.SCHEMA_APPLY:
            return None
        if self.previous_schema_hash is UNSET or self.previous_schema_ref is UNSET:
            raise ValueError("it lacks `previous_schema_hash` or `previous_schema_ref`")
        return SchemaChange(
            previous_hash=self.previous_schema_hash,
            previous_ref=self.previous_schema_ref,
            added=tuple(table.registration() for table in self.additional_registrations or ()),
            dropped=self.tombstones or (),
        )


class UnreadableSidecar(Exception):
    """An unreadable sidecar: damaged, or written by another version of the product."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(reason)
        self.name = name
        self.reason = reason


class Sidecars:
    """The sidecars of one graph."""

    def __init__(self, objects: ObjectStore) -> None:
        self._objects = objects

    def write(self, sidecar: Sidecar) -> None:
        """Write a sidecar durably."""
        SIDECAR_WRITE.hit(operation_id=sidecar.operation_id)
        self._objects.write_text(_path(sidecar.name), sidecar.to_text())
        SIDECAR_WRITTEN.hit(operation_id=sidecar.operation_id)

    def names(self) -> list[str]:
        """The file names of all sidecars, oldest operation first."""
        SIDECAR_LIST.hit()
        found = (path.rpartition("/")[2] for path in self._objects.list_dir(RECOVERY_DIR))
        return sorted(name for name in found if name.endswith(_SUFFIX))

    def read(self, name: str) -> Sidecar | None:
        """A sidecar, or None if it has gone. Raises `UnreadableSidecar`."""
        try:
            text = self._objects.read_text(_path(name))
        except ObjectMissing:
            return None
        except StorageError as error:
            if not isinstance(error.__cause__, UnicodeDecodeError):
                raise
            raise UnreadableSidecar(name, f"{name} is not valid JSON") from error
        try:
            sidecar = Sidecar.from_text(text)
        except ValueError as error:
            usable = isinstance(error, msgspec.ValidationError) or type(error) is ValueError
            cause = "is not a usable sidecar" if usable else "is not valid JSON"
            raise UnreadableSidecar(name, f"{name} {cause}: {error}") from error
        if sidecar.name != name:
            raise UnreadableSidecar(name, f"{name} describes operation {sidecar.operation_id}")
        return sidecar

    def delete(self, name: str) -> None:
        """Delete a sidecar whose outcome is known."""
        SIDECAR_DELETE.hit(name=name)
        self._objects.delete(_path(name))


def _path(name: str) -> str:
    return f"{RECOVERY_DIR}/{name}"


@dataclass(frozen=True, slots=True)
class Quarantined:
    """A sidecar left to an operator. `tables` is None when the file does not say which."""

    name: str
    reason: str
    branch: str | None = None
    tables: frozenset[tuple[TableId, str | None]] | None = None

    @classmethod
    def unreadable(cls, error: UnreadableSidecar) -> Quarantined:
        return cls(error.name, error.reason)

    @classmethod
    def unclear(cls, sidecar: Sidecar, reason: str) -> Quarantined:
        touched = frozenset((table.table_id, table.branch) for table in sidecar.tables)
        return cls(sidecar.name, reason, sidecar.physical, touched)

    def names(self, table_id: TableId, branch: str | None) -> bool:
        """Whether it is about this line of this table."""
        return self.tables is not None and (table_id, branch) in self.tables

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "reason": self.reason,
            "branch": None if self.tables is None else public_name(self.branch),
        }


def warn_of(quarantined: Iterable[Quarantined]) -> tuple[Warning, ...]:
    """The message every caller gets while such a sidecar exists."""
    return tuple(
        Warning(
            "recovery_quarantined",
            f"sidecar {found.name} waits for a repair: {found.reason}",
        )
        for found in quarantined
    )
