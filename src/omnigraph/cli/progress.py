"""Progress on standard error for long operations.

A terminal gets a line per stage with its rows and their rate, gone when the work is done. With
`--json` every stage that is over is a line of JSON. Otherwise there is nothing: what a script or a
log sees does not depend on how quick the machine is.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from omnigraph.cli.exits import end_waiting
from omnigraph.progress import SILENT, Progress

if TYPE_CHECKING:
    from rich.progress import Progress as Display
    from rich.progress import Task


def _is_dumb() -> bool:
    from omnigraph.settings import read_text

    return read_text("TERM") == "dumb"


def _is_quiet() -> bool:
    from omnigraph.cli.context import Context

    context = click.get_current_context(silent=True)
    found = None if context is None else context.find_object(Context)
    return found is not None and bool(found.options.quiet)


@contextmanager
def progress(text: str, *, as_json: bool = False) -> Iterator[Progress]:
    """Show progress until the block ends; the operation reports its stages."""
    if as_json:
        lines = _Lines()
        yield lines
        lines.finish()
    elif sys.stderr is None or not sys.stderr.isatty() or _is_dumb() or _is_quiet():
        yield SILENT
    else:
        end_waiting()
        with _display() as display:
            yield _Bars(display, text)


class _Lines:
    """Writes a line for every finished stage."""

    def __init__(self) -> None:
        self._name: str | None = None
        self._rows = 0
        self._started = 0.0

    def stage(self, name: str, rows: int | None = None) -> None:
        self.finish()
        self._name, self._rows = name, 0
        self._started = time.monotonic()

    def advance(self, rows: int) -> None:
        self._rows += rows

    def finish(self) -> None:
        if self._name is not None:
            seconds = round(time.monotonic() - self._started, 3)
            line = {"stage": self._name, "rows": self._rows, "seconds": seconds}
            print(json.dumps(line), file=sys.stderr, flush=True)


class _Bars:
    """Draws a bar for every stage; the first line is there before there is any."""

    def __init__(self, display: Display, text: str) -> None:
        self._display = display
        self._text = text
        self._task = display.add_task(text, total=None)
        self._staged = False

    def stage(self, name: str, rows: int | None = None) -> None:
        description = f"{self._text}: {name}"
        if self._staged:
            done = self._display.tasks[self._task].completed
            self._display.update(self._task, total=done or 1, completed=done or 1)
            self._display.stop_task(self._task)
            self._task = self._display.add_task(description, total=rows)
        else:
            self._display.reset(self._task, description=description, total=rows)
            self._staged = True

    def advance(self, rows: int) -> None:
        self._display.advance(self._task, rows)


def _display() -> Display:
    # Imported here because a command that shows nothing should not pay for the means to show it.
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        ProgressColumn,
        SpinnerColumn,
        TextColumn,
        TimeElapsedColumn,
    )
    from rich.progress import Progress as Display
    from rich.text import Text

    class RowsColumn(ProgressColumn):
        def render(self, task: Task) -> Text:
            return Text(_rate(task))

    return Display(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=20),
        RowsColumn(),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )


def _rate(task: Task) -> str:
    """`120,000 rows, 85,000/s`, once there are rows and it took some time."""
    rows = int(task.completed)
    if not rows or not task.elapsed:
        return ""
    return f"{rows:,} {'row' if rows == 1 else 'rows'}, {rows / task.elapsed:,.0f}/s"
