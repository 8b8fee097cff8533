"""What small writes cost: one row inserted, updated or deleted in a type with many rows.

Every write is a whole commit: checked, atomic over all types, recoverable, and with fsync on the disk
before the call returns. Peers do the same row operation in the same run: SQLite with a durable
transaction per row, and a bare Lance table with one merge per row, which checks nothing, publishes
nothing and syncs nothing. Goals: p50 of a one-row write 40 ms with fsync and 25 ms without; a long
history costs at most 1.3 times a short one. The two are written to in turns, so that a busy moment of the
machine meets both.

Threads and processes write to one branch at the same time. Goals: 32 threads make at least 4 times the
commits a second of one thread, 120 on two cores, with p99 of a call below 1 s; 4 processes are not slower
than one. One thread and 32 are measured in turns as well.

`--only threads` measures one section.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sqlite3
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import count
from multiprocessing.queues import SimpleQueue
from multiprocessing.synchronize import Barrier
from pathlib import Path

import lance
import pyarrow as pa

from benchmarks.support.timing import readable
from omnigraph.api.graph import Graph, init
from omnigraph.api.graph import open as open_graph
from omnigraph.diagnostics import counted

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
TYPES = tuple(f"Kind{number}" for number in range(8))
SCHEMA_OF_TYPES = "\n".join(f"node {name} {{ name: String @key  age: I32? }}" for name in TYPES)
UPSERT_ROWS = 1000
EDGES = 1000
SAMPLES = 100
WARM_UP = 3
THREADS = 32
GOAL_RATIO, GOAL_RATE, GOAL_P99_SECONDS = 4.0, 120.0, 1.0
"""Of 32 threads: commits a second against those of one thread, and at all; the slow calls."""


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
        return [cls.of_seconds(found) for found in taken]

    @classmethod
    def of_seconds(cls, found: Sequence[float]) -> Figure:
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


@dataclass(slots=True)
class Shift:
    """So many threads that insert single rows, each into the next of some types, for a while."""

    threads: int
    types: Sequence[str]
    calls: list[float] = field(default_factory=list)
    """Seconds of each call."""
    passed: float = 0.0

    def work(self, graph: Graph, seconds: float) -> None:
        start = threading.Barrier(self.threads + 1)
        fresh = count(len(self.calls))
        label = f"t{self.threads}x{len(self.types)}"

        def insert() -> list[float]:
            found = []
            start.wait()
            while (began := time.perf_counter()) < end:
                number = next(fresh)
                row = {"name": f"{label}-{number}", "age": 30}
                graph.insert(self.types[number % len(self.types)], [row])
                found.append(time.perf_counter() - began)
            return found

        with ThreadPoolExecutor(self.threads) as pool:
            working = [pool.submit(insert) for _ in range(self.threads)]
            began = time.perf_counter()
            end = began + seconds
            start.wait()
            for thread in working:
                self.calls += thread.result()
        self.passed += time.perf_counter() - began

    @property
    def rate(self) -> float:
        return len(self.calls) / self.passed

    @property
    def figure(self) -> Figure:
        return Figure.of_seconds(self.calls)


def threads_at_once(folder: Path, rows: int, seconds: float = 4.0, rounds: int = 3) -> list[Shift]:
    """One thread, 32 threads that write one type, and 32 that write eight, in turns on one handle."""
    graph = init(folder / "threads", SCHEMA_OF_TYPES)
    graph.load({name: people(rows // len(TYPES)) for name in TYPES}, mode="append")
    shifts = [Shift(1, TYPES[:1]), Shift(THREADS, TYPES[:1]), Shift(THREADS, TYPES)]
    for name in TYPES:
        graph.insert(name, [{"name": "warm up"}])
    for _ in range(rounds):
        for shift in shifts:
            shift.work(graph, seconds)
            graph.maintenance.wait()
    found = {name: graph.scan(name, columns=["id"]).read_all().num_rows for name in TYPES}
    expected = rows // len(TYPES) * len(TYPES) + len(TYPES) + sum(len(s.calls) for s in shifts)
    if sum(found.values()) != expected:
        raise RuntimeError(f"{expected} rows were written, {sum(found.values())} are there")
    return shifts


def show(title: str, figures: dict[str, Figure], against: dict[str, Figure] | None = None) -> None:
    print(f"\n{title:<34} {'p50':>10} {'p99':>10}")
    for name, figure in figures.items():
        peer = (against or {}).get(name)
        ratio = f"  {figure.p50 / peer.p50:.1f}x" if peer else ""
        print(f"  {name:<32} {figure}{ratio}")


def show_small(folder: Path, rows: int) -> None:
    os.environ["OMNIGRAPH_DURABILITY"] = "fsync"
    durable = make(folder, "durable", rows)
    short = measure(durable, rows)
    sqlite_peer = sqlite_writes(folder, rows)
    lance_peer = lance_writes(folder, rows)
    show(f"with fsync, {rows:,} rows (ours / SQLite)", short, sqlite_peer)
    show("SQLite, durable", sqlite_peer)
    print(f"  {'first write on a branch':<32} {first_write_on_a_branch(durable)}")
    os.environ["OMNIGRAPH_DURABILITY"] = "none"
    unsynced = measure(make(folder, "unsynced", rows), rows)
    show("without fsync (ours / Lance merge)", unsynced, lance_peer)
    show("bare Lance merge", lance_peer)


def show_history(folder: Path, rows: int, commits: int) -> None:
    os.environ["OMNIGRAPH_DURABILITY"] = "none"
    started = time.perf_counter()
    grown = make(folder, "late", rows)
    lengthen(grown, commits, rows)
    passed = time.perf_counter() - started
    os.environ["OMNIGRAPH_DURABILITY"] = "fsync"
    early = make(folder, "early", rows)
    late, short = measure_both(open_graph(grown.uri), early, rows)
    show(f"with fsync, commit {commits:,} (late / early)", late, short)
    show("with fsync, commit 10", short)
    print(f"  {'getting there':<32} {passed:>9.0f} s")


def show_threads(folder: Path, rows: int) -> None:
    os.environ["OMNIGRAPH_DURABILITY"] = "fsync"
    alone, *together = threads_at_once(folder, rows)
    print(f"\n{'threads, one row per commit, fsync':<34} {'p50':>10} {'p99':>10}")
    for shift in (alone, *together):
        types = "1 type" if len(shift.types) == 1 else f"{len(shift.types)} types"
        name = f"{counted(shift.threads, 'thread')}, {types}"
        ratio = shift.rate / alone.rate
        print(f"  {name:<32} {shift.figure} {shift.rate:>8.1f} commits/s  {ratio:.2f}x")
        if shift is not alone:
            goals = {
                f"{GOAL_RATIO:.0f}x one thread": ratio >= GOAL_RATIO,
                f"{GOAL_RATE:.0f} commits/s": shift.rate >= GOAL_RATE,
                f"p99 < {readable(GOAL_P99_SECONDS)}": shift.figure.p99 < GOAL_P99_SECONDS,
            }
            said = (f"{goal}: {'met' if met else 'missed'}" for goal, met in goals.items())
            print(f"    goals: {', '.join(said)}")


def show_processes(folder: Path, rows: int) -> None:
    os.environ["OMNIGRAPH_DURABILITY"] = "fsync"
    print("\nwriter processes, one row per commit, with fsync (goal: 4 not slower than 1)")
    alone = 0.0
    for workers in (1, 2, 4):
        rate = throughput(folder, rows, workers)
        alone = alone or rate
        name = "process" if workers == 1 else "processes"
        print(f"  {workers} {name:<9} {rate:>8.1f} commits/s  {rate / alone:.2f}x")


SECTIONS = ("small", "history", "threads", "processes")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=100_000, help="rows of the type written to")
    parser.add_argument("--commits", type=int, default=10_000, help="longest history measured")
    parser.add_argument("--only", choices=SECTIONS, help="measure one section")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for section in SECTIONS if options.only is None else (options.only,):
            match section:
                case "small":
                    show_small(folder, options.rows)
                case "history":
                    show_history(folder, options.rows, options.commits)
                case "threads":
                    show_threads(folder, options.rows)
                case "processes":
                    show_processes(folder, options.rows)


if __name__ == "__main__":
    main()
