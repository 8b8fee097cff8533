"""Merge the rows of one table: apply the decision table, then resolve contested rows.

Rows are read a few thousand at a time. Rows to write wait in memory and, beyond a budget, in scratch
files. All conflicting rows are counted; the first by id are reported with their values, so that a report is
bounded and the same on one process and on Spark.
Tests: tests/unit/engine/test_merge_decisions.py, tests/behaviour/test_merge_rows.py."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.identity import embed_column
from omnigraph.catalog.model import EntityType
from omnigraph.commit.change import WrittenTable
from omnigraph.diff.changes import (
    ABSENT,
    Side,
    chunks,
    find,
    plain_and_wide,
    row_documents,
    same_rows,
)
from omnigraph.errors import MergeConflict
from omnigraph.limits import MAX_REPORTED_CONFLICTS, MERGE_MEMORY_BYTES
from omnigraph.merge.resolution import ConflictResolution, Granularity, Strategy, Take
from omnigraph.progress import SILENT, Progress
from omnigraph.rows.bindings import bound_schema
from omnigraph.rows.equality import Mask, equal_values
from omnigraph.settings import read_settings
from omnigraph.storage.changed_rows import Numbers, picked
from omnigraph.temporary import TemporaryFolder

_KINDS = ("divergent_insert", "delete_vs_update", "divergent_update")
_MESSAGES = (
    "both branches added '{}' with different values",
    "'{}' was deleted on one branch and changed on the other",
    "both branches changed '{}' to different values",
)


@dataclass(frozen=True, slots=True)
class Presence:
    """Which rows each state has, and which rows are equal in two of the states."""

    base: Mask
    source: Mask
    target: Mask
    source_as_base: Mask
    target_as_base: Mask
    source_as_target: Mask


@dataclass(frozen=True, slots=True)
class Decisions:
    """Masks over rows: take the source's state, or report a conflict. Other rows stay as in the target."""

    taken: Mask
    divergent_insert: Mask
    divergent_update: Mask
    delete_vs_update: Mask

    @property
    def contested(self) -> Mask:
        """Rows that both sides changed differently."""
        return self.divergent_insert | self.divergent_update | self.delete_vs_update

    def kinds(self) -> npt.NDArray[np.int8]:
        """The conflict kind of each contested row, as an index into `_KINDS`."""
        kinds = np.full(len(self.taken), 2, np.int8)
        kinds[self.divergent_insert] = 0
        kinds[self.delete_vs_update] = 1
        return kinds


def decide(rows: Presence) -> Decisions:
    """Apply the decision table to every row. An absent row is a state like any other.

    The target's state stays wherever the source changed nothing, or made the same change.
    """
    source_kept = _same(rows.source, rows.base, rows.source_as_base)
    target_kept = _same(rows.target, rows.base, rows.target_as_base)
    agreed = _same(rows.source, rows.target, rows.source_as_target)
    undecided = ~source_kept & ~target_kept & ~agreed
    everywhere = rows.base & rows.source & rows.target
    return Decisions(
        taken=~source_kept & target_kept & ~agreed,
        divergent_insert=undecided & ~rows.base,
        divergent_update=undecided & everywhere,
        delete_vs_update=undecided & rows.base & ~everywhere,
    )


def _same(left: Mask, right: Mask, equal: Mask) -> Mask:
    return ~(left ^ right) & (~left | equal)


class ConflictingRows(NamedTuple):
    """Rows that both sides changed, with their row numbers in the three states."""

    ids: pa.Array
    kinds: npt.NDArray[np.int8]
    base: Numbers
    ours: Numbers
    theirs: Numbers
    clashes: Mask
    """By row and column: whether both sides changed that property; all false for whole rows."""

    def take(self, numbers: Numbers) -> ConflictingRows:
        columns: tuple[Any, ...] = self[1:]
        return ConflictingRows(self.ids.take(pa.array(numbers)), *(c[numbers] for c in columns))

    @classmethod
    def concat(cls, parts: Sequence[ConflictingRows]) -> ConflictingRows:
        ids, *columns = zip(*parts, strict=True)
        arrays: list[Any] = [np.concatenate(column) for column in columns]
        return cls(pa.concat_arrays(ids), *arrays)


