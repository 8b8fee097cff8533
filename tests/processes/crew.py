"""A crew of writers, some of whom are killed and replaced, and what must be true when all are done."""

from __future__ import annotations

import json
import random
import signal
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from omnigraph.api.graph import Graph
from omnigraph.api.graph import open as open_graph
from omnigraph.versioning.audit import RECOVERY_ACTOR
from omnigraph.versioning.rows import RECOVERY_DIR
from tests.behaviour.graphs import Backstage
from tests.processes.children import child
from tests.processes.conftest import Place
from tests.processes.writing import (
    EPHEMERAL,
    Job,
    Note,
    Notebook,
    do,
    exported,
    faults_of,
    short_leases,
)
from tests.support.faults import Arm, Kill
from tests.support.fork_server import ForkedProcess

RESUME_SECONDS = 120
"""Far longer than anybody may have to wait for others to go on after a kill, on any machine."""
LIMIT_SECONDS = 1800

STEPS = (
    "fork.before_classify",
    "graph_publish.after_manifest_commit",
    "graph_publish.before_manifest_commit",
    "lock.after_acquire",
    "mutation.post_finalize_pre_publisher",
    "mutation.post_table_commit",
    "mutation.pre_table_commit",
    "recovery.sidecar_delete",
    "recovery.sidecar_written",
)
"""Where a writer may be told to die."""


@dataclass(frozen=True, slots=True)
class Death:
    """A writer was killed."""

    name: str
    at: float
    cause: str


@dataclass(slots=True)
class Member:
    """A writer with its jobs; each of its lives ends as told, and the last one when all is done."""

    name: str
    jobs: Sequence[Job]
    lives: list[Arm | int] = field(default_factory=list)
    """A step to die at, or the number of notes in that life after which it is killed."""
    rest_s: float = 0.0


class Crew:
    """Starts the members, kills them when their time has come, and puts others in their place."""

    def __init__(self, place: Place, folder: Path) -> None:
        self._place = place
        self._folder = folder
        self._running: dict[str, ForkedProcess] = {}
        self._found: dict[str, int] = {}
        self._set_up: dict[str, Job] = {}
        self.deaths: list[Death] = []

    def book(self, name: str) -> Notebook:
        return Notebook(self._folder / f"{name}.notes")

    def set_up(self, graph: Graph, jobs: Sequence[Job]) -> None:
        """What is there before anybody starts."""
        for number, job in enumerate(jobs):
            self._set_up[f"set up:{number}"] = job
            do(graph, job, f"set up:{number}")

    def work(self, members: Sequence[Member]) -> None:
        """Until every job of every member is done."""
        deadline = time.monotonic() + LIMIT_SECONDS
        with self._watched():
            try:
                while any(self._tend(member) for member in members):
                    assert time.monotonic() < deadline, "the crew does not get done"
                    time.sleep(0.02)
            finally:
                for process in self._running.values():
                    process.kill()
                    process.wait()

    def _tend(self, member: Member) -> bool:
        """Whether a member is still at work, or has work."""
        process = self._running.get(member.name)
        if process is None:
            self._start(member)
            return True
        life = member.lives[0] if member.lives else None
        if isinstance(life, int) and self._notes_of_this_life(member) >= life:
            time.sleep(random.uniform(0, 0.05))
            process.kill()
            process.wait()
        match process.poll():
            case None:
                return True
            case 0:
                return False
            case status:
                assert status == -signal.SIGKILL, f"{member.name} ended with {status}"
                assert life is not None, f"{member.name} was killed by somebody else"
                cause = life.name if isinstance(life, Arm) else "a kill from outside"
                self.deaths.append(Death(member.name, time.monotonic(), cause))
                member.lives.pop(0)
                del self._running[member.name]
                return True

    def _notes_of_this_life(self, member: Member) -> int:
        return self.book(member.name).count() - self._found[member.name]

    def _start(self, member: Member) -> None:
        self._found[member.name] = self.book(member.name).count()
        life = member.lives[0] if member.lives else None
        self._running[member.name] = child(
            self._place,
            [life] if isinstance(life, Arm) else [],
            "writing.write",
            self._place.uri,
            member.name,
            [tuple(job) for job in member.jobs],
            str(self._folder / f"{member.name}.notes"),
            member.rest_s,
        )

    @contextmanager
    def _watched(self) -> Iterator[None]:
        """A reader looks at everything meanwhile, and must like what it sees."""
        stop, report = self._folder / "stop", self._folder / "report"
        reader = child(self._place, [], "writing.watch", self._place.uri, str(stop), str(report))
        try:
            yield
            stop.touch()
            assert reader.wait(120) == 0
        finally:
            reader.kill()
            reader.wait()
        seen = json.loads(report.read_text())
        print(f"a reader looked: {seen['looks']}")
        assert seen["wrong"] == []

    # -- afterwards -------------------------------------------------------------------------

    def check(self, members: Sequence[Member]) -> Counter[str]:
        """Nothing acknowledged is lost, nothing is there twice; returns how often what came of jobs."""
        assert Backstage(self._place.uri).objects.list_dir(RECOVERY_DIR) == []
        with short_leases():
            graph = open_graph(self._place.uri)
        assert [name for name in list(graph.branches) if name.startswith(EPHEMERAL)] == []
        jobs = {f"{m.name}:{n}": job for m in members for n, job in enumerate(m.jobs)}
        jobs |= self._set_up
        for branch in list(graph.branches):
            check_history(graph, branch)
            check_content(graph, branch, jobs)
            check_pins(graph, branch)
        outcomes: Counter[str] = Counter()
        for member in members:
            outcomes += self._check_notes(graph, member)
        print(f"what came of the jobs: {dict(outcomes)}")
        self._check_resumed(members)
        return outcomes

    def _check_notes(self, graph: Graph, member: Member) -> Counter[str]:
        notes = self.book(member.name).notes()
        assert [note.job for note in notes] == list(range(len(member.jobs)))
        repeats = 0
        for branch in {job.branch for job in member.jobs}:
            commits = {str(c.id): c for c in graph.log(branch, reverse=True)}
            made = Counter(c.message for c in commits.values())
            for note in notes:
                job, message = member.jobs[note.job], f"{member.name}:{note.job}"
                if job.branch != branch or job.does == "use branch":
                    continue
                if note.commit is not None:
                    commit = commits[note.commit]
                    assert (commit.number, commit.message) == (note.sequence, message)
                repeats += max(0, made[message] - 1)
        deaths = sum(death.name == member.name for death in self.deaths)
        assert repeats <= deaths + sum(note.unsure for note in notes)
        return Counter(note.outcome for note in notes)

    def _check_resumed(self, members: Sequence[Member]) -> None:
        """After a kill the others went on soon."""
        notes: Mapping[str, list[Note]] = {m.name: self.book(m.name).notes() for m in members}
        for death in self.deaths:
            later = [
                note.at - death.at
                for name, written in notes.items()
                for note in written
                if name != death.name and note.at > death.at
            ]
            if later:
                print(f"{death.name} died ({death.cause}), others went on in {min(later):.2f} s")
                assert min(later) < RESUME_SECONDS


