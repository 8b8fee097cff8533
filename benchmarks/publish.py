"""What a commit costs as history grows, what a branch costs as the schema grows, and in requests.

Histories of 10, 1,000 and 10,000 commits are built without waiting for the disk: a load of one row,
then nine commits in one insert, and so on. Then a publish, a refresh of a handle that is one commit behind, a cold open and a
load of one row are measured on all of them in turn, so that a busy moment hits them alike; a durable
commit of SQLite in the same rounds is the floor on this disk. Goal: each figure at the longest history within 1.5
times of that at the shortest.

The same calls are counted on an object store: requests by kind, and bytes.
"""

from __future__ import annotations

import argparse
import os
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path

from benchmarks.support.timing import readable
from omnigraph.api.graph import Graph, init
from omnigraph.api.graph import open as open_graph
from omnigraph.limits import CHECKPOINT_INTERVAL
from omnigraph.storage.delta import insert_exclusively
from omnigraph.storage.durability import Durability
from omnigraph.storage.tables import TableStore
from omnigraph.storage.uris import normalise_root
from omnigraph.versioning.commits import CommitDraft, CommitId, CommitRecord, OperationId
from omnigraph.versioning.ids import new_ulid, now_micros
from omnigraph.versioning.manifest import Manifest
from omnigraph.versioning.manifest_compaction import compact_manifest
from omnigraph.versioning.publish import Publication, publish
from omnigraph.versioning.rows import checkpoint_row, commit_rows, rows_table
from tests.contract.objects.moto_server import BUCKET, environment_for, running_server
from tests.cost.counting_proxy import Traffic, counting_proxy

SCHEMA = "node A { k: String @key }\n"
LENGTHS = (10, 1_000, 10_000)
ROUNDS = 25
AT_ONCE = 9
TYPES = (2, 200)

_numbers = count()


def draft(like: CommitDraft) -> CommitDraft:
    return replace(
        like,
        graph_commit_id=CommitId(new_ulid()),
        operation_id=OperationId(new_ulid()),
        created_at=now_micros(),
    )


def load_one(graph: Graph) -> None:
    graph.load([{"type": "A", "data": {"k": f"k{next(_numbers)}"}}], "merge")


