"""Common ancestors and the order of commits, against what the definitions say word by word."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from omnigraph.versioning.ancestry import ancestors, merge_bases, nearest, newest_first
from omnigraph.versioning.commits import (
    CommitDraft,
    CommitId,
    CommitRecord,
    OperationId,
    OperationKind,
)


def commit_of(id: CommitId, parents: tuple[CommitId, ...], number: int) -> CommitRecord:
    first, merged = (*parents, None, None)[:2]
    draft = CommitDraft(
        id, OperationKind.LOAD, OperationId(id), number, "", "", merged_parent_commit_id=merged
    )
    return CommitRecord(draft, first, number, None)


def descent(**parents: str) -> dict[CommitId, tuple[CommitId, ...]]:
    """Commits of one letter with the letters of their parents."""
    return {CommitId(c): tuple(map(CommitId, found)) for c, found in parents.items()}


def ids(letters: str) -> set[CommitId]:
    return set(map(CommitId, letters))


@st.composite
def descents(draw):
    """Parents of some commits, each of one or two earlier ones."""
    parents = {CommitId("c00"): ()}
    for number in range(1, draw(st.integers(1, 9))):
        known = sorted(parents)
        chosen = draw(st.lists(st.sampled_from(known), min_size=1, max_size=2, unique=True))
        parents[CommitId(f"c{number:02d}")] = tuple(chosen)
    return parents


def descends(parents, one, other) -> bool:
    return one == other or any(descends(parents, parent, other) for parent in parents[one])


@given(descents(), st.data())
def test_bases_are_common_ancestors_that_no_other_one_descends_from(parents, data):
    left, right = (data.draw(st.sampled_from(sorted(parents))) for _ in range(2))
    common = {c for c in parents if descends(parents, left, c) and descends(parents, right, c)}
    expected = {c for c in common if not any(o != c and descends(parents, o, c) for o in common)}
    assert merge_bases(parents, [left], [right]) == expected
    assert ancestors(parents, [left]) == {c for c in parents if descends(parents, left, c)}


def test_branches_that_merged_each_other_crosswise_have_two_bases():
    parents = descent(a="", b="a", c="a", m="bc", n="cb")
    assert merge_bases(parents, ids("m"), ids("n")) == ids("bc")


def test_a_shorter_way_to_an_older_ancestor_does_not_make_it_the_base():
    # The way from both heads over `a` is shorter than that over `d`, which descends from `a`.
    parents = descent(a="", b="a", c="b", d="c", l="ad", r="ad")
    assert merge_bases(parents, ids("l"), ids("r")) == ids("d")


def test_what_cannot_be_read_gives_way_to_its_ancestors():
    parents = descent(a="", b="a", c="a", m="bc")
    assert nearest(parents, ids("m"), ids("abc").__contains__) == ids("bc")
    assert nearest(parents, ids("m"), ids("ac").__contains__) == ids("c")
    assert nearest(parents, ids("mc"), ids("amc").__contains__) == ids("m")


@given(descents())
def test_commits_come_before_those_they_descend_from(parents):
    known = {id: commit_of(id, ids, number) for number, (id, ids) in enumerate(parents.items())}
    head = max(parents)
    found = [commit.graph_commit_id for commit in newest_first(known, head)]
    assert set(found) == ancestors(parents, [head])
    for place, id in enumerate(found):
        assert all(found.index(parent) > place for parent in parents[id])
