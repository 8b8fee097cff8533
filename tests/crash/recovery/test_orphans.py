"""Interrupted writes of branches that have been deleted meanwhile."""

from __future__ import annotations

import pytest

from omnigraph.api.graph import open as open_graph
from omnigraph.versioning.manifest import Manifest
from omnigraph.versioning.recovery.sidecar import Sidecars
from tests.behaviour.graphs import PERSON, Backstage
from tests.crash.recovery.situations import (
    ADD,
    AFTER_TABLE,
    BEFORE_PUBLISH,
    EVERYBODY,
    HIRE,
    LosableLocks,
    check_recovered,
    ids,
    interrupted,
    kinds,
    sidecars,
    the_recovery,
    with_locks,
)
from tests.support.faults import Call, Fail, InjectedFault, armed


def orphaned(graph, point=AFTER_TABLE):
    """A sidecar of a branch that somebody deletes without looking at it."""
    feature = graph.branches.create("feature")
    interrupted(
        point, lambda: feature.as_actor("act-1").mutate(HIRE, {"who": "Eve", "company": "Bolt"})
    )
    backstage = Backstage(graph.uri)
    backstage.branches.delete(backstage.branches.find("feature"), lambda: None)
    (name,) = sidecars(graph)
    return name


@pytest.mark.acceptance("S-085")
@pytest.mark.parametrize("point", [AFTER_TABLE, BEFORE_PUBLISH])
@pytest.mark.parametrize("recover_by", ["write", "open", "refresh"])
def test_the_write_of_a_deleted_branch_is_discarded_and_recorded_on_main(graph, point, recover_by):
    name = orphaned(graph, point)
    if recover_by == "write":
        graph.mutate(ADD, {"who": "Flo"})
    elif recover_by == "refresh":
        graph.maintenance.recover()
    again = open_graph(graph.uri)
    recorded = the_recovery(again, "OrphanedBranchDiscarded")
    assert recorded.audit.operation_id == name.removesuffix(".json")
    assert (recorded.audit.for_actor, recorded.audit.outcomes) == ("act-1", ())
    assert ids(again) == EVERYBODY + (["Flo"] if recover_by == "write" else [])
    assert list(again.branches) == ["main"]
    check_recovered(again)


@pytest.mark.acceptance("S-086")
def test_a_sidecar_that_could_not_be_deleted_is_deleted_later_and_recorded_once(graph):
    orphaned(graph)
    with armed("recovery.sidecar_delete", Fail(), times=1), pytest.raises(InjectedFault):
        graph.mutate(ADD, {"who": "Flo"})
    the_recovery(graph, "OrphanedBranchDiscarded")
    assert len(sidecars(graph)) == 1
    graph.mutate(ADD, {"who": "Flo"})
    the_recovery(graph, "OrphanedBranchDiscarded")
    assert ids(graph) == [*EVERYBODY, "Flo"]
    check_recovered(graph)


def test_a_write_to_another_branch_leaves_orphans_to_main(graph):
    graph.branches.create("other")
    orphaned(graph)
    graph.mutate(ADD, {"who": "Flo"}, branch="other")
    assert len(sidecars(graph)) == 1
    graph.mutate(ADD, {"who": "Max"})
    assert kinds(graph) == ["OrphanedBranchDiscarded"]
    check_recovered(graph, "other")


def test_a_branch_is_recovered_before_it_is_deleted(graph):
    feature = graph.branches.create("feature")
    interrupted(BEFORE_PUBLISH, lambda: feature.mutate(ADD, {"who": "Eve"}))
    graph.branches.delete("feature")
    assert graph.maintenance.recoveries() == []
    check_recovered(graph)


def test_a_branch_made_again_under_the_name_is_not_touched_by_the_orphan(graph):
    orphaned(graph)
    graph.maintenance.recover()
    again = graph.branches.create("feature")
    again.mutate(ADD, {"who": "Fay"})
    assert ids(graph, PERSON, "feature") == [*EVERYBODY, "Fay"]
    check_recovered(graph, "feature")


@pytest.mark.parametrize("point", [AFTER_TABLE, BEFORE_PUBLISH])
def test_a_write_that_dies_while_its_branch_is_deleted_is_not_given_to_the_next_one(graph, point):
    graph.branches.create("feature")
    other = with_locks(graph, LosableLocks(graph, notices=False))

    def die(_hit):
        who = {"who": "Eve", "company": "Bolt"}
        interrupted(point, lambda: other.mutate(HIRE, who, branch="feature"))

    with armed("lock.after_acquire", Call(die), times=1):
        graph.branches.delete("feature")
    again = graph.branches.create("feature")
    again.mutate(ADD, {"who": "Fay"})
    assert ids(graph, PERSON, "feature") == [*EVERYBODY, "Fay"]
    assert ids(graph) == EVERYBODY
    check_recovered(graph, "feature")


@pytest.mark.parametrize("point", [AFTER_TABLE, BEFORE_PUBLISH])
def test_a_branch_made_again_before_anybody_looked_is_not_given_the_write(graph, point):
    orphaned(graph, point)
    feature = graph.branches.create("feature")
    feature.mutate(ADD, {"who": "Flo"})
    assert ids(feature) == [*EVERYBODY, "Flo"]
    graph.mutate(ADD, {"who": "Gil"})
    the_recovery(graph, "OrphanedBranchDiscarded")
    check_recovered(graph)


def test_a_writer_that_ends_while_its_sidecar_is_classified_leaves_nothing_to_wait_for(
    graph, monkeypatch
):
    """Its branch may be deleted as well before the judgement is over."""
    feature = graph.branches.create("feature")
    interrupted(AFTER_TABLE, lambda: feature.mutate(ADD, {"who": "Eve"}))
    (name,) = sidecars(graph)
    current = Manifest.current

    def end_first(manifest, branch):
        monkeypatch.setattr(Manifest, "current", current)
        backstage = Backstage(graph.uri)
        backstage.branches.delete(backstage.branches.find("feature"), lambda: None)
        Sidecars(backstage.objects).delete(name)
        return current(manifest, branch)

    monkeypatch.setattr(Manifest, "current", end_first)
    status = graph._core.recovery.status()
    assert (status.pending, status.quarantined) == ((), ())
