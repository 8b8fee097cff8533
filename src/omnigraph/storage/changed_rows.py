"""The rows in which two versions of a table can differ, found without reading the others.

Versions share the files that nothing has touched between them, on whichever branch they are. Only
files that one version has alone are read, and of files with other deletions only the rows that are
deleted in one of them. Tests: tests/storage/tables/test_changed_rows.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import lance
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.storage.failures import naming_failures
from omnigraph.storage.refs import StoredBranch, list_refs
from omnigraph.storage.scan import ROW_ADDRESS, ROW_ID
from omnigraph.storage.table import Table

Numbers: TypeAlias = npt.NDArray[np.int64]
Wanted: TypeAlias = Callable[[pa.Array], npt.NDArray[np.bool_]]
"""Selects the ids a caller needs; None stands for all."""

_Files: TypeAlias = tuple[str, ...]

ROW_UPDATED: Final = "_row_last_updated_at_version"
_IDENTITY: Final = (ROW_ID, ROW_UPDATED)

_ROWS_COMPARED_ANYWAY: Final = 4096
"""Rows on both sides that are not worth asking when they were changed last."""

_ROWS_SCANNED_PER_ROW_TAKEN: Final = 8
"""Reading a row by its place costs about as much as reading this many in a row."""


@dataclass(frozen=True, slots=True)
class RowAddresses:
    """Some rows of one version of a table: their ids, and where they are.

    A position counts the rows of a fragment that are not deleted.
    """

    table: Table
    ids: pa.Array
    fragments: Numbers
    positions: Numbers

    def __len__(self) -> int:
        return len(self.ids)

    def joined(self, others: RowAddresses) -> RowAddresses:
        """These rows and then others of the same version."""
        return RowAddresses(
            self.table,
            pa.concat_arrays([self.ids, others.ids]),
            np.concatenate([self.fragments, others.fragments]),
            np.concatenate([self.positions, others.positions]),
        )

    def at(self, numbers: Numbers) -> RowAddresses:
        """The rows with these numbers, in their order."""
        return RowAddresses(
            self.table,
            self.ids.take(pa.array(numbers)),
            self.fragments[numbers],
            self.positions[numbers],
        )

    def without(self, numbers: Numbers) -> RowAddresses:
        """All but the rows with these numbers."""
        kept = np.ones(len(self), np.bool_)
        kept[numbers] = False
        return self.at(np.flatnonzero(kept))

    def read(self, numbers: Numbers, columns: Sequence[str]) -> pa.Table:
        """The rows with these numbers, in their order."""
        names = list(dict.fromkeys(columns))
        if not len(numbers):
            return _no_rows(self.table, names)
        fragments, positions = self.fragments[numbers], self.positions[numbers]
        order = np.lexsort((positions, fragments))
        found = []
        for fragment, places in _by_fragment(fragments[order], positions[order]):
            found.append(_read_addresses(self.table, fragment, places, names))
        back = np.empty_like(order)
        back[order] = np.arange(len(order))
        return picked(pa.concat_tables(found).select(list(columns)), back)


def picked(rows: pa.Table, numbers: Numbers) -> pa.Table:
    """The rows with these numbers, in their order; as they are if that is what they are."""
    if len(numbers) == rows.num_rows and np.array_equal(numbers, np.arange(len(numbers))):
        return rows
    return rows.take(pa.array(numbers))


def all_rows(table: Table, wanted: Wanted | None = None) -> RowAddresses:
    """Every row of a version that is wanted."""
    fragments = [fragment.fragment_id for fragment in table.dataset.get_fragments()]
    return _addresses(table, [_rows_of(table, fragments, wanted)])


def locations_of(table: Table, ids: pa.Array) -> RowAddresses:
    """The rows with the given distinct ids; ids that are not there are left out."""
    found = table.lookup(ids, ["id", ROW_ADDRESS])
    fragments, offsets = _split(found.column(ROW_ADDRESS))
    positions = np.empty_like(offsets)
    left = _offsets(table, np.unique(fragments).tolist())
    for fragment, kept in left.items():
        here = fragments == fragment
        positions[here] = np.searchsorted(kept, offsets[here])
    return RowAddresses(table, _column(found, "id"), fragments, positions)


def differing_rows(
    before: Table, after: Table, wanted: Wanted | None = None
) -> tuple[RowAddresses, RowAddresses]:
    """The rows of either version that the other one may not have, or not in this form.

    Of the wanted rows, those that are in neither answer are the same in both versions. An id in one
    answer only is in that version only.
    """
    left, right = _stored(before), _stored(after)
    shared = [files for files in left if files in right]
    trimmed = [files for files in shared if left[files][1] != right[files][1]]
    deleted_later, deleted_before = _deleted(
        before, [left[f][0] for f in trimmed], after, [right[f][0] for f in trimmed], wanted
    )
    old = _addresses(before, [_rows_of(before, _alone(left, right), wanted), deleted_later])
    new = _addresses(after, [_rows_of(after, _alone(right, left), wanted), deleted_before])
    return _without_untouched(old, new)


def _without_untouched(
    left: RowAddresses, right: RowAddresses
) -> tuple[RowAddresses, RowAddresses]:
    """Leave out rows that were only rewritten: unchanged since the fork point.

    Asked only of many rows; a few are compared as quickly. New columns leave no trace in the rows, so
    nothing is left out where the columns are not the same.
    """
    place = pc.index_in(left.ids, value_set=right.ids)
    mine = np.flatnonzero(place.is_valid().to_numpy(zero_copy_only=False))
    if len(mine) < _ROWS_COMPARED_ANYWAY or left.table.schema != right.table.schema:
        return left, right
    shared = last_shared_version(left.table, right.table)
    if shared is None:
        return left, right
    theirs = place.drop_null().to_numpy().astype(np.int64)
    one, other = left.read(mine, _IDENTITY), right.read(theirs, _IDENTITY)
    same = one.column(ROW_ID).to_numpy() == other.column(ROW_ID).to_numpy()
    for rows in (one, other):
        same &= rows.column(ROW_UPDATED).to_numpy() <= shared
    return left.without(mine[same]), right.without(theirs[same])


def last_shared_version(one: Table, other: Table) -> int | None:
    """The newest version that both tables descend from; None if it is unknown."""
    if one.branch == other.branch:
        return min(one.version, other.version)
    stored = list_refs(one.dataset, one.lineage.uri)
    lines = [dict(_line_of_descent(table, stored)) for table in (one, other)]
    common = [branch for branch in lines[0] if branch in lines[1]]
    return min(line[common[0]] for line in lines) if common else None


def _line_of_descent(
    table: Table, stored: Mapping[str, StoredBranch]
) -> Iterator[tuple[str | None, int]]:
    """The branches a version descends from, with the last version of each that it has."""
    branch, version = table.branch, table.version
    yield branch, version
    while branch is not None and (ref := stored.get(branch)) is not None:
        branch, version = ref.parent, ref.parent_version
        yield branch, version


_Rows: TypeAlias = tuple[pa.Array, Numbers, Numbers]
"""Ids, fragments, positions."""


def _addresses(table: Table, parts: Iterable[_Rows]) -> RowAddresses:
    ids, fragments, positions = zip(*parts, strict=True)
    return RowAddresses(
        table, pa.concat_arrays(ids), np.concatenate(fragments), np.concatenate(positions)
    )


def _stored(table: Table) -> dict[_Files, tuple[int, tuple[int, int] | None]]:
    """The fragments by the files they are stored in, with what tells their deletions apart."""
    found = {}
    for fragment in table.dataset.get_fragments():
        metadata = fragment.metadata
        deleted = metadata.deletion_file
        files = tuple(file._path for file in metadata.files)
        found[files] = (
            fragment.fragment_id,
            None if deleted is None else (deleted.read_version, deleted.id),
        )
    return found


def _alone(
    mine: dict[_Files, tuple[int, tuple[int, int] | None]],
    others: dict[_Files, tuple[int, tuple[int, int] | None]],
) -> list[int]:
    return [fragment for files, (fragment, _) in mine.items() if files not in others]


def _rows_of(table: Table, fragments: Sequence[int], wanted: Wanted | None) -> _Rows:
    """The wanted rows of some fragments."""
    if wanted is not None:
        # One after the other: no more ids are in memory than those that are wanted.
        return _joined([_nothing(), *(_wanted_rows(table, number, wanted) for number in fragments)])
    found = table.read(["id", ROW_ADDRESS], fragment_ids=set(fragments)) if fragments else None
    if found is None or not found.num_rows:
        return _nothing()
    numbers, _ = _split(found.column(ROW_ADDRESS))
    return _column(found, "id"), numbers, _positions(numbers)


def _wanted_rows(table: Table, fragment: int, wanted: Wanted) -> _Rows:
    with naming_failures("read", table.lineage.uri):
        found = table.dataset.scanner(
            columns=["id"], fragments=[_fragment(table, fragment)]
        ).to_table()
    ids = _column(found, "id")
    places = np.flatnonzero(wanted(ids))
    return ids.take(pa.array(places)), np.full(len(places), fragment, np.int64), places


def _positions(fragments: Numbers) -> Numbers:
    """Of rows that come fragment by fragment, each in the order it is stored."""
    starts = np.flatnonzero(np.r_[True, fragments[1:] != fragments[:-1]])
    lengths = np.diff(np.r_[starts, len(fragments)])
    return np.arange(len(fragments)) - np.repeat(starts, lengths)


def _deleted(
    before: Table,
    left: Sequence[int],
    after: Table,
    right: Sequence[int],
    wanted: Wanted | None,
) -> tuple[_Rows, _Rows]:
    """Of fragments that share their files: the rows that only one of the versions still has."""
    later: list[_Rows] = [_nothing()]
    earlier: list[_Rows] = [_nothing()]
    mine, theirs = _offsets(before, left), _offsets(after, right)
    for one, other in zip(left, right, strict=True):
        later.append(_missing(before, one, mine[one], theirs[other], wanted))
        earlier.append(_missing(after, other, theirs[other], mine[one], wanted))
    return _joined(later), _joined(earlier)


def _offsets(table: Table, fragments: Sequence[int]) -> dict[int, Numbers]:
    """Which of the stored rows of each fragment are left, without reading any of them."""
    if not fragments:
        return {}
    found = table.read([ROW_ADDRESS], fragment_ids=set(fragments))
    numbers, offsets = _split(found.column(ROW_ADDRESS))
    nothing = np.empty(0, np.int64)
    return dict.fromkeys(fragments, nothing) | dict(_by_fragment(numbers, offsets))


def _missing(
    table: Table, fragment: int, offsets: Numbers, others: Numbers, wanted: Wanted | None
) -> _Rows:
    kept = np.zeros(max(offsets.max(initial=-1), others.max(initial=-1)) + 1, np.bool_)
    kept[others] = True
    places = np.flatnonzero(~kept[offsets])
    if not len(places):
        return _nothing()
    ids = _column(_read_addresses(table, fragment, places, ["id"]), "id")
    if wanted is not None:
        kept = np.flatnonzero(wanted(ids))
        ids, places = ids.take(pa.array(kept)), places[kept]
    return ids, np.full(len(places), fragment, np.int64), places


def _read_addresses(table: Table, number: int, places: Numbers, columns: list[str]) -> pa.Table:
    """Rows of one fragment, in ascending order of their positions."""
    fragment = _fragment(table, number)
    first, span = int(places[0]), int(places[-1] - places[0]) + 1
    if len(places) * _ROWS_SCANNED_PER_ROW_TAKEN >= span:
        with naming_failures("read", table.lineage.uri):
            found = table.dataset.scanner(
                columns=columns, fragments=[fragment], offset=first, limit=span
            ).to_table()
        return picked(found, places - first)
    # The library takes rows without what it knows about them without reading them.
    known = [name for name in columns if name in _IDENTITY]
    stored = [name for name in columns if name not in known]
    found = None
    if stored:
        with naming_failures("read", table.lineage.uri):
            found = fragment.take(places.tolist(), columns=stored)
    if not known:
        return found
    extra = table.read(known, fragment_ids={number}).take(pa.array(places))
    if found is None:
        return extra
    for name in known:
        found = found.append_column(name, extra.column(name))
    return found.select(columns)


def _fragment(table: Table, number: int) -> lance.LanceFragment:
    fragment = table.dataset.get_fragment(number)
    assert fragment is not None, "its number was read from this very version"
    return fragment


def _split(addresses: pa.ChunkedArray) -> tuple[Numbers, Numbers]:
    """Row addresses as fragments and offsets in them."""
    whole = addresses.to_numpy()
    return (
        (whole >> np.uint64(32)).astype(np.int64),
        (whole & np.uint64(0xFFFFFFFF)).astype(np.int64),
    )


def _by_fragment(fragments: Numbers, values: Numbers) -> Iterable[tuple[int, Numbers]]:
    """The values of each fragment; the rows of a fragment come together."""
    if not len(fragments):
        return []
    starts = np.flatnonzero(np.r_[True, fragments[1:] != fragments[:-1]])
    return zip(fragments[starts].tolist(), np.split(values, starts[1:]), strict=True)


def _joined(parts: Sequence[_Rows]) -> _Rows:
    ids, fragments, positions = zip(*parts, strict=True)
    return pa.concat_arrays(ids), np.concatenate(fragments), np.concatenate(positions)


def _nothing() -> _Rows:
    return pa.array([], pa.utf8()), np.empty(0, np.int64), np.empty(0, np.int64)


def _no_rows(table: Table, columns: Sequence[str]) -> pa.Table:
    fields = {name: pa.field(name, pa.uint64()) for name in _IDENTITY}
    return pa.schema([fields.get(n) or table.schema.field(n) for n in columns]).empty_table()


def _column(rows: pa.Table, name: str) -> pa.Array:
    return pc.cast(rows.column(name).combine_chunks(), pa.utf8())
