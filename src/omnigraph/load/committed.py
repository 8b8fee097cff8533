"""What a load asks about rows that are committed already."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import pyarrow as pa

from omnigraph.catalog.model import EdgeType, EntityType, Group


class CommittedRows(Protocol):
    """The committed state a load is judged against: one snapshot, read as often as needed.

    Every column handed in holds distinct values without nulls.
    """

    def existing(self, declared: EntityType, ids: pa.Array) -> pa.Array:
        """Those of the ids that a committed row of the type has, in any order."""
        ...

    def owners(
        self, declared: EntityType, group: Group, tuples: pa.Table, without: pa.Array
    ) -> pa.Table:
        """Committed rows that hold one of the tuples and whose id is not in `without`.

        `tuples` has the group's columns under their names, in their types; the answer has them and
        `id`. Tuples are equal when all their values are.
        """
        ...

    def stored(self, declared: EntityType, ids: pa.Array, names: Sequence[str]) -> pa.Table:
        """The committed rows with these ids, in any order: the id and the named columns.

        The names are those of properties and of the bindings of vectors.
        """
        ...

    def outgoing(self, edge: EdgeType, sources: pa.Array, without: pa.Array) -> pa.Table:
        """How many committed edges leave each source, not counting those with an id in `without`.

        Columns `src` and `count` (int64); a source without edges may be left out.
        """
        ...
