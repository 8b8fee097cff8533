"""What a command does for a person at a terminal: a pager for long output, a line for long waits.

Both stand between the command and the terminal only while one is there: scripts, pipes and logs see
none of it. Output is held back until it is longer than the screen; then a pager gets all of it.
Tests: tests/surfaces/test_terminal.py.
"""

from __future__ import annotations

import io
import os
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final, TextIO

import click

from omnigraph.cli.exits import WAITING, end_waiting
from omnigraph.settings import read_text

WAIT_SECONDS: Final = 1.0
"""A command that has printed nothing for this long says that it is at work."""

_BETWEEN_SECONDS: Final = 0.2
_CLEAR_LINE: Final = "\r\x1b[K"
_LESS_OPTIONS: Final = "FRX"
"""Colours pass, a short text leaves again at once, the screen keeps what was shown."""


class Waiting:
    """Writes to a terminal how long a command has been at work, until there is something else to see."""

    def __init__(self, text: str, stream: TextIO) -> None:
        self._text = text
        self._stream = stream
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._is_shown = False
        self._started = time.monotonic()
        self._thread = threading.Thread(target=self._run, name="omnigraph-waiting", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Remove the line; it never comes back."""
        self._over.set()
        with self._lock:
            if self._is_shown:
                self._is_shown = False
                self._write(_CLEAR_LINE)

    def _run(self) -> None:
        delay = WAIT_SECONDS
        while not self._over.wait(delay):
            delay = _BETWEEN_SECONDS
            with self._lock:
                if self._over.is_set():
                    return
                seconds = time.monotonic() - self._started
                self._is_shown = True
                self._write(f"{_CLEAR_LINE}{self._text}: {seconds:.0f} s")

    def _write(self, text: str) -> None:
        with suppress(OSError, ValueError):
            self._stream.write(text)
            self._stream.flush()


class _Output(io.TextIOBase):
    """Standard output on a terminal: ends the waiting line and starts the pager when it has to."""

    encoding = "utf-8"

    def __init__(self, terminal: TextIO, *, paged: bool) -> None:
        self._terminal = terminal
        self._command = pager_command() if paged else None
        self._lines_left = shutil.get_terminal_size().lines - 1
        self._held: list[str] = []
        self._pager: subprocess.Popen[str] | None = None

    @property
    def buffer(self) -> io.BufferedIOBase:
        end_waiting()
        self.flush()
        binary = self._terminal.buffer
        assert isinstance(binary, io.BufferedIOBase)
        return binary

    def isatty(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._terminal.fileno()

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        end_waiting()
        if self._pager is not None:
            self._send(text)
        elif self._command is None:
            self._terminal.write(text)
        else:
            self._held.append(text)
            self._lines_left -= text.count("\n")
            if self._lines_left < 0:
                self._start(self._command)
        return len(text)

    def flush(self) -> None:
        if self._pager is None and self._command is None:
            self._terminal.flush()

    def end(self) -> None:
        """Print what is held back, or wait until the person has left the pager."""
        if self._pager is None:
            self._release()
            return
        with suppress(OSError):
            assert self._pager.stdin is not None
            self._pager.stdin.close()
        previous = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            self._pager.wait()
        finally:
            signal.signal(signal.SIGINT, previous)

    def _start(self, command: list[str]) -> None:
        variables = {"LESS": _LESS_OPTIONS, **os.environ}
        try:
            self._pager = subprocess.Popen(
                command, stdin=subprocess.PIPE, text=True, encoding="utf-8", env=variables
            )
        except OSError:
            self._command = None
            self._release()
            return
        held, self._held = "".join(self._held), []
        self._send(held)

    def _send(self, text: str) -> None:
        assert self._pager is not None
        assert self._pager.stdin is not None
        # Who leaves the pager before the end has seen enough: that is a closed pipe.
        self._pager.stdin.write(text)

    def _release(self) -> None:
        held, self._held = "".join(self._held), []
        self._command = None
        self._terminal.write(held)


def pager_command() -> list[str] | None:
    """The pager of this person: PAGER, or less if it is installed."""
    text = read_text("PAGER") or "less"
    try:
        command = shlex.split(text)
    except ValueError:
        return None
    if not command or command == ["cat"] or read_text("TERM") == "dumb":
        return None
    return command if shutil.which(command[0]) else None


@contextmanager
def on_terminal(*, waiting: str | None, paged: bool) -> Iterator[None]:
    """Run a command for a person: `waiting` names it in the line about long waits; None for no line."""
    shown = None
    has_terminal = sys.stderr is not None and sys.stderr.isatty()
    if waiting is not None and has_terminal and read_text("TERM") != "dumb":
        shown = Waiting(waiting, sys.stderr)
        click.get_current_context().meta[WAITING] = shown
    terminal = sys.stdout
    output = _Output(terminal, paged=paged) if terminal.isatty() else None
    if output is not None:
        sys.stdout = output
    try:
        yield
    except BrokenPipeError:
        if output is None or output._pager is None:
            raise
    finally:
        if shown is not None:
            shown.end()
        if output is not None:
            sys.stdout = terminal
            with suppress(BrokenPipeError):
                output.end()
