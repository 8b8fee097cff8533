"""Indexes of a table: making them, which rows they cover, and which of them are damaged."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NewType

import numpy as np
import numpy.typing as npt
from lance import LanceOperation
from lance.dataset import Index as LibraryIndex

from omnigraph.storage.conflicts import naming_failures
from omnigraph.storage.index_checks import index_folder
from omnigraph.storage.table import Table

if TYPE_CHECKING:
    from omnigraph.storage.stage import Staged

BTREE: Final = "BTREE"
PARTITIONED: Final = "IVF_FLAT"
"""Vectors by the partition whose centre they are nearest to, kept as they are."""

Centres = npt.NDArray[np.float32]
"""A unit vector per partition."""

BuiltIndex = NewType("BuiltIndex", LibraryIndex)
"""An index whose files are written and that is part of nothing yet."""


@dataclass(frozen=True, slots=True)
class Index:
    """An index and the fragments whose rows it knows."""

    name: str
    kind: str
    columns: tuple[str, ...]
    parts: tuple[frozenset[int], ...]
    """The fragments of each of its parts, which a search looks into one after the other."""
    is_borrowed: bool
    """Whether part of it is stored in the line of versions this one was branched from."""

    @property
    def fragment_ids(self) -> frozenset[int]:
        return frozenset[int]().union(*self.parts)


def damaged_indexes(table: Table) -> Mapping[str, str]:
    """The indexes of a table that must not be used, by name, each with the reason."""
    if table.lineage.checks is None:
        return {}
    with naming_failures("read the indexes", table.lineage.uri):
        return table.lineage.checks.damaged(table.lineage, table.dataset)


def noticed_damage(table: Table) -> bool:
    """Whether this process has already found an index of a table damaged. Reads nothing."""
    checks = table.lineage.checks
    return checks is not None and checks.has_noticed(table.dataset)


def condemn_index(table: Table, column: str, kind: str, cause: str) -> None:
    """Use the index of a column no more, after a read failed with it."""
    names = [i.name for i in list_indexes(table) if i.kind == kind and i.columns == (column,)]
    if table.lineage.checks is not None:
        table.lineage.checks.condemn(table.lineage, table.dataset, names, cause)


def list_indexes(table: Table) -> list[Index]:
    """The indexes of a table that can be used, by name; a damaged one is as good as missing."""
    damaged = damaged_indexes(table)
    with naming_failures("list the indexes", table.lineage.uri):
        described = [i for i in table.dataset.describe_indices() if i.name not in damaged]
    return [
        Index(
            found.name,
            found.index_type.upper(),
            tuple(found.field_names),
            tuple(frozenset(segment.fragment_ids) for segment in found.segments),
            any(segment.base_id is not None for segment in found.segments),
        )
        for found in described
    ]


def uncovered_fragments(table: Table, column: str, kind: str = BTREE) -> frozenset[int] | None:
    """The fragments an index does not know; None when none of this kind is on the column alone."""
    current = frozenset(fragment.id for fragment in table.fragments())
    for index in list_indexes(table):
        if index.kind == kind and index.columns == (column,):
            return current - index.fragment_ids
    return None


def stage_btree_index(table: Table, column: str) -> Staged | None:
    """An index over all present rows, named after its column; None for a table without rows."""
    return stage_indexes(table, [build_btree(table, column)]) if table.fragments() else None


def build_btree(table: Table, column: str) -> BuiltIndex:
    """A look-up index over all rows of a table that has some, named after its column."""
    return _build(table, column, BTREE)


def build_partitioned(table: Table, column: str, centres: Centres) -> BuiltIndex:
    """An index of vectors by cosine over all rows of a table that has some."""
    return _build(
        table,
        column,
        PARTITIONED,
        metric="cosine",
        num_partitions=len(centres),
        ivf_centroids=centres,
    )


def _build(table: Table, column: str, kind: str, **options: Any) -> BuiltIndex:
    fragments = [fragment.id for fragment in table.fragments()]
    name = f"{column}_idx"
    replaces = name in damaged_indexes(table)
    with naming_failures("build an index", table.lineage.uri):
        built = table.dataset.create_index_uncommitted(
            column, kind, name=name, fragment_ids=fragments, replace=replaces, **options
        )
    if table.lineage.checks is not None:
        table.lineage.checks.write_one(index_folder(table.lineage, built))
    return BuiltIndex(built)


def stage_indexes(table: Table, built: Sequence[BuiltIndex]) -> Staged:
    """Indexes that were built over the present rows, all of which one commit makes known.

    Damaged ones of the same names go.
    """
    from omnigraph.storage.stage import RowCounts, Staged

    return Staged(
        "index",
        table.lineage,
        table.version,
        RowCounts(),
        table.row_count(),
        LanceOperation.CreateIndex(
            new_indices=list(built),
            removed_indices=_stored_as(table, {index.name for index in built}),
        ),
    )


def _stored_as(table: Table, names: Collection[str]) -> list[LibraryIndex]:
    """All parts of the indexes of these names, to be removed: the library would keep them beside."""
    with naming_failures("list the indexes", table.lineage.uri):
        described = table.dataset.describe_indices()
    return [
        LibraryIndex(
            str(segment.uuid),
            index.name,
            index.fields,
            table.version,
            segment.fragment_ids,
            segment.index_version,
            base_id=segment.base_id,
        )
        for index in described
        if index.name in names
        for segment in index.segments
    ]


# -- how far a search looks ---------------------------------------------------------------------


def stage_probes(table: Table, probes: Mapping[str, int]) -> Staged:
    """A note in the table of how many partitions a search by each column looks into."""
    from omnigraph.storage.stage import RowCounts, Staged

    notes: dict[str, str | None] = {
        _probes_key(column): str(number) for column, number in probes.items()
    }
    return Staged(
        "note",
        table.lineage,
        table.version,
        RowCounts(),
        table.row_count(),
        LanceOperation.UpdateConfig(config_updates=LanceOperation.UpdateMap(notes)),
    )


def probes_of(table: Table, column: str) -> int | None:
    """How many partitions to look into; None if nobody has found out."""
    with naming_failures("read the settings", table.lineage.uri):
        noted = table.dataset.config().get(_probes_key(column))
    return None if noted is None else int(noted)


def _probes_key(column: str) -> str:
    return f"omnigraph.probes.{column}"
