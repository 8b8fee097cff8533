"""How a read is run: its steps with what is expected of each and, if it was run, what came of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from omnigraph.engine.read.access import Work
from omnigraph.engine.read.execute import StepReport
from omnigraph.plan.describe import (
    StepLine,
    describe_return,
    return_detail,
    step_lines,
)
from omnigraph.plan.ir import ReadPlan
from omnigraph.plan.steps import Arrangement, Step


@dataclass(frozen=True, slots=True)
class Measured:
    """What came of a step. `lookups` is how often it went to the store for single nodes or edges."""

    rows: int
    seconds: float
    lookups: int = 0
    nbytes: int | None = None

    def and_then(self, report: StepReport) -> Measured:
        """With one more run of the same step: negations and limits run steps piece by piece."""
        rows, seconds = self.rows + report.rows, self.seconds + report.seconds
        return Measured(rows, seconds, self.lookups + report.lookups)


class Reports:
    """What the steps of one run report, and the result they came to."""

    def __init__(self) -> None:
        self._steps: dict[int, Measured] = {}
        self._work = Work()
        self.rows = 0
        self.nbytes = 0
        self.seconds = 0.0

    @property
    def lookups(self) -> int:
        return self._work.lookups

    def start(self, work: Work) -> None:
        """Begin anew: an earlier attempt has been given up."""
        self._steps.clear()
        self._work = work

    def __call__(self, report: StepReport) -> None:
        known = self._steps.get(id(report.step), Measured(0, 0.0))
        self._steps[id(report.step)] = known.and_then(report)

    def finish(self, table: pa.Table, seconds: float) -> None:
        """The result, and the time of the whole run."""
        self.rows, self.nbytes, self.seconds = table.num_rows, table.nbytes, seconds

    def of(self, step: Step) -> Measured:
        """What came of a step. One inside a negation may not have been reached."""
        return self._steps.get(id(step), Measured(0, 0.0))


@dataclass(frozen=True, slots=True)
class ExplainedStep:
    """One step; `measured` is None when the query was not run."""

    op: str
    text: str
    depth: int
    detail: Mapping[str, Any]
    estimate: float
    measured: Measured | None

    @property
    def indented(self) -> str:
        return f"{'  ' * self.depth}{self.text}"

    def to_json(self, children: Sequence[Mapping[str, Any]] = ()) -> dict[str, Any]:
        document: dict[str, Any] = {
            "op": self.op,
            "detail": dict(self.detail),
            "estimated_rows": round(self.estimate),
        }
        if self.measured is not None:
            document["actual_rows"] = self.measured.rows
            document["ms"] = round(self.measured.seconds * 1e3, 3)
            if self.measured.nbytes is not None:
                document["bytes"] = self.measured.nbytes
            if self.measured.lookups:
                document["detail"]["lookups"] = self.measured.lookups
        document["children"] = list(children)
        return document


@dataclass(frozen=True, slots=True, repr=False)
class Explanation:
    """The steps of a read in the order they run; the last one makes the result."""

    query_name: str
    branch: str | None
    snapshot: str | None
    commit_id: str
    looks_up: bool
    """Whether it looks up what it comes to, instead of reading whole types into memory."""
    steps: tuple[ExplainedStep, ...]
    seconds: float | None
    """How long the run took, if there was one."""

    @property
    def summary(self) -> str:
        """One line for people: which query, where it reads, and by which way."""
        source = f"branch {self.branch}" if self.snapshot is None else f"snapshot {self.snapshot}"
        return f"{self.query_name} on {source}, {'by look-ups' if self.looks_up else 'in memory'}"

    def __str__(self) -> str:
        return "\n".join(map(_line, self.steps))

    def __repr__(self) -> str:
        return f"{self.summary}\n{self}"

    def to_json(self) -> dict[str, Any]:
        """The plan as a tree: each step has the one before it as its first child."""
        document: dict[str, Any] = {
            "query_name": self.query_name,
            "target": {"branch": self.branch, "snapshot": self.snapshot},
            "graph_commit_id": self.commit_id,
            "plan": _tree(self.steps),
        }
        if self.seconds is not None:
            document["total_ms"] = round(self.seconds * 1e3, 3)
        return document


@dataclass(frozen=True, slots=True)
class Explained:
    """The read to explain: what it is, where it reads, and whether it looks up all it needs."""

    plan: ReadPlan
    arrangement: Arrangement
    branch: str | None
    snapshot: str | None
    commit_id: str
    looks_up: bool


def explain(read: Explained, reports: Reports | None) -> Explanation:
    """Put reports beside the steps they are about."""
    steps = [_explained(line, reports) for line in step_lines(read.arrangement.steps)]
    seconds = reports.seconds if reports is not None else None
    steps.append(_returned(read, steps, reports))
    return Explanation(
        read.plan.name,
        read.branch,
        read.snapshot,
        read.commit_id,
        read.looks_up,
        tuple(steps),
        seconds,
    )


def _returned(
    read: Explained, steps: Sequence[ExplainedStep], reports: Reports | None
) -> ExplainedStep:
    """The step that makes the result of the rows that were found; what time is left is its own."""
    rows = steps[-1].estimate if steps else 1.0
    limit = read.plan.limit
    is_one = read.plan.is_aggregate and all(c.is_aggregate for c in read.plan.columns)
    rows = 1.0 if is_one else rows
    estimate = rows if limit is None else min(rows, float(limit))
    detail = return_detail(read.plan, read.arrangement)
    detail["access"] = "look-ups" if read.looks_up else "memory"
    measured = None
    if reports is not None:
        before = [step.measured for step in steps if step.depth == 0 and step.measured]
        measured = Measured(
            reports.rows,
            max(reports.seconds - sum(m.seconds for m in before), 0.0),
            reports.lookups - sum(m.lookups for m in before),
            reports.nbytes,
        )
    return ExplainedStep("return", describe_return(read.plan), 0, detail, estimate, measured)


def _explained(line: StepLine, reports: Reports | None) -> ExplainedStep:
    measured = None if reports is None else reports.of(line.step)
    return ExplainedStep(line.op, line.text, line.depth, line.detail, line.step.estimate, measured)


def _rows(count: float) -> str:
    shown = f"{count:,.0f}"
    return f"{shown} {'row' if shown == '1' else 'rows'}"


def _line(step: ExplainedStep) -> str:
    text = f"{step.indented}  [about {_rows(step.estimate)}"
    if step.measured is not None:
        text += f"; {_rows(step.measured.rows)} in {step.measured.seconds * 1e3:.2f} ms"
    return f"{text}]"


def _tree(steps: Sequence[ExplainedStep]) -> dict[str, Any]:
    """Steps of one depth, each on top of the one before; deeper ones belong to the step above."""
    document: dict[str, Any] | None = None
    depth = steps[0].depth
    place = 0
    while place < len(steps):
        end = place + 1
        while end < len(steps) and steps[end].depth > depth:
            end += 1
        children = [] if document is None else [document]
        if end > place + 1:
            children.append(_tree(steps[place + 1 : end]))
        document = steps[place].to_json(children)
        place = end
    assert document is not None
    return document
