"""The entry point of the installed command `omnigraph`, and its signals from start to exit.

While it starts there is nothing to undo: it says so and is gone. While it runs, what it does is
interrupted once, and whatever goes wrong on the way out is of no interest. From then on, and when it
leaves by itself, nothing is interrupted any more.
Nothing is imported here that takes time: until handlers are in place, Python's own answer is a stack
trace.
Tests: tests/surfaces/test_interrupts.py.
"""

from __future__ import annotations

import atexit
import gc
import os
import signal
import sys
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

ENDINGS = {
    signal.SIGHUP: (129, "hung up"),
    signal.SIGINT: (130, "interrupted"),
    signal.SIGTERM: (143, "terminated"),
}
"""The exit code for each signal, as shells have it, and the line that is printed."""

_STARTING, _RUNNING, _LEAVING = range(3)

_PATIENCE_SECONDS = 2.0
"""Within that time after a signal others are taken for the same one. Later ones end the process at once."""

_LATER_SECONDS = 0.01

_ENGINE = "omnigraph.api.graph"
"""Until this module is loaded, a command has nothing open that would have to be closed."""


class Signals:
    """Handles termination signals. One instance per process."""

    def __init__(self) -> None:
        self._phase = _STARTING
        self._arrived: int | None = None
        self._arrived_at = 0.0
        self._stderr = 2

    def watch(self) -> None:
        """Install the handlers, except for signals that the parent process ignores."""
        # What is registered first runs last.
        atexit.register(self._finish)
        for number in ENDINGS:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._handle)

    def run(self, command: Callable[[], int]) -> int:
        """Run the command, which may be interrupted once; returns its exit code."""
        code = 1
        try:
            try:
                self._phase = _RUNNING
                code = command()
            finally:
                self._phase = _LEAVING
        except BaseException:
            # Libraries turn an interrupt into errors of all kinds.
            if self._arrived is None:
                raise
        return code

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self._phase == _STARTING:
            self._arrived = number
            self._finish()
        elif self._arrived is not None:
            if self._phase == _RUNNING and _now() > self._arrived_at + _PATIENCE_SECONDS:
                self._leave_at_once()
        elif not _is_importing(frame):
            self._note(number)
            _hush()
            if self._phase == _RUNNING:
                raise KeyboardInterrupt
        elif self._phase == _RUNNING and not _is_loaded(_ENGINE):
            self._note(number)
            self._leave_at_once()
        else:
            _send_later(number)

    def _note(self, number: int) -> None:
        from omnigraph.interrupts import ending

        self._arrived, self._arrived_at = number, _now()
        ending.set()
        self._stderr = _take_stderr()

    def _leave_at_once(self) -> None:
        """Run only the clean-up that every exiting process needs."""
        self._phase = _LEAVING
        atexit._run_exitfuncs()

    def _finish(self) -> None:
        """End the process immediately; nothing is left to clean up."""
        signal.setitimer(signal.ITIMER_REAL, 0)
        if self._arrived is None:
            for number in ENDINGS:
                signal.signal(number, signal.SIG_IGN)
            return
        code, line = ENDINGS[signal.Signals(self._arrived)]
        if sys.stderr is not None:
            # Past the buffer, which may be in use: this is called from a handler too.
            with suppress(OSError):
                os.write(self._stderr, f"{line}\n".encode())
        # Not the usual way out: output that is still buffered may have a reader that waits as well.
        os._exit(code)


def _is_importing(frame: FrameType | None) -> bool:
    """Whether a module is being loaded. Many cannot be interrupted without complaining."""
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def _is_loaded(name: str) -> bool:
    module = sys.modules.get(name)
    return module is not None and not getattr(module.__spec__, "_initializing", False)


def _send_later(number: int) -> None:
    """Send a signal to this process in a moment, so that it is answered like any other."""
    signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), number))
    signal.setitimer(signal.ITIMER_REAL, _LATER_SECONDS)


def _hush() -> None:
    """Keep Python from reporting what fails from now on, on a terminal too."""
    import logging
    import threading
    import warnings

    logging.disable()
    warnings.simplefilter("ignore")
    sys.unraisablehook = _ignore
    threading.excepthook = _ignore


def _take_stderr() -> int:
    """Keep all others from standard error: what fails from now on fails because of us.

    Returns a descriptor of it. A terminal stays within reach of what is drawn there, to be tidied up.
    """
    if sys.stderr is None:  # The descriptor was closed from the start and may be any file by now.
        return 2
    ours = os.dup(2)
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 2)
    os.close(null)
    if os.isatty(ours):
        sys.stderr = os.fdopen(ours, "w", 1, encoding="utf-8", errors="backslashreplace")
    return ours


def _ignore(_unraised: object) -> None:
    pass


def _now() -> float:
    import time

    return time.monotonic()


_OBJECTS_BETWEEN_COLLECTIONS = 100_000

_signals = Signals()
_signals.watch()


def run() -> int:
    """Run the command line of this process; the result is its exit code."""
    # A command makes many objects while it starts, and hardly any of them is garbage.
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS)
    from omnigraph.cli.main import main

    return _signals.run(main)
