"""What is wrong with a load, collected in order and turned into one error.

A finding is reported under one record, or under none when it belongs to several alike, and may make
more records unusable than the one it is reported under.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from omnigraph.diagnostics import cut_values
from omnigraph.errors import LoadError, LoadProblem
from omnigraph.load.typed_rows import Numbers, Problem

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
