"""The descent of commits as a drawing: one line per commit, one column per line of history.

A merge opens a column to its right, `●─╮`, or joins one that is there, `├─●`; the commit at which two
lines forked closes one, `●─╯`.
Tests: tests/unit/cli/test_commit_graph.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

_COMMIT: Final = "●"


def draw(commits: Sequence[tuple[str, Sequence[str]]]) -> Iterator[str]:
    """The drawing beside each commit; commits come with their parents, and before them."""
    shown = {commit for commit, _ in commits}
    lanes: list[str | None] = []
    for commit, parents in commits:
        waiting = [lane for lane, awaited in enumerate(lanes) if awaited == commit]
        column = waiting[0] if waiting else _free(lanes)
        closing = waiting[1:]
        for lane in closing:
            lanes[lane] = None
        known = [parent for parent in parents if parent in shown]
        lanes[column] = known[0] if known else None
        opening: list[int] = []
        joining: list[int] = []
        for parent in known[1:]:
            if parent in lanes:
                joining.append(lanes.index(parent))
            else:
                opening.append(_free(lanes, column + 1))
                lanes[opening[-1]] = parent
        yield _line(lanes, column, opening, closing, joining)
        while lanes and lanes[-1] is None:
            lanes.pop()


def _free(lanes: list[str | None], start: int = 0) -> int:
    """The first free lane at or after `start`."""
    for lane in range(start, len(lanes)):
        if lanes[lane] is None:
            return lane
    lanes.append(None)
    return len(lanes) - 1


def _line(
    lanes: Sequence[str | None],
    column: int,
    opening: Sequence[int],
    closing: Sequence[int],
    joining: Sequence[int],
) -> str:
    linked = [column, *opening, *closing, *joining]
    first, last = min(linked), max(linked)
    signs = []
    for lane, awaited in enumerate(lanes):
        inside = first < lane < last
        if lane == column:
            sign = _COMMIT
        elif lane in joining or (lane in opening and lane in closing):
            sign = "┤" if lane > column else "├"
        elif lane in opening:
            sign = "┬" if inside else "╮"
        elif lane in closing:
            sign = "┴" if inside else "╯"
        elif awaited is not None:
            sign = "┼" if inside else "│"
        else:
            sign = "─" if inside else " "
        signs.append(sign + ("─" if first <= lane < last else " "))
    return "".join(signs).rstrip()
