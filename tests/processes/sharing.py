"""Writer threads that share one handle, keep a journal of their keys, and are killed with their process.

Importable by a spawned process. What a key writes follows from the key alone, so a process that takes
over from a killed one can repeat it, and a test can tell from the history what every commit must show.
"""

from __future__ import annotations

import json
import os
import random
import threading
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from omnigraph.api.graph import Graph
from omnigraph.api.graph import open as open_graph
from omnigraph.errors import (
    CommitStateUnknown,
    ConflictError,
    LoadError,
    MutationError,
    TableOvertaken,
)
from tests.processes.writing import CONNECT, DELETE, PUT_COMPANY, UPDATE, short_leases

SHARED = ("s0", "s1", "s2")
"""People that every writer updates and that always exist."""
HUBS = ("hub0", "hub1")
"""Companies that every writer connects to, deletes and puts back."""
MAX_ATTEMPTS = 30
DELETE_PERSON = "query q($key: String) { delete Person where name = $key }"

_KINDS = {
    "person": 24, "company": 8, "update": 18, "knows": 8, "works": 20,
    "delete person": 6, "delete hub": 7, "put hub": 9,
}  # fmt: skip


class Task(NamedTuple):
    """What a key writes."""

    kind: str
    name: str
    value: int = 0
    to: str = ""


def key_of(writer: int, number: int) -> str:
    return f"w{writer}-{number}"


def actor_of(key: str) -> str:
    return f"actor-{key.partition('-')[0]}"


def task_of(key: str) -> Task:
    writer, number = map(int, key[1:].split("-"))
    chance = random.Random(key)
    [kind] = chance.choices(list(_KINDS), list(_KINDS.values()))
    match kind:
        case "person" | "company":
            return Task(kind, key, number)
        case "update":
            return Task(kind, chance.choice(SHARED), 1_000_000 * (writer + 1) + number)
        case "knows":
            return Task(kind, chance.choice(SHARED), to=chance.choice(SHARED))
        case "works":
            return Task(kind, chance.choice(SHARED), to=chance.choice(HUBS))
        case "delete person":
            # One of the latest of this writer; perhaps it was never inserted.
            return Task(kind, key_of(writer, max(0, number - chance.randint(1, 6))))
        case _:
            return Task(kind, chance.choice(HUBS))


def write_task(graph: Graph, key: str) -> Any:
    """Write what a key stands for, as the actor of its writer, with the key as message."""
    graph, task = graph.as_actor(actor_of(key)), task_of(key)
    keyed: dict[str, Any] = {"message": key, "idempotency_key": key}
    match task.kind:
        case "person":
            return graph.insert("Person", [{"name": task.name, "age": task.value}], **keyed)
        case "company" | "put hub":
            return graph.mutate(PUT_COMPANY, {"key": task.name}, **keyed)
        case "update":
            return graph.mutate(UPDATE, {"key": task.name, "value": task.value}, **keyed)
        case "knows":
            return graph.insert("Knows", [{"from": task.name, "to": task.to}], **keyed)
        case "works":
            return graph.mutate(CONNECT, {"key": task.name, "to": task.to}, **keyed)
        case "delete person":
            return graph.mutate(DELETE_PERSON, {"key": task.name}, **keyed)
        case "delete hub":
            return graph.mutate(DELETE, {"key": task.name}, **keyed)
        case other:
            raise AssertionError(other)


# -- what the rows are after a commit ----------------------------------------------------------

Rows = dict[tuple[str, ...], int]
"""The value of every node by type and name, and the number of edges by type and endpoints."""


def seed(graph: Graph) -> Rows:
    """The rows that all writers find."""
    people = [{"name": name, "age": 0} for name in SHARED]
    graph.load({"Person": people, "Company": [{"name": name} for name in HUBS]}, "append")
    nodes = [*(("Person", name) for name in SHARED), *(("Company", name) for name in HUBS)]
    return dict.fromkeys(nodes, 0)


