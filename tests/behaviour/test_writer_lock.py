"""The writer lock inside one process: who waits for whom, and for how long."""

from __future__ import annotations

import fcntl
import json
import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest

from omnigraph.api.graph import init
from omnigraph.api.graph import open as open_graph
from omnigraph.errors import BranchLocked, ConflictError, InputError, StorageError
from omnigraph.versioning.ids import process_identity
from omnigraph.versioning.locks import WriterLocks
from tests.behaviour.graphs import SCHEMA, Backstage
from tests.support.faults import Call, Fail, InjectedFault, Pause, armed


@pytest.fixture
def locks(graph):
    """The locks of the graph, through another handle."""
    return Backstage(graph.uri).locks


@pytest.fixture
def _impatient(monkeypatch):
    monkeypatch.setenv("OMNIGRAPH_LOCK_WAIT_MS", "100")


def in_thread(locks: WriterLocks, branch: str | None, **options: int) -> Exception | None:
    """What happens to somebody else who wants the lock."""

    def run() -> Exception | None:
        try:
            with locks.hold(branch, "another write", **options):
                return None
        except Exception as error:
            return error

    with ThreadPoolExecutor(1) as thread:
        return thread.submit(run).result()


@pytest.mark.usefixtures("_impatient")
def test_a_lock_that_stays_held_is_a_typed_conflict_that_names_its_holder(locks):
    with locks.hold("review_s7", "a write"):
        error = in_thread(locks, "review_s7")
    assert isinstance(error, BranchLocked)
    assert isinstance(error, ConflictError)
    assert (error.branch, error.operation) == ("review/7", "another write")
    assert (error.holder, error.owner) == ("a write", process_identity())
    assert str(error) == (
        "another write: branch 'review/7' is locked, a write is in progress; retry later"
    )
    assert in_thread(locks, "review_s7") is None


def test_without_patience_a_lock_is_taken_only_if_it_is_free_at_once(locks):
    started = time.monotonic()
    with locks.hold(None, "a write"):
        assert isinstance(in_thread(locks, None, wait_ms=0), BranchLocked)
    assert time.monotonic() - started < 5
    assert in_thread(locks, None, wait_ms=0) is None


@pytest.mark.usefixtures("_impatient")
def test_branches_do_not_block_each_other(locks):
    with locks.hold(None, "a write"):
        assert in_thread(locks, "feature") is None
        with locks.hold("feature", "a write"):
            assert in_thread(locks, "another") is None


@pytest.mark.usefixtures("_impatient")
def test_a_lock_is_free_again_after_an_error(locks):
    with pytest.raises(ZeroDivisionError), locks.hold(None, "a write"):
        raise ZeroDivisionError
    assert in_thread(locks, None) is None


def test_who_waits_gets_the_lock_when_it_is_free(locks):
    released = Event()

    def hold() -> float:
        with locks.hold(None, "a write"):
            released.wait(10)
            return time.monotonic()

    with ThreadPoolExecutor(2) as threads:
        pause = Pause()
        with armed("lock.after_acquire", pause, times=1):
            holder = threads.submit(hold)
            pause.wait_until_reached()
            waiter = threads.submit(in_thread, locks, None)
            assert not waiter.done()
            pause.release()
        released.set()
        assert holder.result() <= time.monotonic()
        assert waiter.result() is None


@pytest.mark.usefixtures("_impatient")
def test_two_spellings_of_a_place_share_a_lock(tmp_path):
    init(tmp_path / "g", SCHEMA)
    (tmp_path / "link").symlink_to(tmp_path / "g")
    one, two = Backstage(tmp_path / "g").locks, Backstage(f"file://{tmp_path}/link/").locks
    with one.hold(None, "a write"):
        assert isinstance(in_thread(two, None), BranchLocked)


