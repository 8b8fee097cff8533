"""The values that carry records through a load: typed rows, and what is wrong with single records.

A record is known by its position, from 0, in the block of text or batch of rows that is being read,
until the block is located in the load: then by the number of its source, its own number from 1, and
its line.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.ir import compact_json
from omnigraph.catalog.model import EntityType
from omnigraph.diagnostics import cut_values
from omnigraph.errors import LoadError, LoadProblem

Numbers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

_MAX_COUNTED_MESSAGES: Final = 1000
"""Distinct messages whose repetitions are counted; a load may have any number of bad records."""

_MAX_FIRST_RECORDS: Final = 3
"""Records named in an error about all records that have something in common."""


# -- problems -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, order=True)
class Location:
    """A record of a load: the number of its source, its own number, and its line in a text."""

    source: int
    record: int
    line: int | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong with a load, the record it is reported under, and all records it invalidates.

    A problem of several records alike is reported under none of them.
    """

    location: Location | None
    code: str
    message: str
    type: str | None = None
    id: str | None = None
    property: str | None = None
    invalidates: tuple[Location, ...] = ()
    offset: tuple[int, int] | None = None
    """Where the text of the record is malformed: line ends before, and the column from 1."""

    def position(self) -> int:
        """The position of the record while its block is not located."""
        assert self.location is not None
        return self.location.record

    def bad_records(self) -> tuple[Location, ...]:
        return self.invalidates if self.location is None else (self.location, *self.invalidates)

    def located(self, source: int, before: int, lines: Numbers | None) -> Problem:
        """The problem in a source of which `before` records come before the block."""
        record, message = self.position() + before + 1, self.message
        line = None if lines is None else int(lines[self.position()])
        if self.code == "invalid_json":
            message = f"invalid JSON at record {record}: {message}"
            if self.offset is not None and line is not None:
                message += f" (line {line + self.offset[0]}, column {self.offset[1]})"
        return replace(self, location=Location(source, record, line), message=message, offset=None)


def problem_at(
    position: int,
    code: str,
    message: str,
    *,
    type: str | None = None,
    property: str | None = None,
    offset: tuple[int, int] | None = None,
) -> Problem:
    """A problem of the record at a position of a block."""
    location = Location(0, position)
    return Problem(location, code, message, type, property=property, offset=offset)


def in_order(problems: Iterable[Problem]) -> list[Problem]:
    """By source and record; problems of no single record last. Equal locations keep their order."""
    return sorted(problems, key=lambda p: (p.location is None, p.location or Location(0, 0)))


class ProblemLog:
    """The problems of a load in order: the first `keep` in full, all of them counted."""

    def __init__(self, keep: int | None, problems: Sequence[Problem] = ()) -> None:
        self.problems: list[Problem] = []
        self.total = 0
        self.bad_records = 0
        self._alike: Counter[tuple[int | None, str]] = Counter()
        """Problems by source and message, for the first messages."""
        self._keep = keep
        self.add(problems)

    def add(self, problems: Sequence[Problem]) -> None:
        """Take the problems of the next records; no record comes twice."""
        self.total += len(problems)
        self.bad_records += len({location for p in problems for location in p.bad_records()})
        for problem in problems:
            source = None if problem.location is None else problem.location.source
            key = source, problem.message
            if key in self._alike or len(self._alike) < _MAX_COUNTED_MESSAGES:
                self._alike[key] += 1
        self._extend(problems)

    def update(self, other: ProblemLog) -> None:
        """Take the problems of the next split."""
        self.total += other.total
        self.bad_records += other.bad_records
        self._alike.update(other._alike)
        self._extend(other.problems)

    def _extend(self, problems: Sequence[Problem]) -> None:
        room = len(problems) if self._keep is None else self._keep - len(self.problems)
        self.problems += problems[: max(0, room)]

    def error(self, names: Sequence[str], records: int, ignored: Sequence[str] = ()) -> LoadError:
        """The error of a load of that many records from the named sources."""
        return LoadError(
            [_reported(problem, names) for problem in self.problems],
            total=self.total,
            bad_records=self.bad_records,
            records=records,
            alike={
                (None if source is None else names[source], cut_values(message)): count
                for (source, message), count in self._alike.items()
                if count > 1
            },
            ignored=ignored,
        )


def _reported(problem: Problem, names: Sequence[str]) -> LoadProblem:
    location = problem.location
    return LoadProblem(
        source=None if location is None else names[location.source],
        record=None if location is None else location.record,
        line=None if location is None else location.line,
        code=problem.code,
        message=cut_values(problem.message),
        type=problem.type,
        id=problem.id,
        property=problem.property,
    )


# -- notes --------------------------------------------------------------------------------------


Key = tuple[str, str]
"""The name of a type, and a key of its records that none of its properties has."""


