"""Where a JSON stream may be cut in two, so that both parts hold the same records as the whole.

A cut is made between two neighbouring lines that both begin with `{` and end with `}`. No JSON value
spans it: `}` followed by `{` is an error anywhere but inside a string, and a string has no line end.
Whoever reads a malformed record up to there goes on at the very line of the cut. A stream without
such lines, pretty-printed say, is not cut.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from omnigraph.limits import LOAD_RECORD_BYTES

ReadAt = Callable[[int, int], bytes]
"""So many bytes from a position on; fewer at the end."""

_WINDOW: Final = 64 * 1024


def find_cuts(read_at: ReadAt, size: int, step: int) -> Iterator[int]:
    """Positions at which the stream falls into parts of about `step` bytes."""
    at = step
    while at < size:
        cut = _first_cut(read_at, at, size)
        if cut is None:
            return
        yield cut
        at = max(at + step, cut + 1)


def _first_cut(read_at: ReadAt, start: int, size: int) -> int | None:
    length = _WINDOW
    while True:
        window = read_at(start, length)
        cut = _cut_in(window)
        if cut is not None:
            return start + cut
        if start + length >= size or length > LOAD_RECORD_BYTES:
            return None
        length *= 4


def _cut_in(window: bytes) -> int | None:
    """The beginning of the first line that may begin a part, both it and the one before complete."""
    # What stands before the first line end began somewhere else.
    before = window.find(b"\n") + 1
    if not before:
        return None
    start = window.find(b"\n", before) + 1
    while start:
        end = window.find(b"\n", start)
        if end < 0:
            return None
        if _is_object(window[before : start - 1]) and _is_object(window[start:end]):
            return start
        before, start = start, end + 1
    return None


def _is_object(line: bytes) -> bool:
    return line.startswith(b"{") and line.rstrip(b" \t\r").endswith(b"}")
