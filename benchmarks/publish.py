"""What a commit costs as history grows, and what a branch costs as the schema grows.

Publishes empty commits and measures, at several lengths of history, a publish, a refresh of a handle
that is one commit behind, and a cold open. A peer commits the same number of times in the same run:
SQLite, one row per transaction with full synchronisation, which is the floor a durable commit has on
this disk. Goal: the figures at the longest history within 1.5 times of those at commit 10.
"""

from __future__ import annotations

import argparse
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path

from benchmarks.support.timing import readable
from omnigraph.engine.graph import Graph, init
from omnigraph.versioning.commits import CommitDraft, CommitId, OperationId, OperationKind
from omnigraph.versioning.ids import new_ulid, now_micros
from omnigraph.versioning.manifest import Manifest
from omnigraph.versioning.publish import Publication, publish

SAMPLES = 20


def draft() -> CommitDraft:
    return CommitDraft(
        graph_commit_id=CommitId(new_ulid()),
        operation=OperationKind.LOAD,
        operation_id=OperationId(new_ulid()),
        created_at=now_micros(),
        schema_ir_hash="benchmark",
        schema_ref="benchmark",
    )


def median(call: Callable[[], object], samples: int = SAMPLES) -> float:
    found = []
    for _ in range(samples):
        started = time.perf_counter()
        call()
        found.append(time.perf_counter() - started)
    return statistics.median(found)


def measure_history(folder: Path, marks: list[int]) -> list[tuple[int, float, float, float]]:
    graph = init(folder / "history", "node A { k: String @key }\n")
    manifest = graph._manifest
    behind = Manifest(graph._tables)
    rows = []
    for mark in marks:
        while manifest.current(None).sequence < mark:
            publish(manifest, None, Publication(draft()))
        publishing = median(lambda: publish(manifest, None, Publication(draft())))
        behind.current(None)
        refreshing = []
        for _ in range(SAMPLES):
            publish(manifest, None, Publication(draft()))
            started = time.perf_counter()
            behind.current(None)
            refreshing.append(time.perf_counter() - started)
        opening = median(lambda: Manifest(graph._tables).current(None))
        rows.append((mark, publishing, statistics.median(refreshing), opening))
    return rows


def sqlite_commit(folder: Path) -> float:
    connection = sqlite3.connect(folder / "peer.db", isolation_level=None)
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE commits (id TEXT PRIMARY KEY, at INTEGER)")
    insert = "INSERT INTO commits VALUES (?, ?)"
    return median(lambda: connection.execute(insert, (new_ulid(), now_micros())))


def graph_of(folder: Path, types: int) -> Graph:
    schema = "\n".join(f"node T{i} {{ k: String @key }}" for i in range(types))
    return init(folder / f"types{types}", schema + "\n")


def branch_seconds(graph: Graph) -> float:
    numbers = count()
    return median(lambda: graph.create_branch(f"b{next(numbers)}"))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--commits", type=int, default=1000, help="longest history measured")
    longest = parser.parse_args().commits
    marks = [m for m in (10, 100, 1000, 10_000) if m <= longest]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows = measure_history(folder, marks)
        floor = sqlite_commit(folder)
        print(f"{'commits':>8}  {'publish':>10}  {'refresh':>10}  {'cold open':>10}  vs first")
        for mark, publishing, refreshing, opening in rows:
            ratio = publishing / rows[0][1]
            cells = (readable(publishing), readable(refreshing), readable(opening))
            print(f"{mark:>8}  " + "  ".join(f"{c:>10}" for c in cells) + f"  {ratio:.2f}x")
        print(
            f"peer: SQLite durable commit {readable(floor)}, {floor / rows[0][1]:.2f}x of a publish"
        )
        times = {}
        for types in (2, 200):
            times[types] = branch_seconds(graph_of(folder, types))
        ratio = times[200] / times[2]
        print(f"branch create: {readable(times[2])} with 2 types, {readable(times[200])} with 200")
        print(f"branch create, 200 types against 2: {ratio:.2f}x (goal at most 1.2x)")


if __name__ == "__main__":
    main()
