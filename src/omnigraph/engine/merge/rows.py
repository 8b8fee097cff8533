"""Merging the rows of one table: the truth table on what the three states hold, and who decides the rest.

Rows are read some thousands at a time. What is to be written waits in memory, or in scratch files when
it is much. Tests: tests/behaviour/test_merge_rows.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.identity import embed_column
from omnigraph.catalog.model import EntityType
from omnigraph.engine.compare.changes import chunks
from omnigraph.engine.compare.sides import ABSENT, Side, find
from omnigraph.engine.entities import documents
from omnigraph.engine.merge.choices import Choices, Granularity, Strategy, Take
from omnigraph.engine.merge.scratch import ScratchRows
from omnigraph.engine.merge.truth import Presence, Verdicts, judge
from omnigraph.errors import MergeConflict
from omnigraph.rows.bindings import bound_schema
from omnigraph.rows.equality import Mask, equal_rows, equal_values
from omnigraph.storage.changed_rows import Numbers, picked

_TAKES: Mapping[Strategy, Take | None] = {
    Strategy.FAIL: None,
    Strategy.OURS: Take.OURS,
    Strategy.THEIRS: Take.THEIRS,
}


@dataclass(frozen=True)
class ThreeSides:
    """The rows in which the source can differ from the base, and those in which the target can."""

    base_of_source: Side
    source: Side
    base_of_target: Side
    target: Side
    unclear: pa.Array


@dataclass
class MergedRows:
    """What a merge does to the target's rows of one table."""

    upserts: pa.Table
    deletes: pa.Array
    inserted: int
    contested: pa.Array
    """Rows that both sides changed, decided or not."""
    conflicts: list[MergeConflict]
    resolved: set[str]
    """Rows that a resolution was for."""


def merge_rows(
    declared: EntityType, sides: ThreeSides, choices: Choices, *, keep: Sequence[str] | None = None
) -> MergedRows:
    """Merge the rows of a table. With `keep`, upserts hold only these columns."""
    return _RowMerge(declared, sides, choices, keep).run()


@dataclass(frozen=True)
class _Chunk:
    """Some rows with what each state holds of them: a table, and where in it each row is."""

    ids: pa.Array
    base: tuple[pa.Table, Numbers]
    source: tuple[pa.Table, Numbers]
    target: tuple[pa.Table, Numbers]
    touched: Mask
    """Rows in which the target can differ from the base. The others are the base's."""
    unclear: Mask

    def presence(self, columns: Sequence[str]) -> Presence:
        has_base, has_source = _present(self.base), _present(self.source)
        as_base = _equal(self.source, self.base, columns)
        source_as_target = _equal(self.source, self.target, columns)
        return Presence(
            base=has_base | self.unclear,
            source=has_source,
            target=np.where(self.touched, _present(self.target), has_base),
            source_as_base=as_base & ~self.unclear,
            target_as_base=(~self.touched | _equal(self.target, self.base, columns))
            & ~self.unclear,
            source_as_target=np.where(self.touched, source_as_target, as_base),
        )

    def where(self, side: tuple[pa.Table, Numbers], mask: Mask) -> pa.Table:
        """The rows of a side, which has all of them."""
        rows, at = side
        return picked(rows, at[mask])


