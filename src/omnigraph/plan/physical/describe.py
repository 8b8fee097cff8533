"""Steps as text a person can read, and as documents; one line per step, with what is expected of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, assert_never

from omnigraph.plan.describe import describe_expression
from omnigraph.plan.ir import Direction, Filter
from omnigraph.plan.physical.steps import (
    Branch,
    Check,
    Connected,
    Count,
    Follow,
    Hop,
    Lacks,
    Scan,
    Step,
    Without,
)

_INDENT = "  "


@dataclass(frozen=True, slots=True)
class StepLine:
    """One step in words; `depth` is how many negations it is inside of."""

    step: Step
    text: str
    depth: int

    @property
    def indented(self) -> str:
        return f"{_INDENT * self.depth}{self.text}"

    def to_json(self) -> dict[str, Any]:
        return {"step": self.text, "depth": self.depth, "estimated_rows": round(self.step.estimate)}


def step_lines(steps: Iterable[Step], depth: int = 0) -> Iterator[StepLine]:
    """All steps in the order they run; the inner steps of a negation come before it ends."""
    for step in steps:
        yield StepLine(step, describe_step(step), depth)
        if isinstance(step, Without):
            yield from step_lines(step.inner, depth + 1)


def describe_step(step: Step) -> str:
    match step:
        case Scan():
            return f"scan {step.variable}: {step.node_type}{_where(step.conditions)}"
        case Follow():
            path = f"{step.source} {_arrow(step.hop)} {step.target}"
            return f"follow {path}: {step.hop.node_type}{_where(step.conditions)}"
        case Connected():
            return f"keep joined {step.source} {_arrow(step.hop)} {step.target}"
        case Count():
            return f"count {step.source} {_branch(step.branch)}"
        case Check():
            return f"keep {_filter(step.filter)}"
        case Lacks():
            return f"keep without {step.source} {_branch(step.branch)}"
        case Without():
            return f"keep rows of {', '.join(step.outer)} without"
        case _:
            assert_never(step)


def _branch(branch: Branch) -> str:
    text = f"{_arrow(branch.hop)} {branch.hop.node_type}{_where(branch.conditions)}"
    parts = [_branch(further) for further in branch.branches]
    parts += [f"without {_branch(lacking)}" for lacking in branch.without]
    return f"{text} ({'; '.join(parts)})" if parts else text


def _arrow(hop: Hop) -> str:
    before, after = ("-", "->") if hop.direction is Direction.OUT else ("<-", "-")
    hops = "" if (hop.low, hop.high) == (1, 1) else f"{{{hop.low},{hop.high}}}"
    return f"{before}{hop.edge}{hops}{after}"


def _where(conditions: tuple[Filter, ...]) -> str:
    return f" where {' and '.join(map(_filter, conditions))}" if conditions else ""


def _filter(condition: Filter) -> str:
    left, right = describe_expression(condition.left), describe_expression(condition.right)
    return f"{left} {condition.operator.value} {right}"
