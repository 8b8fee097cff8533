"""A story as values: a case, and the stage its steps are played on.

Steps come in two kinds. An action changes the graph; an expectation looks at the graph or at what
the last action led to, and complains with `CaseFailure`. Both may be refused by the graph.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, runtime_checkable

from tests.support.cases.backend import Backend
from tests.support.outcome import (
    Json,
    LoadResult,
    MergeResult,
    MutationResult,
    Receipt,
    Refusal,
)

Result = LoadResult | MutationResult | MergeResult | Receipt | None
"""What an action returned; making a branch returns nothing."""


class CaseFailure(AssertionError):
    """A step came out differently. The text begins with file and line."""


@dataclass(slots=True)
class Stage:
    """The graph of a running story and what happened last."""

    backend: Backend
    new_backend: Callable[[], Backend]
    schema: str
    marks: dict[str, str] = field(default_factory=dict)
    result: Result = None
    refusal: Refusal | None = None
    commits_made: int = 0
    answer: list[dict[str, Json]] | None = None

    def target(self, written: str) -> str:
        """A branch or commit as a story writes it: `@name` is a commit that was marked."""
        if not written.startswith("@"):
            return written
        if written[1:] not in self.marks:
            raise CaseFailure(f"no commit was marked as '{written[1:]}'")
        return self.marks[written[1:]]

    def records(self, written: str, types: Sequence[str]) -> list[dict[str, Json]]:
        """The records of an export."""
        lines = self.backend.export(self.target(written), types)
        return [json.loads(line) for line in lines]

    def commit(self, written: str | None) -> str | None:
        return None if written is None else self.target(written)

    def receipt(self) -> Receipt:
        """The receipt of the last action."""
        if self.result is None:
            raise CaseFailure("the step before has no receipt")
        return self.result if isinstance(self.result, Receipt) else self.result.receipt


@runtime_checkable
class Action(Protocol):
    """A step that changes the graph. Raises `Refusal`."""

    def perform(self, stage: Stage) -> Result: ...


class Expectation(Protocol):
    """A step that looks. Raises `CaseFailure` without a place, or `Refusal`."""

    def check(self, stage: Stage) -> None: ...


@dataclass(frozen=True, slots=True)
class Step:
    """One step and the line it stands on."""

    line: int
    does: Action | Expectation


@dataclass(frozen=True, slots=True)
class Case:
    """One story. `proves` are the acceptance rows it stands for."""

    path: Path
    line: int
    title: str
    proves: tuple[str, ...]
    schema: str
    seed: str | None
    steps: tuple[Step, ...]