@dataclass
class _RowMerge:
    declared: EntityType
    sides: ThreeSides
    choices: Choices
    keep: Sequence[str] | None
    _deletes: list[pa.Array] = field(default_factory=list)
    _contested: list[pa.Array] = field(default_factory=list)
    _conflicts: list[MergeConflict] = field(default_factory=list)
    _resolved: set[str] = field(default_factory=set)
    _inserted: int = 0

    def __post_init__(self) -> None:
        schema = bound_schema(self.declared)
        kept = schema.names if self.keep is None else self.keep
        self._upserts = ScratchRows(
            self.declared.table_key, pa.schema([schema.field(name) for name in kept])
        )
        self._columns = [name for name in self.declared.columns if name != "id"]
        self._words = self.choices.resolved(self.declared.table_key)

    def run(self) -> MergedRows:
        for chunk in self._chunks():
            self._merge(chunk)
        return MergedRows(
            upserts=self._upserts.table(),
            deletes=_joined(self._deletes),
            inserted=self._inserted,
            contested=_joined(self._contested),
            conflicts=self._conflicts,
            resolved=self._resolved,
        )

    def _chunks(self) -> Iterator[_Chunk]:
        sides = self.sides
        ids = pc.unique(pa.concat_arrays([sides.base_of_source.ids, sides.source.ids]))
        base, source = find(sides.base_of_source, ids), find(sides.source, ids)
        target = find(sides.target, ids)
        touched = (target != ABSENT) | (find(sides.base_of_target, ids) != ABSENT)
        unclear = pc.is_in(ids, value_set=sides.unclear).to_numpy(zero_copy_only=False)
        # Rows come in the order in which the source has stored them.
        order = np.argsort(source, kind="stable")
        for part in chunks(order):
            yield _Chunk(
                ids.take(pa.array(part)),
                _read(sides.base_of_source, base[part]),
                _read(sides.source, source[part]),
                _read(sides.target, target[part]),
                touched[part],
                unclear[part],
            )

    def _merge(self, chunk: _Chunk) -> None:
        rows = chunk.presence(self._columns)
        verdicts = judge(rows)
        self._take(chunk, rows, verdicts.taken)
        contested = (
            verdicts.divergent_insert | verdicts.divergent_update | verdicts.delete_vs_update
        )
        if contested.any():
            self._contested.append(chunk.ids.filter(pa.array(contested)))
            self._decide(chunk, rows, verdicts, contested)

    # -- what is written --------------------------------------------------------------------

    def _take(self, chunk: _Chunk, rows: Presence, mask: Mask) -> None:
        """The source's state instead of the target's."""
        self._put(chunk.where(chunk.source, mask & rows.source), rows, mask & rows.source)
        self._delete(chunk, mask & ~rows.source & rows.target)

    def _take_base(self, chunk: _Chunk, rows: Presence, mask: Mask) -> None:
        """The base's state instead of the target's."""
        there = mask & _present(chunk.base)
        self._put(chunk.where(chunk.base, there), rows, there)
        self._delete(chunk, mask & ~there & rows.target)

    def _put(self, upserts: pa.Table, rows: Presence, mask: Mask) -> None:
        self._inserted += int((mask & ~rows.target).sum())
        self._upserts.add(upserts if self.keep is None else upserts.select(list(self.keep)))

    def _delete(self, chunk: _Chunk, mask: Mask) -> None:
        self._deletes.append(chunk.ids.filter(pa.array(mask)))

    # -- rows that both sides changed -------------------------------------------------------

    def _decide(self, chunk: _Chunk, rows: Presence, verdicts: Verdicts, contested: Mask) -> None:
        takes = self._takes(chunk, contested)
        undecided = contested.copy()
        properties: dict[int, list[str]] = {}
        if self.choices.granularity is Granularity.PROPERTY:
            named = np.array([id in self._words for id in chunk.ids.to_pylist()], np.bool_)
            split = verdicts.divergent_update & ~chunk.unclear & ~named
            properties = self._merge_properties(chunk, rows, split)
            undecided &= ~split
        for take, mask in takes.items():
            chosen = undecided & mask
            if take is Take.THEIRS:
                self._take(chunk, rows, chosen)
            elif take is Take.BASE:
                self._take_base(chunk, rows, chosen)
            undecided &= ~mask
        undecided[list(properties)] = True
        self._report(chunk, verdicts, undecided, properties)

    def _takes(self, chunk: _Chunk, contested: Mask) -> dict[Take, Mask]:
        """Who decides each of the contested rows: its resolution, or the strategy of its type."""
        overall = _TAKES[self.choices.for_type(self.declared)]
        words = np.full(len(contested), overall, object)
        if self._words:
            for number in np.flatnonzero(contested).tolist():
                word = self._words.get(chunk.ids[number].as_py())
                if word is not None:
                    words[number] = word
                    self._resolved.add(chunk.ids[number].as_py())
        return {take: contested & (words == take) for take in Take}

    def _merge_properties(self, chunk: _Chunk, rows: Presence, mask: Mask) -> dict[int, list[str]]:
        """Rows changed on both sides, property by property.

        Returns the rows for which that is no way out, with the properties changed differently.
        """
        if not mask.any():
            return {}
        base, source, target = (
            chunk.where(side, mask) for side in (chunk.base, chunk.source, chunk.target)
        )
        count = target.num_rows
        clashes: dict[int, list[str]] = {}
        numbers = np.flatnonzero(mask)
        merged = {name: target.column(name) for name in target.column_names}
        moved = np.zeros(count, np.bool_)
        for name in self._columns:
            kept = equal_values(source.column(name), base.column(name))
            theirs = ~kept & equal_values(target.column(name), base.column(name))
            both = ~kept & ~theirs & ~equal_values(source.column(name), target.column(name))
            if both.any():
                word = self.choices.for_property(self.declared, name)
                if word is Strategy.THEIRS:
                    theirs |= both
                elif word is Strategy.FAIL:
                    for number in numbers[both].tolist():
                        clashes.setdefault(number, []).append(name)
            for column in self._with_binding(name):
                merged[column] = _chosen(target.column(column), source.column(column), theirs)
            moved |= theirs
        moved &= ~np.isin(numbers, list(clashes))
        written = pa.table(merged, schema=target.schema).filter(pa.array(moved))
        self._put(written, rows, np.isin(np.arange(len(mask)), numbers[moved]))
        return clashes

    def _with_binding(self, name: str) -> list[str]:
        """A property and, of a vector, what binds it to its text."""
        prop = self.declared.properties.get(name)
        if prop is None or prop.embed_source is None:
            return [name]
        return [name, embed_column(prop.prop_id)]

    def _report(
        self,
        chunk: _Chunk,
        verdicts: Verdicts,
        mask: Mask,
        properties: Mapping[int, Sequence[str]],
    ) -> None:
        numbers = np.flatnonzero(mask)
        shown = {
            name: self._documents(side, numbers)
            for name, side in (
                ("base", chunk.base),
                ("ours", chunk.target),
                ("theirs", chunk.source),
            )
        }
        for place, number in enumerate(numbers.tolist()):
            id = chunk.ids[number].as_py()
            if verdicts.divergent_insert[number]:
                kind, message = (
                    "divergent_insert",
                    f"both branches added '{id}' with different values",
                )
            elif verdicts.delete_vs_update[number]:
                kind = "delete_vs_update"
                message = f"'{id}' was deleted on one branch and changed on the other"
            else:
                kind = "divergent_update"
                message = f"both branches changed '{id}' to different values"
                if number in properties:
                    message = f"{message} of {', '.join(properties[number])}"
            values = {name: found[place] for name, found in shown.items()}
            self._conflicts.append(
                MergeConflict(self.declared.table_key, id, kind, message, **values)
            )

    def _documents(
        self, side: tuple[pa.Table, Numbers], numbers: Numbers
    ) -> list[dict[str, object] | None]:
        rows, at = side
        places = at[numbers]
        there = places != ABSENT
        found = iter(documents(self.declared, rows.take(pa.array(places[there])).to_batches()))
        return [next(found) if has else None for has in there.tolist()]


