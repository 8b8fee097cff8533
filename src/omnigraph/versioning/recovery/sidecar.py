"""Sidecars: the intent a writer records before its first effect.

A sidecar is written once, never edited and deleted last. It is addressed by the id of its
operation, which also marks every table commit the operation makes.
Tests: tests/unit/versioning/test_sidecar.py.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Final

from omnigraph.errors import ObjectMissing, StorageError
from omnigraph.faults import declare
from omnigraph.storage.objects import ObjectStore
from omnigraph.versioning.branch_names import MAIN
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
)
from omnigraph.versioning.recovery.schema_change import SchemaChange
from omnigraph.versioning.rows import RECOVERY_DIR, Pin

SIDECAR_WRITE = declare("recovery.sidecar_write", "before the sidecar is written")
SIDECAR_WRITTEN = declare("recovery.sidecar_written", "the sidecar is there, no table has moved")
SIDECAR_DELETE = declare("recovery.sidecar_delete", "before a sidecar is deleted")
SIDECAR_LIST = declare("recovery.sidecar_list", "before the sidecars are listed")

SIDECAR_VERSION: Final = 2
SHARED_SIDECAR_VERSION: Final = 3
"""Of sidecars that several writers share. Earlier releases would complete them as one write."""

_SUFFIX: Final = ".json"


class WriterKind(Enum):
    """Who wrote a sidecar, which decides what its table commits look like."""

    MUTATION = "Mutation"
    LOAD = "Load"
    SCHEMA_APPLY = "SchemaApply"
    BRANCH_MERGE = "BranchMerge"
    ENSURE_INDICES = "EnsureIndices"
    OPTIMIZE = "Optimize"


@dataclass(frozen=True, slots=True)
class PinnedTable:
    """A table the operation moves: from which version, on which line, by how many data commits.

    `before` is the version the graph had. Where the operation makes the branch's own line of the
    table first, `forks` is true and that line is cut from `before`.
    """

    table_key: str
    table_id: TableId
    location: str
    before: Pin
    branch: str | None
    data_commits: int = 1
    forks: bool = False

    def to_json(self) -> dict[str, Any]:
        document: dict[str, Any] = {
            "table_key": self.table_key,
            "table_id": self.table_id,
            "table_path": self.location,
            "expected_version": self.before.version,
            "expected_branch": self.before.branch,
            "table_branch": self.branch,
            "data_commits": self.data_commits,
            "post_commit_pin": self.before.version + 1,
        }
        if self.forks:
            document["fork_from"] = _without_main(
                {"table_branch": self.before.branch, "table_version": self.before.version}
            )
        return _without_main(document)

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> PinnedTable:
        return cls(
            table_key=document["table_key"],
            table_id=TableId(document["table_id"]),
            location=document["table_path"],
            before=Pin(int(document["expected_version"]), document.get("expected_branch")),
            branch=document.get("table_branch"),
            data_commits=int(document["data_commits"]),
            forks="fork_from" in document,
        )


@dataclass(frozen=True, slots=True)
class Pointer:
    """A table of which a merge takes a version of the main line as it is. Nothing moves for it."""

    table_id: TableId
    location: str
    version: int
    before: Pin

    def to_json(self) -> dict[str, Any]:
        return {
            "table_id": self.table_id,
            "table_path": self.location,
            "table_version": self.version,
            "expected_version": self.before.version,
            "expected_branch": self.before.branch,
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Pointer:
        return cls(
            table_id=TableId(document["table_id"]),
            location=document["table_path"],
            version=int(document["table_version"]),
            before=Pin(int(document["expected_version"]), document["expected_branch"]),
        )


@dataclass(frozen=True, slots=True)
class Sidecar:
    """One unfinished operation. `branch` and `physical` are None for main."""

    owner: str
    branch: str | None
    physical: str | None
    base_sequence: int
    writer_kind: WriterKind
    tables: tuple[PinnedTable, ...]
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
        """The draft of whoever undoes the operation: under the schema there was before."""
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

    def to_json(self) -> dict[str, Any]:
        document = {
            "schema_version": SHARED_SIDECAR_VERSION if self.is_shared else SIDECAR_VERSION,
            "operation_id": self.operation_id,
            "owner": self.owner,
            "started_at": str(self.draft.created_at),
            "branch": self.branch,
            "branch_physical": self.physical,
            "base_seq": self.base_sequence,
            "actor_id": self.draft.actor_id,
            "writer_kind": self.writer_kind.value,
            "commit": _commit_to_json(self.draft),
            "tables": [table.to_json() for table in self.tables],
        }
        if self.writer_kind is WriterKind.BRANCH_MERGE:
            document["merge_source_commit_id"] = self.draft.merged_parent_commit_id
            document["pointers"] = [pointer.to_json() for pointer in self.pointers]
        if self.schema is None:
            return document
        target = {"target_schema_hash": self.draft.schema_ir_hash}
        return document | target | self.schema.to_json()

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Sidecar:
        """Raises `KeyError`, `TypeError` or `ValueError` for a document that is no sidecar."""
        version = document["schema_version"]
        if version not in (SIDECAR_VERSION, SHARED_SIDECAR_VERSION):
            raise ValueError(
                f"its format is {version}, this release reads {SIDECAR_VERSION} and {SHARED_SIDECAR_VERSION}"
            )
        branch = document["branch"]
        kind = WriterKind(document["writer_kind"])
        is_schema = kind is WriterKind.SCHEMA_APPLY
        return cls(
            owner=document["owner"],
            branch=None if branch == MAIN else branch,
            physical=document["branch_physical"],
            base_sequence=int(document["base_seq"]),
            writer_kind=kind,
            tables=tuple(PinnedTable.from_json(table) for table in document["tables"]),
            draft=_draft_from_json(document),
            pointers=tuple(Pointer.from_json(p) for p in document.get("pointers", ())),
            schema=SchemaChange.from_json(document) if is_schema else None,
            is_shared=version == SHARED_SIDECAR_VERSION,
        )


class UnreadableSidecar(Exception):
    """A sidecar that nobody can judge: damaged, or written by another version of the product."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(reason)
        self.name = name
        self.reason = reason