def random_death(notes: int) -> Arm | int:
    """Some way to die: when there are so many notes, or at a step that comes before long."""
    if random.random() < 0.5:
        return notes
    return Arm(random.choice(STEPS), Kill(), first=random.randint(1, max(1, notes // 3)))


# -- what must be true of a branch ----------------------------------------------------------


def check_history(graph: Graph, branch: str) -> None:
    """One line without a hole, and one commit for each thing recovery did."""
    commits = graph.log(branch, reverse=True)
    assert [commit.number for commit in commits] == list(range(1, len(commits) + 1))
    assert [commit.parents for commit in commits[1:]] == [(commit.id,) for commit in commits[:-1]]
    recovered = [audit.audit.key for audit in graph.maintenance.recoveries(branch)]
    assert len(recovered) == len(set(recovered))
    by_recovery = [c.id for c in commits if c.actor == RECOVERY_ACTOR]
    assert by_recovery == [audit.graph_commit_id for audit in graph.maintenance.recoveries(branch)]


def check_content(graph: Graph, branch: str, jobs: Mapping[str, Job]) -> None:
    """The rows are those that the jobs of the commits lead to, one after the other."""
    commits = graph.log(branch, reverse=True)
    every = max(1, len(commits) // 40)
    expected: dict[tuple[str, ...], int] = {}
    for commit in commits:
        if commit.message is not None:
            _apply(expected, jobs[commit.message])
        if commit.number % every == 0 or commit is commits[-1]:
            text = exported(graph, commit)
            assert faults_of(text) == []
            assert _rows(text) == expected, f"version {commit.number} of {branch}"


def _apply(rows: dict[tuple[str, ...], int], job: Job) -> None:
    match job.does:
        case "person" | "company":
            rows[job.does, job.key] = job.value
        case "connect":
            rows["connect", job.key, job.to] = 0
        case "delete":
            gone = [row for row in rows if row[0] != "person" and row[-1] == job.key]
            for row in gone:
                del rows[row]


def _rows(text: str) -> dict[tuple[str, ...], int]:
    found: dict[tuple[str, ...], int] = {}
    for line in text.splitlines():
        row = json.loads(line)
        if "edge" in row:
            found["connect", row["from"], row["to"]] = 0
        else:
            found[row["type"].lower(), row["data"]["name"]] = row["data"].get("age") or 0
    return found


def check_pins(graph: Graph, branch: str) -> None:
    """Every table of the branch is where the graph says it is."""
    physical = graph._core.branches.find(branch).physical
    for entry in graph._snapshot(branch).entries.values():
        if entry.branch == physical:
            assert graph._core.tables.open(entry.location, entry.branch).version == entry.version
