"""Rows per second of a checked load without Spark, stage by stage, against loading without checks.

The generated social graph as JSON lines. Two peers load the same file
in the same run without checking anything: a loop over the standard library's JSON parser, and
pyarrow's own JSON reader followed by Lance, which is the floor for anything that ends in a table.
"""

from __future__ import annotations

import argparse
import io
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import lance
import pyarrow as pa
import pyarrow.json

from benchmarks.support.social import SCHEMA, write_social_graph
from benchmarks.support.timing import readable
from omnigraph.engine.graph import init


def timed(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def unchecked(source: Path, target: Path) -> None:
    rows = pyarrow.json.read_json(source)
    for kind in ("type", "edge"):
        chosen = rows.filter(pa.compute.is_valid(rows.column(kind)))
        lance.write_dataset(chosen, str(target / kind))


def python_loop(source: Path) -> None:
    with source.open("rb") as lines:
        for line in lines:
            json.loads(line)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--records", type=int, default=500_000, help="size of the social graph")
    count = parser.parse_args().records
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source = folder / "social.jsonl"
        write_social_graph(source, count)
        graph = init(folder / "graph", SCHEMA)
        checked = timed(lambda: graph.load(source, "append"))
        again = timed(lambda: graph.load(source, "merge", load_id="again"))
        exporting = timed(lambda: graph.export(io.StringIO()))
        floor = timed(lambda: unchecked(source, folder))
        loop = timed(lambda: python_loop(source))
        print(f"{count} records, {source.stat().st_size / 1e6:.0f} MB of JSON lines")
        for label, seconds in (
            ("load, append, all checks, indexes", checked),
            ("load, merge over the same graph", again),
            ("export", exporting),
            ("peer: pyarrow JSON reader + Lance, no checks", floor),
            ("peer: json.loads loop, parsing alone", loop),
        ):
            rate = f"{count / seconds:,.0f} records/s"
            print(f"{label:<46} {readable(seconds):>10}  {rate:>20}  {seconds / checked:6.2f}x")


if __name__ == "__main__":
    main()