def apply_task(rows: Rows, task: Task) -> None:
    """Change the rows as the commit of a task does; a commit that its rules forbid fails here."""
    match task.kind:
        case "person":
            assert ("Person", task.name) not in rows, f"{task.name} was inserted twice"
            rows["Person", task.name] = task.value
        case "company" | "put hub":
            rows["Company", task.name] = 0
        case "update":
            rows["Person", task.name] = task.value
        case "knows":
            rows["Knows", task.name, task.to] = rows.get(("Knows", task.name, task.to), 0) + 1
        case "works":
            assert ("Company", task.to) in rows, f"an edge to {task.to}, which does not exist"
            rows["WorksAt", task.name, task.to] = 1
        case "delete person":
            del rows["Person", task.name]
        case "delete hub":
            del rows["Company", task.name]
            for edge in [row for row in rows if row[0] == "WorksAt" and row[2] == task.name]:
                del rows[edge]


def rows_of(text: str) -> Rows:
    """The rows of an export in JSON lines."""
    found: Rows = {}
    for line in text.splitlines():
        row = json.loads(line)
        if "edge" in row:
            edge = (row["edge"], row["from"], row["to"])
            found[edge] = found.get(edge, 0) + 1
        else:
            node = (row["type"], row["data"]["name"])
            assert node not in found, f"{node} is there twice"
            found[node] = row["data"].get("age") or 0
    return found


# -- the journal -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Entry:
    """What is known about a key: that it was begun, or how its call ended."""

    key: str
    event: str
    """`begun`, `acknowledged`, `refused`, or the name of an error after which it was repeated."""
    commit: str | None = None
    number: int = 0
    actor: str | None = None
    replayed: bool = False


class Journal:
    """The entries of one process. A line is there as a whole or not at all, whenever the process dies."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def add(self, entry: Entry, *, sync: bool = False) -> None:
        descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        try:
            os.write(descriptor, (json.dumps(asdict(entry)) + "\n").encode())
            if sync:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def entries(self) -> list[Entry]:
        if not self._path.exists():
            return []
        return [Entry(**json.loads(line)) for line in self._path.read_text().splitlines()]

    def count(self, event: str) -> int:
        text = self._path.read_text() if self._path.exists() else ""
        return text.count(f'"event": "{event}"')


# -- a process ---------------------------------------------------------------------------------


def write_until_stopped(uri: str, writers: Sequence[int], stop: str, journal: str) -> None:
    """Write with one thread for each writer, all on one handle, until a file exists."""
    found = Journal(Path(journal)).entries()
    with short_leases():
        graph = open_graph(uri)
        failed: list[BaseException] = []

        def run(writer: int) -> None:
            try:
                _write(graph, writer, found, Path(stop), Journal(Path(journal)))
            except BaseException as error:
                failed.append(error)
                raise

        threads = [threading.Thread(target=run, args=(writer,)) for writer in writers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        graph.close()
    assert failed == []


def _write(graph: Graph, writer: int, found: Sequence[Entry], stop: Path, journal: Journal) -> None:
    for key in _keys(writer, found):
        if stop.exists():
            return
        journal.add(Entry(key, "begun"))
        journal.add(insist(graph, key, journal), sync=True)


def _keys(writer: int, found: Sequence[Entry]) -> Iterator[str]:
    """The next keys of a writer: perhaps the one that its last life did not end, then new ones."""
    own = [entry for entry in found if entry.key.startswith(f"w{writer}-")]
    if own and own[-1].event not in ("acknowledged", "refused") and random.random() < 0.5:
        yield own[-1].key
    number = max((int(entry.key.split("-")[1]) + 1 for entry in own), default=0)
    while True:
        yield key_of(writer, number)
        number += 1


def insist(graph: Graph, key: str, journal: Journal | None = None) -> Entry:
    """Write a key; once more after an unknown outcome, and while other writers are in the way."""
    for _ in range(MAX_ATTEMPTS):
        try:
            receipt = write_task(graph, key).receipt
        except (MutationError, LoadError):
            # Only an edge can meet a node that another writer deleted.
            assert task_of(key).kind == "works", key
            return Entry(key, "refused")
        except (CommitStateUnknown, ConflictError, TableOvertaken) as error:
            print(f"{key} once more: {type(error).__name__}: {error}", flush=True)
            if journal is not None:
                journal.add(Entry(key, type(error).__name__))
            continue
        commit = None if receipt.graph_commit_id is None else str(receipt.graph_commit_id)
        return Entry(
            key,
            "acknowledged",
            commit,
            receipt.manifest_version,
            receipt.actor_id,
            receipt.replayed,
        )
    raise AssertionError(f"{key} does not succeed in {MAX_ATTEMPTS} attempts")
