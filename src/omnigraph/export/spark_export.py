"""Exports on Spark: one job divides and writes the rows of all types; the driver joins the parts.

Tests: tests/spark/test_exports.py.

Tasks divide the rows of fragments by ranges of ids and write the ranges. A range becomes one file,
whose name no other attempt has: the driver takes the files that were answered, each once. The same
range has the same content on every attempt.
"""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from itertools import accumulate
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Literal

import pyarrow as pa

from omnigraph.catalog.model import EntityType
from omnigraph.errors import ExportError, OmnigraphError, SparkJobFailed
from omnigraph.export.json_lines import export_lines
from omnigraph.export.parquet import part_name, write_parquet
from omnigraph.export.run import scratch_folder
from omnigraph.limits import SORTED_BYTES_PER_TASK
from omnigraph.progress import Progress
from omnigraph.spark.following import following
from omnigraph.spark.tasks import (
    Failed,
    FragmentGroup,
    Sent,
    fragment_groups,
    returning,
    run_exchange,
    value_of,
)
from omnigraph.storage.files import is_remote, move_remote, remove_remote, writing_remote
from omnigraph.storage.ordered import divide, id_bounds, scan_in_any_order, sorted_batches
from omnigraph.storage.scan import ROW_ID
from omnigraph.storage.tables import TableStore
from omnigraph.versioning.snapshot import Snapshot
from omnigraph.versioning.snapshot_rows import StoredRows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


ExportFormat = Literal["jsonl", "parquet"]


@dataclass(frozen=True, slots=True)
class DividedType:
    """A type with rows: the ranges of ids it is written in, and the fragments it is read from."""

    declared: EntityType
    bounds: tuple[str, ...]
    """The first id of every range but the first."""
    groups: tuple[FragmentGroup, ...]

    @property
    def ranges(self) -> int:
        return len(self.bounds) + 1


@dataclass(frozen=True, slots=True)
class IdPartition:
    """A file with the rows of one range, in the order of their ids."""

    number: int
    """Of the range, counted over all types."""
    file: str
    rows: int


def divide_type(snapshot: Snapshot, tables: TableStore, declared: EntityType) -> DividedType:
    """How tasks divide the rows of a type."""
    rows = StoredRows(snapshot, tables, declared)
    bounds = id_bounds(rows.table, rows.columns, SORTED_BYTES_PER_TASK)
    return DividedType(declared, tuple(bounds), fragment_groups(rows.table))


@dataclass(frozen=True, slots=True)
class ExportTasks:
    """The tasks on all types of an export. It is sent to tasks as it is."""

    snapshot: Snapshot
    tables: TableStore
    types: tuple[DividedType, ...]
    folder: str
    """Where the files wait; tasks and the driver see the same one."""
    format: ExportFormat

    @property
    def groups(self) -> int:
        return sum(len(divided.groups) for divided in self.types)

    @property
    def ranges(self) -> int:
        return sum(divided.ranges for divided in self.types)

    def first_ranges(self) -> list[int]:
        """The number of the first range of every type."""
        return [0, *accumulate(divided.ranges for divided in self.types)][:-1]

    def divide(self, number: int) -> Iterator[Sent | Failed | None]:
        """Read the fragments of a group, and send their rows where their ranges are written."""
        try:
            yield from self._divide(number)
        except OmnigraphError as error:
            yield Failed(error)
        else:
            yield None

    def write(self, number: int, contents: Iterator[bytes]) -> tuple[int, IdPartition | Failed]:
        """Sort the rows of a range and write them; the number of the range comes back with it."""
        return number, returning(lambda: self._write(number, contents))

    def _divide(self, number: int) -> Iterator[Sent]:
        owners = [type for type, divided in enumerate(self.types) for _ in divided.groups]
        type = owners[number]
        divided, first = self.types[type], self.first_ranges()[type]
        fragments = divided.groups[number - owners.index(type)]
        rows = StoredRows(self.snapshot, self.tables, divided.declared)
        columns = [*rows.columns, ROW_ID] if rows.needs_row_ids else rows.columns
        stored = scan_in_any_order(rows.table, columns, fragments)
        for number, part in divide(stored, divided.bounds):
            yield Sent(first + number, _packed(part))

    def _write(self, number: int, contents: Iterator[bytes]) -> IdPartition:
        type = max(t for t, first in enumerate(self.first_ranges()) if first <= number)
        declared = self.types[type].declared
        table = pa.concat_tables(map(_unpacked, contents))
        rows = StoredRows(self.snapshot, self.tables, declared).named(sorted_batches(table))
        file = f"{number}-{secrets.token_hex(8)}"
        try:
            with _opened(self.folder, file) as target:
                if self.format == "parquet":
                    written = sum(write_parquet(declared, rows, target))
                else:
                    written = table.num_rows
                    target.writelines(export_lines(declared, rows))
        except FileNotFoundError:
            problem = "does not exist for Spark tasks; export to a folder that they group with this process"
            raise ExportError(f"{self.folder}: {problem}") from None
        except OSError as error:
            raise ExportError(f"{self.folder}: cannot be written: {error.strerror}") from None
        return IdPartition(number, file, written)


