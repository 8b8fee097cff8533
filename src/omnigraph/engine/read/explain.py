"""How a read is run: its steps with what is expected of each and, if it was run, what came of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from omnigraph.engine.read.execute import StepReport
from omnigraph.plan.physical.describe import StepLine, step_lines
from omnigraph.plan.physical.steps import Arrangement


@dataclass(frozen=True, slots=True)
class ExplainedStep:
    """One step. `rows` and `seconds` are None when the query was not run."""

    line: StepLine
    rows: int | None = None
    seconds: float | None = None

    def __str__(self) -> str:
        text = f"{self.line.indented}  [about {self.line.step.estimate:,.0f} rows"
        if self.rows is not None and self.seconds is not None:
            text += f"; {self.rows:,} rows in {self.seconds * 1e3:.2f} ms"
        return f"{text}]"

    def to_json(self) -> dict[str, Any]:
        return {**self.line.to_json(), "rows": self.rows, "seconds": self.seconds}


@dataclass(frozen=True, slots=True)
class Explanation:
    """The steps of a read, in the order they run."""

    query_name: str
    steps: tuple[ExplainedStep, ...]

    def __str__(self) -> str:
        return "\n".join(map(str, self.steps))

    def to_json(self) -> dict[str, Any]:
        return {"query_name": self.query_name, "steps": [step.to_json() for step in self.steps]}


def explain(name: str, arrangement: Arrangement, reports: list[StepReport] | None) -> Explanation:
    """Put reports beside the steps they are about; a step of a negation ends before the negation."""
    done = {id(report.step): report for report in reports or ()}
    steps = []
    for line in step_lines(arrangement.steps):
        report = done.get(id(line.step))
        rows, seconds = (report.rows, report.seconds) if report else (None, None)
        steps.append(ExplainedStep(line, rows, seconds))
    return Explanation(name, tuple(steps))
