"""States that take part in a merge: a snapshot, or one with some rows that no commit ever had.

The latter stands for the common ancestor of branches that have merged each other crosswise: the merge
of their several common ancestors.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.model import EntityType
from omnigraph.engine.compare.sides import HeldSide, Side, StoredSide, differing_sides, no_rows
from omnigraph.storage.changed_rows import Wanted, places_of
from omnigraph.storage.tables import TableStore
from omnigraph.versioning.snapshot import Snapshot, SnapshotEntry


@dataclass(frozen=True)
class Overlay:
    """Rows of one table that differ from the snapshot's."""

    rows: pa.Table
    gone: pa.Array
    unclear: pa.Array
    """Rows on which the ancestors disagree, so that nothing can be said to have stayed the same."""

    @property
    def ids(self) -> pa.Array:
        return pc.unique(pa.concat_arrays([_ids(self.rows), self.gone, self.unclear]))

    def only(self, wanted: Wanted) -> Overlay:
        """What it says about some ids."""
        return Overlay(
            self.rows.filter(pa.array(wanted(_ids(self.rows)))),
            self.gone.filter(pa.array(wanted(self.gone))),
            self.unclear.filter(pa.array(wanted(self.unclear))),
        )

    def under(self, newer: Overlay) -> Overlay:
        """What both say; the newer one counts where they speak of the same rows."""
        kept = pc.invert(pc.is_in(self.rows.column("id"), value_set=newer.ids))
        gone = self.gone.filter(pc.invert(pc.is_in(self.gone, value_set=newer.ids)))
        return Overlay(
            pa.concat_tables([self.rows.filter(kept), newer.rows]),
            pa.concat_arrays([gone, newer.gone]),
            pc.unique(pa.concat_arrays([self.unclear, newer.unclear])),
        )


@dataclass(frozen=True)
class Image:
    """A state of a graph, by table key."""

    snapshot: Snapshot
    overlays: Mapping[str, Overlay] = field(default_factory=dict)

    def entry(self, declared: EntityType) -> SnapshotEntry | None:
        return self.snapshot.entries.get(declared.table_key)

    def has_same(self, other: Image, declared: EntityType) -> bool:
        """Whether both surely hold the same rows of a type."""
        key = declared.table_key
        if key in self.overlays or key in other.overlays:
            return False
        mine, theirs = self.entry(declared), other.entry(declared)
        if mine is None or theirs is None:
            return mine is theirs
        return mine.version_ref == theirs.version_ref

    def overlay(self, declared: EntityType, wanted: Wanted | None = None) -> Overlay | None:
        """The overlay of a table, or as much of it as is wanted."""
        overlay = self.overlays.get(declared.table_key)
        return overlay if overlay is None or wanted is None else overlay.only(wanted)

    def unclear(self, declared: EntityType) -> pa.Array:
        overlay = self.overlays.get(declared.table_key)
        return pa.array([], pa.utf8()) if overlay is None else overlay.unclear


def differing(
    declared: EntityType,
    tables: TableStore,
    left: Image,
    right: Image,
    wanted: Wanted | None = None,
) -> tuple[Side, Side]:
    """The rows in which two images can differ, as either has them; see `differing_sides`."""
    stored = _stored(left, declared), _stored(right, declared)
    sides = differing_sides(declared, tables, *stored, wanted)
    mine, theirs = left.overlay(declared, wanted), right.overlay(declared, wanted)
    if mine is None and theirs is None:
        return sides
    overlaid = pa.concat_arrays([o.ids for o in (mine, theirs) if o is not None])
    touched = pa.concat_arrays([side.ids for side in sides])
    others = pc.unique(overlaid.filter(pc.invert(pc.is_in(overlaid, value_set=touched))))
    return (
        _overlaid(sides[0], _rows(declared, tables, left, others), mine),
        _overlaid(sides[1], _rows(declared, tables, right, others), theirs),
    )


def _overlaid(side: Side, more: Side, overlay: Overlay | None) -> Side:
    rows = pa.concat_tables([_all(side), _all(more)])
    if overlay is not None:
        hidden = pa.concat_arrays([_ids(overlay.rows), overlay.gone])
        rows = rows.filter(pc.invert(pc.is_in(rows.column("id"), value_set=hidden)))
        rows = pa.concat_tables([rows, overlay.rows])
    return HeldSide(rows)


def _rows(declared: EntityType, tables: TableStore, image: Image, ids: pa.Array) -> Side:
    """Rows of the snapshot by their ids."""
    entry = image.entry(declared)
    if entry is None or not entry.row_count or not len(ids):
        return no_rows(declared)
    return StoredSide(declared, places_of(image.snapshot.open(tables, entry.table_key), ids))


def _stored(image: Image, declared: EntityType) -> tuple[Snapshot, SnapshotEntry] | None:
    entry = image.entry(declared)
    return None if entry is None else (image.snapshot, entry)


def _all(side: Side) -> pa.Table:
    return side.read(np.arange(len(side.ids)))


def _ids(rows: pa.Table) -> pa.Array:
    return rows.column("id").combine_chunks()
