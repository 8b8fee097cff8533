"""Progress protocol for long calls, with a no-op implementation.

A caller that shows progress implements `Progress`; the operations know nothing of terminals.
"""

from __future__ import annotations

from typing import Final, Protocol


class Progress(Protocol):
    """Receives stages and row counts from one thread at a time, every few thousand rows."""

    def stage(self, name: str, rows: int | None = None) -> None:
        """A stage begins, and the one before it is over; `rows` is how many it will take, if known."""
        ...

    def advance(self, rows: int) -> None:
        """`rows` more rows of the stage are done."""
        ...


class _Silent:
    def stage(self, name: str, rows: int | None = None) -> None:
        pass

    def advance(self, rows: int) -> None:
        pass


SILENT: Final[Progress] = _Silent()
