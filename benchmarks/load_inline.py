"""Rows per second of a checked load without Spark, stage by stage, against loading without checks.

The generated social graph as JSON lines, and the same rows as Parquet and CSV files. Two peers load the
JSON file in the same run without checking anything: a loop over the standard library's JSON parser,
and pyarrow's own JSON reader followed by Lance, which is the floor for anything that ends in a table.
Telling progress is measured by the same load with somebody who listens.
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
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet as pq

from benchmarks.support.social import SCHEMA, write_social_graph
from benchmarks.support.timing import readable
from omnigraph.api.graph import init
from omnigraph.progress import SILENT, Progress


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


def write_csv_files(parquet: Path, folder: Path) -> None:
    folder.mkdir()
    for path in parquet.iterdir():
        rows = pq.read_table(path)
        columns = [_json_lists(column) for column in rows.columns]
        pyarrow.csv.write_csv(
            pa.table(columns, names=rows.column_names), folder / f"{path.stem}.csv"
        )


def _json_lists(column: pa.ChunkedArray) -> pa.ChunkedArray | pa.Array:
    """The column, lists as the text that CSV has for them."""
    if not pa.types.is_list(column.type):
        return column
    return pa.array([None if v is None else json.dumps(v) for v in column.to_pylist()])


class Listener:
    """Counts what it is told, as a progress bar does."""

    rows = 0

    def stage(self, name: str, rows: int | None = None) -> None:
        self.rows = 0

    def advance(self, rows: int) -> None:
        self.rows += rows


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--records", type=int, default=500_000, help="size of the social graph")
    count = parser.parse_args().records
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source = folder / "social.jsonl"
        write_social_graph(source, count)
        graph = init(folder / "graph", SCHEMA)
        checked = timed(lambda: graph.load(source, "append", engine="inline"))

        def into_a_new_graph(name: str, source: Path, progress: Progress = SILENT) -> float:
            other = init(folder / name, SCHEMA)
            return timed(lambda: other.load(source, "append", engine="inline", progress=progress))

        listened = into_a_new_graph("listened", source, Listener())
        as_parquet = timed(
            lambda: graph.export(folder / "parquet", format="parquet", engine="inline")
        )
        write_csv_files(folder / "parquet", folder / "csv")
        from_parquet = into_a_new_graph("from_parquet", folder / "parquet")
        from_csv = into_a_new_graph("from_csv", folder / "csv")
        again = timed(lambda: graph.load(source, "merge", load_id="again", engine="inline"))
        exporting = timed(lambda: graph.export(io.BytesIO(), engine="inline"))
        floor = timed(lambda: unchecked(source, folder))
        loop = timed(lambda: python_loop(source))
        print(f"{count} records, {source.stat().st_size / 1e6:.0f} MB of JSON lines")
        for label, seconds in (
            ("load, append, all checks, indexes", checked),
            ("the same, with progress", listened),
            ("load, append, from Parquet", from_parquet),
            ("load, append, from CSV", from_csv),
            ("load, merge over the same graph", again),
            ("export, JSON lines", exporting),
            ("export, Parquet", as_parquet),
            ("peer: pyarrow JSON reader + Lance, no checks", floor),
            ("peer: json.loads loop, parsing alone", loop),
        ):
            rate = f"{count / seconds:,.0f} records/s"
            print(f"{label:<46} {readable(seconds):>10}  {rate:>20}  {seconds / checked:6.2f}x")


if __name__ == "__main__":
    main()
