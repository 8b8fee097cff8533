"""The work of tasks in an export: divide the rows of fragments by ranges of ids, write the ranges.

A range becomes one file, whose name no other attempt has: whoever collects the files takes those that
were answered, each once. The same range has the same content on every attempt.
Tests: tests/spark/test_exports.py.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Literal

import pyarrow as pa

from omnigraph.catalog.model import EntityType
from omnigraph.engine.export.rows import StoredRows
from omnigraph.engine.shares import Share, shares_of
from omnigraph.errors import ExportError, OmnigraphError
from omnigraph.export import export_lines, write_parquet
from omnigraph.spark.answers import Failed, returning
from omnigraph.spark.tasks import Sent
from omnigraph.storage.ordered import divide, id_bounds, scan_in_any_order, sorted_batches
from omnigraph.storage.scan import ROW_ID
from omnigraph.storage.tables import TableStore
from omnigraph.versioning.snapshot import Snapshot

ExportFormat = Literal["jsonl", "parquet"]


@dataclass(frozen=True, slots=True)
class DividedType:
    """A type with rows: the ranges of ids it is written in, and the fragments it is read from."""

    declared: EntityType
    bounds: tuple[str, ...]
    """The first id of every range but the first."""
    shares: tuple[Share, ...]

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
    """How tasks share the rows of a type."""
    rows = StoredRows(snapshot, tables, declared)
    bounds = id_bounds(rows.table, rows.columns)
    return DividedType(declared, tuple(bounds), shares_of(rows.table))


@dataclass(frozen=True, slots=True)
class ExportWork:
    """The work on all types of an export. It travels to the tasks as it is."""

    snapshot: Snapshot
    tables: TableStore
    types: tuple[DividedType, ...]
    folder: str
    """Where the files wait; tasks and whoever collects them see the same one."""
    format: ExportFormat

    @property
    def shares(self) -> int:
        return sum(len(divided.shares) for divided in self.types)

    @property
    def ranges(self) -> int:
        return sum(divided.ranges for divided in self.types)

    def first_ranges(self) -> list[int]:
        """The number of the first range of every type."""
        return [0, *accumulate(divided.ranges for divided in self.types)][:-1]

    def divide(self, number: int) -> Iterator[Sent | Failed | None]:
        """Read the fragments of a share, and send their rows where their ranges are written."""
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
        owners = [type for type, divided in enumerate(self.types) for _ in divided.shares]
        type = owners[number]
        divided, first = self.types[type], self.first_ranges()[type]
        fragments = divided.shares[number - owners.index(type)]
        rows = StoredRows(self.snapshot, self.tables, divided.declared)
        columns = [*rows.columns, ROW_ID] if rows.needs_row_ids else rows.columns
        stored = scan_in_any_order(rows.table, columns, fragments)
        for place, part in divide(stored, divided.bounds):
            yield Sent(first + place, _packed(part))

    def _write(self, number: int, contents: Iterator[bytes]) -> IdPartition:
        type = max(t for t, first in enumerate(self.first_ranges()) if first <= number)
        declared = self.types[type].declared
        table = pa.concat_tables(map(_unpacked, contents))
        rows = StoredRows(self.snapshot, self.tables, declared).named(sorted_batches(table))
        file = f"{number}-{secrets.token_hex(8)}"
        try:
            with (Path(self.folder) / file).open("xb") as target:
                if self.format == "parquet":
                    written = sum(write_parquet(declared, rows, target))
                else:
                    written = table.num_rows
                    target.writelines(export_lines(declared, rows))
        except FileNotFoundError:
            problem = "is not there for tasks; export to a place that they share with this process"
            raise ExportError(f"{self.folder}: {problem}") from None
        except OSError as error:
            raise ExportError(f"{self.folder}: cannot be written: {error.strerror}") from None
        return IdPartition(number, file, written)


def _packed(rows: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]  # untyped


def _unpacked(content: bytes) -> pa.Table:
    return pa.ipc.open_stream(content).read_all()


def parts_by_type(
    work: ExportWork, parts: Sequence[IdPartition]
) -> Iterator[tuple[str, list[IdPartition]]]:
    """The parts of every type under its table key, in the order of their ids."""
    by_number = {part.number: part for part in parts}
    for first, divided in zip(work.first_ranges(), work.types, strict=True):
        numbers = range(first, first + divided.ranges)
        yield divided.declared.table_key, [by_number[n] for n in numbers if n in by_number]
