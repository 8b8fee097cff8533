"""What the statements so far did to one table: rows to write by id, and ids to remove."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


class Overlay:
    """The pending rows and deletions of one table. An id is in at most one of the two."""

    def __init__(self, schema: pa.Schema) -> None:
        self._pieces: list[pa.Table] = [schema.empty_table()]
        self._length = 0
        self._place: dict[str, int] = {}
        """Id to its row in the pieces laid end to end; replaced rows have no place any more."""
        self._made: set[str] = set()
        self._deleted: dict[str, None] = {}

    # -- what there is ----------------------------------------------------------------------

    @property
    def is_empty(self) -> bool:
        return not self._place and not self._deleted

    @property
    def only_adds(self) -> bool:
        """Whether all it holds are new rows under ids that were made for them."""
        return not self._deleted and self._place.keys() <= self._made

    def __contains__(self, id: str) -> bool:
        return id in self._place

    def has_deleted(self, id: str) -> bool:
        return id in self._deleted

    def was_made(self, id: str) -> bool:
        """Whether the id was made by this query, so that no committed row has it."""
        return id in self._made

    def rows(self) -> pa.Table:
        """The pending rows."""
        if len(self._pieces) > 1 or len(self._place) < self._length:
            rows = pa.concat_tables(self._pieces)
            if len(self._place) < self._length:
                places = np.fromiter(self._place.values(), np.int64, len(self._place))
                places.sort()
                rows = rows.take(pa.array(places))
            rows = rows.combine_chunks()
            self._pieces, self._length = [rows], rows.num_rows
            self._place = dict(zip(_texts(rows.column("id")), range(self._length), strict=True))
        return self._pieces[0]

    def deletions(self) -> pa.Array:
        return pa.array(list(self._deleted), pa.utf8())

    def hidden(self) -> pa.Array:
        """The ids whose committed rows no longer count."""
        return pa.array([*self._place, *self._deleted], pa.utf8())

    def without_hidden(self, rows: pa.Table) -> pa.Table:
        """Committed rows that still count."""
        if self.is_empty or not rows.num_rows:
            return rows
        return rows.filter(pc.invert(pc.is_in(rows.column("id"), value_set=self.hidden())))

    # -- changing it ------------------------------------------------------------------------

    def put(self, rows: pa.Table, *, made: bool) -> None:
        """Add rows, or replace those with the same ids. `made` ids are new to the graph."""
        ids = _texts(rows.column("id"))
        self._pieces.append(rows)
        self._place.update(zip(ids, range(self._length, self._length + len(ids)), strict=True))
        self._length += len(ids)
        if made:
            self._made.update(ids)
        if self._deleted:
            for id in ids:
                self._deleted.pop(id, None)

    def drop(self, ids: Iterable[str]) -> None:
        """Forget pending rows."""
        for id in ids:
            self._place.pop(id, None)

    def delete(self, ids: Iterable[str]) -> None:
        """Mark committed rows as deleted."""
        self._deleted.update(dict.fromkeys(ids))


def _texts(column: pa.ChunkedArray) -> list[str]:
    texts: list[str] = column.to_pylist()
    return texts
