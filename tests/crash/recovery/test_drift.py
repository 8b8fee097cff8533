"""A table that moved without a publish stops writes to it, and the message says what to do."""

from __future__ import annotations

import pytest

from omnigraph.api.graph import open as open_graph
from omnigraph.commit import writer as committing
from omnigraph.commit.tables import stage_early
from omnigraph.errors import ConflictError, TableDrift
from omnigraph.versioning.ids import new_ulid
from tests.behaviour.graphs import COMPANY, PERSON
from tests.crash.recovery.situations import (
    ADD,
    AGE,
    BEFORE_PUBLISH,
    EVERYBODY,
    WORKS_AT,
    check_recovered,
    commit_of,
    head,
    ids,
    interrupted,
    kinds,
    of_another_process,
    people,
    raw_append,
    raw_compaction,
    sidecar_for,
    sidecars,
)
from tests.support.faults import Call, FailStorage, armed

ADD_COMPANY = "query c($n: String) { insert Company { name: $n } }"


def pinned(graph, branch=None):
    return graph._snapshot(branch).entry(PERSON).version


@pytest.mark.parametrize(
    "write",
    [
        lambda graph: graph.mutate(ADD, {"who": "Eve"}),
        lambda graph: graph.mutate(AGE, {"who": "Bob", "age": 3}),
        lambda graph: graph.load(people("Eve").encode(), "merge"),
        lambda graph: graph.load(people("Eve").encode(), "overwrite", cascade=True),
    ],
)
def test_unexplained_drift_is_refused_whatever_the_write(graph, write):
    base = pinned(graph)
    raw_append(graph, "Mallory")
    with pytest.raises(TableDrift, match="a repair has to decide") as caught:
        write(graph)
    assert (caught.value.table_key, caught.value.pinned, caught.value.found) == (
        PERSON,
        base,
        base + 1,
    )
    for text in (PERSON, str(base), str(base + 1)):
        assert text in str(caught.value)
    assert isinstance(caught.value, ConflictError)
    assert sidecars(graph) == []
    assert (ids(graph), pinned(graph), head(graph).version) == (EVERYBODY, base, base + 1)


def test_drift_of_one_table_does_not_stop_writes_to_others(graph):
    raw_append(graph, "Mallory")
    graph.mutate(ADD_COMPANY, {"n": "Bolt"})
    assert ids(graph, COMPANY) == ["Acme", "Bolt"]


def test_an_unpublished_compaction_is_drift_as_well(graph):
    graph.mutate(ADD, {"who": "Eve"})
    raw_compaction(graph)
    with pytest.raises(TableDrift, match="a repair has to decide"):
        graph.mutate(ADD, {"who": "Flo"})


def test_readers_do_not_mind_drift(graph):
    raw_append(graph, "Mallory")
    assert ids(open_graph(graph.uri, read_only=True)) == EVERYBODY
    assert ids(open_graph(graph.uri)) == EVERYBODY


@pytest.mark.acceptance("S-087")
def test_a_sidecar_of_another_branch_does_not_explain_drift_on_main(graph):
    feature = graph.branches.create("feature")
    feature.mutate(ADD, {"who": "Flo"})
    interrupted(BEFORE_PUBLISH, lambda: feature.mutate(ADD, {"who": "Fay"}))
    raw_append(graph, "Mallory")
    with pytest.raises(TableDrift, match="a repair has to decide") as caught:
        graph.mutate(ADD, {"who": "Eve"})
    assert "sidecar" not in str(caught.value)
    assert len(sidecars(graph)) == 1


def test_drift_on_a_branch_does_not_stop_main(graph):
    feature = graph.branches.create("feature")
    feature.mutate(ADD, {"who": "Flo"})
    raw_append(graph, "Mallory", branch="feature")
    graph.mutate(ADD, {"who": "Eve"})
    with pytest.raises(TableDrift, match="a repair has to decide"):
        feature.mutate(ADD, {"who": "Fay"})
    assert ids(graph) == [*EVERYBODY, "Eve"]


@pytest.mark.parametrize(
    "write",
    [
        lambda graph: graph.mutate(ADD, {"who": "Eve"}),
        lambda graph: graph.load(people("Eve").encode(), "append"),
        lambda graph: graph.load(people("Eve").encode(), "merge"),
    ],
    ids=["mutation", "append", "merge"],
)
def test_a_writer_that_died_between_look_and_lock_is_recovered(graph, write):
    def die(_hit):
        operation, base = new_ulid(), pinned(graph)
        commit_of(graph, operation, "Mallory")
        sidecar_for(graph, operation_id=operation, expected=base)

    with armed("lock.after_acquire", Call(die), times=1):
        write(graph)
    assert ids(graph) == [*EVERYBODY, "Eve", "Mallory"]
    assert kinds(graph) == ["RolledForward"]
    check_recovered(graph)


def test_a_delete_takes_the_edges_of_a_writer_that_died_before_its_lock(graph, monkeypatch):
    """The delete was prepared before their sidecar was there, and writes no table of theirs."""
    graph.mutate('query q() { delete WorksAt where from = "Cara" }')
    connect = 'query q() { insert WorksAt { from: "Bob", to: "Acme" } }'
    other, stage = open_graph(graph.uri), stage_early

    def die_first(*arguments):
        monkeypatch.setattr(committing, "stage_early", stage)
        interrupted(BEFORE_PUBLISH, lambda: other.mutate(connect))
        of_another_process(graph)
        return stage(*arguments)

    monkeypatch.setattr(committing, "stage_early", die_first)
    graph.mutate('query q() { delete Company where name = "Acme" }')
    assert ids(graph, COMPANY) == []
    assert ids(graph, WORKS_AT) == []
    check_recovered(graph)


@pytest.mark.acceptance("S-088")
def test_drift_is_refused_when_the_sidecars_cannot_be_listed(graph):
    raw_append(graph, "Mallory")
    # The first two listings are those of the recovery, which have to work.
    with (
        armed("recovery.sidecar_list", FailStorage(), first=3),
        pytest.raises(TableDrift, match="could not classify the drift") as caught,
    ):
        graph.mutate(ADD, {"who": "Eve"})
    for text in (
        "injected failure at recovery.sidecar_list",
        "a repair has to decide",
        "reopen the graph read-write",
    ):
        assert text in str(caught.value)
    assert ids(graph) == EVERYBODY
