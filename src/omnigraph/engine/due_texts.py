"""Texts whose vectors are due: found by the states of rows, in all of a type or in a share of it.

It travels to tasks as it is. Tests: tests/behaviour/test_refills.py, tests/spark/test_embedding.py.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from omnigraph.catalog.model import Property
from omnigraph.embed.configured import stored_name
from omnigraph.engine.vector_states import read_states
from omnigraph.rows.bindings import VectorStates
from omnigraph.spark.tasks import FragmentGroup, fragment_groups
from omnigraph.storage.tables import TableStore
from omnigraph.versioning.snapshot import Snapshot

Chosen = Mapping[str, Sequence[Property]]
"""Vector properties by the name of their node type."""


@dataclass(frozen=True, slots=True)
class TextSize:
    """How many texts there are, equal ones included, and their bytes."""

    texts: int
    bytes: int


@dataclass(frozen=True, slots=True)
class SharedVector:
    """A vector property of the rows in some fragments."""

    type: str
    prop: Property
    fragments: FragmentGroup


@dataclass(frozen=True, slots=True)
class DueTexts:
    """The texts of one snapshot whose vectors are due under one model."""

    snapshot: Snapshot
    tables: TableStore
    chosen: Chosen
    due: Callable[[VectorStates], pa.Array]
    model: str
    """The configured one; properties for which the schema names another have that."""

    def shares(self) -> tuple[SharedVector, ...]:
        """All rows, in parts that tasks look at."""
        found = []
        for name, properties in self.chosen.items():
            table = self.snapshot.open(self.tables, self.snapshot.catalog.nodes[name].table_key)
            fragments = fragment_groups(table)
            found += [SharedVector(name, p, share) for p in properties for share in fragments]
        return tuple(found)

    def size(self) -> TextSize:
        """All of them, without keeping any."""
        texts = size = 0
        for name, properties in self.chosen.items():
            for prop in properties:
                for part in self.read(name, prop):
                    texts += len(part)
                    size += part.nbytes
        return TextSize(texts, size)

    def read(
        self, type: str, prop: Property, fragments: Collection[int] | None = None
    ) -> Iterator[pa.Array]:
        """The due texts of a property, batch by batch."""
        node = self.snapshot.catalog.nodes[type]
        table = self.snapshot.open(self.tables, node.table_key)
        model = self.model if prop.embed_model is None else stored_name(prop.embed_model)
        for rows in read_states(table, node, prop, model, fragments):
            yield rows.texts.filter(self.due(rows.states))