def _opened(folder: str, file: str) -> AbstractContextManager[BinaryIO]:
    return (
        writing_remote(f"{folder}/{file}")
        if is_remote(folder)
        else (Path(folder) / file).open("xb")
    )


def _packed(rows: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]  # untyped


def _unpacked(content: bytes) -> pa.Table:
    return pa.ipc.open_stream(content).read_all()


def parts_by_type(
    tasks: ExportTasks, parts: Sequence[IdPartition]
) -> Iterator[tuple[str, list[IdPartition]]]:
    """The parts of every type under its table key, in the order of their ids."""
    by_number = {part.number: part for part in parts}
    for first, divided in zip(tasks.first_ranges(), tasks.types, strict=True):
        numbers = range(first, first + divided.ranges)
        yield divided.declared.table_key, [by_number[n] for n in numbers if n in by_number]


@contextmanager
def _waiting_beside(target: Path) -> Iterator[str]:
    """A folder beside the target, for files that are not complete yet."""
    with scratch_folder(target.parent.resolve(), "omnigraph-export") as folder:
        yield str(folder)


@contextmanager
def _waiting_below(target: str) -> Iterator[str]:
    """The same in an object store, below the target: tasks may write there and nowhere else."""
    folder = f"{target}/.omnigraph-export.{secrets.token_hex(4)}"
    try:
        yield folder
    finally:
        with suppress(ExportError):  # What became of the export is more important.
            remove_remote(folder)


class SparkExport:
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
        """Write JSON lines. Parts of them wait in a folder, which tasks must be able to write."""
        parent = Path(tempfile.gettempdir()) if parts_in is None else parts_in
        with scratch_folder(parent.resolve(), "omnigraph-export") as folder:
            for key, files in self._parts(str(folder), "jsonl"):
                self._progress.stage(f"export {key}", sum(part.rows for part in files))
                for part in files:
                    path = folder / part.file
                    with path.open("rb") as lines:
                        shutil.copyfileobj(lines, out, 1024 * 1024)
                    path.unlink()
                    self._progress.advance(part.rows)

    def write_parquet(self, target: str, names: dict[str, str]) -> None:
        """Write Parquet files to a folder, or below an `s3://` address.

        One for a type, or numbered ones for a large type.
        """
        waiting = _waiting_below(target) if is_remote(target) else _waiting_beside(Path(target))
        move = move_remote if is_remote(target) else os.replace
        with waiting as folder:
            for key, files in self._parts(folder, "parquet"):
                self._progress.stage(f"export {key}", sum(part.rows for part in files))
                for number, part in enumerate(files):
                    name = part_name(names[key], number, len(files))
                    move(f"{folder}/{part.file}", f"{target}/{name}")
                    self._progress.advance(part.rows)

    def _parts(self, folder: str, format: ExportFormat) -> Iterator[tuple[str, list[IdPartition]]]:
        """All rows in parts in a folder, in order, by table key."""
        snapshot, tables = self._snapshot, self._tables
        self._progress.stage("sort", self._rows())
        types = tuple(divide_type(snapshot, tables, declared) for declared in self._types)
        tasks = ExportTasks(snapshot, tables, types, folder, format)
        with following(self._progress, self._rows()) as followed:
            done = run_exchange(
                self._spark, "export", tasks.groups, tasks.divide, tasks.ranges, tasks.write
            )
        for answer in done.answers:
            value_of(answer)
        # In the order of rows: of several errors, the first one is raised.
        parts = [value_of(part) for _, part in sorted(done.reduced, key=itemgetter(0))]
        self._check(parts)
        followed.reach(self._rows())
        return parts_by_type(tasks, parts)

    def _rows(self) -> int:
        return sum(self._snapshot.entry(t.table_key).row_count for t in self._types)

    def _check(self, parts: Sequence[IdPartition]) -> None:
        written = sum(part.rows for part in parts)
        if written != self._rows() or len({part.number for part in parts}) != len(parts):
            counts = f"{written} rows of {self._rows()}"
            raise SparkJobFailed("export", f"the numbers do not add up: {counts}")
