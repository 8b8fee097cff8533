"""The life of one entity: every commit of a branch that changed it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from omnigraph.catalog.model import Catalog, EntityType
from omnigraph.diagnostics import with_hint
from omnigraph.engine.compare.changes import Op
from omnigraph.engine.entities import read_entity
from omnigraph.engine.parts import GraphParts
from omnigraph.errors import InputError
from omnigraph.versioning.branches import BranchRef
from omnigraph.versioning.commits import CommitRecord, TableId
from omnigraph.versioning.manifest import ManifestState
from omnigraph.versioning.rows import Pin
from omnigraph.versioning.snapshot import table_id


@dataclass(frozen=True, slots=True)
class EntityChange:
    """What one commit did to an entity; `before` and `after` are None where there was none."""

    commit: CommitRecord
    op: Op
    before: dict[str, Any] | None
    after: dict[str, Any] | None

    def to_json(self) -> dict[str, Any]:
        return {
            "graph_commit_id": self.commit.graph_commit_id,
            "created_at": self.commit.draft.created_at,
            "actor_id": self.commit.draft.actor_id,
            "operation": self.commit.draft.operation.value,
            "op": self.op.value,
            "before": self.before,
            "after": self.after,
        }


def entity_history(
    parts: GraphParts, branch: BranchRef, type_name: str, id: str
) -> Iterator[EntityChange]:
    """The commits that changed an entity, oldest first. Only those that wrote its table are read."""
    head = parts.manifest.current(branch.physical)
    declared = _declared(parts.snapshot_of(head).catalog, type_name)
    table = table_id(declared)
    pin: Pin | None = None
    before: dict[str, Any] | None = None
    for commit, state in parts.manifest.states_after(branch.physical, 0, head.sequence):
        if pin == (pin := _pin(state, table)):
            continue
        after = read_entity(parts.snapshot_of(state), parts.tables, declared.table_key, id)
        if after != before:
            op = Op.INSERT if before is None else Op.DELETE if after is None else Op.UPDATE
            yield EntityChange(commit, op, before, after)
        before = after


def _declared(catalog: Catalog, type_name: str) -> EntityType:
    for declared in catalog:
        if declared.name == type_name:
            return declared
    known = (declared.name for declared in catalog)
    raise InputError(with_hint(f"there is no type '{type_name}'", type_name, known))


def _pin(state: ManifestState, table: TableId) -> Pin | None:
    entry = state.tables.get(table)
    return None if entry is None else Pin(entry.version, entry.branch)
