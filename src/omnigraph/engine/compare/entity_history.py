"""The life of one entity: every commit of a branch that changed it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from omnigraph.catalog.model import Catalog, EntityType
from omnigraph.diagnostics import with_hint
from omnigraph.engine.commits import Commit
from omnigraph.engine.compare.changes import Op
from omnigraph.engine.entities import get_entity, read_entity
from omnigraph.engine.parts import GraphParts
from omnigraph.engine.read.view import ReadView
from omnigraph.errors import InputError
from omnigraph.versioning.branches import BranchRef
from omnigraph.versioning.commits import TableId
from omnigraph.versioning.manifest import ManifestState
from omnigraph.versioning.rows import VersionRef
from omnigraph.versioning.snapshot import table_id


@dataclass(frozen=True, slots=True, repr=False)
class EntityChange:
    """What one commit did to an entity.

    `before` and `after` have the values that `Graph.get` returns, or are None where there was none.
    """

    commit: Commit
    op: Op
    before: dict[str, Any] | None
    after: dict[str, Any] | None
    _documents: tuple[dict[str, Any] | None, dict[str, Any] | None] = (None, None)

    def to_json(self) -> dict[str, Any]:
        return self.commit.change_head() | {
            "op": self.op.value,
            "before": self._documents[0],
            "after": self._documents[1],
        }

    def __repr__(self) -> str:
        return f"<EntityChange {self.op.value} by commit {self.commit.short_id}>"


def entity_history(
    parts: GraphParts, branch: BranchRef, type_name: str, id: str, view: ReadView = ReadView.ALL
) -> Iterator[EntityChange]:
    """The commits that changed an entity, oldest first. Raises `InputError` for an unknown type."""
    if not view.sees_all:
        raise InputError("history needs a handle without a view")
    head = parts.manifest.current(branch.physical)
    declared = _declared(parts.snapshot_of(head).catalog, type_name)
    return _changes(parts, head, declared, id)


def _changes(
    parts: GraphParts, head: ManifestState, declared: EntityType, id: str
) -> Iterator[EntityChange]:
    """Only states whose commit wrote the table of the entity are read."""
    table = table_id(declared)
    pin: VersionRef | None = None
    before = before_document = None
    for commit, state in parts.manifest.states_after(head.branch, 0, head.sequence):
        if pin == (pin := _pin(state, table)):
            continue
        then = parts.snapshot_of(state)
        after_document = read_entity(then, parts.tables, declared.table_key, id)
        if after_document == before_document:
            continue
        after = None
        if after_document is not None:
            after = get_entity(then, parts.tables, declared.name, id)
        op = Op.INSERT if before is None else Op.DELETE if after is None else Op.UPDATE
        documents = before_document, after_document
        yield EntityChange(Commit.of(commit, then.catalog), op, before, after, documents)
        before, before_document = after, after_document


def _declared(catalog: Catalog, type_name: str) -> EntityType:
    for declared in catalog:
        if declared.name == type_name:
            return declared
    known = (declared.name for declared in catalog)
    raise InputError(with_hint(f"there is no type '{type_name}'", type_name, known))


def _pin(state: ManifestState, table: TableId) -> VersionRef | None:
    entry = state.tables.get(table)
    return None if entry is None else VersionRef(entry.version, entry.branch)