class Sidecars:
    """The sidecars of one graph."""

    def __init__(self, objects: ObjectStore) -> None:
        self._objects = objects

    def write(self, sidecar: Sidecar) -> None:
        """Record an intent, durably."""
        SIDECAR_WRITE.hit(operation_id=sidecar.operation_id)
        text = json.dumps(sidecar.to_json(), indent=2, ensure_ascii=False)
        self._objects.write_text(_path(sidecar.name), f"{text}\n")
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
            sidecar = Sidecar.from_json(json.loads(text))
        except json.JSONDecodeError as error:
            raise UnreadableSidecar(name, f"{name} is not valid JSON: {error}") from error
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise UnreadableSidecar(name, f"{name} is no usable sidecar: {error!r}") from error
        if sidecar.name != name:
            raise UnreadableSidecar(name, f"{name} describes operation {sidecar.operation_id}")
        return sidecar

    def delete(self, name: str) -> None:
        """Forget an intent whose outcome is settled."""
        SIDECAR_DELETE.hit(name=name)
        self._objects.delete(_path(name))


def _path(name: str) -> str:
    return f"{RECOVERY_DIR}/{name}"


def _without_main(document: dict[str, Any]) -> dict[str, Any]:
    """Lines of the main branch are left out instead of written as null."""
    names = ("expected_branch", "table_branch")
    return {k: v for k, v in document.items() if not (k in names and v is None)}


def _commit_to_json(draft: CommitDraft) -> dict[str, Any]:
    return {
        "graph_commit_id": draft.graph_commit_id,
        "message": draft.message,
        "counts": {table: c.to_json() for table, c in sorted(draft.counts.items()) if c},
        "load_id": draft.load_id,
        "load_note": None if draft.load_note is None else draft.load_note.to_json(),
        "operation": draft.operation.value,
        "schema_ir_hash": draft.schema_ir_hash,
        "schema_ref": draft.schema_ref,
        "warnings": [w.to_json() for w in draft.warnings],
        "write_key": None if draft.write_key is None else draft.write_key.to_json(),
    }


def _draft_from_json(document: Mapping[str, Any]) -> CommitDraft:
    commit = document["commit"]
    note, key = commit.get("load_note"), commit.get("write_key")
    return CommitDraft(
        graph_commit_id=CommitId(commit["graph_commit_id"]),
        operation=OperationKind(commit["operation"]),
        operation_id=OperationId(document["operation_id"]),
        created_at=int(document["started_at"]),
        schema_ir_hash=commit["schema_ir_hash"],
        schema_ref=commit["schema_ref"],
        merged_parent_commit_id=document.get("merge_source_commit_id"),
        actor_id=document["actor_id"],
        message=commit["message"],
        counts={TableId(t): Counts(**c) for t, c in commit["counts"].items()},
        load_id=commit["load_id"],
        load_note=None if note is None else LoadNote(**note),
        warnings=tuple(Warning(**w) for w in commit["warnings"]),
        write_key=None if key is None else WriteKey(**key),
    )
