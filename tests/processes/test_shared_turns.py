"""Processes with several writer threads each write one branch and are killed at random moments."""

from __future__ import annotations

import random
import signal
import time
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from omnigraph.api.graph import Graph, init
from omnigraph.api.graph import open as open_graph
from omnigraph.history.commits import Commit
from omnigraph.versioning.audit import RECOVERY_ACTOR
from omnigraph.versioning.rows import RECOVERY_DIR
from tests.behaviour.graphs import Backstage
from tests.crash.graphs import SCHEMA
from tests.processes import crew
from tests.processes.children import child
from tests.processes.conftest import Place
from tests.processes.sharing import (
    Entry,
    Journal,
    Rows,
    actor_of,
    apply_task,
    insist,
    rows_of,
    seed,
    task_of,
)
from tests.processes.writing import exported, short_leases
from tests.support.faults import Arm, Kill
from tests.support.fork_server import ForkedProcess

WRITERS = 8
STEPS = [step for step in crew.STEPS if not step.startswith("fork.")]
"""Where a process may kill itself; no table of main is ever forked."""


@pytest.fixture(autouse=True)
def _patience(monkeypatch):
    """A writer waits for its turn however slow the machine is; leases are short here too."""
    monkeypatch.setenv("OMNIGRAPH_LOCK_WAIT_MS", "300000")
    with short_leases():
        yield


class Fleet:
    """Processes that write together, killed and started again, and what must hold at the end."""

    def __init__(self, place: Place, folder: Path, processes: int) -> None:
        self._place = place
        self._stop = folder / "stop"
        self._journals = [Journal(folder / f"process{n}.journal") for n in range(processes)]
        self._paths = [str(folder / f"process{n}.journal") for n in range(processes)]
        self._writers = [list(range(n, WRITERS, processes)) for n in range(processes)]
        self._running: dict[int, ForkedProcess] = {}
        self._acknowledged: dict[int, int] = {}
        self._ends: dict[int, float | None] = {}
        self._rows = seed(init(place.uri, SCHEMA))
        self._steps: dict[int, str] = {}
        self.kills: Counter[str] = Counter()

    @property
    def _is_local(self) -> bool:
        return self._place.uri.startswith("/")

    # -- writing ----------------------------------------------------------------------------

    def work(self, seconds: float, *, life: float, kills: int, writes: int) -> None:
        """Let the processes write for some seconds, at least until there were so many kills and
        acknowledged writes.

        Each is killed up to `life` seconds after the first write of its life was acknowledged, or
        kills itself before that at a step of a write.
        """
        began, hang = time.monotonic(), time.monotonic() + seconds + 600
        for number in range(len(self._journals)):
            self._start(number)
        try:
            while (
                time.monotonic() < began + seconds
                or self.kills.total() < kills
                or sum(journal.count("acknowledged") for journal in self._journals) < writes
            ):
                assert time.monotonic() < hang, "the writers make no progress"
                for number in list(self._running):
                    self._tend(number, life)
                time.sleep(0.02)
            self._stop.touch()
            ends = {process.wait(300) for process in self._running.values()}
            assert ends <= {0, -signal.SIGKILL}
        finally:
            for process in self._running.values():
                process.kill()
                process.wait()

    def _tend(self, number: int, life: float) -> None:
        process, end = self._running[number], self._ends[number]
        if process.poll() is not None:
            assert process.poll() == -signal.SIGKILL, f"process {number}: {process.poll()}"
            self.kills[self._steps[number]] += 1
            self._start(number)
        elif end is None:
            if self._journals[number].count("acknowledged") > self._acknowledged[number]:
                self._ends[number] = time.monotonic() + random.uniform(0, life)
        elif time.monotonic() > end:
            process.kill()
            process.wait()
            self.kills["from outside"] += 1
            self._start(number)

    def _start(self, number: int) -> None:
        self._acknowledged[number] = self._journals[number].count("acknowledged")
        self._ends[number] = None
        self._steps[number] = step = random.choice(STEPS)
        arms = [Arm(step, Kill(), first=random.randint(1, 20))] if random.random() < 0.6 else []
        self._running[number] = child(
            self._place,
            arms,
            "sharing.write_until_stopped",
            self._place.uri,
            self._writers[number],
            str(self._stop),
            self._paths[number],
        )

    # -- afterwards -------------------------------------------------------------------------

    def check(self, *, samples: int, repeats: int | None = None) -> None:
        """Nothing acknowledged is lost, nothing is there twice, every key answers, and every
        commit shows the rows of the commits up to it. `repeats` limits how many acknowledged keys
        are repeated."""
        graph = open_graph(self._place.uri)
        entries = [entry for journal in self._journals for entry in journal.entries()]
        commits = by_message(linear_history(graph))
        answered = self._check_acknowledged(entries, commits)
        begun = {entry.key for entry in entries}
        self._check_repeats(graph, begun, answered, commits, repeats)
        self._report(entries, begun, answered)
        self._check_content(graph, samples)
        graph.maintenance.wait()
        assert Backstage(graph.uri).objects.list_dir(RECOVERY_DIR) == []
        assert graph.maintenance.verify().problems == ()

    def _check_acknowledged(
        self, entries: list[Entry], commits: dict[str, Commit]
    ) -> dict[str, Entry]:
        """Every acknowledged commit is in the history; the last acknowledgement of each key."""
        answered: dict[str, Entry] = {}
        for entry in entries:
            if entry.event != "acknowledged" or entry.commit is None:
                continue
            commit = commits.get(entry.key)
            assert commit is not None, f"{entry.key} is lost"
            assert (str(commit.id), commit.number) == (entry.commit, entry.number), entry
            assert commit.actor == entry.actor
            if commit.actor != actor_of(entry.key):
                # Recovery completed it; its writer was told by a repeat, or after it lost its lease.
                assert commit.actor == RECOVERY_ACTOR
                assert entry.replayed or not self._is_local
            answered[entry.key] = entry
        return answered

    def _check_repeats(
        self,
        graph: Graph,
        begun: set[str],
        answered: dict[str, Entry],
        before: dict[str, Commit],
        limit: int | None,
    ) -> None:
        known = sorted(answered)
        chosen = known if limit is None else random.sample(known, min(limit, len(known)))
        keys = [*(begun - set(answered)), *chosen]
        random.shuffle(keys)
        with ThreadPoolExecutor(WRITERS) as pool:
            answers = list(pool.map(lambda key: insist(graph, key), keys))
        after = by_message(linear_history(graph))
        for key, answer in zip(keys, answers, strict=True):
            commit = after.get(key)
            assert answer.commit == (None if commit is None else str(commit.id)), key
            if key in before:
                assert answer.replayed
                assert answer.commit == str(before[key].id)
            else:
                assert not answer.replayed
                assert commit is None or commit.actor == actor_of(key)
        assert {key: commit.id for key, commit in after.items() if key in before} == {
            key: commit.id for key, commit in before.items()
        }

    def _check_content(self, graph: Graph, samples: int) -> None:
        """The rows at a commit, and at the one before, are those of the history up to it."""
        commits = linear_history(graph)
        numbers = random.sample([c.number for c in commits[2:]], min(samples, len(commits) - 2))
        looks = {*numbers, *(number - 1 for number in numbers), commits[-1].number}
        rows: Rows = self._rows
        for commit in commits[2:]:
            if commit.message is not None:
                task = task_of(commit.message)
                if task.kind == "person" and commit.number in numbers:
                    here, before = graph.at(commit), graph.at(f"{commit.id}~1")
                    assert here.get("Person", task.name) is not None
                    assert before.get("Person", task.name) is None
                apply_task(rows, task)
            if commit.number in looks:
                found = rows_of(exported(graph, commit))
                assert found == rows, f"commit {commit.number}: {commit.message}"

    def _report(self, entries: list[Entry], begun: set[str], answered: dict[str, Entry]) -> None:
        events = Counter(entry.event for entry in entries)
        kinds = Counter(task_of(key).kind for key in answered)
        unanswered = len(begun - {e.key for e in entries if e.event in ("acknowledged", "refused")})
        print(f"killed {dict(self.kills)}; {dict(events)}; {unanswered} keys without an answer")
        print(f"acknowledged: {dict(kinds)}")
        assert unanswered > 0, "no write was ever cut off"


