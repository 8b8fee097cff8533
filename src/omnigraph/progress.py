"""How long calls tell how far they are: one small protocol, and the way to tell nobody.

Whoever shows progress implements `Progress`; what does the work knows nothing of terminals.
"""

from __future__ import annotations

from typing import Final, Protocol


class Progress(Protocol):
    """Is told about stages and rows, by one thread at a time, every few thousand rows."""

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