class Notes:
    """What a load accepts and still reports, counted over records.

    Unknown keys are counted with the first records that have them; derived ids that replaced
    explicit ones, and edges with generated ids, by type name.
    """

    def __init__(self) -> None:
        self.unknown: Counter[Key] = Counter()
        self.first: dict[Key, list[tuple[int, int]]] = {}
        """Source and record by number; positions while the block is not located."""
        self.ignored_ids: Counter[str] = Counter()
        self.generated_edges: Counter[str] = Counter()

    def add_unknown(self, key: Key, positions: Sequence[int]) -> None:
        """Count records with an unknown key, given in order."""
        first = [(0, position) for position in positions[:_MAX_FIRST_RECORDS]]
        self._add(key, len(positions), first)

    def update(self, other: Notes) -> None:
        """Count the records of another part of the load."""
        for key, count in other.unknown.items():
            self._add(key, count, other.first[key])
        self.ignored_ids.update(other.ignored_ids)
        self.generated_edges.update(other.generated_edges)

    def locate(self, source: int, before: int) -> None:
        """Number the records in a source of which `before` records come before the block."""
        for key, first in self.first.items():
            self.first[key] = [(source, before + position + 1) for _, position in first]

    def _add(self, key: Key, count: int, first: list[tuple[int, int]]) -> None:
        self.unknown[key] += count
        self.first[key] = sorted([*self.first.get(key, ()), *first])[:_MAX_FIRST_RECORDS]


# -- rows ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MisfitValue:
    """A cell that was left null because its value does not fit."""

    row: int
    property: str
    message: str


@dataclass(frozen=True, slots=True)
class TypedRows:
    """Converted columns of one type: every property and, for edges, `src` and `dst`; of a patch
    also which properties each record has (`GIVEN`).

    `ids` are the explicit ids that were given as text; `odd_ids` shows those that were not.
    """

    declared: EntityType
    positions: Numbers
    columns: Mapping[str, pa.Array]
    ids: pa.Array
    misfits: tuple[MisfitValue, ...] = ()
    odd_ids: Mapping[int, str] = field(default_factory=dict)

    def where(self, kept: Mask) -> TypedRows:
        """Rows without a misfit, those in the mask."""
        chosen, moved = pa.array(kept), np.cumsum(kept) - 1
        return TypedRows(
            self.declared,
            self.positions[kept],
            {name: column.filter(chosen) for name, column in self.columns.items()},
            self.ids.filter(chosen),
            odd_ids={int(moved[row]): text for row, text in self.odd_ids.items() if kept[row]},
        )


@dataclass(slots=True)
class ParsedRecords:
    """What a block of a source became: `count` records, some of them rows, some problems."""

    count: int
    lines: Numbers | None = None
    rows: list[TypedRows] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    notes: Notes = field(default_factory=Notes)

    def add(self, other: ParsedRecords) -> None:
        """Take over what another pass over the same block found."""
        self.rows += other.rows
        self.problems += other.problems
        self.notes.update(other.notes)


# -- keys of a patch ----------------------------------------------------------------------------


GIVEN: Final = "__given"
"""The column that says which properties a record of a patch has: absent, or there with a null.

A struct with a flag per property, and one for the id.
"""


def given_column(declared: EntityType, count: int, given: Mapping[str, Mask]) -> pa.StructArray:
    """The flags of `count` rows; a property that `given` does not have is there in all of them."""
    always = np.ones(count, np.bool_)
    # With the id the struct has a field, and so a length, in every case.
    names = ("id", *declared.properties)
    return pa.StructArray.from_arrays([pa.array(given.get(name, always)) for name in names], names)


def given_flags(rows: pa.Table, name: str) -> Mask:
    """The flags of one property."""
    flags: Mask = pc.struct_field(rows.column(GIVEN), name).to_numpy()
    return flags


def has_key(key: str, texts: pa.Array) -> pa.Array:
    """Which texts of objects have a key, whatever its value.

    Between quotes and before a colon the name of a key can only be that key: inside a string its
    quotes would be escaped. It may be the key of an inner object.
    """
    return pc.match_substring_regex(texts, re.escape(compact_json(key)) + r"\s*:")


def given_in_texts(
    columns: Mapping[str, tuple[str, pa.Array]], texts: pa.Array, unclear: Collection[str]
) -> tuple[dict[str, Mask], Mask]:
    """By property, the records that have its key; and the records whose text leaves that open.

    `columns` has the key of each property and its values. `unclear` are properties whose key may
    stand elsewhere in a record as well.
    """
    given: dict[str, Mask] = {}
    doubtful = np.zeros(len(texts), np.bool_)
    # A key may be spelled with escapes.
    escaped = pc.match_substring(texts, "\\u").to_numpy(zero_copy_only=False)
    for name, (key, column) in columns.items():
        if not column.null_count:
            continue
        empty = column.is_null().to_numpy(zero_copy_only=False)
        found = np.zeros(len(texts), np.bool_)
        matches = has_key(key, texts.filter(pa.array(empty)))
        found[empty] = matches.to_numpy(zero_copy_only=False)
        doubtful |= empty & escaped
        if name in unclear:
            doubtful |= found
        given[name] = ~empty | found
    return given, doubtful
