"""Errors as answers: a task returns what went wrong, so that nothing else it did is lost with it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from omnigraph.errors import OmnigraphError

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Failed:
    """An error that is returned instead of raised."""

    error: OmnigraphError


def returning(call: Callable[[], Result]) -> Result | Failed:
    """The result of a call, or its error as one."""
    try:
        return call()
    except OmnigraphError as error:
        return Failed(error)


def value_of(answer: Result | Failed) -> Result:
    """The result; raises the error that was returned in its place."""
    if isinstance(answer, Failed):
        raise answer.error
    return answer
