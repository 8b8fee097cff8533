"""What a process of these tests does. Importable by a spawned process."""

from __future__ import annotations

import pickle
import time
from collections.abc import Sequence
from contextlib import nullcontext
from importlib import import_module
from pathlib import Path

from omnigraph.api.graph import init
from omnigraph.api.graph import open as open_graph
from omnigraph.errors import (
    AlreadyInitialized,
    BranchExists,
    BranchLocked,
    BranchNotFound,
)
from omnigraph.versioning import publish as publishing
from omnigraph.versioning.locks import LeaseTiming, WriterLocks
from omnigraph.versioning.publish import Publication, publish
from tests.behaviour.graphs import Backstage
from tests.crash.recovery.situations import with_locks
from tests.support.faults import arm_from_environment

Published = tuple[str, str, int]
"""The branch, the commit and its place in the history."""


def in_process(work: str, start: float, *arguments: object) -> object:
    """Run one of the functions below, or of `writing`, together with the other processes."""
    arm_from_environment()
    time.sleep(max(0.0, start - time.time()))
    module, _, name = work.rpartition(".")
    home = import_module(f"tests.processes.{module or 'working'}")
    return getattr(home, name)(*arguments)


def answer_in_file(file: str, work: str, start: float, *arguments: object) -> None:
    """The same, with what it returned or raised in a file."""
    answer: tuple[object, BaseException | None]
    try:
        answer = in_process(work, start, *arguments), None
    except BaseException as error:
        answer = None, error
    Path(file).write_bytes(pickle.dumps(answer))


def publish_many(uri: str, branches: Sequence[str], locked: bool, actor: str) -> list[Published]:
    """Publish one commit after the other, each on the next of the branches."""
    # A store and a machine under such a load may be too slow for the ordinary patience.
    vars(publishing)["PUBLISH_BUDGET_SECONDS"] = 120.0
    backstage = Backstage(uri)
    refs = {name: backstage.branches.find(name).physical for name in branches}
    made: list[Published] = []
    for name in branches:
        publication = Publication(backstage.draft(actor_id=actor))
        lock = backstage.locks.hold(refs[name], "publish") if locked else nullcontext()
        with lock:
            commit = publish(backstage.manifest, refs[name], publication)
        made.append((name, commit.graph_commit_id, commit.sequence))
    return made


def hold_lock(uri: str, operation: str, timing: Sequence[float], report: str) -> None:
    """Hold the lock of main until a trap lets go, and say whether it was still held then."""
    backstage = Backstage(uri)
    locks = WriterLocks(backstage.root, backstage.objects, LeaseTiming(*timing))
    with locks.hold(None, operation) as held:
        try:
            held.check()
            outcome = "held"
        except BranchLocked as error:
            outcome = str(error)
    Path(report).write_text(outcome)


def count_up(uri: str, timing: Sequence[float], times: int) -> list[int]:
    """Raise a number in the store by one, again and again. Only a lock makes that safe."""
    backstage = Backstage(uri)
    locks = WriterLocks(backstage.root, backstage.objects, LeaseTiming(*timing))
    seen = []
    for _ in range(times):
        with locks.hold(None, "count", wait_ms=120_000) as held:
            number = int(backstage.objects.read_text("number"))
            seen.append(number)
            held.check()
            backstage.objects.write_text("number", str(number + 1))
    return seen


def publish_operation(uri: str, operation_id: str) -> str:
    """Publish an operation that other processes publish as well."""
    backstage = Backstage(uri)
    draft = backstage.draft(operation_id=operation_id)
    return publish(backstage.manifest, None, Publication(draft)).graph_commit_id


def load_many(uri: str, types: Sequence[str], prefix: str) -> list[Published]:
    """Load one row after the other, each into the next of the types."""
    graph = open_graph(uri)
    made: list[Published] = []
    for number, name in enumerate(types):
        row = {"type": name, "data": {"name": f"{prefix}{number}"}}
        receipt = graph.load([row], "append").receipt
        made.append(("main", str(receipt.graph_commit_id), receipt.manifest_version))
    return made


def load_once(uri: str, load_id: str) -> tuple[str, bool]:
    """Load under an id that other processes use as well: the commit, and whether it was theirs."""
    row = {"type": "Person", "data": {"name": "ada"}}
    result = open_graph(uri).load([row], "append", load_id=load_id)
    return str(result.receipt.graph_commit_id), result.replayed


def watch(uri: str, branch: str, until: int) -> list[int]:
    """The versions a reader sees while others publish; a history with a hole fails here."""
    graph = open_graph(uri, read_only=True)
    seen: list[int] = []
    while not seen or seen[-1] < until:
        seen.append(graph._snapshot(branch).version)
        history = [commit.number for commit in graph.log(branch, reverse=True)]
        assert history == list(range(1, len(history) + 1))
        assert len(history) >= seen[-1]
    return seen


def init_graph(uri: str, schema: str) -> bool:
    """Whether this process was the one that created the graph."""
    try:
        init(uri, schema)
    except AlreadyInitialized:
        return False
    return True


def create_branches(uri: str, names: Sequence[str], source: str) -> list[str]:
    """The branches this process made of those that everybody tries to make."""
    graph = open_graph(uri)
    made = []
    for name in names:
        try:
            graph.branches.create(name, source)
        except BranchExists:
            continue
        made.append(name)
    return made


def delete_branches(uri: str, names: Sequence[str]) -> list[str]:
    """The branches this process deleted of those that everybody tries to delete."""
    graph = open_graph(uri)
    deleted = []
    for name in names:
        try:
            graph.branches.delete(name)
        except BranchNotFound:
            continue
        deleted.append(name)
    return deleted


def open_and_count(uri: str) -> tuple[int, int]:
    """Open a graph for writing; the recoveries and commits it then has."""
    graph = open_graph(uri)
    return len(graph.maintenance.recoveries()), len(graph.log(reverse=True))


def write_once(uri: str, timing: Sequence[float], who: str, branch: str) -> None:
    """One mutation; on an object store with leases of this timing."""
    graph = open_graph(uri)
    if timing:
        locks = WriterLocks(graph._core.root, graph._core.objects, LeaseTiming(*timing))
        graph = with_locks(graph, locks)
    query = "query add($who: String) { insert Person { name: $who } }"
    graph.mutate(query, {"who": who}, branch=branch)


def merge_many(uri: str, name: str, times: int) -> list[str]:
    """Add a row to a branch and merge it into main, then main back into the branch, over and over."""
    graph = open_graph(uri)
    query = "query add($who: String) { insert Person { name: $who } }"
    outcomes = []
    for number in range(times):
        graph.mutate(query, {"who": f"{name}{number}"}, branch=name)
        outcomes.append(graph.merge(name, "main").outcome.value)
        graph.merge("main", name)
    return outcomes


def merge_once(uri: str, source: str, into: str) -> str:
    return open_graph(uri).merge(source, into).outcome.value
