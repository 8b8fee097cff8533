"""Processes that write, die and recover beside each other."""

from __future__ import annotations

import signal
import threading
import time
from contextlib import ExitStack, contextmanager

import pytest

from omnigraph.api.graph import open as open_graph
from omnigraph.errors import BranchLocked, BranchLockLost, CommitStateUnknown, RecoveryPending
from omnigraph.versioning.locks import LeaseTiming, WriterLocks
from tests.behaviour.graphs import Backstage
from tests.crash.recovery.situations import (
    ADD,
    AFTER_TABLE,
    BEFORE_PUBLISH,
    BEFORE_TABLE,
    EVERYBODY,
    check_recovered,
    head,
    ids,
    interrupted,
    kinds,
    new_graph,
    people,
    sidecars,
    the_recovery,
    with_locks,
)
from tests.processes.children import child
from tests.processes.test_locks import TIMING, lease
from tests.support.faults import Arm, Call, FailStorage, Kill, PauseAcrossProcesses, armed


@contextmanager
def writer(place, tmp_path, point, *, branch="main", timing=()):
    """A process that stands still in the middle of a mutation; killed in the end if need be."""
    pause = PauseAcrossProcesses(tmp_path / "pause")
    process = child(
        place, [Arm(point, pause)], "write_once", place.uri, timing, "Eve", branch
    )  # fmt: skip
    try:
        pause.wait_until_reached()
        yield process, pause
    finally:
        process.kill()
        process.wait()


def killed(place, point, *, branch="main", timing=()):
    """Let a process die in the middle of a mutation."""
    process = child(place, [Arm(point, Kill())], "write_once", place.uri, timing, "Eve", branch)
    assert process.wait(60) == -signal.SIGKILL


# -- a local disk ----------------------------------------------------------------------------


@pytest.mark.acceptance("S-162")
@pytest.mark.parametrize("point", [BEFORE_TABLE, AFTER_TABLE, BEFORE_PUBLISH])
def test_a_writer_in_the_middle_of_its_write_is_waited_for(
    local_place, tmp_path, monkeypatch, caplog, point
):
    new_graph(local_place.uri).branches.create("feature")
    monkeypatch.setenv("OMNIGRAPH_LOCK_WAIT_MS", "150")
    with writer(local_place, tmp_path, point) as (process, pause):
        graph = open_graph(local_place.uri)
        assert "main is left to its writer" in caplog.text
        (name,) = sidecars(graph)
        with pytest.raises(BranchLocked, match="mutation is in progress"):
            graph.mutate(ADD, {"who": "Flo"})
        for upkeep in (graph.maintenance.repair, graph.maintenance.optimize):
            with pytest.raises(BranchLocked):
                upkeep()
        graph.mutate(ADD, {"who": "Fay"}, branch="feature")
        graph.maintenance.recover()
        assert ids(graph) == ids(open_graph(local_place.uri, read_only=True)) == EVERYBODY
        assert sidecars(graph) == [name]
        # From here on with the patience of users, which the writer gets by with.
        monkeypatch.undo()
        threading.Timer(0.2, pause.release).start()
        late = open_graph(local_place.uri, branch="feature")
        late.mutate(ADD, {"who": "Flo"}, branch="main")
        assert process.wait(60) == 0
    assert ids(graph) == [*EVERYBODY, "Eve", "Flo"]
    assert graph.maintenance.recoveries() == []
    check_recovered(graph, "feature")


@pytest.mark.acceptance("S-164")
@pytest.mark.parametrize("recover_by", ["write", "open"])
@pytest.mark.parametrize(("point", "outcome"), [(BEFORE_TABLE, False), (AFTER_TABLE, True)])
def test_the_write_of_a_killed_process_is_recovered_at_once(
    local_place, recover_by, point, outcome
):
    graph = new_graph(local_place.uri)
    killed(local_place, point)
    assert len(sidecars(graph)) == 1
    started = time.monotonic()
    if recover_by == "write":
        graph.mutate(ADD, {"who": "Flo"})
    again = open_graph(local_place.uri)
    assert time.monotonic() - started < 20, "it waited for a lock"
    the_recovery(again, "RolledForward" if outcome else "RolledBack")
    assert ("Eve" in ids(again), "Flo" in ids(again)) == (outcome, recover_by == "write")
    check_recovered(again)


