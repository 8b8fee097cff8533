"""Rows per second of a checked load without Spark, stage by stage, against loading without checks.

A social graph of people, companies and two kinds of edges, as JSON lines. Two peers load the same file
in the same run without checking anything: a loop over the standard library's JSON parser, and
pyarrow's own JSON reader followed by Lance, which is the floor for anything that ends in a table.
"""

from __future__ import annotations

import argparse
import io
import json
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import lance
import pyarrow as pa
import pyarrow.json

from benchmarks.support.timing import readable
from omnigraph.engine.graph import init

SCHEMA = """\
node Person { handle: String @key  age: I32?  city: String?  tags: [String]?  @range(age, 0..150) }
node Company { code: String @key  label: String }
edge Knows: Person -> Person { since: Date? }
edge WorksAt: Person -> Company @card(0..3)
"""


def records(people: int) -> Iterator[dict[str, object]]:
    rng = random.Random(7)
    companies = max(1, people // 100)
    for i in range(companies):
        yield {"type": "Company", "data": {"code": f"c{i}", "label": f"Company {i}"}}
    for i in range(people):
        data = {"handle": f"p{i}", "age": i % 90, "city": f"city{i % 500}", "tags": ["a", "b"]}
        yield {"type": "Person", "data": data}
    for i in range(people):
        for _ in range(3):
            other = rng.randrange(people)
            since = {"since": f"20{i % 20 + 10}-03-0{i % 9 + 1}"}
            yield {"edge": "Knows", "from": f"p{i}", "to": f"p{other}", "data": since}
        yield {"edge": "WorksAt", "from": f"p{i}", "to": f"c{rng.randrange(companies)}"}


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
    parser.add_argument("--people", type=int, default=100_000, help="five times as many records")
    people = parser.parse_args().people
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source = folder / "social.jsonl"
        with source.open("w") as out:
            count = sum(1 for r in records(people) if out.write(json.dumps(r) + "\n"))
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