@dataclass
class ConflictCollector:
    """Counts the conflicting rows of one table and keeps the first by id."""

    declared: EntityType
    columns: Sequence[str]
    total: int = 0
    _kept: list[ConflictingRows] = field(default_factory=list)

    def add(self, rows: ConflictingRows) -> None:
        self.total += len(rows.ids)
        self._kept.append(rows)
        if sum(len(part.ids) for part in self._kept) > 4 * MAX_REPORTED_CONFLICTS:
            self._kept = [self._first()]

    def conflicts(self, base: Side, ours: Side, theirs: Side) -> Iterator[MergeConflict]:
        """The first conflicts by id, with the values of all three states."""
        if not self._kept:
            return
        first = self._first()
        for part in chunks(np.arange(len(first.ids))):
            rows = first.take(part)
            values = zip(
                row_documents(self.declared, base, rows.base),
                row_documents(self.declared, ours, rows.ours),
                row_documents(self.declared, theirs, rows.theirs),
                strict=True,
            )
            for number, documents in enumerate(values):
                id, kind = rows.ids[number].as_py(), int(rows.kinds[number])
                message = _MESSAGES[kind].format(id)
                names = [
                    self.columns[column] for column in np.flatnonzero(rows.clashes[number]).tolist()
                ]
                if names:
                    message += f" of {', '.join(names)}"
                yield MergeConflict(self.declared.table_key, id, _KINDS[kind], message, *documents)

    def _first(self) -> ConflictingRows:
        rows = ConflictingRows.concat(self._kept)
        order = pc.sort_indices(rows.ids).to_numpy().astype(np.int64)
        return rows.take(order[:MAX_REPORTED_CONFLICTS])


_TAKES: Mapping[Strategy, Take | None] = {
    Strategy.FAIL: None,
    Strategy.OURS: Take.OURS,
    Strategy.THEIRS: Take.THEIRS,
}


class ScratchRows:
    """Rows of one table in insertion order: in memory, beyond a budget in memory-mapped files."""

    def __init__(self, table_key: str, schema: pa.Schema) -> None:
        self._key = table_key
        self._schema = schema
        self._held: list[pa.Table] = []
        self._held_bytes = 0
        self._spilled: list[pa.Table] = []

    def add(self, rows: pa.Table) -> None:
        if rows.num_rows:
            self._held.append(rows)
            self._held_bytes += rows.nbytes
        if self._held_bytes > MERGE_MEMORY_BYTES:
            self._spill()

    def table(self) -> pa.Table:
        """All rows. Spilled rows stay readable: a mapped file outlives its name."""
        return pa.concat_tables([self._schema.empty_table(), *self._spilled, *self._held])

    def _spill(self) -> None:
        name = re.sub(r"[:/\\]", "-", self._key)
        prefix = f"omnigraph-merge-{name}-"
        with TemporaryFolder(prefix, read_settings().merge_staging_dir) as folder:
            path = Path(folder) / "rows.arrow"
            with pa.ipc.new_file(str(path), self._schema) as file:
                for rows in self._held:
                    file.write_table(rows)
            self._spilled.append(pa.ipc.open_file(pa.memory_map(str(path))).read_all())
        self._held, self._held_bytes = [], 0


@dataclass(frozen=True)
class ThreeSides:
    """The rows in which source and base can differ, and those in which target and base can."""

    base_of_source: Side
    source: Side
    base_of_target: Side
    target: Side
    unclear: pa.Array
    """Ids of rows on which several merge bases disagree."""

    @cached_property
    def ids(self) -> pa.Array:
        """The rows that the merge has to compare."""
        return pc.unique(pa.concat_arrays([self.base_of_source.ids, self.source.ids]))


