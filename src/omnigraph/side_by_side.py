"""Calls that wait for a store, made at the same time instead of one after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

_AT_ONCE: Final = 16
"""Most calls at the same time. A store answers so many without slowing down."""

_First = TypeVar("_First")
_Second = TypeVar("_Second")
_Result = TypeVar("_Result")


def both(first: Callable[[], _First], second: Callable[[], _Second]) -> tuple[_First, _Second]:
    """The results of two calls. If both fail, the error of the first is raised."""
    with ThreadPoolExecutor(1) as pool:
        later = pool.submit(second)
        result = first()
        return result, later.result()


def each(calls: Sequence[Callable[[], _Result]]) -> list[_Result]:
    """The results of some calls in their order. The first error in that order is raised."""
    if len(calls) < 2:
        return [call() for call in calls]
    with ThreadPoolExecutor(min(len(calls) - 1, _AT_ONCE)) as pool:
        later = [pool.submit(call) for call in calls[1:]]
        first = calls[0]()
        return [first, *(future.result() for future in later)]
