"""Calls that wait for a store, made at the same time instead of one after the other."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from functools import cache
from typing import Final, TypeVar

_AT_ONCE: Final = 16
"""Most concurrent calls. A store answers this many without slowing down."""

_First = TypeVar("_First")
_Second = TypeVar("_Second")
_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


def both(first: Callable[[], _First], second: Callable[[], _Second]) -> tuple[_First, _Second]:
    """The results of two calls. If both fail, the error of the first is raised."""
    wait = begin(second)
    try:
        result = first()
    except BaseException:
        with suppress(Exception):
            wait()
        raise
    return result, wait()


def begin(call: Callable[[], _Result]) -> Callable[[], _Result]:
    """Start a call in a thread of its own. The returned function waits for its result or error."""
    pool = ThreadPoolExecutor(1)
    try:
        later = pool.submit(copy_context().run, call)
    except RuntimeError:
        # An interpreter that is ending starts no threads.
        later = Future()
        try:
            later.set_result(call())
        except Exception as error:
            later.set_exception(error)
    pool.shutdown(wait=False)
    return later.result


def each(calls: Sequence[Callable[[], _Result]]) -> list[_Result]:
    """The results of some calls in their order. The first error in that order is raised."""
    if len(calls) < 2:
        return [call() for call in calls]
    with ThreadPoolExecutor(min(len(calls) - 1, _AT_ONCE)) as pool:
        try:
            later = [pool.submit(copy_context().run, call) for call in calls[1:]]
        except RuntimeError:
            # An interpreter that is ending starts no threads.
            return [call() for call in calls]
        first = calls[0]()
        return [first, *(future.result() for future in later)]


def in_parallel(call: Callable[[_Item], _Result], items: Iterable[_Item]) -> list[_Result]:
    """The results in order. All calls have ended when this returns or raises the first error.

    The threads are kept for the next time, so the calls must not wait for others of this kind.
    """
    given = list(items)
    if len(given) < 2:
        return [call(item) for item in given]
    futures: list[Future[_Result]] = []
    try:
        pool = _threads(os.getpid())
        futures += (pool.submit(call, item) for item in given)
    except RuntimeError:
        # An interpreter that is ending starts no threads; what was not started is done here.
        done = [future.result() for future in futures]
        return [*done, *(call(item) for item in given[len(done) :])]
    errors = [error for future in futures if (error := future.exception()) is not None]
    if errors:
        raise errors[0]
    return [future.result() for future in futures]


@cache
def _threads(_process: int) -> ThreadPoolExecutor:
    """Threads that wait for storage. A forked process has none of those of its parent."""
    return ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="omnigraph-storage")


def end_threads() -> None:
    """End the threads; the next call starts them again."""
    pool = _threads(os.getpid())
    _threads.cache_clear()
    pool.shutdown(wait=True)
