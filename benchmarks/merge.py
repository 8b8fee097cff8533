"""What merges and diffs cost: by how many rows changed, and by how many there are.

A type with a vector of many dimensions; the branch changes some rows all over it, main changes one.
Each figure is the middle one of several. A merge is a whole commit with fsync; before it the diff of
the two branches is taken. Memory counts the scratch files of a merge that are mapped into it. Goals for
50 changed rows in a million with 768 dimensions: below 500 ms and 250 MB above idle. Time should follow
the changed rows, and not the rows there are.

    python -m benchmarks.merge --rows 100000 --dimensions 768 --changed 10,50,1000,10000
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from benchmarks.support.memory import watching
from benchmarks.support.timing import readable
from omnigraph.api.graph import Graph, init

ROUNDS = 3
LOADED_AT_ONCE = 50_000


class Seconds(NamedTuple):
    """On the clock, and of all processors together."""

    clock: float
    processors: float

    def __str__(self) -> str:
        return f"{readable(self.clock):>11} {readable(self.processors):>11}"


@dataclass(frozen=True, slots=True)
class Figure:
    """Time of a diff and of a merge, and megabytes above what was used before."""

    diff: Seconds
    merge: Seconds
    memory: float


class Clock:
    """Measures one thing after the other."""

    def __init__(self) -> None:
        self._last = self._now()

    def lap(self) -> Seconds:
        """What it took since the last one."""
        now, before = self._now(), self._last
        self._last = now
        return Seconds(now.clock - before.clock, now.processors - before.processors)

    def _now(self) -> Seconds:
        return Seconds(time.perf_counter(), time.process_time())


def middle(found: Iterable[Seconds]) -> Seconds:
    clocks, processors = zip(*found, strict=True)
    return Seconds(statistics.median(clocks), statistics.median(processors))


def documents(numbers: np.ndarray, dimensions: int, seed: int) -> pa.Table:
    vectors = np.random.default_rng(seed).random(len(numbers) * dimensions, dtype=np.float32)
    return pa.table(
        {
            "slug": [f"d{number:07d}" for number in numbers],
            "title": [f"title {seed} of {number}" for number in numbers],
            "vec": pa.FixedSizeListArray.from_arrays(vectors, dimensions),
        }
    )


def make(folder: Path, rows: int, dimensions: int) -> Graph:
    schema = f"node Doc {{ slug: String @key  title: String  vec: Vector({dimensions}) }}\n"
    graph = init(folder / f"graph-{rows}", schema)
    for start in range(0, rows, LOADED_AT_ONCE):
        part = np.arange(start, min(start + LOADED_AT_ONCE, rows))
        graph.load({"Doc": documents(part, dimensions, 0)}, "append", engine="inline")
    return graph


def measure(graph: Graph, rows: int, dimensions: int, changed: int) -> Figure:
    """Change rows on a branch, compare it with main, and merge it."""
    found: list[Figure] = []
    for number in range(ROUNDS):
        seed = hash((changed, number)) % 1_000_003
        touched = np.unique(np.random.default_rng(seed).integers(0, rows, changed))
        branch = graph.branches.create("work")
        branch.load({"Doc": documents(touched, dimensions, seed)}, "merge", engine="inline")
        graph.load(
            {"Doc": documents(np.array([rows + number]), dimensions, seed)},
            "merge",
            engine="inline",
        )
        with watching(0.01) as before:
            time.sleep(0.05)
        with watching(0.01) as peaks:
            clock = Clock()
            assert len(graph.diff("main", "work")) >= len(touched)
            compared = clock.lap()
            graph.merge("work")
            merged = clock.lap()
        above = peaks.megabytes["driver"] - before.megabytes["driver"]
        found.append(Figure(compared, merged, above))
        graph.branches.delete("work")
    return Figure(
        middle(f.diff for f in found), middle(f.merge for f in found), max(f.memory for f in found)
    )


def numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=_Plain)
    options.add_argument("--rows", type=numbers, default=[10_000, 100_000], metavar="N,…")
    options.add_argument("--changed", type=numbers, default=[10, 50, 1000], metavar="N,…")
    options.add_argument("--dimensions", type=int, default=768)
    chosen = options.parse_args()
    print(
        f"{'rows':>9} {'changed':>9} {'diff':>11} {'of CPU':>11} {'merge':>11} {'of CPU':>11} "
        f"{'memory':>9}"
    )
    with tempfile.TemporaryDirectory() as folder:
        for rows in chosen.rows:
            graph = make(Path(folder), rows, chosen.dimensions)
            for changed in chosen.changed:
                figure = measure(graph, rows, chosen.dimensions, changed)
                print(
                    f"{rows:>9,} {changed:>9,} "
                    f"{figure.diff} {figure.merge} {figure.memory:>6.0f} MB",
                    flush=True,
                )


class _Plain(argparse.RawDescriptionHelpFormatter):
    pass


if __name__ == "__main__":
    main()
