"""Several processes want the lock of one branch; some of them die, stop or lose their way."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from itertools import chain

import pytest

from omnigraph.api.graph import init
from omnigraph.api.graph import open as open_graph
from omnigraph.errors import BranchLocked, BranchLockLost
from omnigraph.versioning.ids import process_identity
from omnigraph.versioning.locks import LeaseTiming, WriterLocks
from tests.behaviour.graphs import SCHEMA, Backstage
from tests.crash.recovery.situations import with_locks
from tests.processes.children import child
from tests.support.faults import Arm, Call, FailStorage, PauseAcrossProcesses, armed

TIMING = (5.0, 0.3, 3.5)
"""Term, renewal and loss of the leases here, in seconds: short, but not for a busy machine."""


def locks_of(place):
    backstage = Backstage(place.uri)
    return WriterLocks(backstage.root, backstage.objects, LeaseTiming(*TIMING))


@contextmanager
def holder(place, tmp_path, operation="schema apply"):
    """A process that holds the lock of main and says so; it is killed in the end if need be."""
    pause, report = PauseAcrossProcesses(tmp_path / "held"), tmp_path / "report"
    process = child(
        place, [Arm("lock.after_acquire", pause)],
        "hold_lock", place.uri, operation, TIMING, str(report),
    )  # fmt: skip
    try:
        pause.wait_until_reached()
        yield process, pause, report
    finally:
        process.kill()
        process.wait()


# -- a local disk ----------------------------------------------------------------------------


def test_a_lock_keeps_out_other_processes_only(local_place, tmp_path):
    init(local_place.uri, SCHEMA)
    locks = locks_of(local_place)
    with holder(local_place, tmp_path) as (process, pause, report):
        with (
            pytest.raises(BranchLocked, match="'main' is locked, schema apply is in progress") as e,
            locks.hold(None, "load", wait_ms=100),
        ):
            pass
        assert (e.value.operation, e.value.holder) == ("load", "schema apply")
        assert e.value.owner not in (None, process_identity())
        with locks.hold("feature", "load", wait_ms=0):
            pass
        assert open_graph(local_place.uri, read_only=True)._snapshot().version == 1
        pause.release()
        with locks.hold(None, "load") as held:
            held.check()
        assert process.wait(60) == 0
        assert report.read_text() == "held"


def test_the_lock_of_a_killed_process_is_free_at_once(local_place, tmp_path):
    init(local_place.uri, SCHEMA)
    with holder(local_place, tmp_path) as (process, _pause, _report):
        process.send_signal(signal.SIGKILL)
        process.wait()
        with locks_of(local_place).hold(None, "load", wait_ms=0):
            pass


def test_a_stopped_process_keeps_its_lock_on_a_local_disk(local_place, tmp_path):
    init(local_place.uri, SCHEMA)
    with holder(local_place, tmp_path) as (process, pause, report):
        process.send_signal(signal.SIGSTOP)
        with (
            pytest.raises(BranchLocked),
            locks_of(local_place).hold(None, "load", wait_ms=200),
        ):
            pass
        process.send_signal(signal.SIGCONT)
        pause.release()
        assert process.wait(60) == 0
        assert report.read_text() == "held"


def test_a_process_started_by_the_holder_does_not_inherit_the_lock(local_place):
    init(local_place.uri, SCHEMA)
    locks = locks_of(local_place)
    with locks.hold(None, "load"):
        sleeper = subprocess.Popen(
            [sys.executable, "-c", "import sys; sys.stdin.read()"],
            stdin=subprocess.PIPE,
            close_fds=False,
        )
    try:
        # The process may still be on its way from the copy of its parent to its own program.
        with locks.hold(None, "load", wait_ms=5000):
            pass
    finally:
        assert sleeper.stdin is not None
        sleeper.stdin.close()
        sleeper.wait()


# -- an object store -------------------------------------------------------------------------


def lease(place):
    return json.loads(Backstage(place.uri).objects.read_text("__leases/main.json"))


@pytest.mark.parametrize("store", ["local", "s3"])
def test_what_processes_do_under_the_lock_never_overlaps(request, run, tmp_path, store):
    place = request.getfixturevalue(f"{store}_place")
    Backstage(place.uri).objects.write_text("number", "0")
    seen = run(place, [("count_up", place.uri, TIMING, 5)] * 4)
    assert sorted(chain.from_iterable(seen)) == list(range(20))


def test_a_living_holder_keeps_its_lease_beyond_its_term(s3_place, tmp_path):
    locks = locks_of(s3_place)
    with holder(s3_place, tmp_path) as (process, pause, report):
        with (
            pytest.raises(BranchLocked, match="'main' is locked, schema apply is in progress"),
            locks.hold(None, "load", wait_ms=int(1500 * TIMING[0])),
        ):
            pass
        assert lease(s3_place)["term"] == 1
        with locks.hold("feature", "load", wait_ms=0):
            pass
        pause.release()
        assert process.wait(60) == 0
        assert report.read_text() == "held"
        with locks.hold(None, "load", wait_ms=0):
            assert lease(s3_place)["operation"] == "load"


def test_the_lease_of_a_killed_process_is_taken_over_after_its_term(s3_place, tmp_path):
    locks = locks_of(s3_place)
    with holder(s3_place, tmp_path) as (process, _pause, _report):
        process.send_signal(signal.SIGKILL)
        process.wait()
    with (
        pytest.raises(BranchLocked, match="schema apply is in progress"),
        locks.hold(None, "load", wait_ms=200),
    ):
        pass
    started = time.monotonic()
    with locks.hold(None, "load") as held:
        assert time.monotonic() - started >= TIMING[0]
        assert (lease(s3_place)["term"], lease(s3_place)["owner"]) == (2, process_identity())
        held.check()


def test_a_process_that_was_stopped_for_too_long_finds_out_before_its_next_effect(
    s3_place, tmp_path
):
    locks = locks_of(s3_place)
    with holder(s3_place, tmp_path) as (process, pause, report):
        process.send_signal(signal.SIGSTOP)
        with locks.hold(None, "load") as held:
            process.send_signal(signal.SIGCONT)
            pause.release()
            assert process.wait(60) == 0
            assert "schema apply lost its write lease on branch 'main'" in report.read_text()
            held.check()
            assert lease(s3_place)["operation"] == "load"


@pytest.mark.acceptance("S-170")
def test_a_lost_lease_stops_a_branch_from_being_made(s3_place):
    graph = init(s3_place.uri, SCHEMA)
    core = graph._core
    graph = with_locks(graph, WriterLocks(core.root, core.objects, LeaseTiming(0.6, 0.1, 0.4)))
    linger = Call(lambda _hit: time.sleep(0.5))
    with (
        armed("lock.renew", FailStorage()),
        armed("branch_create.before_manifest_branch_create", linger),
        pytest.raises(BranchLocked, match="branch create lost its write lease") as caught,
    ):
        graph.branches.create("feature")
    assert isinstance(caught.value, BranchLockLost)
    assert list(graph.branches) == ["main"]
    assert open_graph(s3_place.uri).branches.create("feature")._snapshot().version == 1
