"""An export on Spark: one job divides and writes the rows of all types; the parts are joined here.

Tests: tests/spark/test_exports.py.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from omnigraph.catalog.model import EntityType
from omnigraph.engine.export.folders import scratch_folder
from omnigraph.engine.export.parts import (
    ExportFormat,
    ExportWork,
    IdPartition,
    divide_type,
    parts_by_type,
)
from omnigraph.errors import SparkJobFailed
from omnigraph.export import part_name
from omnigraph.progress import Progress
from omnigraph.spark.answers import value_of
from omnigraph.spark.tasks import run_exchange
from omnigraph.storage.tables import TableStore
from omnigraph.versioning.snapshot import Snapshot

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class BulkExport:
    """One export on Spark of types that have rows."""

    def __init__(
        self,
        spark: SparkSession,
        snapshot: Snapshot,
        tables: TableStore,
        types: Sequence[EntityType],
        progress: Progress,
    ) -> None:
        self._spark = spark
        self._snapshot = snapshot
        self._tables = tables
        self._types = types
        self._progress = progress

    def write_lines(self, out: BinaryIO, parts_in: Path | None) -> None:
        """Write JSON lines. Parts of them wait in a folder, which tasks have to see."""
        place = Path(tempfile.gettempdir()) if parts_in is None else parts_in
        with self._parts(place, "jsonl") as (folder, parts):
            for key, files in parts:
                self._progress.stage(f"export {key}", sum(part.rows for part in files))
                for part in files:
                    path = folder / part.file
                    with path.open("rb") as lines:
                        shutil.copyfileobj(lines, out, 1024 * 1024)
                    path.unlink()
                    self._progress.advance(part.rows)

    def write_parquet(self, place: Path, names: dict[str, str]) -> None:
        """Write Parquet files to a folder: one for a type, or numbered ones for a large type."""
        with self._parts(place.parent, "parquet") as (folder, parts):
            for key, files in parts:
                self._progress.stage(f"export {key}", sum(part.rows for part in files))
                for number, part in enumerate(files):
                    name = part_name(names[key], number, len(files))
                    os.replace(folder / part.file, place / name)
                    self._progress.advance(part.rows)

    @contextmanager
    def _parts(
        self, place: Path, format: ExportFormat
    ) -> Iterator[tuple[Path, Iterator[tuple[str, list[IdPartition]]]]]:
        """A folder with all rows in parts, and by table key the parts in order."""
        with scratch_folder(place.resolve(), "omnigraph-export") as folder:
            snapshot, tables = self._snapshot, self._tables
            self._progress.stage("sort", self._rows())
            types = tuple(divide_type(snapshot, tables, declared) for declared in self._types)
            work = ExportWork(snapshot, tables, types, str(folder), format)
            done = run_exchange(
                self._spark, "export", work.shares, work.divide, work.ranges, work.write
            )
            for answer in done.answers:
                value_of(answer)
            # In the order of rows: of several things that are wrong, the first one is told.
            parts = [value_of(part) for _, part in sorted(done.verdicts, key=itemgetter(0))]
            self._check(parts)
            self._progress.advance(self._rows())
            yield folder, parts_by_type(work, parts)

    def _rows(self) -> int:
        return sum(self._snapshot.entry(t.table_key).row_count for t in self._types)

    def _check(self, parts: Sequence[IdPartition]) -> None:
        written = sum(part.rows for part in parts)
        if written != self._rows() or len({part.number for part in parts}) != len(parts):
            counts = f"{written} rows of {self._rows()}"
            raise SparkJobFailed("export", f"the numbers do not add up: {counts}")
