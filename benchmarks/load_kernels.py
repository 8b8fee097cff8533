"""How many records per second the load kernels take from JSON lines to checked rows, and back.

Nothing is stored: the figures are those of reading, routing, converting, judging each record and
judging all of them together. Two peers read the same file in the same run and do less: a plain loop
over orjson builds the same columns without any check, and Arrow's own reader parses the file with
one schema for all types, without routing, ids, dates or checks. Goal: 400,000 records per second on
two cores.
"""

from __future__ import annotations

import argparse
import datetime as dt
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path

import orjson
import pyarrow as pa
import pyarrow.json as pj

from benchmarks.support.social import SCHEMA, write_social_graph
from omnigraph.catalog.compile import compile_schema
from omnigraph.catalog.model import Catalog, EdgeType, EntityType, Group
from omnigraph.export.json_lines import export_lines
from omnigraph.export.run import select_types
from omnigraph.language.syntax import Source
from omnigraph.load.recognition import recognise_sources
from omnigraph.load.splits import RowStore, read_split, whole_splits
from omnigraph.load.validation import LoadJob, ValidatedLoad, validate_load
from omnigraph.rows.bindings import bound_schema

LOAD_ID = "01J00000000000000000000000"
TIMES = {"joined", "founded", "since"}


class NothingCommitted:
    """The committed state of an empty graph."""

    def existing(self, declared: EntityType, ids: pa.Array) -> pa.Array:
        return ids.slice(0, 0)

    def owners(
        self, declared: EntityType, group: Group, tuples: pa.Table, without: pa.Array
    ) -> pa.Table:
        return tuples.slice(0, 0).append_column("id", pa.array([], pa.utf8()))

    def stored(self, declared: EntityType, ids: pa.Array, names: Sequence[str]) -> pa.Table:
        schema = bound_schema(declared)
        return pa.schema([schema.field(name) for name in ("id", *names)]).empty_table()

    def outgoing(self, edge: EdgeType, sources: pa.Array, without: pa.Array) -> pa.Table:
        return pa.table({"src": sources.slice(0, 0), "count": pa.array([], pa.int64())})

    def leaving(self, edge: EdgeType, sources: pa.Array, without: pa.Array) -> pa.Array:
        return without.slice(0, 0)


def record_phase(path: Path, catalog: Catalog, threads: int) -> None:
    for split in whole_splits(recognise_sources(path, catalog)):
        for valid in read_split(split, catalog, LOAD_ID, threads=threads):
            assert not valid.problems


def whole_load(path: Path, catalog: Catalog, threads: int) -> ValidatedLoad:
    with RowStore() as store:
        sources = recognise_sources(path, catalog)
        names = tuple(source.name for source in sources)
        job = LoadJob(catalog, "append", LOAD_ID, names, NothingCommitted())
        return validate_load(job, sources, store, threads=threads)


def export(load: ValidatedLoad, catalog: Catalog) -> None:
    for declared in select_types(catalog):
        for _ in export_lines(declared, load.types[declared.table_key].rows.to_batches()):
            pass


def orjson_loop(path: Path) -> None:
    """The loader one would write first: a record at a time, columns at the end, no checks."""
    columns: defaultdict[str, defaultdict[str, list[object]]]
    columns = defaultdict(lambda: defaultdict(list))
    with path.open("rb") as file:
        for line in file:
            record = orjson.loads(line)
            target = columns[record.get("type") or record["edge"]]
            if "edge" in record:
                target["src"].append(record["from"])
                target["dst"].append(record["to"])
            for key, value in record["data"].items():
                is_time = key in TIMES and value is not None
                target[key].append(dt.date.fromisoformat(value) if is_time else value)
    for found in columns.values():
        pa.table(dict(found))


def arrow_reader(path: Path) -> None:
    """All types at once; what a record does not have is null."""
    pj.read_json(path, read_options=pj.ReadOptions(block_size=4 << 20))


def best_seconds(call: Callable[[], object], rounds: int) -> float:
    """The best of several rounds: other work on the machine only ever adds time."""
    found = []
    for _ in range(rounds):
        started = time.perf_counter()
        call()
        found.append(time.perf_counter() - started)
    return min(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    catalog = compile_schema(Source("social.pg", SCHEMA))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "social.jsonl"
        write_social_graph(path, options.records)
        size = path.stat().st_size / 1e6
        load = whole_load(path, catalog, options.threads)
        peer = "peer: orjson loop, columns only"
        calls: dict[str, Callable[[], object]] = {
            "record phase, 1 thread": lambda: record_phase(path, catalog, 1),
            f"record phase, {options.threads} threads": lambda: record_phase(
                path, catalog, options.threads
            ),
            "record and set phase, 1 thread": lambda: whole_load(path, catalog, 1),
            f"record and set phase, {options.threads} threads": lambda: whole_load(
                path, catalog, options.threads
            ),
            "export to JSON lines, 1 thread": lambda: export(load, catalog),
            peer: lambda: orjson_loop(path),
            "peer: pyarrow.json, parsing only": lambda: arrow_reader(path),
        }
        seconds = {name: best_seconds(call, options.rounds) for name, call in calls.items()}
    width = max(map(len, seconds))
    print(f"{load.records} records, {size:.0f} MB; best of {options.rounds} rounds")
    print(f"{'':<{width}}  {'records/s':>10}  {'MB/s':>6}  times the orjson loop")
    for name, taken in seconds.items():
        rate = load.records / taken
        print(
            f"{name:<{width}}  {rate:>10,.0f}  {size / taken:>6.0f}  {seconds[peer] / taken:8.2f}x"
        )


if __name__ == "__main__":
    main()
