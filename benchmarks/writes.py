"""What small writes cost: one row inserted, updated or deleted in a type with many rows.

Every write is a whole commit: checked, atomic over all types, recoverable, and with fsync on the disk
before the call returns. Peers do the same row operation in the same run: SQLite with a durable
transaction per row, and a bare Lance table with one merge per row, which checks nothing, publishes
nothing and syncs nothing. Goals: p50 of a one-row write 40 ms with fsync and 25 ms without; a long
history costs at most 1.3 times a short one. The two are written to in turns, so that a busy moment of the
machine meets both.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from multiprocessing.queues import SimpleQueue
from multiprocessing.synchronize import Barrier
from pathlib import Path

import lance
import pyarrow as pa

from benchmarks.support.timing import readable
from omnigraph.api.graph import Graph, init
from omnigraph.api.graph import open as open_graph

SCHEMA = """
node Person { name: String @key  age: I32? }
edge Knows: Person -> Person { since: Date? }
"""
QUERIES = """
query add($name: String) { insert Person { name: $name, age: 30 } }
query change($name: String, $age: I32) { update Person set { age: $age } where name = $name }
query remove($name: String) { delete Person where name = $name }
query link($a: String, $b: String) { insert Knows { from: $a, to: $b } }
"""
UPSERT_ROWS = 1000
EDGES = 1000
SAMPLES = 100
WARM_UP = 3


@dataclass(frozen=True, slots=True)
class Figure:
    """Seconds per call: the middle one and the slow ones."""

    p50: float
    p99: float

    @classmethod
    def of(cls, call: Callable[[int], object], samples: int = SAMPLES) -> Figure:
        [found] = cls.in_turns([call], samples)
        return found

    @classmethod
    def in_turns(
        cls, calls: Sequence[Callable[[int], object]], samples: int = SAMPLES
    ) -> list[Figure]:
        """The figure of each call; first this one is made, then that, and so on."""
        for call in calls:
            for number in range(WARM_UP):
                call(-1 - number)
        taken: list[list[float]] = [[] for _ in calls]
        for number in range(samples):
            for call, found in zip(calls, taken, strict=True):
                started = time.perf_counter()
                call(number)
                found.append(time.perf_counter() - started)
        return [cls._of_seconds(found) for found in taken]

    @classmethod
    def _of_seconds(cls, found: Sequence[float]) -> Figure:
        cuts = statistics.quantiles(found, n=100, method="inclusive")
        return cls(statistics.median(found), cuts[98])

    def __str__(self) -> str:
        return f"{readable(self.p50):>10} {readable(self.p99):>10}"


def people(rows: int) -> pa.Table:
    names = [f"p{number}" for number in range(rows)]
    return pa.table({"name": names, "age": pa.array([n % 90 for n in range(rows)], pa.int32())})


def make(folder: Path, name: str, rows: int) -> Graph:
    graph = init(folder / name, SCHEMA)
    # A few edges as well, far from the persons written to: without any, deletes have nothing to ask.
    ends = [f"p{number}" for number in range(rows // 2, rows // 2 + EDGES + 1)]
    graph.load({"Person": people(rows)}, mode="append")
    graph.load({"Knows": pa.table({"from": ends[:-1], "to": ends[1:]})}, mode="append")
    return graph


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of small write, and how often it is measured."""

    call: Callable[[int], object]
    samples: int = SAMPLES


