"""Where a CSV text may be cut: ranges of it are looked at apart from each other, then together.

Whether a line end is between quotes depends on every quote before it. A range that begins a line is
looked at twice, as if it began outside of quotes and as if it began inside. What comes before it then
tells which of the two holds. From the first range on where only fields tell what a quote means, or where no
record ends, the text stays in one piece.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from omnigraph.load.csv_rows import Bytes, Dialect, is_blank, line_ends, outside_quotes, quotes_in
from omnigraph.load.json_text import BYTE_ORDER_MARK
from omnigraph.load.records import Numbers


@dataclass(frozen=True, slots=True)
class Reading:
    """What a range holds if it begins outside of quotes, or if it begins inside."""

    skipped: int | None
    """The bytes before the first record that begins in the range; None if no record ends in it."""
    records: int
    """How many records begin in the range."""
    lines_before: int
    """Line ends before the first of them."""
    lines: int
    """Line ends from there on."""


@dataclass(frozen=True, slots=True)
class RangeReadings:
    """Both readings of a range; one is None if quotes stand where only fields tell."""

    outside: Reading | None
    inside: Reading | None
    ends_inside: bool
    """Whether a range that begins outside of quotes ends inside."""


@dataclass(slots=True)
class Piece:
    """A part of a text that begins with a record: where, and its records and line ends."""

    start: int
    records: int = 0
    lines: int = 0


def read_range(content: bytes, dialect: Dialect, *, is_first: bool) -> RangeReadings:
    """Both readings of a range that begins a line and ends with one, or with the text."""
    if is_first:
        content = content.removeprefix(BYTE_ORDER_MARK)
    data = np.frombuffer(content, np.uint8)
    ends = line_ends(data, ended=True)
    return RangeReadings(
        _reading(data, ends, dialect, inside=False),
        _reading(data, ends, dialect, inside=True),
        ends_inside=bool(len(quotes_in(data, dialect)) % 2),
    )


def _reading(data: Bytes, ends: Numbers, dialect: Dialect, *, inside: bool) -> Reading | None:
    outside = outside_quotes(data, ends, dialect, begins_inside=inside)
    if outside is None:
        return None
    starts = ends[outside] + 1
    if not len(starts):
        return Reading(None, 0, len(ends), 0)
    starts = starts if inside else np.concatenate([[0], starts])
    first = int(starts[0])
    starts = starts[starts < len(data)]
    records = int(np.count_nonzero(~is_blank(data[starts])))
    before = int(np.searchsorted(ends, first))
    return Reading(first, records, before, len(ends) - before)


def pieces_of(starts: Sequence[int], ranges: Sequence[RangeReadings]) -> list[Piece]:
    """The pieces of a text whose ranges begin at these places; the last one's counts are not known.

    Every piece but the last has a record, so the header is in the first one.
    """
    pieces = [Piece(starts[0])]
    inside = False
    for start, found in zip(starts, ranges, strict=True):
        reading = found.inside if inside else found.outside
        last = pieces[-1]
        if reading is None and not inside and start > starts[0] and last.records:
            pieces.append(Piece(start))
        if reading is None or reading.skipped is None:
            break
        last.lines += reading.lines_before
        if start > starts[0] and last.records and reading.records:
            last = Piece(start + reading.skipped)
            pieces.append(last)
        last.records += reading.records
        last.lines += reading.lines
        inside ^= found.ends_inside
    return pieces
