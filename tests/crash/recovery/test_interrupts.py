"""Ctrl-C at any moment of a write: it is there as a whole or not at all, and the next one works."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from omnigraph.api.graph import open as open_graph
from omnigraph.errors import BranchLocked
from omnigraph.faults import FAULT_POINTS
from tests.behaviour.graphs import COMPANY
from tests.crash.recovery.situations import (
    ADD,
    AFTER_TABLE,
    BEFORE_PUBLISH,
    BEFORE_TABLE,
    EVERYBODY,
    HIRE,
    PUBLISHED,
    WITH_SIDECAR,
    WORKS_AT,
    check_recovered,
    ids,
)
from tests.support.faults import Call, armed

ROOT = Path(__file__).parents[3]


def check_whole(graph):
    """Whoever is there has a company and a job there, and the other way round."""
    hired = {name[1:] for name in ids(graph) if name.startswith("p")}
    assert {name[1:] for name in ids(graph, COMPANY) if name.startswith("c")} == hired
    rows = graph._snapshot().open(graph._core.tables, WORKS_AT).read(["src", "dst"]).to_pylist()
    jobs = [(row["src"][1:], row["dst"][1:]) for row in rows if row["src"].startswith("p")]
    assert sorted(jobs) == sorted((number, number) for number in hired)


@pytest.mark.acceptance("S-060")
def test_a_process_interrupted_at_random_writes_everything_or_nothing(local_graph, tmp_path):
    log = tmp_path / "log"
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.crash.recovery.interrupting", local_graph.uri, str(log)],
        cwd=ROOT,
        env=os.environ,
        stderr=subprocess.PIPE,
    )
    try:
        while not log.exists():
            assert process.poll() is None, process.communicate()[1]
            time.sleep(0.01)
        chance = random.Random(7)
        for _ in range(60):
            time.sleep(chance.uniform(0.002, 0.12))
            process.send_signal(signal.SIGINT)
        # Left alone it gets a write done, however slow the machine is.
        deadline = time.monotonic() + 60
        while not log.read_text() and time.monotonic() < deadline:
            time.sleep(0.05)
        log.with_suffix(".stop").touch()
        _, errors = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 0, errors
    assert int(log.with_suffix(".interrupts").read_text()) > 10
    promised = set(log.read_text().split())
    assert promised
    graph = open_graph(local_graph.uri)
    assert promised <= set(ids(graph))
    check_whole(graph)
    assert list(graph.branches) == ["main"]
    check_recovered(graph)
    graph.mutate(HIRE, {"who": "p0", "company": "c0"})
    check_whole(graph)


@pytest.mark.acceptance("S-060")
@pytest.mark.parametrize(
    "point",
    [WITH_SIDECAR, BEFORE_TABLE, AFTER_TABLE, BEFORE_PUBLISH, PUBLISHED, "recovery.sidecar_delete"],
)
def test_an_interrupt_after_the_first_effect_waits_until_the_write_is_made(graph, point):
    """And nobody else gets the lock before."""
    other = open_graph(graph.uri)

    def press(_hit):
        os.kill(os.getpid(), signal.SIGINT)
        with pytest.raises(BranchLocked), other._core.locks.hold(None, "test", wait_ms=0):
            pass

    with armed(point, Call(press), times=1), pytest.raises(KeyboardInterrupt):
        graph.mutate(HIRE, {"who": "p1", "company": "c1"})
    assert ids(graph) == [*EVERYBODY, "p1"]
    check_whole(graph)
    assert graph.maintenance.recoveries() == []
    check_recovered(graph)
    graph.mutate(ADD, {"who": "Flo"})


@pytest.mark.acceptance("S-060")
@pytest.mark.parametrize("point", ["lock.after_acquire", "recovery.sidecar_list"])
def test_an_interrupt_before_the_first_effect_leaves_nothing(graph, point):
    assert point in {known.name for known in FAULT_POINTS.all()}
    before = graph._snapshot().to_json()

    def press(_hit):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0)

    with armed(point, Call(press), times=1), pytest.raises(KeyboardInterrupt):
        graph.mutate(HIRE, {"who": "p1", "company": "c1"})
    assert graph._snapshot().to_json() == before
    check_recovered(graph)
    graph.mutate(HIRE, {"who": "p1", "company": "c1"})
    check_whole(graph)
