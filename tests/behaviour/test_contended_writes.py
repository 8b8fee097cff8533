"""Writes to a branch that another writer is writing to: they wait once, and resolve what they find."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from omnigraph.api.graph import open as open_graph
from omnigraph.commit import writer as committing
from omnigraph.commit.tables import stage_early
from tests.behaviour.graphs import Backstage
from tests.crash.recovery.situations import (
    ADD,
    AFTER_TABLE,
    AGE,
    BEFORE_TABLE,
    EVERYBODY,
    ages,
    check_recovered,
    ids,
    interrupted,
    kinds,
    new_graph,
    of_another_process,
)
from tests.support.faults import Pause, armed, recording

SOON = 0.5
"""Long enough for a write to be prepared and to stand in the queue."""


@pytest.fixture
def graph(uri):
    return new_graph(uri)


def while_locked(graph, write: Callable[[], object]) -> None:
    """Start a write while somebody holds the lock of main, who lets go of it soon."""
    held, released = threading.Event(), threading.Event()

    def hold() -> None:
        with Backstage(graph.uri).locks.hold(None, "something long"):
            held.set()
            released.wait(60)

    with ThreadPoolExecutor(2) as pool:
        pool.submit(hold)
        held.wait(60)
        writing = pool.submit(write)
        threading.Timer(SOON, released.set).start()
        writing.result(timeout=60)


def test_a_write_waits_for_a_live_writer_once(graph):
    other = open_graph(graph.uri)
    pause = Pause()
    with armed(AFTER_TABLE, pause, times=1), ThreadPoolExecutor(2) as pool:
        first = pool.submit(graph.mutate, ADD, {"who": "Eve"})
        pause.wait_until_reached()
        with recording() as record:
            second = pool.submit(other.mutate, ADD, {"who": "Flo"})
            threading.Timer(SOON, pause.release).start()
            first.result(timeout=60)
            second.result(timeout=60)
    assert record.count("lock.after_acquire") == 1
    assert ids(graph) == [*EVERYBODY, "Eve", "Flo"]
    check_recovered(graph)


@pytest.mark.parametrize("left_alone", [False, True])
@pytest.mark.parametrize(
    ("point", "kind"), [(AFTER_TABLE, "rolled_forward"), (BEFORE_TABLE, "rolled_back")]
)
def test_what_a_dead_writer_left_is_recovered_as_soon_as_the_branch_is_free(
    graph, point, kind, left_alone
):
    interrupted(point, lambda: graph.mutate(ADD, {"who": "Flo"}))
    of_another_process(graph)

    def update() -> object:
        return graph.mutate(AGE, {"who": "Bob", "age": 5})

    if left_alone:
        update()
    else:
        while_locked(graph, update)
    assert ages(graph)["Bob"] == 5
    assert ("Flo" in ids(graph)) is (kind == "rolled_forward")
    assert [found.lower() for found in kinds(graph)] == [kind.replace("_", "")]
    check_recovered(graph)


def test_a_small_write_is_staged_once_while_others_write_the_same_table(local_graph, monkeypatch):
    graph = local_graph
    staged: list[bool] = []

    def note(*arguments):
        staged.append(True)
        return stage_early(*arguments)

    monkeypatch.setattr(committing, "stage_early", note)
    other = open_graph(graph.uri)
    # As if in another process: it stands in another queue and is kept out by the locked file alone.
    monkeypatch.setattr(other._core.locks, "_queue", lambda branch: ("other", branch))

    def stages_early(name: str) -> bool:
        staged.clear()
        graph.mutate(ADD, {"who": name})
        return bool(staged)

    assert stages_early("a")
    pause = Pause()
    with armed(AFTER_TABLE, pause, times=1), ThreadPoolExecutor(2) as pool:
        first = pool.submit(other.mutate, ADD, {"who": "b"})
        pause.wait_until_reached()
        second = pool.submit(graph.mutate, ADD, {"who": "c"})
        threading.Timer(SOON, pause.release).start()
        first.result(timeout=60)
        second.result(timeout=60)
    # One that was overtaken makes the next one wait with staging; that one is not overtaken.
    assert [stages_early("d"), stages_early("e")] == [False, True]
    assert {"a", "b", "c", "d", "e"} <= set(ids(graph))
