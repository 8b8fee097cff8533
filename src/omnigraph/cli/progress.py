"""A sign of life on standard error while something takes long.

Only a terminal gets one, and it is gone when the work is done: what a script or a log sees does not
depend on it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def progress(text: str) -> Iterator[None]:
    """Show what is being done and for how long, until the block ends."""
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield
        return
    # Imported here because a command that shows nothing should not pay for the means to show it.
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    line = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )
    with line:
        line.add_task(text, total=None)
        yield