@dataclass
class MergedRows:
    """The changes that a merge makes to the target's rows of one table."""

    upserts: pa.Table
    deletes: pa.Array
    inserted: int
    contested: pa.Array
    """Ids of rows that both sides changed, resolved or not."""
    conflicts: list[MergeConflict]
    """At most `MAX_REPORTED_CONFLICTS`, the first by id."""
    conflicts_total: int
    resolved: set[str]
    """Ids of contested rows that a resolution names."""
    written: WrittenTable | None = None
    """Files of Spark tasks with the complete upserts; `upserts` then has constraint columns only."""

    @property
    def has_effect(self) -> bool:
        return bool(self.upserts.num_rows or len(self.deletes))


@dataclass(frozen=True)
class _Rows:
    """One state's values of some rows. Wide columns are read on demand."""

    side: Side
    numbers: Numbers
    values: pa.Table
    at: Numbers
    """The position of each row in `values`."""
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
        """The values of rows that are all present; all columns unless some are named."""
        if columns is None and self.is_whole:
            return picked(self.values, self.at[mask])
        if columns is not None and set(columns) <= set(self.values.column_names):
            return picked(self.values.select(columns), self.at[mask])
        return self.side.read(self.numbers[mask], columns)

    def equal(self, other: _Rows, declared: EntityType) -> Mask:
        """Rows that are present and equal in both states."""
        same = self.present & other.present
        both = np.flatnonzero(same)
        one, two = (partial(_among, rows, both) for rows in (self, other))
        same[both] = same_rows(declared, len(both), one, two)
        return same


def _among(rows: _Rows, numbers: Numbers, chosen: Mask, columns: Sequence[str]) -> pa.Table:
    mask = np.zeros(len(rows.numbers), np.bool_)
    mask[numbers[chosen]] = True
    return rows.where(mask, columns)


@dataclass(frozen=True)
class _Chunk:
    """Some rows with their values in each state."""

    ids: pa.Array
    base: _Rows
    source: _Rows
    target: _Rows
    touched: Mask
    """Rows in which target and base can differ; elsewhere they are equal."""
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


def merge_rows(
    declared: EntityType,
    sides: ThreeSides,
    resolution: ConflictResolution,
    *,
    keep: Sequence[str] | None = None,
    progress: Progress = SILENT,
) -> MergedRows:
    """Merge the rows of a table. With `keep`, upserts have only these columns."""
    return _RowMerge(declared, sides, resolution, keep, progress).run()