def test_several_locks_are_taken_in_one_order_and_each_once(locks):
    taken: list[object] = []
    note = Call(lambda hit: taken.append(hit.context["branch"]))
    with armed("lock.after_acquire", note), locks.hold_all(["b", None, "a", "b"], "a write"):
        assert taken == [None, "a", "b"]
    with armed("lock.after_acquire", note), locks.hold_all([], "a write"):
        assert taken == [None, "a", "b"]


@pytest.mark.usefixtures("_impatient")
def test_a_lock_that_cannot_be_had_gives_the_others_back(locks):
    with locks.hold("b", "a write"):
        with pytest.raises(BranchLocked), ThreadPoolExecutor(1) as thread:
            thread.submit(locks.hold_all(["a", "b"], "both").__enter__).result()
        assert in_thread(locks, "a") is None


@pytest.mark.usefixtures("_impatient")
def test_branch_control_waits_for_the_locks_it_needs(graph, locks):
    graph.branches.create("feature")
    with locks.hold(None, "a write"), pytest.raises(BranchLocked):
        graph.branches.create("x")
    with locks.hold("x", "a write"), pytest.raises(BranchLocked):
        graph.branches.create("x")
    with locks.hold("feature", "a write"):
        with pytest.raises(BranchLocked):
            graph.branches.delete("feature")
        with pytest.raises(BranchLocked):
            graph.branches.create("x", "feature")
        graph.branches.create("y")
    assert list(graph.branches) == ["main", "feature", "y"]


@pytest.mark.usefixtures("_impatient")
def test_readers_never_wait(graph, locks):
    with locks.hold_all([None, "feature"], "a write"):
        other = open_graph(graph.uri)
        assert other._snapshot().version == 1
        assert list(other.branches) == ["main"]
        assert len(other.log(reverse=True)) == 1


def test_a_place_where_no_lock_file_can_be_made_is_a_typed_error(local_graph):
    (Path(local_graph.uri) / "__locks").write_text("in the way")
    with pytest.raises(StorageError, match="lock"):
        local_graph.branches.create("feature")
    assert list(local_graph.branches) == ["main"]


@pytest.mark.usefixtures("_impatient")
def test_a_write_that_fails_right_after_it_got_the_lock_gives_it_back(graph, locks):
    with armed("lock.after_acquire", Fail(), first=2), pytest.raises(InjectedFault):
        graph.branches.create("feature")
    with locks.hold_all([None, "feature"], "a write") as held:
        held.check()


def test_a_wrong_waiting_time_is_reported_before_anything_is_done(uri, monkeypatch):
    monkeypatch.setenv("OMNIGRAPH_LOCK_WAIT_MS", "for ever")
    with pytest.raises(InputError, match="OMNIGRAPH_LOCK_WAIT_MS is 'for ever'"):
        init(uri, SCHEMA)
    monkeypatch.setenv("OMNIGRAPH_LOCK_WAIT_MS", "0")
    init(uri, SCHEMA).branches.create("feature")
    monkeypatch.setenv("OMNIGRAPH_LOCK_WAIT_MS", "-1")
    with pytest.raises(InputError, match="milliseconds"):
        open_graph(uri)


def test_a_lock_file_that_was_removed_meanwhile_is_not_relied_on(local_graph):
    locks = Backstage(local_graph.uri).locks
    path = Path(local_graph.uri) / "__locks" / "main.lock"
    with locks.hold(None, "a write"):
        assert json.loads(path.read_text())["operation"] == "a write"
    waiting, stale = Event(), os.open(path, os.O_RDWR)
    try:
        fcntl.flock(stale, fcntl.LOCK_EX)

        def write() -> tuple[int, int]:
            waiting.set()
            with locks.hold(None, "a later write"):
                return os.stat(path).st_ino, json.loads(path.read_text())["pid"]

        with ThreadPoolExecutor(1) as thread:
            later = thread.submit(write)
            waiting.wait(10)
            time.sleep(0.05)
            path.unlink()
            path.write_text("")
            expected = os.stat(path).st_ino
            fcntl.flock(stale, fcntl.LOCK_UN)
            assert later.result(10) == (expected, os.getpid())
    finally:
        os.close(stale)