def _read(side: Side, numbers: Numbers) -> tuple[pa.Table, Numbers]:
    """The rows of a chunk that a side has, and where in them each row of the chunk is."""
    there = numbers != ABSENT
    at = np.full(len(numbers), ABSENT, np.int64)
    at[there] = np.arange(there.sum())
    return side.read(numbers[there]), at


def _present(side: tuple[pa.Table, Numbers]) -> Mask:
    there: Mask = np.not_equal(side[1], ABSENT)
    return there


def _equal(
    left: tuple[pa.Table, Numbers], right: tuple[pa.Table, Numbers], columns: Sequence[str]
) -> Mask:
    """Rows that both sides have and that are the same there."""
    same = _present(left) & _present(right)
    both = same.copy()
    one, other = (picked(rows.select(columns), at[both]) for rows, at in (left, right))
    same[both] = equal_rows(one, other, columns)
    return same


def _chosen(ours: pa.ChunkedArray, theirs: pa.ChunkedArray, mask: Mask) -> pa.Array:
    """A column with their value where the mask says so."""
    both = pa.concat_arrays([ours.combine_chunks(), theirs.combine_chunks()])
    return both.take(pa.array(np.arange(len(mask)) + mask * len(mask)))


def _joined(pieces: Sequence[pa.Array]) -> pa.Array:
    return pa.concat_arrays(pieces) if pieces else pa.array([], pa.utf8())
