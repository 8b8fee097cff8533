"""The drawing of commits and their parents."""

from __future__ import annotations

import pytest

from omnigraph.cli.commands.history import draw


@pytest.mark.parametrize(
    ("commits", "drawing"),
    [
        ("c:b b:a a", ["●", "●", "●"]),
        # A merge, and the commit at which its two sides parted.
        ("m:b,f b:a f:a a", ["●─╮", "● │", "│ ●", "●─╯"]),
        # A branch merged twice.
        ("n:m,g m:b,f g:f b:a f:a a", ["●─╮", "●─┼─╮", "│ ● │", "● │ │", "│ ●─╯", "●─╯"]),
        # Two branches merged one after the other.
        ("n:m,g m:a,f g:a f:a a", ["●─╮", "●─┼─╮", "│ ● │", "│ │ ●", "●─┴─╯"]),
        # What is cut off by a limit is not waited for.
        ("m:b,f", ["●"]),
    ],
)
def test_every_commit_has_a_line(commits, drawing):
    given = []
    for text in commits.split():
        commit, _, parents = text.partition(":")
        given.append((commit, parents.split(",") if parents else []))
    assert list(draw(given)) == drawing
