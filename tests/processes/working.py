"""What a process of these tests does. Importable by a spawned process."""

from __future__ import annotations

import json
import os
import resource
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext

from omnigraph.engine.graph import init
from omnigraph.engine.graph import open as open_graph
from omnigraph.errors import AlreadyInitialized, BranchExists, BranchNotFound, StorageError
from omnigraph.testing.faults import arm_from_environment
from omnigraph.versioning import publish as publishing
from omnigraph.versioning.publish import Publication, publish
from omnigraph.versioning.writer_lock import writer_lock
from tests.behaviour.graphs import SCHEMA, Backstage

Published = tuple[str, str, int]
"""The branch, the commit and its place in the history."""


def in_process(
    work: str, environment: Mapping[str, str], start: float, *arguments: object
) -> object:
    """Run one of the functions below, together with the other processes."""
    os.environ.update(environment)
    arm_from_environment()
    time.sleep(max(0.0, start - time.time()))
    return globals()[work](*arguments)


def process_id() -> int:
    return os.getpid()


def publish_many(uri: str, branches: Sequence[str], locked: bool, actor: str) -> list[Published]:
    """Publish one commit after the other, each on the next of the branches."""
    # A store and a machine under such a load may be too slow for the ordinary patience.
    vars(publishing)["PUBLISH_BUDGET_SECONDS"] = 120.0
    backstage = Backstage(uri)
    refs = {name: backstage.branches.find(name).physical for name in branches}
    made: list[Published] = []
    for name in branches:
        publication = Publication(backstage.draft(actor_id=actor))
        lock = writer_lock(backstage.root, refs[name], "publish") if locked else nullcontext()
        with lock:
            commit = publish(backstage.manifest, refs[name], publication)
        made.append((name, commit.graph_commit_id, commit.sequence))
    return made


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
        row = json.dumps({"type": name, "data": {"name": f"{prefix}{number}"}})
        receipt = graph.load(row, "append").receipt
        made.append(("main", str(receipt.graph_commit_id), receipt.manifest_version))
    return made


def watch(uri: str, branch: str, until: int) -> list[int]:
    """The versions a reader sees while others publish; a history with a hole fails here."""
    graph = open_graph(uri, read_only=True)
    seen: list[int] = []
    while not seen or seen[-1] < until:
        seen.append(graph.snapshot(branch).version)
        history = [commit.sequence for commit in graph.commits(branch)]
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


def on_a_full_disk(uri: str, limit: int) -> dict[str, str]:
    """What every kind of write raises when no file can grow beyond so many bytes."""
    person = '{"type": "Person", "data": {"name": "Eve"}}'
    writes: dict[str, Callable[[], object]] = {
        "init": lambda: init(f"{uri}-new", SCHEMA),
        "publish": lambda: Backstage(uri).publish(),
        "create a branch": lambda: open_graph(uri).create_branch("feature"),
        "load": lambda: open_graph(uri).load(person),
    }
    seen = {}
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    for name, write in writes.items():
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
        try:
            write()
        except StorageError as error:
            seen[name] = type(error).__name__
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
    return seen


def create_branches(uri: str, names: Sequence[str], source: str) -> list[str]:
    """The branches this process made of those that everybody tries to make."""
    graph = open_graph(uri)
    made = []
    for name in names:
        try:
            graph.create_branch(name, source=source)
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
            graph.delete_branch(name)
        except BranchNotFound:
            continue
        deleted.append(name)
    return deleted