@dataclass
class _RowMerge:
    declared: EntityType
    sides: ThreeSides
    resolution: ConflictResolution
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
        self._conflicts = ConflictCollector(self.declared, self._columns)
        takes = self.resolution.resolved(self.declared.table_key)
        self._resolutions = pa.array(list(takes), pa.utf8())
        self._takes = np.array(list(takes.values()), object)

    def run(self) -> MergedRows:
        sides = self.sides
        for chunk in self._chunks():
            self._merge(chunk)
            self.progress.advance(len(chunk.ids))
        conflicts = self._conflicts.conflicts(sides.base_of_source, sides.target, sides.source)
        return MergedRows(
            upserts=self._upserts.table(),
            deletes=_concat(self._deletes),
            inserted=self._inserted,
            contested=_concat(self._contested),
            conflicts=list(conflicts),
            conflicts_total=self._conflicts.total,
            resolved=self._resolved,
        )

    def _chunks(self) -> Iterator[_Chunk]:
        sides = self.sides
        ids = sides.ids
        base, source = find(sides.base_of_source, ids), find(sides.source, ids)
        target = find(sides.target, ids)
        touched = (target != ABSENT) | (find(sides.base_of_target, ids) != ABSENT)
        unclear = pc.is_in(ids, value_set=sides.unclear).to_numpy(zero_copy_only=False)
        # The source is read in its stored order.
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
        decisions = decide(rows)
        self._take(chunk, rows, chunk.source, decisions.taken)
        contested = decisions.contested
        if contested.any():
            self._contested.append(chunk.ids.filter(pa.array(contested)))
            self._resolve(chunk, rows, decisions, contested)

    def _take(self, chunk: _Chunk, rows: Presence, state: _Rows, mask: Mask) -> None:
        """Replace the target's rows by those of the source or the base."""
        there = mask & state.present
        self._put(state.where(there), rows, there)
        self._deletes.append(chunk.ids.filter(pa.array(mask & ~there & rows.target)))

    def _put(self, upserts: pa.Table, rows: Presence, mask: Mask) -> None:
        self._inserted += int((mask & ~rows.target).sum())
        self._upserts.add(upserts if self.keep is None else upserts.select(list(self.keep)))

    # -- rows that both sides changed -------------------------------------------------------

    def _resolve(
        self, chunk: _Chunk, rows: Presence, decisions: Decisions, contested: Mask
    ) -> None:
        named = pc.is_in(chunk.ids, value_set=self._resolutions)
        has_resolution = contested & named.to_numpy(zero_copy_only=False)
        takes = self._chosen_takes(chunk, has_resolution)
        undecided = contested.copy()
        clashes = np.zeros((len(contested), len(self._columns)), np.bool_)
        if self.resolution.granularity is Granularity.PROPERTY:
            split = decisions.divergent_update & ~chunk.unclear & ~has_resolution
            clashes[split] = self._merge_properties(chunk, rows, split)
            undecided &= ~split
        self._take(chunk, rows, chunk.source, undecided & (takes == Take.THEIRS))
        self._take(chunk, rows, chunk.base, undecided & (takes == Take.BASE))
        for take in Take:
            undecided &= takes != take
        undecided |= clashes.any(axis=1)
        if undecided.any():
            every = ConflictingRows(
                chunk.ids,
                decisions.kinds(),
                chunk.base.numbers,
                chunk.target.numbers,
                chunk.source.numbers,
                clashes,
            )
            self._conflicts.add(every.take(np.flatnonzero(undecided)))

    def _chosen_takes(self, chunk: _Chunk, has_resolution: Mask) -> npt.NDArray[np.object_]:
        """The `Take` of each row by its resolution or the strategy of its type; None if neither."""
        takes = np.full(
            len(has_resolution), _TAKES[self.resolution.for_type(self.declared)], object
        )
        if has_resolution.any():
            ids = chunk.ids.filter(pa.array(has_resolution))
            takes[has_resolution] = self._takes[
                pc.index_in(ids, value_set=self._resolutions).to_numpy()
            ]
            self._resolved.update(ids.to_pylist())
        return takes

    def _merge_properties(self, chunk: _Chunk, rows: Presence, mask: Mask) -> Mask:
        """Merge rows that both sides updated, property by property.

        Returns the clashes by row and column. Rows with a clash are not written.
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
            strategy = self.resolution.for_property(self.declared, name)
            if strategy is Strategy.THEIRS:
                theirs |= both
            elif strategy is Strategy.FAIL:
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
        """A property's columns: an embedding also has one that binds it to its text."""
        prop = self.declared.properties.get(name)
        if prop is None or prop.embed_source is None:
            return [name]
        return [name, embed_column(prop.prop_id)]


def _chosen(ours: pa.ChunkedArray, theirs: pa.ChunkedArray, mask: Mask) -> pa.Array:
    """A column with their value where the mask is true."""
    both = pa.concat_arrays([ours.combine_chunks(), theirs.combine_chunks()])
    return both.take(pa.array(np.arange(len(mask)) + mask * len(mask)))


def _concat(ids: Sequence[pa.Array]) -> pa.Array:
    return pa.concat_arrays(ids) if ids else pa.array([], pa.utf8())
