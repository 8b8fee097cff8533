"""Playing a story on a backend.

Two things hold for every story without being written: a step is refused only where the story says
so, and what was refused has changed nothing on any branch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.support.cases.actions import Load
from tests.support.cases.backend import Backend
from tests.support.cases.expectations import Refused
from tests.support.cases.story import Action, Case, CaseFailure, Expectation, Stage
from tests.support.outcome import Refusal


def run_case(case: Case, new_backend: Callable[[], Backend]) -> None:
    """Play all steps. Raises `CaseFailure` with the file and line of the step that failed."""
    stage = Stage(new_backend(), new_backend, case.schema)
    line = case.line
    try:
        stage.backend.create(case.schema)
        if case.seed is not None:
            Load("overwrite", case.seed).perform(stage)
        followers = [step.does for step in case.steps[1:]] + [None]
        for step, follower in zip(case.steps, followers, strict=True):
            line = step.line
            try:
                _play(step.does, stage)
            except Refusal as refusal:
                if not isinstance(follower, Refused):
                    raise
                stage.refusal = refusal
            else:
                if isinstance(follower, Refused):
                    raise CaseFailure("it was not refused")
    except Refusal as refusal:
        message = f"{case.path}:{line}: refused ({refusal.kind}): {refusal.message}"
        raise CaseFailure(message) from refusal
    except CaseFailure as failure:
        raise CaseFailure(f"{case.path}:{line}: {failure}") from failure


def _play(does: Action | Expectation, stage: Stage) -> None:
    if not isinstance(does, Action):
        does.check(stage)
        return
    stage.result, stage.refusal, stage.commits_made = None, None, 0
    before = _Picture.take(stage.backend)
    try:
        stage.result = does.perform(stage)
    except Refusal:
        if _Picture.take(stage.backend) != before:
            raise CaseFailure("it was refused, but the graph has changed") from None
        raise
    stage.commits_made = len(_Picture.take(stage.backend).commits - before.commits)


@dataclass(frozen=True, slots=True)
class _Picture:
    """All a story can see of a graph: branches, commits, content."""

    commits: frozenset[str | None]
    contents: dict[str, list[str]]

    @classmethod
    def take(cls, backend: Backend) -> _Picture:
        branches = backend.branches()
        commits = (receipt.commit for name in branches for receipt in backend.commits(name))
        contents = {name: backend.export(name, ()) for name in branches}
        return cls(frozenset(commits), contents)
