"""Writers that note down what they were told, and a reader that trusts nobody.

Importable by a spawned process. A writer does its jobs in order and notes the outcome of each before
it begins the next; one that takes over from a killed writer goes on after the last note. Every job
can be done twice without harm, and its commit names it.
"""

from __future__ import annotations

import io
import json
import os
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

from omnigraph.api.graph import Graph
from omnigraph.api.graph import open as open_graph
from omnigraph.errors import (
    BranchExists,
    BranchNotFound,
    CommitStateUnknown,
    ConflictError,
    MutationError,
    OmnigraphError,
)
from omnigraph.history.commits import Commit
from omnigraph.mutation import PreparedMutation, prepare_mutation
from omnigraph.versioning import locks as locks_module
from omnigraph.versioning import publish as publishing
from omnigraph.versioning.locks import HeldLock, LeaseTiming, WriterLocks

TIMING = (5.0, 0.3, 3.5)
"""Term, renewal and loss of the leases here, in seconds: short, but not for a busy machine."""

PUT_PERSON = "query q($key: String, $value: I32) { insert Person { name: $key, age: $value } }"
PUT_COMPANY = "query q($key: String) { insert Company { name: $key } }"
CONNECT = "query q($key: String, $to: String) { insert WorksAt { from: $key, to: $to } }"
DELETE = "query q($key: String) { delete Company where name = $key }"
UPDATE = (
    "query q($key: String, $value: I32) { update Person set { age: $value } where name = $key }"
)

EPHEMERAL = "passing/"
"""How the names of branches begin that are deleted again."""


class Job(NamedTuple):
    """One thing to do: put a person or a company, connect two, delete a company, or use a branch."""

    does: str
    branch: str
    key: str
    value: int = 0
    to: str = ""


@dataclass(frozen=True, slots=True)
class Note:
    """What a writer was told about a job, and when."""

    job: int
    outcome: str
    commit: str | None
    sequence: int
    at: float
    unsure: int


class Notebook:
    """The notes of a writer. A line is there as a whole or not at all, whenever the writer dies."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def add(self, note: Note) -> None:
        line = json.dumps(asdict(note)) + "\n"
        descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        try:
            os.write(descriptor, line.encode())
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def notes(self) -> list[Note]:
        if not self._path.exists():
            return []
        return [Note(**json.loads(line)) for line in self._path.read_text().splitlines()]

    def count(self) -> int:
        return self._path.read_bytes().count(b"\n") if self._path.exists() else 0


@contextmanager
def short_leases() -> Iterator[None]:
    """Graphs opened here have leases of a few seconds, and publish with the patience of a test."""
    locks = partial(WriterLocks, timing=LeaseTiming(*TIMING))
    with (
        patch.object(locks_module, "WriterLocks", locks),
        patch.object(publishing, "PUBLISH_BUDGET_SECONDS", 120.0),
    ):
        yield


# -- writers ---------------------------------------------------------------------------------


def write(uri: str, name: str, jobs: Sequence[Job], notebook: str, rest_s: float) -> None:
    """Do what is left of the jobs, with a rest of up to so many seconds after each."""
    book = Notebook(Path(notebook))
    done = {note.job for note in book.notes()}
    with short_leases():
        graph = open_graph(uri)
        for number, job in enumerate(jobs):
            if number not in done:
                book.add(_insist(graph, f"{name}:{number}", number, Job(*job)))
                time.sleep(random.uniform(0, rest_s))


def _insist(graph: Graph, message: str, number: int, job: Job) -> Note:
    """Do a job, again and again while only others are in the way."""
    key: str | None = None
    unsure = 0
    while True:
        try:
            outcome, commit, sequence = do(graph, job, message, key)
        except MutationError:
            outcome, commit, sequence = "violation", None, 0
        except CommitStateUnknown as error:
            key = error.idempotency_key
            continue
        except ConflictError as error:
            unsure += 1
            print(f"{message} once more: {error}", flush=True)
            continue
        return Note(number, outcome, commit, sequence, time.monotonic(), unsure)


def do(graph: Graph, job: Job, message: str, key: str | None = None) -> tuple[str, str | None, int]:
    """Do a job once: what came of it, its commit and the commit's place in the history."""
    write: Callable[..., Any] = partial(
        graph.mutate, branch=job.branch, message=message, idempotency_key=key
    )
    match job.does:
        case "person":
            done = write(PUT_PERSON, {"key": job.key, "value": job.value})
        case "company":
            done = write(PUT_COMPANY, {"key": job.key})
        case "connect":
            done = write(CONNECT, {"key": job.key, "to": job.to})
        case "delete":
            done = write(DELETE, {"key": job.key})
        case "use branch":
            return _use_branch(graph, job, message)
        case other:
            raise AssertionError(other)
    receipt = done.receipt
    commit = receipt.graph_commit_id
    return "nothing" if commit is None else "done", commit, receipt.manifest_version