def kinds(graph: Graph, rows: int, turn: int = 0) -> dict[str, Kind]:
    """Single writes to a graph. Each turn has rows of its own, so that none is deleted twice."""
    fresh = count()
    stride = rows // (4 * SAMPLES)

    def name(number: int, place: int) -> str:
        return f"p{(number * stride + 4 * turn + place) % rows}"

    def add(_: int) -> object:
        return graph.mutate(QUERIES, {"name": f"new{turn}-{next(fresh)}"}, name="add")

    def change(number: int) -> object:
        return graph.mutate(QUERIES, {"name": name(number, 0), "age": 5}, name="change")

    def remove(number: int) -> object:
        return graph.mutate(QUERIES, {"name": name(number, 1)}, name="remove")

    def link(number: int) -> object:
        return graph.mutate(QUERIES, {"a": name(number, 2), "b": name(number, 3)}, name="link")

    def upsert(number: int) -> object:
        some = people(rows).slice((number + WARM_UP) * UPSERT_ROWS % (rows // 2), UPSERT_ROWS)
        return graph.load({"Person": some}, mode="merge")

    return {
        "insert one node": Kind(add),
        "update one node": Kind(change),
        "delete one node": Kind(remove),
        "insert one edge": Kind(link),
        f"upsert {UPSERT_ROWS:,} nodes": Kind(upsert, samples=10),
    }


def measure(graph: Graph, rows: int) -> dict[str, Figure]:
    return {name: Figure.of(kind.call, kind.samples) for name, kind in kinds(graph, rows).items()}


def measure_both(
    late: Graph, early: Graph, rows: int
) -> tuple[dict[str, Figure], dict[str, Figure]]:
    """Figures of two graphs that are written to in turns."""
    of_late, of_early = {}, {}
    other = kinds(early, rows)
    for name, kind in kinds(late, rows, turn=1).items():
        both = [kind.call, other[name].call]
        of_late[name], of_early[name] = Figure.in_turns(both, kind.samples)
    return of_late, of_early


def first_write_on_a_branch(graph: Graph) -> Figure:
    names = count()

    def write(_: int) -> float:
        branch = f"b{next(names)}"
        graph.branches.create(branch)
        started = time.perf_counter()
        graph.mutate(QUERIES, {"name": "first"}, name="add", branch=branch)
        return time.perf_counter() - started

    found = [write(number) for number in range(20)]
    return Figure(statistics.median(found), max(found))


def sqlite_writes(folder: Path, rows: int) -> dict[str, Figure]:
    connection = sqlite3.connect(folder / "peer.db", isolation_level=None)
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE person (name TEXT PRIMARY KEY, age INTEGER)")
    connection.execute("BEGIN")
    connection.executemany(
        "INSERT INTO person VALUES (?, ?)", ((f"p{n}", n % 90) for n in range(rows))
    )
    connection.execute("COMMIT")
    fresh = count()

    def run(statement: str, *values: object) -> object:
        return connection.execute(statement, values)

    return {
        "insert one node": Figure.of(
            lambda _: run("INSERT INTO person VALUES (?, 30)", f"new{next(fresh)}")
        ),
        "update one node": Figure.of(
            lambda n: run("UPDATE person SET age = 5 WHERE name = ?", f"p{n * 7}")
        ),
        "delete one node": Figure.of(lambda n: run("DELETE FROM person WHERE name = ?", f"p{n}")),
    }


def lance_writes(folder: Path, rows: int) -> dict[str, Figure]:
    table = lance.write_dataset(
        people(rows), str(folder / "peer.lance"), enable_stable_row_ids=True
    )
    table.create_scalar_index("name", "BTREE")
    fresh = count()

    def upsert(name: str) -> object:
        row = pa.table({"name": [name], "age": pa.array([30], pa.int32())})
        merge = table.merge_insert("name").when_matched_update_all().when_not_matched_insert_all()
        return merge.execute(row)

    return {
        "insert one node": Figure.of(lambda _: upsert(f"new{next(fresh)}")),
        "update one node": Figure.of(lambda n: upsert(f"p{n * 7}")),
        "delete one node": Figure.of(lambda n: table.delete(f"name = 'p{n + 1}'")),
    }


def lengthen(graph: Graph, commits: int, rows: int) -> None:
    """Bring the history to a length by one-row updates, each a commit as any other, unsynced."""
    quick = open_graph(graph.uri)
    numbers = count()
    while quick._snapshot().version < commits:
        number = next(numbers)
        name = f"p{(number * 17 + 8) % rows}"
        quick.mutate(QUERIES, {"name": name, "age": number % 90}, name="change")


def write_many(
    uri: str, worker: int, start: Barrier, seconds: float, done: SimpleQueue[int]
) -> None:
    graph = open_graph(uri)
    graph.mutate(QUERIES, {"name": f"w{worker}-warm"}, name="add")
    start.wait(timeout=120)
    end = time.monotonic() + seconds
    written = 0
    while time.monotonic() < end:
        graph.mutate(QUERIES, {"name": f"w{worker}-{written}"}, name="add")
        written += 1
    done.put(written)


def throughput(folder: Path, rows: int, workers: int, seconds: float = 6.0) -> float:
    graph = make(folder, f"writers{workers}", rows)
    context = multiprocessing.get_context("spawn")
    start, done = context.Barrier(workers), context.SimpleQueue()
    processes = [
        context.Process(target=write_many, args=(graph.uri, number, start, seconds, done))
        for number in range(workers)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
        if process.exitcode:
            raise RuntimeError("a writer failed")
    written: list[int] = [done.get() for _ in processes]
    return sum(written) / seconds


def show(title: str, figures: dict[str, Figure], against: dict[str, Figure] | None = None) -> None:
    print(f"\n{title:<34} {'p50':>10} {'p99':>10}")
    for name, figure in figures.items():
        peer = (against or {}).get(name)
        ratio = f"  {figure.p50 / peer.p50:.1f}x" if peer else ""
        print(f"  {name:<32} {figure}{ratio}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=100_000, help="rows of the type written to")
    parser.add_argument("--commits", type=int, default=10_000, help="longest history measured")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["OMNIGRAPH_DURABILITY"] = "fsync"
        durable = make(folder, "durable", options.rows)
        short = measure(durable, options.rows)
        sqlite_peer = sqlite_writes(folder, options.rows)
        lance_peer = lance_writes(folder, options.rows)
        show(f"with fsync, {options.rows:,} rows (ours / SQLite)", short, sqlite_peer)
        show("SQLite, durable", sqlite_peer)
        print(f"  {'first write on a branch':<32} {first_write_on_a_branch(durable)}")
        os.environ["OMNIGRAPH_DURABILITY"] = "none"
        unsynced = measure(make(folder, "unsynced", options.rows), options.rows)
        show("without fsync (ours / Lance merge)", unsynced, lance_peer)
        show("bare Lance merge", lance_peer)
        started = time.perf_counter()
        grown = make(folder, "late", options.rows)
        lengthen(grown, options.commits, options.rows)
        passed = time.perf_counter() - started
        os.environ["OMNIGRAPH_DURABILITY"] = "fsync"
        early = make(folder, "early", options.rows)
        late, short = measure_both(open_graph(grown.uri), early, options.rows)
        show(f"with fsync, commit {options.commits:,} (late / early)", late, short)
        show("with fsync, commit 10", short)
        print(f"  {'getting there':<32} {passed:>9.0f} s")
        print("\nwriter processes, one row per commit, with fsync")
        alone = 0.0
        for workers in (1, 2, 4):
            rate = throughput(folder, options.rows, workers)
            alone = alone or rate
            print(f"  {workers} processes {rate:>8.1f} commits/s  {rate / alone:.2f}x")


if __name__ == "__main__":
    main()