def linear_history(graph: Graph) -> list[Commit]:
    """All commits of main, oldest first, numbered without a gap, each the child of the one before."""
    commits = graph.log(reverse=True)
    assert [commit.number for commit in commits] == list(range(1, len(commits) + 1))
    assert [commit.parents for commit in commits[1:]] == [(commit.id,) for commit in commits[:-1]]
    return commits


def by_message(commits: list[Commit]) -> dict[str, Commit]:
    """The commit of each key; no key has two."""
    found: defaultdict[str, list[Commit]] = defaultdict(list)
    for commit in commits:
        if commit.message is not None:
            found[commit.message].append(commit)
    assert [key for key, several in found.items() if len(several) > 1] == []
    return {key: commit for key, [commit] in found.items()}


def test_killed_processes_with_several_writers_lose_nothing_and_write_nothing_twice(
    local_place, tmp_path
):
    fleet = Fleet(local_place, tmp_path, processes=2)
    fleet.work(6, life=3, kills=3, writes=40)
    fleet.check(samples=10)


@pytest.mark.slow
def test_killed_processes_with_several_writers_lose_nothing_in_ten_minutes(place, tmp_path):
    fleet = Fleet(place, tmp_path, processes=4)
    fleet.work(600, life=8 if place.uri.startswith("/") else 30, kills=10, writes=80)
    fleet.check(samples=40, repeats=300)
