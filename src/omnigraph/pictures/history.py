"""The commits of a branch as a picture: newest at the top, with the lines of merged branches beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from omnigraph.diagnostics import counted
from omnigraph.pictures.svg import COLOURS, Drawing, Picture, shorten

if TYPE_CHECKING:
    from collections.abc import Sequence

    from omnigraph.history.commits import Commit
    from omnigraph.pictures.graphs import HasCommits
    from omnigraph.versioning.commits import CommitId

_ROW: Final = 26
_LANE: Final = 20
_RADIUS: Final = 6
_MAX_MESSAGE: Final = 60
_SHORT_ID: Final = 8


def history(graph: HasCommits, branch: str | None = None, *, limit: int = 30) -> Picture:
    """A picture of the newest commits of a branch, merged ones included.

    >>> pictures.history(graph)
    <picture: 2 commits>
    """
    return draw_commits(graph.log(branch or graph.branch, merged=True, limit=limit))


def draw_commits(commits: Sequence[Commit]) -> Picture:
    """A picture of commits, each before its parents."""
    drawing = Drawing()
    lanes = _lanes(commits)
    rows = {commit.id: row for row, commit in enumerate(commits)}
    beside = (max(lanes.values(), default=0) + 1) * _LANE + 16

    def centre(commit_id: CommitId) -> tuple[float, float]:
        return 16 + lanes[commit_id] * _LANE, 20 + rows[commit_id] * _ROW

    for commit in commits:
        x, y = centre(commit.id)
        for parent in commit.parents:
            if parent in rows:
                x2, y2 = centre(parent)
                bend = (y + y2) / 2
                drawing.link(
                    f"M{x:g} {y:g}C{x:g} {bend:g} {x2:g} {bend:g} {x2:g} {y2:g}", arrow=False
                )
        actor = f" {commit.actor}" if commit.actor else ""
        about = (
            f"{commit.id[-_SHORT_ID:]} {commit.operation} {commit.created_at:%Y-%m-%d %H:%M}{actor}"
        )
        drawing.circle(x, y, _RADIUS, COLOURS[lanes[commit.id] % len(COLOURS)], commit.id)
        drawing.text(beside, y + 4, about, title=commit.id)
        if commit.message:
            where = beside + (len(about) + 2) * 7.4
            first = commit.message.splitlines()[0]
            drawing.text(where, y + 4, shorten(first, _MAX_MESSAGE), "note", title=commit.message)
    return drawing.finish(counted(len(commits), "commit"))


def _lanes(commits: Sequence[Commit]) -> dict[CommitId, int]:
    """The column of each commit: that of a child whose first parent it is, else a free one."""
    waiting: dict[CommitId, int] = {}
    found: dict[CommitId, int] = {}
    for commit in commits:
        lane = waiting.pop(commit.id, None)
        if lane is None:
            lane = _free(waiting)
        found[commit.id] = lane
        for place, parent in enumerate(commit.parents):
            if parent not in waiting:
                taken = lane if place == 0 else _free({**waiting, commit.id: lane})
                waiting[parent] = taken
            elif place == 0:
                waiting[parent] = min(waiting[parent], lane)
    return found


def _free(waiting: dict[CommitId, int]) -> int:
    taken = set(waiting.values())
    return next(lane for lane in range(len(taken) + 1) if lane not in taken)
