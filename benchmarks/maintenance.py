"""What upkeep costs: changes of the schema on a large type, optimizing, cleaning up, and disk space.

Goals: a rename and a longer enum take the same time whatever the number of rows; after thousands of
small commits, an optimize and a cleanup, a graph takes at most 1.5 times the space of one that was
exported and loaded anew. The commits stay listed, which takes room of its own.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path
from unittest.mock import patch

import pyarrow as pa

from benchmarks.support.timing import readable
from omnigraph.api.graph import Graph, init
from omnigraph.maintenance import cleanup
from omnigraph.versioning.rows import MANIFEST_PATH

SCHEMA = """
node Person {
    name: String @key
    age: I32?
    mood: enum(calm, wild)?
}
edge Knows: Person -> Person { since: Date? }
"""
GOAL = 1.5


def timed(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def people(rows: int) -> pa.Table:
    ages = pa.array([number % 90 for number in range(rows)], pa.int32())
    moods = pa.array(["calm" if number % 2 else "wild" for number in range(rows)])
    return pa.table({"name": [f"p{number}" for number in range(rows)], "age": ages, "mood": moods})


def make(folder: Path, name: str, rows: int) -> Graph:
    graph = init(folder / name, SCHEMA)
    graph.load({"Person": people(rows)}, mode="append")
    return graph


def schema_changes(graph: Graph) -> dict[str, float]:
    """Seconds of each change, one after the other on one graph."""
    longer = SCHEMA.replace("calm, wild", "calm, odd, wild")
    renamed = longer.replace("age: I32?", 'years: I32? @rename_from("age")')
    optional = renamed.replace("mood:", "nick: String?\n    mood:")
    filled = optional.replace("mood:", 'home: String @backfill("unknown")\n    mood:')
    indexed = filled.replace('rename_from("age")', 'rename_from("age") @index')
    dropped = indexed.replace("    nick: String?\n", "")
    steps = {
        "longer enum": longer,
        "rename": renamed,
        "optional property": optional,
        "backfilled property": filled,
        "index": indexed,
        "drop": dropped,
    }
    return {name: timed(partial(graph.schema.apply, text)) for name, text in steps.items()}


def bytes_of(graph: Graph, part: str = "") -> int:
    folder = Path(graph.uri, part)
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def commit_much(graph: Graph, commits: int, rows: int) -> None:
    """Small writes all over the place: new people, other ages, people who leave, acquaintances."""
    for number in range(commits):
        name, other = f"p{number * 7919 % rows}", f"p{number * 104729 % rows}"
        match number % 4:
            case 0:
                text = f'insert Person {{ name: "n{number}", age: 1 }}'
            case 1:
                text = f'update Person set {{ age: {number % 90} }} where name = "{name}"'
            case 2:
                text = f'insert Knows {{ from: "n{number - 2}", to: "{other}" }}'
            case _:
                text = f'delete Person where name = "n{number - 3}"'
        graph.mutate(f"query q() {{ {text} }}")


def anew(graph: Graph, folder: Path) -> Graph:
    """The same rows in a graph of their own."""
    file = folder / "export.jsonl"
    graph.export(file)
    fresh = init(folder / "anew", SCHEMA)
    fresh.load(file, mode="append", engine="inline")
    return fresh


def show(name: str, seconds: float, more: str = "") -> None:
    print(f"  {name:<34} {readable(seconds):>10}  {more}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows of the large type")
    parser.add_argument("--commits", type=int, default=1_000, help="small commits before upkeep")
    options = parser.parse_args()
    os.environ["OMNIGRAPH_DURABILITY"] = "fsync"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        few = schema_changes(make(folder, "few", 1000))
        many = schema_changes(make(folder, "many", options.rows))
        print(f"schema changes, {options.rows:,} rows (against 1,000)")
        for step, seconds in many.items():
            show(step, seconds, f"{seconds / few[step]:.1f}x")
        rows = options.rows
        graph = make(folder, "busy", rows)
        before = bytes_of(graph)
        written = timed(lambda: commit_much(graph, options.commits, rows))
        print(f"\nupkeep after {options.commits:,} small commits on {rows:,} rows")
        show("the commits", written, f"{bytes_of(graph) / before:.1f}x the bytes")
        show("optimize", timed(graph.maintenance.optimize))
        show("optimize again", timed(graph.maintenance.optimize))
        show("status", timed(graph.maintenance.status))
        kept = bytes_of(graph)
        show(
            "dry run",
            timed(
                lambda: graph.maintenance.cleanup(
                    keep_versions=1, min_age=timedelta(), dry_run=True
                )
            ),
        )
        with patch.object(cleanup, "MIN_MANIFEST_AGE", timedelta()):  # As it is an hour later.
            show(
                "cleanup",
                timed(
                    lambda: graph.maintenance.cleanup(older_than=timedelta(), min_age=timedelta())
                ),
            )
        left, history = bytes_of(graph), bytes_of(graph, MANIFEST_PATH)
        fresh = bytes_of(anew(graph, folder))
        print(f"  removed {kept - left:,} of {kept:,} bytes")
        print(f"  disk against a graph loaded anew: {left / fresh:.2f}x (goal {GOAL}x)")
        print(f"  of that, {history / len(graph.log()):,.0f} bytes per commit that is listed")


if __name__ == "__main__":
    main()
