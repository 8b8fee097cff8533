"""Query plans for people and programs: steps with estimated and, after a run, measured rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from omnigraph.plan.describe import (
    describe_return,
    return_detail,
    step_lines,
)
from omnigraph.plan.ir import ReadPlan
from omnigraph.plan.steps import Arrangement, Step
from omnigraph.read.budget import LookupWork
from omnigraph.read.execute import StepReport


@dataclass(frozen=True, slots=True)
class Measured:
    """Measurements of a step. `lookups` counts requests for single nodes or edges."""

    rows: int
    seconds: float
    lookups: int = 0
    nbytes: int | None = None

    def and_then(self, report: StepReport) -> Measured:
        """Add another run of the same step: negations and limits run steps in batches."""
        rows, seconds = self.rows + report.rows, self.seconds + report.seconds
        return Measured(rows, seconds, self.lookups + report.lookups)


class Reports:
    """Measurements of the steps of one run, and of its result."""

    def __init__(self) -> None:
        self._steps: dict[int, Measured] = {}
        self._work = LookupWork()
        self.rows = 0
        self.nbytes = 0
        self.seconds = 0.0

    @property
    def lookups(self) -> int:
        return self._work.lookups

    def start(self, work: LookupWork) -> None:
        """Start over: an earlier attempt was abandoned."""
        self._steps.clear()
        self._work = work

    def __call__(self, report: StepReport) -> None:
        known = self._steps.get(id(report.step), Measured(0, 0.0))
        self._steps[id(report.step)] = known.and_then(report)

    def finish(self, table: pa.Table, seconds: float) -> None:
        """Record the result and the time of the whole run."""
        self.rows, self.nbytes, self.seconds = table.num_rows, table.nbytes, seconds

    def of(self, step: Step) -> Measured:
        """The measurements of a step; zero for one that was not reached, as in a negation."""
        return self._steps.get(id(step), Measured(0, 0.0))


@dataclass(frozen=True, slots=True)
class ExplainedStep:
    """One step; `measured` is None if the query was not run."""

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
            "text": self.text,
            "depth": self.depth,
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
    """The steps of a read in execution order; the last one makes the result.

    `looks_up` tells whether it uses look-ups instead of reading whole types into memory; `seconds` is the
    time of the run, if there was one.
    """

    query_name: str
    branch: str | None
    snapshot: str | None
    commit_id: str
    looks_up: bool
    steps: tuple[ExplainedStep, ...]
    seconds: float | None

    @property
    def summary(self) -> str:
        """One line: the query, what it reads, and its access path."""
        source = f"branch {self.branch}" if self.snapshot is None else f"snapshot {self.snapshot}"
        return f"{self.query_name} on {source}, {'by look-ups' if self.looks_up else 'in memory'}"

    def __str__(self) -> str:
        return "\n".join(map(_line, self.steps))

    def __repr__(self) -> str:
        return f"{self.summary}\n{self}"

    def to_json(self) -> dict[str, Any]:
        """The plan as a tree: each step has its predecessor as first child."""
        document: dict[str, Any] = {
            "query_name": self.query_name,
            "target": {"branch": self.branch, "snapshot": self.snapshot},
            "graph_commit_id": self.commit_id,
            "plan": _tree(self.steps),
        }
        if self.seconds is not None:
            document["total_ms"] = round(self.seconds * 1e3, 3)
        return document


def explain(
    plan: ReadPlan,
    physical: Arrangement,
    reports: Reports | None,
    *,
    branch: str | None,
    snapshot: str | None,
    commit_id: str,
    looks_up: bool,
) -> Explanation:
    """Explain a read; with the reports of a run, with measurements."""
    steps = []
    for line in step_lines(physical.all_steps):
        measured = None if reports is None else reports.of(line.step)
        estimate = line.step.estimate
        steps.append(ExplainedStep(line.op, line.text, line.depth, line.detail, estimate, measured))
    detail = return_detail(plan, physical)
    detail["access"] = "look-ups" if looks_up else "memory"
    steps.append(_return_step(plan, detail, steps, reports))
    seconds = reports.seconds if reports is not None else None
    return Explanation(plan.name, branch, snapshot, commit_id, looks_up, tuple(steps), seconds)


def _return_step(
    plan: ReadPlan,
    detail: Mapping[str, Any],
    steps: Sequence[ExplainedStep],
    reports: Reports | None,
) -> ExplainedStep:
    """The step that makes the result; it takes the time that the others have not used."""
    rows = steps[-1].estimate if steps else 1.0
    if plan.is_aggregate and all(column.is_aggregate for column in plan.columns):
        rows = 1.0
    estimate = rows if plan.stop is None else min(rows, float(plan.stop))
    measured = None
    if reports is not None:
        before = [step.measured for step in steps if step.depth == 0 and step.measured]
        measured = Measured(
            reports.rows,
            max(reports.seconds - sum(m.seconds for m in before), 0.0),
            reports.lookups - sum(m.lookups for m in before),
            reports.nbytes,
        )
    return ExplainedStep("return", describe_return(plan), 0, detail, estimate, measured)


def _rows(count: float) -> str:
    shown = f"{count:,.0f}"
    return f"{shown} {'row' if shown == '1' else 'rows'}"


def _line(step: ExplainedStep) -> str:
    text = f"{step.indented}  [about {_rows(step.estimate)}"
    if step.measured is not None:
        text += f"; {_rows(step.measured.rows)} in {step.measured.seconds * 1e3:.2f} ms"
    return f"{text}]"


def _tree(steps: Sequence[ExplainedStep]) -> dict[str, Any]:
    """Steps of one depth, each with its predecessor as child; deeper ones belong to the step above."""
    document: dict[str, Any] | None = None
    depth = steps[0].depth
    at = 0
    while at < len(steps):
        end = at + 1
        while end < len(steps) and steps[end].depth > depth:
            end += 1
        children = [] if document is None else [document]
        if end > at + 1:
            children.append(_tree(steps[at + 1 : end]))
        document = steps[at].to_json(children)
        at = end
    assert document is not None
    return document
