"""Colour for people, nothing for pipes.

Text is coloured only when its stream is a terminal that can show it and `NO_COLOR` is not set.
What is printed is the same either way apart from the colour codes.
"""

from __future__ import annotations

import sys
from typing import TextIO

import click


class Style:
    """The few roles that have a colour."""

    def __init__(self, enabled: bool) -> None:
        self.enabled = enabled

    @classmethod
    def of(cls, stream: TextIO) -> Style:
        """The style that fits a stream and the environment."""
        # `omnigraph version` loads as little as it can, and is not styled.
        if not stream.isatty():
            return cls(False)
        from omnigraph.settings import read_text

        wanted = not read_text("NO_COLOR") and read_text("TERM") != "dumb"
        return cls(wanted)

    def error(self, text: str) -> str:
        return click.style(text, fg="red") if self.enabled else text

    def warning(self, text: str) -> str:
        return click.style(text, fg="yellow") if self.enabled else text

    def ok(self, text: str) -> str:
        return click.style(text, fg="green") if self.enabled else text

    def header(self, text: str) -> str:
        return click.style(text, bold=True) if self.enabled else text


def warn(message: str) -> None:
    """Print a warning to standard error."""
    print(f"{Style.of(sys.stderr).warning('warning:')} {message}", file=sys.stderr)