@pytest.mark.acceptance("S-165")
@pytest.mark.parametrize("point", [AFTER_TABLE, BEFORE_TABLE])
def test_processes_that_open_together_recover_once(local_place, run, point):
    graph = new_graph(local_place.uri)
    before = len(graph.log(reverse=True))
    killed(local_place, point)
    seen = run(local_place, [("open_and_count", local_place.uri)] * 3)
    assert seen == [(1, before + 1)] * 3
    the_recovery(graph, "RolledForward" if point == AFTER_TABLE else "RolledBack")
    check_recovered(graph)


def test_maintenance_finds_the_write_of_a_dead_process_pending(local_place):
    graph = new_graph(local_place.uri)
    killed(local_place, AFTER_TABLE)
    with pytest.raises(RecoveryPending, match="requires a clean recovery state"):
        graph.maintenance.repair()


# -- an object store -------------------------------------------------------------------------


def with_quick_leases(graph, timing=TIMING):
    return with_locks(
        graph, WriterLocks(graph._core.root, graph._core.objects, LeaseTiming(*timing))
    )


@pytest.mark.acceptance("S-095")
def test_an_interrupted_load_is_finished_by_the_next_one(s3_place):
    graph = new_graph(s3_place.uri)
    three = people("Eve") + (
        '{"type": "Company", "data": {"name": "Bolt"}}\n'
        '{"edge": "WorksAt", "from": "Eve", "to": "Bolt"}\n'
    )
    interrupted(BEFORE_PUBLISH, lambda: graph.load(three.encode(), "merge"))
    graph.load(people("Flo").encode(), "merge")
    assert ids(graph) == [*EVERYBODY, "Eve", "Flo"]
    assert len(the_recovery(graph, "RolledForward").audit.outcomes) == 3
    check_recovered(graph)


@pytest.mark.acceptance("S-163")
@pytest.mark.parametrize(("point", "outcome"), [(BEFORE_TABLE, False), (AFTER_TABLE, True)])
def test_the_write_of_a_killed_process_is_recovered_after_its_lease(
    s3_place, monkeypatch, point, outcome
):
    graph = new_graph(s3_place.uri)
    killed(s3_place, point, timing=TIMING)
    term = lease(s3_place)["term"]
    monkeypatch.setenv("OMNIGRAPH_LOCK_WAIT_MS", "200")
    with pytest.raises(BranchLocked):
        with_quick_leases(graph).mutate(ADD, {"who": "Flo"})
    assert len(sidecars(graph)) == 1
    monkeypatch.setenv("OMNIGRAPH_LOCK_WAIT_MS", "30000")
    started = time.monotonic()
    terms = []
    note = Call(lambda _hit: terms.append(lease(s3_place)["term"]))
    with armed("lock.after_acquire", note):
        with_quick_leases(graph).mutate(ADD, {"who": "Flo"})
    assert time.monotonic() - started >= TIMING[0]
    assert terms[0] == term + 1
    the_recovery(graph, "RolledForward" if outcome else "RolledBack")
    assert ids(graph) == [*EVERYBODY, *(["Eve"] if outcome else []), "Flo"]
    check_recovered(graph)


@pytest.mark.acceptance("S-170")
@pytest.mark.parametrize(
    ("point", "effect"),
    [(BEFORE_TABLE, "table"), ("graph_publish.before_manifest_commit", "publish")],
)
def test_a_lost_lease_stops_a_write_before_its_next_effect(s3_place, point, effect):
    graph = new_graph(s3_place.uri)
    version, commits = head(graph).version, len(graph.log(reverse=True))
    hasty = with_quick_leases(graph)
    with ExitStack() as from_then_on:

        def lose(_hit):
            from_then_on.enter_context(armed("lock.renew", FailStorage()))
            time.sleep(TIMING[2] + 0.5)

        with (
            armed(point, Call(lose), times=1),
            pytest.raises(
                BranchLockLost if effect == "table" else CommitStateUnknown,
                match="lost its write lease",
            ),
        ):
            hasty.mutate(ADD, {"who": "Eve"})
    assert len(graph.log(reverse=True)) == commits
    assert head(graph).version == version + (effect == "publish")
    again = with_quick_leases(open_graph(s3_place.uri))
    again.mutate(ADD, {"who": "Flo"})
    assert kinds(again) == (["RolledForward"] if effect == "publish" else [])
    check_recovered(again)
    assert Backstage(s3_place.uri).objects.list_dir("__recovery") == []
