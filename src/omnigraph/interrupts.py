"""Keeping an interrupt out of steps that belong together.

Between a write's first effect and its last, between making something outside this process and noting
that it has to be removed, and while it is removed, an interrupt waits.
Tests: tests/unit/test_interrupts.py, tests/crash/recovery/test_interrupts.py.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Final, TypeVar

_Result = TypeVar("_Result")

_SIGNALS: Final = (signal.SIGHUP, signal.SIGTERM, signal.SIGINT)

ending: Final = threading.Event()
"""Set when this process has been asked to end: what would outlive it is not started any more."""


def uninterrupted(work: Callable[[], _Result]) -> _Result:
    """Do the work to its end; a Ctrl-C that arrives meanwhile is handled afterwards.

    Python calls signal handlers in the main thread only, so nothing has to be done in others. Doing
    the work in another thread and waiting for it does not help: an interrupted wait counts the thread
    as ended while it still runs.
    """
    if threading.current_thread() is not threading.main_thread():
        return work()
    arrived: list[tuple[int, FrameType | None]] = []

    def note(number: int, frame: FrameType | None) -> None:
        arrived.append((number, frame))

    found = {number: signal.getsignal(number) for number in _SIGNALS}
    handlers = {int(number): handler for number, handler in found.items() if callable(handler)}
    try:
        for number in handlers:
            signal.signal(number, note)
        return work()
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for number, frame in arrived:
            handlers[number](number, frame)