def seconds(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


# -- time ------------------------------------------------------------------------------------


@dataclass
class History:
    """A graph with so many commits, and two handles on its manifest."""

    graph: Graph
    writer: Manifest
    behind: Manifest
    sample: CommitDraft

    def publish(self) -> None:
        publish(self.writer, None, Publication(draft(self.sample)))

    def publish_many(self, commits: int) -> None:
        """What as many publishes would leave, in one insert."""
        table = self.writer.open(None)
        state = self.writer.read(table)
        rows = []
        for _ in range(commits):
            commit = CommitRecord(draft(self.sample), state.head, state.sequence + 1, None)
            rows += commit_rows(commit, "committed")
            state = replace(state, sequence=commit.sequence, head=commit.graph_commit_id)
            if state.sequence % CHECKPOINT_INTERVAL == 0:
                rows.append(checkpoint_row(state.sequence, state.to_checkpoint()))
        compact_manifest(insert_exclusively(table, rows_table(rows)))

    def refresh(self) -> None:
        self.behind.current(None)

    def cold_open(self) -> None:
        open_graph(self.graph.uri)._snapshot()

    def load(self) -> None:
        load_one(self.graph)


def build_history(folder: Path, commits: int) -> History:
    """A graph with so many commits; only the last ones wait for the disk."""
    uri = folder / f"history{commits}"
    os.environ["OMNIGRAPH_DURABILITY"] = Durability.NONE.value
    made = init(uri, SCHEMA)
    quick = history_of(made, Durability.NONE)
    while (left := commits - quick.writer.current(None).sequence) > 0:
        quick.load()
        quick.graph.maintenance.wait()
        quick.publish_many(min(left, AT_ONCE))
    os.environ["OMNIGRAPH_DURABILITY"] = Durability.FSYNC.value
    return history_of(open_graph(uri), Durability.FSYNC)


def history_of(graph: Graph, durability: Durability) -> History:
    tables = TableStore(normalise_root(graph.uri), durability)
    newest = graph._core.manifest.commits(None)[-1].draft
    return History(
        graph, Manifest(tables), Manifest(tables), replace(newest, counts={}, load_id=None)
    )


def measure_histories(folder: Path, lengths: list[int]) -> dict[str, dict[int, float]]:
    histories = {length: build_history(folder, length) for length in lengths}
    floor = sqlite_commit(folder)
    found: dict[str, dict[int, list[float]]] = {}
    for _ in range(ROUNDS):
        for length, history in histories.items():
            history.refresh()
            calls: Mapping[str, Callable[[], None]] = {
                "publish": history.publish,
                "refresh": history.refresh,
                "cold open": history.cold_open,
                "load one row": history.load,
                "SQLite commit": floor,
            }
            for name, call in calls.items():
                found.setdefault(name, {}).setdefault(length, []).append(seconds(call))
    return {
        name: {length: statistics.median(times) for length, times in by_length.items()}
        for name, by_length in found.items()
    }


def sqlite_commit(folder: Path) -> Callable[[], None]:
    connection = sqlite3.connect(folder / "peer.db", isolation_level=None)
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE commits (id TEXT PRIMARY KEY, at INTEGER)")
    insert = "INSERT INTO commits VALUES (?, ?)"

    def commit() -> None:
        connection.execute(insert, (new_ulid(), now_micros()))

    return commit


def print_histories(figures: dict[str, dict[int, float]]) -> None:
    lengths = list(next(iter(figures.values())))
    print(
        f"{'commits':<16}" + "".join(f"{length:>12,}" for length in lengths) + "   longest/shortest"
    )
    for name, by_length in figures.items():
        ratio = by_length[lengths[-1]] / by_length[lengths[0]]
        cells = "".join(f"{readable(by_length[length]):>12}" for length in lengths)
        print(f"{name:<16}{cells}   {ratio:.2f}x")
    print("goal: at most 1.50x\n")


# -- branches --------------------------------------------------------------------------------


def graph_of(place: str, types: int) -> Graph:
    schema = "\n".join(f"node T{i} {{ k: String @key }}" for i in range(types))
    return init(f"{place}/types{types}", schema + "\n")


def print_branches(folder: Path) -> None:
    graphs = {types: graph_of(str(folder), types) for types in TYPES}
    found: dict[int, list[float]] = {types: [] for types in TYPES}
    for graph in graphs.values():
        graph.branches.create("first")
    for number in range(ROUNDS):
        for types, graph in graphs.items():
            found[types].append(seconds(lambda g=graph, n=number: g.branches.create(f"b{n}")))  # type: ignore[misc]
    few, many = (statistics.median(found[types]) for types in TYPES)
    print(f"branch create: {readable(few)} with {TYPES[0]} types, {readable(many)} with {TYPES[1]}")
    print(
        f"branch create, {TYPES[1]} types against {TYPES[0]}: {many / few:.2f}x (goal at most 1.20x)\n"
    )


# -- requests --------------------------------------------------------------------------------


def print_requests(lengths: list[int]) -> None:
    with running_server() as server, counting_proxy(server) as proxy:
        os.environ.update(environment_for(proxy.endpoint))
        print(
            f"{'on an object store':<28}{'GET':>5}{'PUT':>5}{'HEAD':>6}{'LIST':>6}{'DELETE':>8}{'sent':>10}{'received':>10}"
        )
        for length in lengths:
            place = f"s3://{BUCKET}/history{length}"
            history = history_of(init(place, SCHEMA), Durability.FSYNC)
            load_one(history.graph)
            while (left := length - history.writer.current(None).sequence) > 0:
                history.publish_many(min(left, AT_ONCE))
            calls: dict[str, Callable[[], object]] = {
                "open": lambda p=place: open_graph(p),  # type: ignore[misc]
                "snapshot": history.graph._snapshot,
                "publish": history.publish,
                "load one row": history.load,
                "branch create": lambda h=history: h.graph.branches.create("b"),  # type: ignore[misc]
            }
            for name, call in calls.items():
                print_traffic(f"{name}, {length:,} commits", proxy.counted(call))
        for types in TYPES:
            graph = graph_of(f"s3://{BUCKET}", types)
            used = proxy.counted(lambda g=graph: g.branches.create("b"))  # type: ignore[misc]
            print_traffic(f"branch create, {types} types", used)


def print_traffic(name: str, used: Traffic) -> None:
    kinds = used.kinds
    cells = f"{kinds['GET']:>5}{kinds['PUT']:>5}{kinds['HEAD']:>6}{kinds['LIST']:>6}"
    print(f"{name:<28}{cells}{kinds['DELETE']:>8}{used.sent:>10,}{used.received:>10,}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--commits", type=int, default=LENGTHS[-1], help="longest history measured")
    longest = parser.parse_args().commits
    lengths = [length for length in LENGTHS if length <= longest]
    with tempfile.TemporaryDirectory() as name:
        print_histories(measure_histories(Path(name), lengths))
        print_branches(Path(name))
    print_requests([length for length in lengths if length <= 1_000])


if __name__ == "__main__":
    main()
