"""What is known of the rows that the latest commits touched."""

from __future__ import annotations

from omnigraph.limits import REMEMBERED_COMMITS
from omnigraph.versioning.commits import CommitId
from omnigraph.versioning.recent_commits import RecentCommits, TouchedIds


def commit(number: int) -> CommitId:
    return CommitId(f"c{number}")


def recent(*touched: TouchedIds) -> RecentCommits:
    found = RecentCommits()
    for number, ids in enumerate(touched, 1):
        found.add(commit(number), commit(number - 1), ids)
    return found


def test_what_several_commits_touched():
    known = recent({"a": frozenset("x")}, {}, {"a": frozenset("y"), "b": frozenset("z")})
    assert known.touched_since(commit(0), commit(3)) == {"a": {"x", "y"}, "b": {"z"}}
    assert known.touched_since(commit(2), commit(3)) == {"a": {"y"}, "b": {"z"}}
    assert known.touched_since(commit(3), commit(3)) == {}


def test_a_gap_or_a_large_write_is_not_known():
    known = recent({}, {"a": None})
    assert known.touched_since(commit(0), commit(2)) is None
    assert known.touched_since(commit(0), commit(5)) is None
    assert known.touched_since(commit(0), commit(1)) == {}


def test_the_commits_up_to_a_head_are_the_newest_first():
    known = recent({}, {}, {})
    assert [found[0] for found in known.up_to(commit(3), 2)] == [commit(3), commit(2)]
    assert [found[1] for found in known.up_to(commit(3), 9)] == [commit(2), commit(1), commit(0)]
    assert known.up_to(commit(7), 9) == []


def test_only_so_many_are_remembered():
    known = recent(*({} for _ in range(REMEMBERED_COMMITS + 1)))
    assert len(known.up_to(commit(REMEMBERED_COMMITS + 1), 10_000)) == REMEMBERED_COMMITS
    assert known.touched_since(commit(0), commit(2)) is None
