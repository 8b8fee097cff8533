"""Rows of one type between reading and judging, and what was wrong with single records.

MERGED: What is wrong with a load, collected in order and turned into one error. | Which properties a record has: absent, or there with a null.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
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

_FIRST_RECORDS: Final = 3
"""Records named in an error about all records that have something in common."""

Key = tuple[str, str]
"""The name of a type, and a key of its records that none of its properties has."""


class UnknownProperties:
    """Keys that no property has: the number of records with each, and the first of these records."""

    def __init__(self) -> None:
        self.counts: Counter[Key] = Counter()
        self.first: dict[Key, list[tuple[int, int]]] = {}
        """Source and record by number; what was not placed yet has its position."""

    def note(self, key: Key, positions: Sequence[int]) -> None:
        """Count records, the first ones of which come first."""
        self._add(key, len(positions), [(0, place) for place in positions[:_FIRST_RECORDS]])

    def update(self, other: UnknownProperties) -> None:
        """Count the records of another part of the load."""
        for key, count in other.counts.items():
            self._add(key, count, other.first[key])

    def placed(self, source: int, before: int) -> UnknownProperties:
        """The same in a source of which so many records come before."""
        moved = UnknownProperties()
        for key, count in self.counts.items():
            first = [(source, before + position + 1) for _, position in self.first[key]]
            moved._add(key, count, first)
        return moved

    def _add(self, key: Key, count: int, first: list[tuple[int, int]]) -> None:
        self.counts[key] += count
        self.first[key] = sorted([*self.first.get(key, ()), *first])[:_FIRST_RECORDS]


@dataclass(frozen=True, slots=True)
class Spot:
    """A place in the text of a record: line ends before it, and its column in that line, from 1."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong with one record, known by its position in what is being read."""

    position: int
    code: str
    message: str
    type: str | None = None
    property: str | None = None
    id: str | None = None
    spot: Spot | None = None


@dataclass(frozen=True, slots=True)
class MisfitValue:
    """A cell that was left null because its value does not fit."""

    row: int
    property: str
    message: str


@dataclass(frozen=True, slots=True)
class TypedRows:
    """Converted columns of one type: every property and, for edges, `src` and `dst`; of a patch
    also which properties each record has (`omnigraph.load.records`).

    `ids` are the explicit ids that were given as text; `odd_ids` shows those that were not.
    """

    declared: EntityType
    positions: Numbers
    columns: Mapping[str, pa.Array]
    ids: pa.Array
    misfits: tuple[MisfitValue, ...] = ()
    odd_ids: Mapping[int, str] = field(default_factory=dict)


@dataclass(slots=True)
class Reading:
    """What a piece of a source became: `count` records, some of them rows, some problems."""

    count: int
    lines: Numbers | None = None
    rows: list[TypedRows] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    unknown: UnknownProperties = field(default_factory=UnknownProperties)

    def add(self, other: Reading) -> None:
        """Take over what another reading of the same piece found."""
        self.rows += other.rows
        self.problems += other.problems
        self.unknown.update(other.unknown)


_MESSAGES_COUNTED: Final = 1000
"""Different messages whose repetitions are counted; bad records without end have no bounded number."""


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """A record of a load: the number of its source, its own number, and its line in a text."""

    source: int
    record: int
    line: int | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing wrong, with the record it is reported under and all records it spoils."""

    place: Place | None
    code: str
    message: str
    type: str | None = None
    id: str | None = None
    property: str | None = None
    spoils: tuple[Place, ...] = ()

    def bad_records(self) -> tuple[Place, ...]:
        return self.spoils if self.place is None else (self.place, *self.spoils)


def place_problem(problem: Problem, source: int, before: int, lines: Numbers | None) -> Finding:
    """A problem of a piece of a source as a finding of the load."""
    record = problem.position + before + 1
    message = problem.message
    line = None if lines is None else int(lines[problem.position])
    if problem.code == "invalid_json":
        message = f"invalid JSON at record {record}: {message}"
        if problem.spot is not None and line is not None:
            message += f" (line {line + problem.spot.line}, column {problem.spot.column})"
    return Finding(
        Place(source, record, line),
        problem.code,
        message,
        problem.type,
        problem.id,
        problem.property,
    )


def in_order(findings: Iterable[Finding]) -> list[Finding]:
    """By source and record; findings of no single record last. Equal places keep their order."""
    return sorted(findings, key=lambda f: (f.place is None, f.place or Place(0, 0)))


class FindingLog:
    """The findings of a load as they come, in order: the first `keep` in full, all of them counted."""

    def __init__(self, keep: int | None) -> None:
        self.findings: list[Finding] = []
        self.total = 0
        self.bad_records = 0
        self.alike: Counter[tuple[int | None, str]] = Counter()
        """Findings by source and message, for the first messages."""
        self._keep = keep

    def add(self, findings: Sequence[Finding]) -> None:
        """Take the findings of the next records; no record is told about twice."""
        self.total += len(findings)
        self.bad_records += len({place for f in findings for place in f.bad_records()})
        for finding in findings:
            key = None if finding.place is None else finding.place.source, finding.message
            if key in self.alike or len(self.alike) < _MESSAGES_COUNTED:
                self.alike[key] += 1
        room = len(findings) if self._keep is None else self._keep - len(self.findings)
        self.findings += findings[: max(0, room)]

    def error(self, names: Sequence[str], records: int) -> LoadError:
        """The error of a load of so many records from the named sources."""
        return LoadError(
            [_problem(f, names) for f in self.findings],
            total=self.total,
            bad_records=self.bad_records,
            records=records,
            alike={
                (None if source is None else names[source], cut_values(message)): count
                for (source, message), count in self.alike.items()
                if count > 1
            },
        )


def _problem(finding: Finding, names: Sequence[str]) -> LoadProblem:
    place = finding.place
    return LoadProblem(
        source=None if place is None else names[place.source],
        record=None if place is None else place.record,
        line=None if place is None else place.line,
        code=finding.code,
        message=cut_values(finding.message),
        type=finding.type,
        id=finding.id,
        property=finding.property,
    )


Mask = npt.NDArray[np.bool_]

GIVEN: Final = "__given"
"""The column of flags: a struct with a boolean per property, and one for the id."""


def given_type(declared: EntityType) -> pa.DataType:
    """The type of the column. With the id it has a field, and so a length, in every case."""
    return pa.struct([(name, pa.bool_()) for name in ("id", *declared.properties)])


def given_column(declared: EntityType, count: int, given: Mapping[str, Mask]) -> pa.StructArray:
    """The flags of so many rows; a property that `given` does not have is there in all of them."""
    always = np.ones(count, np.bool_)
    kind = given_type(declared)
    flags = [pa.array(given.get(field.name, always)) for field in kind]
    return pa.StructArray.from_arrays(flags, fields=list(kind))


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
