"""Rows per second of loads as Spark tasks, job by job, against loading without any check.

The generated social network as JSON lines and as Parquet, all rules of its schema checked. Two peers
load the same Parquet files in the same run: pyarrow followed by Lance without checks, the floor for
anything that ends in a table, and LadybugDB's COPY. Goals on two idle cores: 400,000 rows/s from JSON
lines, 800,000 from Parquet, not counting look-up indexes, ten times the rows in at most eleven times the
time; 100 records in 150 ms where a process runs already, in 1.5 s in a new one, in 8 s in a new one with
Spark. On a machine that is busy with other things too only the seconds of cores are worth a look.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest.mock import patch

import lance
import pyarrow.parquet as pq

from benchmarks.support.engines import LadybugDB
from benchmarks.support.memory import core_seconds, watching
from benchmarks.support.network import SCHEMA, Network, Sizes, generate
from benchmarks.support.network_files import rows_in, write_json_lines, write_parquet
from benchmarks.support.timing import readable
from omnigraph.api.graph import Graph, init
from omnigraph.commit.tables import index_lookups
from omnigraph.spark.session import open_session
from omnigraph.spark.tasks import noting_jobs

ROWS_PER_PERSON = 28
_INDEX_JOBS = ("index", "join indexes")
SMALL = 100


def timed(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def line(label: str, seconds: float, rows: int | None = None, goal: str = "") -> None:
    rate = "" if rows is None else f"{rows / seconds:,.0f} rows/s"
    print(f"{label:<52} {readable(seconds):>10}  {rate:>18}  {goal}", flush=True)


@contextmanager
def timing_indexes() -> Iterator[list[float]]:
    """The seconds of every call that builds look-up indexes of a table."""
    seconds: list[float] = []

    def measured(*arguments: Any, **options: Any) -> Any:
        started = time.perf_counter()
        try:
            return index_lookups(*arguments, **options)
        finally:
            seconds.append(time.perf_counter() - started)

    with patch("omnigraph.commit.writer.index_lookups", measured):
        yield seconds


def measure(graph: Graph, source: object, rows: int, label: str, goal: str) -> float:
    before = core_seconds()
    with watching() as memory, noting_jobs() as jobs, timing_indexes() as indexes:
        started = time.perf_counter()
        held = graph.load(source, "append", engine="spark").lock_seconds or 0.0
        seconds = time.perf_counter() - started
    worked = {kind: after - before[kind] for kind, after in core_seconds().items()}
    of_indexes = sum(indexes) + sum(job.seconds for job in jobs if job.name in _INDEX_JOBS)
    line(f"{label}, without indexes", seconds - of_indexes, rows, goal)
    for job in jobs:
        line(f"    {job.name}, {job.tasks} tasks", job.seconds, rows)
    line("    look-up indexes of small tables, with the commit", sum(indexes))
    others = seconds - sum(indexes) - sum(job.seconds for job in jobs)
    line("    everything else: plan, commit, publish", others)
    line("    with indexes", seconds, rows)
    line("    the branch was locked", held)
    cores = ", ".join(f"{kind} {worked[kind]:.1f} s" for kind in worked)
    print(f"    cores worked: {cores}, together {sum(worked.values()):.1f} s")
    print(f"    most memory: {memory}")
    return seconds


def load_network(folder: Path, network: Network) -> dict[str, float]:
    rows = rows_in(network)
    text = folder / "network.jsonl"
    write_json_lines(network, text)
    parquet = write_parquet(network, folder)
    size = text.stat().st_size / 1e6
    print(f"\n{rows:,} rows, {size:,.0f} MB of JSON lines")
    measured = {}
    for kind, source, goal in (
        ("JSON lines", text, "goal 400,000"),
        ("Parquet", parquet, "goal 800,000"),
    ):
        graph = init(str(folder / kind), SCHEMA)
        measured[kind] = measure(graph, source, rows, f"spark, append, {kind}", goal)
    graph = init(str(folder / "inline"), SCHEMA)
    line(
        "inline, append, JSON lines",
        timed(lambda: graph.load(text, "append", engine="inline")),
        rows,
    )
    line(
        "peer: pyarrow + Lance, no checks, Parquet", timed(lambda: unchecked(parquet, folder)), rows
    )
    line("peer: LadybugDB COPY, from memory", timed(lambda: LadybugDB.make(folder, network)), rows)
    return measured


def unchecked(files: list[Path], folder: Path) -> None:
    for file in files:
        lance.write_dataset(pq.read_table(file), str(folder / "floor" / file.stem))


def load_little(folder: Path) -> None:
    """One hundred records, in a process that runs already and in new ones."""
    text = folder / "little.jsonl"
    records = ({"type": "City", "data": {"number": n, "name": f"c{n}"}} for n in range(SMALL))
    text.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    graph = init(str(folder / "little"), SCHEMA)
    print(f"\n{SMALL} records")
    graph.load(text, "merge", engine="inline")
    line(
        "inline, again",
        timed(lambda: graph.load(text, "merge", engine="inline")),
        None,
        "goal 150 ms",
    )
    for engine, goal in (("inline", "goal 1.5 s"), ("spark", "goal 8 s")):
        command = [str(Path(sys.executable).with_name("omnigraph")), "load", graph.uri]
        command += ["--data", str(text), "--mode", "merge", "--engine", engine]
        run = partial(subprocess.run, command, check=True, stdout=subprocess.DEVNULL)
        seconds = timed(run)
        line(f"{engine}, a new process", seconds, None, goal)


def warm_up(folder: Path) -> None:
    """A load in many small tasks, so that every process of Spark has run some."""
    folder.mkdir()
    write_json_lines(generate(Sizes.of(500)), folder / "network.jsonl")
    graph = init(str(folder / "graph"), SCHEMA)
    with patch("omnigraph.load.spark_load.LOAD_RANGE_BYTES", 100_000):
        graph.load(folder / "network.jsonl", "append", engine="spark")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000], help="sizes to load")
    sizes = parser.parse_args().rows
    os.environ.pop("OMNIGRAPH_ENGINE", None)
    line("session", timed(open_session))
    with tempfile.TemporaryDirectory() as name:
        load_little(Path(name))
        warm_up(Path(name) / "warm")
        measured: list[tuple[int, dict[str, float]]] = []
        for count in sizes:
            folder = Path(name) / str(count)
            folder.mkdir()
            network = generate(Sizes.of(max(100, count // ROWS_PER_PERSON)))
            measured.append((rows_in(network), load_network(folder, network)))
    for (few, first), (many, last) in pairwise(measured):
        for kind in first:
            times, more = last[kind] / first[kind], many / few
            print(f"{kind}: {more:.1f} times the rows in {times:.1f} times the time")


if __name__ == "__main__":
    main()
