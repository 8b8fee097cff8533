"""A load that was read and checked, whichever way: what it changes, and what is said about it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from omnigraph.catalog.model import Catalog, EdgeType
from omnigraph.engine.write.change import Change, TableWrite
from omnigraph.engine.write.removed_nodes import NO_CASCADE, Cascade
from omnigraph.load import BadRecord, LoadWarning


@dataclass(frozen=True, slots=True)
class ReadyLoad:
    """A load that may be committed. `rows_loaded` counts input rows by table key."""

    change: Change
    records: int
    rows_loaded: Mapping[str, int]
    warnings: tuple[LoadWarning, ...]
    quarantined: tuple[BadRecord, ...]


def change_of(
    catalog: Catalog, writes: Iterable[TableWrite], cascade: Cascade = NO_CASCADE
) -> Change:
    """The change of a load; edges were checked against the nodes at their ends."""
    made = (*writes, *cascade.writes)
    keys = {write.table_key for write in made}
    reads = set(cascade.reads)
    for key in keys:
        declared = catalog.entity(key)
        if isinstance(declared, EdgeType):
            for end in (declared.from_type, declared.to_type):
                reads.add(catalog.nodes[end].table_key)
    return Change(made, frozenset(reads - keys))
