"""What is asked of a refill of vectors, and what it reports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.model import Catalog, Property
from omnigraph.diagnostics import counted, with_hint
from omnigraph.engine.history.commits import Receipt, WriteResult
from omnigraph.engine.vector_states import StateCounts
from omnigraph.errors import InputError, UnknownType
from omnigraph.rows.bindings import VectorStates, embedded_properties
from omnigraph.versioning.commits import CommitId


@dataclass(frozen=True, slots=True)
class RefillOptions:
    """Which vectors are refilled, and what is recorded with the commit. Travels to tasks."""

    types: tuple[str, ...] = ()
    properties: tuple[str, ...] = ()
    pending: bool = True
    stale: bool = True
    everything: bool = False
    """Whether vectors that are up to date are computed anew as well, unless they were given."""
    include_given: bool = False
    """Whether given vectors are replaced when their text has changed."""
    actor: str | None = None
    message: str | None = None
    expected_head: CommitId | None = None

    def due(self, states: VectorStates) -> pa.Array:
        """The rows whose vector is wanted, among those that have text."""
        due = pc.and_(states.pending, self.pending or self.everything)
        stale = pc.and_(states.stale, self.stale or self.everything)
        due = pc.or_(due, pc.and_not(stale, states.given))
        if self.everything:
            due = pc.or_(due, pc.and_not(states.ready, states.given))
        if self.include_given:
            due = pc.or_(due, pc.and_(states.stale, states.given))
        return pc.and_(due, states.has_text)

    def chosen(self, catalog: Catalog) -> dict[str, list[Property]]:
        """The vectors to look at, by node type. Raises `UnknownType` or `InputError`."""
        for name in self.types:
            if name not in catalog.nodes:
                raise UnknownType("node", name, catalog.nodes)
        chosen: dict[str, list[Property]] = {}
        for node in catalog.nodes.values():
            if not self.types or node.name in self.types:
                found = embedded_properties(node)
                kept = [p for p in found if not self.properties or p.name in self.properties]
                if kept:
                    chosen[node.name] = kept
        known = {prop.name for props in chosen.values() for prop in props}
        for name in self.properties:
            if name not in known:
                message = f"no vector '{name}' with @embed in the types that were chosen"
                raise InputError(with_hint(message, name, known))
        return chosen


@dataclass(frozen=True, slots=True)
class RefilledProperty:
    """One vector property: its rows by state when all was done, and what was done."""

    table_key: str
    property: str
    states: StateCounts
    embedded: int = 0
    skipped: int = 0
    """Rows that somebody changed while their texts were embedded."""

    def to_json(self) -> dict[str, Any]:
        return {
            "table_key": self.table_key,
            "property": self.property,
            **self.states.to_json(),
            "embedded": self.embedded,
            "skipped": self.skipped,
        }


@dataclass(frozen=True, slots=True, repr=False)
class EmbedResult(WriteResult):
    """The vectors that were computed, or with `dry_run` those that are missing or stale."""

    receipt: Receipt
    branch: str
    model: str | None
    properties: tuple[RefilledProperty, ...]
    dry_run: bool

    def __repr__(self) -> str:
        dry = ", dry run" if self.dry_run else ""
        done = counted(sum(prop.embedded for prop in self.properties), "vector")
        return self._repr_with(f"{done} computed{dry}")

    def to_json(self) -> dict[str, Any]:
        return {
            "branch": self.branch,
            "model": self.model,
            "properties": [prop.to_json() for prop in self.properties],
            "dry_run": self.dry_run,
            **self.receipt.to_json(),
        }
