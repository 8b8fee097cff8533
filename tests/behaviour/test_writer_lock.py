"""The writer lock inside one process: who waits for whom, and for how long."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest

from omnigraph.engine.graph import init
from omnigraph.engine.graph import open as open_graph
from omnigraph.errors import BranchLocked, ConflictError, StorageError
from omnigraph.storage.uris import GraphRoot, normalise_root
from omnigraph.testing.faults import Call, Pause, armed
from omnigraph.versioning import writer_lock as locking
from omnigraph.versioning.writer_lock import writer_lock, writer_locks
from tests.behaviour.graphs import SCHEMA


@pytest.fixture
def root(graph):
    return normalise_root(graph.uri)


@pytest.fixture
def _impatient(monkeypatch):
    monkeypatch.setattr(locking, "LOCK_WAIT_SECONDS", 0.1)


def in_thread(root: GraphRoot, branch: str | None) -> Exception | None:
    """What happens to somebody else who wants the lock."""

    def run() -> Exception | None:
        try:
            with writer_lock(root, branch, "another write"):
                return None
        except Exception as error:
            return error

    with ThreadPoolExecutor(1) as thread:
        return thread.submit(run).result()


@pytest.mark.usefixtures("_impatient")
def test_a_lock_that_stays_held_is_a_typed_conflict(root):
    with writer_lock(root, "review_s7", "a write"):
        error = in_thread(root, "review_s7")
    assert isinstance(error, BranchLocked)
    assert isinstance(error, ConflictError)
    assert (error.branch, error.operation) == ("review/7", "another write")
    assert in_thread(root, "review_s7") is None


@pytest.mark.usefixtures("_impatient")
def test_branches_do_not_block_each_other(root):
    with writer_lock(root, None, "a write"):
        assert in_thread(root, "feature") is None
        with writer_lock(root, "feature", "a write"):
            assert in_thread(root, "another") is None


@pytest.mark.usefixtures("_impatient")
def test_a_lock_is_free_again_after_an_error(root):
    with pytest.raises(ZeroDivisionError), writer_lock(root, None, "a write"):
        raise ZeroDivisionError
    assert in_thread(root, None) is None


def test_who_waits_gets_the_lock_when_it_is_free(root):
    released = Event()

    def hold() -> float:
        with writer_lock(root, None, "a write"):
            released.wait(10)
            return time.monotonic()

    with ThreadPoolExecutor(2) as threads:
        pause = Pause()
        with armed("lock.after_acquire", pause, times=1):
            holder = threads.submit(hold)
            pause.wait_until_reached()
            waiter = threads.submit(in_thread, root, None)
            assert not waiter.done()
            pause.release()
        released.set()
        assert holder.result() <= time.monotonic()
        assert waiter.result() is None


@pytest.mark.usefixtures("_impatient")
def test_two_spellings_of_a_place_share_a_lock(tmp_path):
    init(tmp_path / "g", SCHEMA)
    (tmp_path / "link").symlink_to(tmp_path / "g")
    one, two = normalise_root(str(tmp_path / "g")), normalise_root(f"file://{tmp_path}/link/")
    with writer_lock(one, None, "a write"):
        assert isinstance(in_thread(two, None), BranchLocked)


def test_several_locks_are_taken_in_one_order_and_each_once(root):
    taken: list[object] = []
    note = Call(lambda hit: taken.append(hit.context["branch"]))
    with armed("lock.after_acquire", note), writer_locks(root, ["b", None, "a", "b"], "a write"):
        assert taken == [None, "a", "b"]
    with armed("lock.after_acquire", note), writer_locks(root, [], "a write"):
        assert taken == [None, "a", "b"]


@pytest.mark.usefixtures("_impatient")
def test_a_lock_that_cannot_be_had_gives_the_others_back(root):
    with writer_lock(root, "b", "a write"):
        with pytest.raises(BranchLocked), ThreadPoolExecutor(1) as thread:
            thread.submit(writer_locks(root, ["a", "b"], "both").__enter__).result()
        assert in_thread(root, "a") is None


@pytest.mark.usefixtures("_impatient")
def test_branch_control_waits_for_the_locks_it_needs(graph, root):
    graph.create_branch("feature")
    with writer_lock(root, None, "a write"), pytest.raises(BranchLocked):
        graph.create_branch("x")
    with writer_lock(root, "x", "a write"), pytest.raises(BranchLocked):
        graph.create_branch("x")
    with writer_lock(root, "feature", "a write"):
        with pytest.raises(BranchLocked):
            graph.delete_branch("feature")
        with pytest.raises(BranchLocked):
            graph.create_branch("x", source="feature")
        graph.create_branch("y")
    assert graph.branches() == ["main", "feature", "y"]


@pytest.mark.usefixtures("_impatient")
def test_readers_never_wait(graph, root):
    with writer_locks(root, [None, "feature"], "a write"):
        other = open_graph(graph.uri)
        assert other.snapshot().version == 1
        assert other.branches() == ["main"]
        assert len(other.commits()) == 1


def test_a_place_where_no_lock_file_can_be_made_is_a_typed_error(local_graph):
    (Path(local_graph.uri) / "__locks").write_text("in the way")
    with pytest.raises(StorageError, match="lock"):
        local_graph.create_branch("feature")
    assert local_graph.branches() == ["main"]
