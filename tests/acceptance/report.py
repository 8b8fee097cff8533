"""What a test run says about the acceptance rows, as values and as text.

Knows nothing of pytest: ``plugin.py`` feeds it and prints its lines. Tested in
``tests/acceptance/test_report.py``.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from tests.acceptance.catalogue import Catalogue, Row


class Status(StrEnum):
    """Where a row stands after a run; a later member weighs more when a test has several cases."""

    OPEN = "open"
    DECIDED = "decided otherwise"
    LATER = "for later"
    PROVEN = "proven"
    PARTLY = "partly"
    SKIPPED = "skipped"
    FAILED = "failed"


_COUNTED = (
    Status.PROVEN,
    Status.DECIDED,
    Status.LATER,
    Status.PARTLY,
    Status.FAILED,
    Status.SKIPPED,
)
_WEIGHT = {status: weight for weight, status in enumerate(Status)}


@dataclass(frozen=True, slots=True)
class Claim:
    """A marker's statement: these rows, wholly or with something still missing."""

    ids: tuple[str, ...]
    missing: str | None = None


@dataclass(slots=True)
class _Evidence:
    """What one test function showed about one row, over all its cases."""

    cases: int = 0
    status: Status = Status.OPEN
    missing: dict[str, None] = field(default_factory=dict)

    def add(self, status: Status, missing: str | None) -> None:
        self.cases += 1
        if _WEIGHT[status] > _WEIGHT[self.status]:
            self.status = status
        if missing is not None:
            self.missing[missing] = None

    def verdict(self) -> str:
        if self.status is Status.PARTLY:
            return f"{self.status}: {'; '.join(self.missing)}"
        return str(self.status)


class Record:
    """Collects the outcome of every marked test and renders the report."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._evidence: dict[str, dict[str, _Evidence]] = {}

    def add(self, node_id: str, claims: Iterable[Claim], outcome: str) -> None:
        """Take in one finished test case; ``outcome`` is passed, skipped or failed."""
        test = node_id.partition("[")[0]
        for claim in claims:
            for id in claim.ids:
                evidence = self._evidence.setdefault(id, {}).setdefault(test, _Evidence())
                evidence.add(_status(outcome, claim.missing), claim.missing)

    def status(self, id: str) -> Status:
        """A failure spoils a row; one complete proof outweighs partial ones and skips."""
        found = {evidence.status for evidence in self._evidence.get(id, {}).values()}
        for status in (Status.FAILED, Status.PROVEN):
            if status in found:
                return status
        for status, reasons in self._reasons():
            if any(id in ids for ids in reasons.values()):
                return status
        for status in (Status.PARTLY, Status.SKIPPED):
            if status in found:
                return status
        return Status.OPEN

    def _reasons(self) -> tuple[tuple[Status, Mapping[str, Sequence[str]]], ...]:
        return (Status.DECIDED, self._catalogue.decided), (Status.LATER, self._catalogue.later)

    def lines(self) -> Iterator[str]:
        yield from self._result_lines()
        yield from self._reason_lines()
        yield from self._open_lines()
        yield from self._total_lines()

    def _result_lines(self) -> Iterator[str]:
        rows = [
            (id, test if evidence.cases == 1 else f"{test} ({evidence.cases} cases)", evidence)
            for id in sorted(self._evidence)
            for test, evidence in sorted(self._evidence[id].items())
        ]
        width = max((len(test) for _, test, _ in rows), default=0)
        for id, test, evidence in rows:
            yield f"{id}  {test:<{width}}  {evidence.verdict()}"

    def _reason_lines(self) -> Iterator[str]:
        """Why some rows are not proven, and rows that were proven since that was written."""
        for status, reasons in self._reasons():
            if reasons:
                yield ""
                yield f"Rows {status}"
            for reason, ids in reasons.items():
                yield f"  {reason}: {compress(ids)}"
                proven = [id for id in ids if self.status(id) is Status.PROVEN]
                if proven:
                    yield f"    but proven: {compress(proven)}"

    def _open_lines(self) -> Iterator[str]:
        yield ""
        yield "Open rows"
        for area, rows in self._catalogue.areas().items():
            still_open = [row for row in rows if self._is_open(row)]
            if not still_open:
                continue
            if len(still_open) == len(rows):
                yield f"  {area}: all {len(rows)}, {compress([row.id for row in rows])}"
            else:
                yield f"  {area}: {len(still_open)} of {len(rows)}"
                yield from (f"    {row.id}  {row.title}" for row in still_open)

    def _total_lines(self) -> Iterator[str]:
        yield ""
        yield "Totals"
        totals: dict[str, Counter[Status]] = {}
        for row in self._catalogue.rows:
            totals.setdefault(row.id[0], Counter())[self.status(row.id)] += 1
        for prefix, counts in totals.items():
            parts = (
                f"{counts[status]} {status}"
                for status in _COUNTED
                if counts[status] or status is Status.PROVEN
            )
            yield f"  {prefix}: {', '.join(parts)}, {counts[Status.OPEN]} open of {counts.total()}"

    def _is_open(self, row: Row) -> bool:
        return self.status(row.id) in (Status.OPEN, Status.SKIPPED)


def compress(ids: Sequence[str]) -> str:
    """Write sorted ids as ranges: ``L-001…L-003, L-007``."""
    runs: list[list[str]] = []
    for id in sorted(ids):
        if runs and id == _successor(runs[-1][-1]):
            runs[-1].append(id)
        else:
            runs.append([id])
    return ", ".join(run[0] if len(run) == 1 else f"{run[0]}…{run[-1]}" for run in runs)


def _successor(id: str) -> str:
    prefix, number = id.split("-")
    return f"{prefix}-{int(number) + 1:03d}"


def _status(outcome: str, missing: str | None) -> Status:
    match outcome:
        case "passed":
            return Status.PROVEN if missing is None else Status.PARTLY
        case "skipped":
            return Status.SKIPPED
        case _:
            return Status.FAILED
