"""Merging the rows of one table: the truth table on what the three states hold, and who decides the rest.

Rows are read some thousands at a time. What is to be written waits in memory, or in scratch files when
it is much. Tests: tests/behaviour/test_merge_rows.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.identity import embed_column
from omnigraph.catalog.model import EntityType
from omnigraph.engine.compare.changes import chunks, plain_and_wide, same_rows
from omnigraph.engine.compare.sides import ABSENT, Side, find
from omnigraph.engine.merge.choices import Choices, Granularity, Strategy, Take
from omnigraph.engine.merge.disputes import Disputed, Disputes, kinds_of
from omnigraph.engine.merge.scratch import ScratchRows
from omnigraph.engine.merge.truth import Presence, Verdicts, judge
from omnigraph.engine.write.change import WrittenTable
from omnigraph.errors import MergeConflict
from omnigraph.progress import SILENT, Progress
from omnigraph.rows.bindings import bound_schema
from omnigraph.rows.equality import Mask, equal_values
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

    @cached_property
    def ids(self) -> pa.Array:
        """The rows that a merge has to look at."""
        return pc.unique(pa.concat_arrays([self.base_of_source.ids, self.source.ids]))


@dataclass
class MergedRows:
    """What a merge does to the target's rows of one table."""

    upserts: pa.Table
    deletes: pa.Array
    inserted: int
    contested: pa.Array
    """Rows that both sides changed, decided or not."""
    conflicts: list[MergeConflict]
    """The first by id, if there are very many."""
    conflicts_total: int
    resolved: set[str]
    """Rows that a resolution was for."""
    written: WrittenTable | None = None
    """The upserts in full, if tasks have written them; they have the columns of rules only then."""


def merge_rows(
    declared: EntityType,
    sides: ThreeSides,
    choices: Choices,
    *,
    keep: Sequence[str] | None = None,
    progress: Progress = SILENT,
) -> MergedRows:
    """Merge the rows of a table. With `keep`, upserts hold only these columns."""
    return _RowMerge(declared, sides, choices, keep, progress).run()


@dataclass(frozen=True)
class _Rows:
    """What a state holds of some rows.

    Columns that will be needed are read at once; others, which are wide, when somebody asks for them.
    """

    side: Side
    numbers: Numbers
    values: pa.Table
    at: Numbers
    """Where in `values` each row is."""
    is_whole: bool
    """Whether `values` has all columns."""

    @classmethod
    def read(cls, side: Side, numbers: Numbers, columns: Sequence[str] | None = None) -> _Rows:
        there = numbers != ABSENT
        at = np.full(len(numbers), ABSENT, np.int64)
        at[there] = np.arange(there.sum())
        return cls(side, numbers, side.read(numbers[there], columns), at, columns is None)

    @property
    def present(self) -> Mask:
        there: Mask = np.not_equal(self.at, ABSENT)
        return there

    def where(self, mask: Mask, columns: Sequence[str] | None = None) -> pa.Table:
        """The values of rows that the state has all of; all columns if none are named."""
        if columns is None and self.is_whole:
            return picked(self.values, self.at[mask])
        if columns is not None and set(columns) <= set(self.values.column_names):
            return picked(self.values.select(columns), self.at[mask])
        return self.side.read(self.numbers[mask], columns)

    def equal(self, other: _Rows, declared: EntityType) -> Mask:
        """Rows that both states have and that are the same there."""
        same = self.present & other.present
        both = np.flatnonzero(same)
        one, two = (partial(_among, rows, both) for rows in (self, other))
        same[both] = same_rows(declared, len(both), one, two)
        return same


def _among(rows: _Rows, numbers: Numbers, chosen: Mask, columns: Sequence[str]) -> pa.Table:
    """Columns of those rows among some that a mask chooses."""
    mask = np.zeros(len(rows.numbers), np.bool_)
    mask[numbers[chosen]] = True
    return rows.where(mask, columns)


