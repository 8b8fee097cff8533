"""Calls that wait for storage, made side by side.

Tests: tests/unit/test_parallel.py.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from typing import Final, TypeVar

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

_CALLS_AT_ONCE: Final = 16


def in_parallel(call: Callable[[_Item], _Result], items: Iterable[_Item]) -> list[_Result]:
    """The results in order. All calls have ended when this returns or raises the first error."""
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
    return ThreadPoolExecutor(_CALLS_AT_ONCE, thread_name_prefix="omnigraph-storage")


def end_threads() -> None:
    """End the threads; the next call starts them again."""
    pool = _threads(os.getpid())
    _threads.cache_clear()
    pool.shutdown(wait=True)
