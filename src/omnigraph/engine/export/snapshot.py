"""Exporting a snapshot with either engine, to a stream or to a new folder."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import gettempdir
from typing import TYPE_CHECKING, BinaryIO

import pyarrow as pa

from omnigraph.catalog.model import EntityType
from omnigraph.engine.engines import (
    AUTO,
    EngineChoice,
    inline_for_want_of_spark,
    runs_on_spark,
    session_of,
)
from omnigraph.engine.export.folders import new_folder, scratch_folder
from omnigraph.engine.export.rows import read_rows
from omnigraph.export import export_lines, file_names, select_types, write_parquet
from omnigraph.progress import SILENT, Progress
from omnigraph.storage.files import refuse_occupied, writing_remote
from omnigraph.storage.tables import TableStore
from omnigraph.versioning.snapshot import Snapshot

if TYPE_CHECKING:
    from omnigraph.engine.export.bulk import BulkExport

_log = logging.getLogger(__name__)


class SnapshotExport:
    """An export of some types of a snapshot, or of all of them."""

    def __init__(
        self,
        snapshot: Snapshot,
        tables: TableStore,
        wanted: Sequence[str] = (),
        engine: EngineChoice = AUTO,
        progress: Progress = SILENT,
    ) -> None:
        self._snapshot = snapshot
        self._tables = tables
        self._engine = engine
        self._progress = progress
        self._types = select_types(snapshot.catalog, wanted)
        self._filled = [declared for declared in self._types if self._count(declared)]

    def to_lines(self, out: BinaryIO, parts_in: Path | None = None) -> int:
        """Write rows in the form loads read; returns how many there were.

        On Spark, parts of the text wait in the folder `parts_in`, which tasks have to see.
        """
        if self._runs_on_spark():
            self._bulk().write_lines(out, parts_in)
        else:
            for declared in self._filled:
                self._progress.stage(f"export {declared.table_key}", self._count(declared))
                rows = _told(read_rows(self._snapshot, self._tables, declared), self._progress)
                for piece in export_lines(declared, rows):
                    out.write(piece)
        return sum(map(self._count, self._filled))

    def to_parquet(self, folder: Path) -> int:
        """Write rows to a new folder, a file per type; returns how many there were.

        Types without rows have a file too, so that loading the folder replaces what it stands for.
        The folder appears when all is written. Raises `ExportError` when it cannot be made.
        """
        names = file_names(self._types)
        with new_folder(folder) as place:
            on_spark = self._runs_on_spark()
            if on_spark:
                self._bulk().write_parquet(place, names)
            for declared in self._types:
                if not on_spark or declared not in self._filled:
                    self._write_file(declared, place / names[declared.table_key])
        return sum(map(self._count, self._filled))

    def to_remote_parquet(self, folder: str) -> int:
        """The same below an `s3://` URI, whose files appear one after the other."""
        names = file_names(self._types)
        refuse_occupied(folder)
        with ExitStack() as stack:
            place = None
            if self._runs_on_spark():
                place = stack.enter_context(scratch_folder(Path(gettempdir()), "omnigraph-export"))
                self._bulk().write_parquet(place, names)
                for file in sorted(place.iterdir()):
                    with writing_remote(f"{folder.rstrip('/')}/{file.name}") as target:
                        target.write(file.read_bytes())
            for declared in self._types:
                if place is None or declared not in self._filled:
                    name = names[declared.table_key]
                    with writing_remote(f"{folder.rstrip('/')}/{name}") as target:
                        self._write_to(declared, target)
        return sum(map(self._count, self._filled))

    def _write_file(self, declared: EntityType, file: Path) -> None:
        with file.open("xb") as target:
            self._write_to(declared, target)

    def _write_to(self, declared: EntityType, target: BinaryIO) -> None:
        count = self._count(declared)
        self._progress.stage(f"export {declared.table_key}", count)
        rows = read_rows(self._snapshot, self._tables, declared) if count else ()
        for written in write_parquet(declared, rows, target):
            self._progress.advance(written)

    def _runs_on_spark(self) -> bool:
        shared = self._tables.is_shared
        if not self._filled:
            return False
        if runs_on_spark(self._engine, self._bytes, shared=shared):
            return True
        if note := inline_for_want_of_spark(self._engine, self._bytes, shared=shared):
            _log.warning(note)
        return False

    def _bulk(self) -> BulkExport:
        # Work in this process does not wait for what only tasks need.
        from omnigraph.engine.export.bulk import BulkExport

        spark = session_of(self._engine)
        return BulkExport(spark, self._snapshot, self._tables, self._filled, self._progress)

    def _bytes(self) -> int:
        """What the rows take as they are stored."""
        opened = (self._snapshot.open(self._tables, t.table_key) for t in self._filled)
        return sum(table.stored_bytes() for table in opened)

    def _count(self, declared: EntityType) -> int:
        entry = self._snapshot.entries.get(declared.table_key)
        return 0 if entry is None else entry.row_count


def _told(batches: Iterable[pa.RecordBatch], progress: Progress) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield batch
        progress.advance(batch.num_rows)