@dataclass(frozen=True)
class _Chunk:
    """Some rows with what each state holds of them."""

    ids: pa.Array
    base: _Rows
    source: _Rows
    target: _Rows
    touched: Mask
    """Rows in which the target can differ from the base. The others are the base's."""
    unclear: Mask

    def presence(self, declared: EntityType) -> Presence:
        has_base = self.base.present
        as_base = self.source.equal(self.base, declared)
        source_as_target = self.source.equal(self.target, declared)
        return Presence(
            base=has_base | self.unclear,
            source=self.source.present,
            target=np.where(self.touched, self.target.present, has_base),
            source_as_base=as_base & ~self.unclear,
            target_as_base=(~self.touched | self.target.equal(self.base, declared)) & ~self.unclear,
            source_as_target=np.where(self.touched, source_as_target, as_base),
        )


@dataclass
class _RowMerge:
    declared: EntityType
    sides: ThreeSides
    choices: Choices
    keep: Sequence[str] | None
    progress: Progress
    _deletes: list[pa.Array] = field(default_factory=list)
    _contested: list[pa.Array] = field(default_factory=list)
    _resolved: set[str] = field(default_factory=set)
    _inserted: int = 0

    def __post_init__(self) -> None:
        schema = bound_schema(self.declared)
        kept = schema.names if self.keep is None else self.keep
        self._upserts = ScratchRows(
            self.declared.table_key, pa.schema([schema.field(name) for name in kept])
        )
        self._columns = [name for name in self.declared.columns if name != "id"]
        self._disputes = Disputes(self.declared, self._columns)
        words = self.choices.resolved(self.declared.table_key)
        self._named = pa.array(list(words), pa.utf8())
        self._words = np.array(list(words.values()), object)

    def run(self) -> MergedRows:
        sides = self.sides
        for chunk in self._chunks():
            self._merge(chunk)
            self.progress.advance(len(chunk.ids))
        told = self._disputes.conflicts(sides.base_of_source, sides.target, sides.source)
        return MergedRows(
            upserts=self._upserts.table(),
            deletes=_joined(self._deletes),
            inserted=self._inserted,
            contested=_joined(self._contested),
            conflicts=list(told),
            conflicts_total=self._disputes.total,
            resolved=self._resolved,
        )

    def _chunks(self) -> Iterator[_Chunk]:
        sides = self.sides
        ids = sides.ids
        base, source = find(sides.base_of_source, ids), find(sides.source, ids)
        target = find(sides.target, ids)
        touched = (target != ABSENT) | (find(sides.base_of_target, ids) != ABSENT)
        unclear = pc.is_in(ids, value_set=sides.unclear).to_numpy(zero_copy_only=False)
        # Rows come in the order in which the source has stored them.
        order = np.argsort(source, kind="stable")
        plain, _ = plain_and_wide(self.declared)
        for part in chunks(order):
            yield _Chunk(
                ids.take(pa.array(part)),
                _Rows.read(sides.base_of_source, base[part], plain or ["id"]),
                _Rows.read(sides.source, source[part]),
                _Rows.read(sides.target, target[part], plain or ["id"]),
                touched[part],
                unclear[part],
            )

    def _merge(self, chunk: _Chunk) -> None:
        rows = chunk.presence(self.declared)
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
        self._put(chunk.source.where(mask & rows.source), rows, mask & rows.source)
        self._delete(chunk, mask & ~rows.source & rows.target)

    def _take_base(self, chunk: _Chunk, rows: Presence, mask: Mask) -> None:
        """The base's state instead of the target's."""
        there = mask & chunk.base.present
        self._put(chunk.base.where(there), rows, there)
        self._delete(chunk, mask & ~there & rows.target)

    def _put(self, upserts: pa.Table, rows: Presence, mask: Mask) -> None:
        self._inserted += int((mask & ~rows.target).sum())
        self._upserts.add(upserts if self.keep is None else upserts.select(list(self.keep)))

    def _delete(self, chunk: _Chunk, mask: Mask) -> None:
        self._deletes.append(chunk.ids.filter(pa.array(mask)))

    # -- rows that both sides changed -------------------------------------------------------

    def _decide(self, chunk: _Chunk, rows: Presence, verdicts: Verdicts, contested: Mask) -> None:
        named = self._named_in(chunk) & contested
        takes = self._takes(chunk, contested, named)
        undecided = contested.copy()
        clashes = np.zeros((len(contested), len(self._columns)), np.bool_)
        if self.choices.granularity is Granularity.PROPERTY:
            split = verdicts.divergent_update & ~chunk.unclear & ~named
            clashes[split] = self._merge_properties(chunk, rows, split)
            undecided &= ~split
        for take, mask in takes.items():
            chosen = undecided & mask
            if take is Take.THEIRS:
                self._take(chunk, rows, chosen)
            elif take is Take.BASE:
                self._take_base(chunk, rows, chosen)
            undecided &= ~mask
        undecided |= clashes.any(axis=1)
        if undecided.any():
            disputed = Disputed(
                chunk.ids,
                kinds_of(verdicts),
                chunk.base.numbers,
                chunk.target.numbers,
                chunk.source.numbers,
                clashes,
            )
            self._disputes.add(disputed.at(np.flatnonzero(undecided)))

    def _named_in(self, chunk: _Chunk) -> Mask:
        """Rows that a resolution is for."""
        if not len(self._named):
            return np.zeros(len(chunk.ids), np.bool_)
        named: Mask = pc.is_in(chunk.ids, value_set=self._named).to_numpy(zero_copy_only=False)
        return named

    def _takes(self, chunk: _Chunk, contested: Mask, named: Mask) -> dict[Take, Mask]:
        """Who decides each of the contested rows: its resolution, or the strategy of its type."""
        words = np.full(len(contested), _TAKES[self.choices.for_type(self.declared)], object)
        if named.any():
            ids = chunk.ids.filter(pa.array(named))
            words[named] = self._words[pc.index_in(ids, value_set=self._named).to_numpy()]
            self._resolved.update(ids.to_pylist())
        return {take: contested & (words == take) for take in Take}

    def _merge_properties(self, chunk: _Chunk, rows: Presence, mask: Mask) -> Mask:
        """Rows changed on both sides, property by property.

        Returns, by row and column, where that is no way out; such rows are not written.
        """
        clashes = np.zeros((int(mask.sum()), len(self._columns)), np.bool_)
        if not mask.any():
            return clashes
        base, source, target = (
            side.where(mask) for side in (chunk.base, chunk.source, chunk.target)
        )
        merged = {name: target.column(name) for name in target.column_names}
        moved = np.zeros(len(clashes), np.bool_)
        for number, name in enumerate(self._columns):
            kept = equal_values(source.column(name), base.column(name))
            theirs = ~kept & equal_values(target.column(name), base.column(name))
            both = ~kept & ~theirs & ~equal_values(source.column(name), target.column(name))
            word = self.choices.for_property(self.declared, name)
            if word is Strategy.THEIRS:
                theirs |= both
            elif word is Strategy.FAIL:
                clashes[:, number] = both
            for column in self._with_binding(name):
                merged[column] = _chosen(target.column(column), source.column(column), theirs)
            moved |= theirs
        moved &= ~clashes.any(axis=1)
        written = mask.copy()
        written[mask] = moved
        self._put(pa.table(merged, schema=target.schema).filter(pa.array(moved)), rows, written)
        return clashes

    def _with_binding(self, name: str) -> list[str]:
        """A property and, of a vector, what binds it to its text."""
        prop = self.declared.properties.get(name)
        if prop is None or prop.embed_source is None:
            return [name]
        return [name, embed_column(prop.prop_id)]


def _chosen(ours: pa.ChunkedArray, theirs: pa.ChunkedArray, mask: Mask) -> pa.Array:
    """A column with their value where the mask says so."""
    both = pa.concat_arrays([ours.combine_chunks(), theirs.combine_chunks()])
    return both.take(pa.array(np.arange(len(mask)) + mask * len(mask)))


def _joined(pieces: Sequence[pa.Array]) -> pa.Array:
    return pa.concat_arrays(pieces) if pieces else pa.array([], pa.utf8())