def _use_branch(graph: Graph, job: Job, message: str) -> tuple[str, str | None, int]:
    """Make a branch, write to it, see the row there, and delete it."""
    with suppress(BranchExists):
        graph.branches.create(job.key, job.branch)
    do(graph, job._replace(does="person", branch=job.key), message)
    assert f'"{job.key}"' in exported(graph, job.key)
    with suppress(BranchNotFound):
        graph.branches.delete(job.key)
    assert job.key not in list(graph.branches)
    return "passed", None, 0


# -- rivals ----------------------------------------------------------------------------------


def update_in_rounds(
    uri: str, folder: str, number: int, rivals: int, threads: int, rounds: int, keys: list[str]
) -> list[tuple[str, tuple[str, int]]]:
    """Update rows at the same time as others do: the commits, each with its row and value."""
    made: list[tuple[str, tuple[str, int]]] = []
    with short_leases():
        graph = open_graph(uri)
        for round in range(rounds):
            _meet(Path(folder), round, number, rivals)

            def update(thread: int, round: int = round) -> None:
                writer = number * threads + thread
                key, value = keys[writer % len(keys)], round * 100 + writer + 1
                receipt = graph.mutate(UPDATE, {"key": key, "value": value}).receipt
                made.append((str(receipt.graph_commit_id), (key, value)))

            with ThreadPoolExecutor(threads) as pool:
                list(pool.map(update, range(threads)))
    return made


def _meet(folder: Path, round: float, number: int, rivals: int) -> None:
    """Wait until all have come here."""
    (folder / f"{round}-{number}").touch()
    deadline = time.monotonic() + 60
    while any(not (folder / f"{round}-{other}").exists() for other in range(rivals)):
        assert time.monotonic() < deadline, "a rival never came"
        time.sleep(0.002)


def mutate_once(uri: str, query: str, report: str, locked: bool) -> None:
    """Run a mutation and write down what came of it, and before that when it has been checked.

    Without a lock it is like one that lost it and did not notice.
    """

    def prepare(*arguments: Any) -> PreparedMutation:
        prepared = prepare_mutation(*arguments)
        Path(f"{report}.checked").touch()
        return prepared

    with (
        short_leases() if locked else _without_lock(),
        patch("omnigraph.mutation.run.prepare_mutation", prepare),
    ):
        graph = open_graph(uri)
        try:
            result = f"commit {graph.mutate(query).receipt.manifest_version}"
        except OmnigraphError as error:
            result = f"{type(error).__name__}: {error}"
    Path(report).write_text(result)


@contextmanager
def _without_lock() -> Iterator[None]:
    with patch.object(WriterLocks, "_hold_process", _held_by_nobody):
        yield


@contextmanager
def _held_by_nobody(
    _locks: WriterLocks, _branch: str | None, operation: str, _deadline: object, _began: float
) -> Iterator[HeldLock]:
    yield HeldLock(operation, ())


def open_and_count(uri: str) -> tuple[int, int]:
    """Open for writing: the commits of main and its recoveries, as this process sees them."""
    with short_leases():
        graph = open_graph(uri)
    return len(graph.log(reverse=True)), len(graph.maintenance.recoveries())


# -- a reader --------------------------------------------------------------------------------


def watch(uri: str, stop: str, report: str) -> None:
    """Look at every branch again and again, and write down how often and what was wrong."""
    looks: Counter[str] = Counter()
    wrong: list[str] = []
    graph = open_graph(uri, read_only=True)
    while not Path(stop).exists() and not wrong:
        began = time.monotonic()
        for branch in list(graph.branches):
            try:
                wrong += faults_of(exported(graph, branch))
                history = [commit.number for commit in graph.log(branch, reverse=True)]
            except OmnigraphError as error:
                # A branch may be deleted while it is read.
                if not branch.startswith(EPHEMERAL):
                    wrong.append(f"{branch} cannot be read: {type(error).__name__}: {error}")
                continue
            if history != list(range(1, len(history) + 1)):
                wrong.append(f"the history of {branch} is {history}")
            looks[branch] += 1
        # As long as it took, so that where reading is slow the writers are not held up by it.
        time.sleep(max(0.1, time.monotonic() - began))
    Path(report).write_text(json.dumps({"looks": looks, "wrong": wrong}))


def exported(graph: Graph, target: str | Commit) -> str:
    out = io.BytesIO()
    graph.export(out, at=target)
    return out.getvalue().decode()


def faults_of(text: str) -> list[str]:
    """What no content of a graph may show: a key twice, an edge whose end is missing."""
    rows = [json.loads(line) for line in text.splitlines()]
    ids = Counter((row.get("type") or row["edge"], row["data"]["id"]) for row in rows)
    names = Counter((row["type"], row["data"]["name"]) for row in rows if "type" in row)
    pairs = Counter((row["edge"], row["from"], row["to"]) for row in rows if "edge" in row)
    found = [
        f"{key} is there {n} times"
        for counted in (ids, names, pairs)
        for key, n in counted.items()
        if n > 1
    ]
    for kind, source, target in pairs:
        ends = [("Person", source), ("Company", target)]
        found += [f"{kind} {source} -> {target}: no {end[1]}" for end in ends if end not in ids]
    return found
