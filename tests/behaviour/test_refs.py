"""Refs: the ways in which a state of a graph is named, wherever one is asked for."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta, timezone

import pytest

from omnigraph.api.graph import Graph, init
from omnigraph.api.graph import open as open_graph
from omnigraph.errors import (
    AmbiguousRef,
    BranchNotFound,
    CommitBranchGone,
    CommitNotFound,
    InputError,
    NotFoundError,
    RefNotFound,
    UnknownVersion,
)
from omnigraph.history.commits import short_id
from omnigraph.history.refs import (
    ResolvedRef,
    find_commit,
    resolve_ref,
)
from omnigraph.versioning.manifest import Manifest
from tests.behaviour.graphs import SCHEMA, Backstage
from tests.behaviour.merging import add, ages
from tests.support.receipts import receipt_of_commit


@pytest.fixture
def graph(uri: str) -> Graph:
    """Four commits on main, the last three by adding a person."""
    graph = init(uri, SCHEMA)
    for name in ("ada", "bo", "cy"):
        add(graph, "main", name)
        time.sleep(0.002)
    return graph


def resolve(graph: Graph, ref: object) -> ResolvedRef:
    return resolve_ref(graph._core.parts, graph._bound, ref)  # type: ignore[arg-type]  # also wrong ones


def number(graph: Graph, ref: object) -> int:
    return resolve(graph, ref).sequence


def people(graph: Graph, ref: object) -> list[str]:
    query = "query q() { match { $p: Person } return { $p.name } order { $p.name } }"
    return [row["p.name"] for row in graph.query(query, at=ref).to_dicts()]  # type: ignore[arg-type]


# -- names and ids ---------------------------------------------------------------------------


def test_a_branch_name_means_its_newest_state(graph):
    for ref in ("main", graph.branch):
        found = resolve(graph, ref)
        assert (found.branch.public, found.sequence, found.is_branch_head) == ("main", 4, True)
        assert (
            found.commit_id == found.commit.graph_commit_id == found.state.head == graph.head().id
        )
    graph.branches.create("feature/x")
    add(graph, "feature/x", "dee")
    assert (number(graph, "feature/x"), number(graph, "main")) == (5, 4)


def test_a_commit_is_named_by_its_id_or_by_a_part_of_it(graph):
    second = graph.log(reverse=True)[1].id
    shortest = next(n for n in range(6, 27) if is_unique(graph, second[:n]))
    for written in (second, second.lower(), second[:shortest], second[-8:], second[-6:].lower()):
        found = resolve(graph, written)
        assert (found.commit_id, found.sequence, found.is_branch_head) == (second, 2, False)
        assert found.commit.graph_commit_id == second
    assert resolve(graph, short_id(second)).commit_id == second
    assert people(graph, second[-8:]) == ["ada"]


def is_unique(graph: Graph, start: str) -> bool:
    return sum(c.id.startswith(start) for c in graph.log(reverse=True)) == 1


def test_fewer_than_six_characters_and_other_letters_name_nothing(graph):
    head = graph.head().id
    for written in (head[-5:], f"{head[-6:]}!", f"{head[-8:]}x", f" {head}", "zzzzzzzz"):
        with pytest.raises(CommitNotFound, match="not found"):
            resolve(graph, written)


def test_a_part_that_several_commits_have_is_ambiguous(graph):
    for person in ("dee", "eve", "flo"):
        graph.mutate(
            f'query q() {{ insert Person {{ name: "{person}" }} }}', message=f"add {person}"
        )
    shared = graph.head().id[:6]
    assert all(c.id.startswith(shared) for c in graph.log(reverse=True))
    with pytest.raises(AmbiguousRef) as caught:
        resolve(graph, shared.lower())
    error = caught.value
    assert (error.ref, error.total, len(error.candidates)) == (shared.lower(), 7, 5)
    assert error.candidates[0].startswith(f"{short_id(graph.head().id)} on main at 20")
    assert error.candidates[0].endswith("'add flo'")
    assert "and 2 more" in str(error)
    assert isinstance(error, InputError)


def test_a_commit_of_another_branch_is_found_and_the_bound_branch_comes_first(graph):
    feature = graph.branches.create("feature")
    add(graph, "feature", "dee")
    made = feature.head().id
    assert resolve(graph, made[-8:]).branch.public == "feature"
    inherited = graph.log(reverse=True)[1].id
    assert resolve(feature, inherited).branch.public == "feature"
    assert resolve(feature, inherited[-8:]).branch.public == "feature"
    assert resolve(graph, inherited).branch.public == "main"


def test_an_exact_name_wins_over_an_id(graph):
    graph.branches.create("feature")
    add(graph, "feature", "dee")
    first, head = graph.log(reverse=True)[0].id, graph.head().id
    graph.branches.create(first[-8:], "feature")
    assert number(graph, first[-8:]) == 5
    graph.tags.create(first[-7:], head)
    assert number(graph, first[-7:]) == 4
    assert number(graph, first[-6:]) == 1
    graph.branches.create(head, "feature")
    assert number(graph, head) == 5


def test_an_exact_name_or_id_does_not_read_the_history(graph, monkeypatch):
    graph.tags.create("v1", "main~2")
    first = graph.log(reverse=True)[0]

    def refuse(*_args: object, **_more: object) -> None:
        raise AssertionError("the history is read")

    for method in ("commits", "commit_ids", "recorded_commits"):
        monkeypatch.setattr(Manifest, method, refuse)
    for ref in ("main", "v1", first.id, first.id.lower(), first):
        resolve(graph, ref)


# -- steps back ------------------------------------------------------------------------------


def test_steps_lead_back_along_first_parents(graph):
    found = [
        number(graph, ref) for ref in ("main~0", "main~", "main~1", "main~1~1", "main~~1", "main~3")
    ]
    assert found == [4, 3, 3, 2, 2, 1]
    assert number(graph, f"{graph.head().id[-8:]}~2") == 2
    assert people(graph, "main~1") == ["ada", "bo"]


def test_a_merge_has_the_branch_it_was_made_on_as_first_parent(graph):
    graph.branches.create("feature")
    add(graph, "feature", "dee")
    add(graph, "main", "eve")
    graph.merge("feature")
    assert people(graph, "main~1") == ["ada", "bo", "cy", "eve"]


def test_steps_beyond_the_first_commit_are_an_error(graph):
    for ref in ("main~4", "main~1~3", f"{graph.head().id}~999999999999999"):
        with pytest.raises(RefNotFound, match="has 3 commits before it") as caught:
            resolve(graph, ref)
        assert caught.value.ref == ref
        assert isinstance(caught.value, NotFoundError)


# -- times -----------------------------------------------------------------------------------


def test_a_time_means_the_newest_commit_not_after_it(graph):
    micros = [record.draft.created_at for record in graph._core.manifest.commits(None)]
    moments = [datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=m) for m in micros]
    for place, moment in enumerate(moments, start=1):
        assert number(graph, moment) == place
        assert number(graph, moment.replace(tzinfo=None)) == place
        assert number(graph, moment.astimezone(timezone(timedelta(hours=5)))) == place
        assert number(graph, f"main@{{{moment.isoformat(timespec='milliseconds')}}}") == place
        assert number(graph, moment + timedelta(microseconds=1)) >= place
        if place > 1:
            assert number(graph, moment - timedelta(microseconds=1)) == place - 1
    assert number(graph, "main@{2999-01-01}") == 4
    assert number(graph, "main@{2999-01-01}~1") == 3
    assert not resolve(graph, "main@{2999-01-01}").is_branch_head


def test_a_time_before_the_first_commit_is_an_error(graph):
    for ref in ("main@{1999-12-31T23:59:59Z}", datetime(1999, 1, 1)):
        with pytest.raises(RefNotFound, match="the first commit of 'main' was made at 20"):
            resolve(graph, ref)


def test_a_time_belongs_to_a_branch(graph):
    feature = graph.branches.create("feature")
    add(graph, "feature", "dee")
    now = datetime.now(UTC)
    assert (number(feature, now), number(graph, now)) == (5, 4)
    assert number(graph, "feature@{2999-01-01}") == 5
    with pytest.raises(BranchNotFound, match="did you mean `feature`"):
        resolve(graph, "featrue@{2999-01-01}")
    graph.tags.create("v1")
    with pytest.raises(BranchNotFound):
        resolve(graph, "v1@{2999-01-01}")


def test_a_time_long_ago_is_found_behind_many_commits(memory_uri):
    init(memory_uri, SCHEMA)
    backstage = Backstage(memory_uri)
    for micros in range(1, 150):
        backstage.publish(created_at=4_000_000_000_000_000 + micros)
    graph = open_graph(memory_uri)
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    assert number(graph, epoch + timedelta(microseconds=4_000_000_000_000_003)) == 4
    assert number(graph, epoch + timedelta(microseconds=4_000_000_000_000_149)) == 150


# -- numbers and objects ---------------------------------------------------------------------


def test_a_number_is_a_commit_of_the_bound_branch(graph):
    feature = graph.branches.create("feature")
    add(graph, "feature", "dee")
    assert [number(graph, n) for n in (1, 4)] == [1, 4]
    assert resolve(feature, 5).commit_id == feature.head().id
    for handle, unknown in ((graph, 0), (graph, -1), (graph, 5), (feature, 6)):
        with pytest.raises(UnknownVersion):
            resolve(handle, unknown)


def test_what_a_commit_came_back_in_is_a_ref(graph):
    commit = graph.log(reverse=True)[1]
    tag = graph.tags.create("v1", commit)
    loaded = graph.load(b'{"type": "Person", "data": {"name": "dee"}}', "append")
    assert number(graph, commit) == number(graph, tag) == number(graph, graph.at(commit)) == 2
    assert number(graph, receipt_of_commit(graph, commit.id)) == 2
    assert (
        resolve(graph, loaded).commit_id
        == resolve(graph, loaded.receipt).commit_id
        == graph.head().id
    )
    assert people(graph, commit) == ["ada"]


def test_a_receipt_of_nothing_is_no_ref(graph):
    nothing = graph.mutate('query q() { delete Person where name = "nobody" }')
    with pytest.raises(InputError, match="`ref` is a receipt without a commit"):
        resolve(graph, nothing)


@pytest.mark.parametrize("wrong", [None, True, 2.0, b"main", ["main"], object()])
def test_other_values_are_refused_with_the_name_of_the_argument(graph, wrong):
    with pytest.raises(InputError, match=r"^`before` is a branch, tag or commit id as text"):
        resolve_ref(graph._core.parts, graph._bound, wrong, argument="before")


# -- what is not there -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "meant"),
    [("maim", "main"), ("featrue", "feature"), ("v11", "v1.1")],
)
def test_a_misspelt_name_comes_with_the_right_one(graph, written, meant):
    graph.branches.create("feature")
    graph.tags.create("v1.1")
    with pytest.raises(CommitNotFound) as caught:
        resolve(graph, written)
    assert str(caught.value) == f"commit '{written}' not found; did you mean `{meant}`?"


def test_a_deleted_branch_is_no_ref_any_more(graph):
    feature = graph.branches.create("feature")
    add(graph, "feature", "dee")
    made = feature.head().id
    graph.branches.delete("feature")
    for ref in ("feature", "feature~1", made, made[-8:]):
        with pytest.raises(CommitNotFound):
            resolve(graph, ref)
    for ref in (1, datetime.now(UTC)):
        with pytest.raises(BranchNotFound):
            resolve(feature, ref)


def test_a_merged_commit_whose_branch_is_gone_can_be_shown_and_not_read(graph):
    graph.branches.create("feature")
    add(graph, "feature", "dee")
    made = graph.head("feature").id
    graph.merge("feature")
    graph.branches.delete("feature")
    assert find_commit(graph._core.parts, graph._bound, made).graph_commit_id == made
    with pytest.raises(CommitBranchGone):
        resolve(graph, made)


def test_refs_name_states_of_diffs_reverts_and_cherry_picks(graph):
    graph.tags.create("v1", "main~2")
    assert graph.diff("v1", "main").to_arrow().column("id").to_pylist() == ["bo", "cy"]
    graph.branches.create("feature", "v1")
    graph.cherry_pick("main~1", branch="feature")
    assert sorted(ages(graph, "feature")) == ["ada", "bo"]
    graph.revert("main~1")
    assert sorted(ages(graph)) == ["ada", "cy"]
    assert graph.commit("v1").number == 2
