"""Exports of a snapshot to a file, a directory, an object store or a stream, with either engine."""

from __future__ import annotations

import logging
import os
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

import pyarrow as pa

from omnigraph.catalog.model import Catalog, EntityType
from omnigraph.diagnostics import with_hint
from omnigraph.errors import ExportError, InputError
from omnigraph.export.json_lines import export_lines
from omnigraph.export.parquet import file_names, write_parquet
from omnigraph.progress import SILENT, Progress
from omnigraph.read.view import ReadView, visible_counts
from omnigraph.replace_file import replacing_bytes
from omnigraph.spark.choice import (
    AUTO,
    EXPORT,
    EngineChoice,
    Work,
    decide,
    missing_spark_note,
    session_of,
)
from omnigraph.storage.files import is_remote, refuse_occupied, writing_remote
from omnigraph.storage.tables import TableStore
from omnigraph.temporary import remove_folder
from omnigraph.versioning.snapshot import Snapshot

if TYPE_CHECKING:
    from omnigraph.export.spark_export import SparkExport

_log = logging.getLogger(__name__)


@contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """A folder to fill, which gets its name when it is complete. Raises `ExportError`."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ExportError(f"'{folder}' is not an empty directory; choose another target")
    target = folder.resolve()
    with scratch_folder(target.parent, target.name) as scratch:
        try:
            yield scratch
            os.replace(scratch, target)
        except OSError as error:
            raise ExportError(f"{folder}: cannot be written: {error.strerror}") from None


@contextmanager
def scratch_folder(parent: Path, name: str) -> Iterator[Path]:
    """A temporary folder. Raises `ExportError` when it cannot be created."""
    # Not one of `tempfile`, which only this user may enter: tasks may run as another user.
    scratch = parent / f".{name}.{secrets.token_hex(4)}"
    try:
        try:
            scratch.mkdir(parents=True)
        except OSError as error:
            raise ExportError(f"{parent / name}: cannot be created: {error.strerror}") from None
        yield scratch
    finally:
        remove_folder(scratch)


class SnapshotExport:
    """An export of some types of a snapshot, or of all of them."""

    def __init__(
        self,
        snapshot: Snapshot,
        tables: TableStore,
        wanted: Sequence[str] = (),
        engine: EngineChoice = AUTO,
        progress: Progress = SILENT,
        view: ReadView = ReadView.ALL,
    ) -> None:
        self._view = view
        self._snapshot = snapshot
        self._tables = tables
        self._engine = engine
        self._progress = progress
        self._types = select_types(view.restrict(snapshot.catalog), wanted)
        self._visible_counts = visible_counts(snapshot, tables, view) if view.rows else None
        self._filled = [declared for declared in self._types if self._count(declared)]

    def to_lines(self, out: BinaryIO, parts_in: Path | None = None) -> int:
        """Write rows as JSON lines; returns how many there were.

        On Spark, parts of the text wait in the folder `parts_in`, which tasks must be able to write.
        """
        if self._runs_on_spark():
            self._spark_export().write_lines(out, parts_in)
        else:
            for declared in self._filled:
                self._progress.stage(f"export {declared.table_key}", self._count(declared))
                rows = _with_progress(self._rows(declared), self._progress)
                for text in export_lines(declared, rows):
                    out.write(text)
        return sum(map(self._count, self._filled))

    def to_parquet(self, folder: Path) -> int:
        """Write rows to a new folder, a file per type; returns how many there were.

        Types without rows have a file too, so that an overwrite with the folder empties them.
        The folder appears when all is written. Raises `ExportError` when it cannot be created.
        """
        with new_folder(folder) as filled:
            return self._write_parquet(str(filled), lambda name: (filled / name).open("xb"))

    def to_remote_parquet(self, uri: str) -> int:
        """The same below an `s3://` URI, whose files appear one after the other."""
        refuse_occupied(uri)

        def opened(name: str) -> AbstractContextManager[BinaryIO]:
            return writing_remote(f"{uri.rstrip('/')}/{name}")

        return self._write_parquet(uri.rstrip("/"), opened)

    def _write_parquet(
        self, folder: str, opened: Callable[[str], AbstractContextManager[BinaryIO]]
    ) -> int:
        """Have tasks write to the folder or address, or write files that `opened` creates."""
        names = file_names(self._types)
        on_spark = self._runs_on_spark()
        if on_spark:
            self._spark_export().write_parquet(folder, names)
        for declared in self._types:
            if not on_spark or declared not in self._filled:
                with opened(names[declared.table_key]) as target:
                    self._write_to(declared, target)
        return sum(map(self._count, self._filled))

    def _write_to(self, declared: EntityType, target: BinaryIO) -> None:
        count = self._count(declared)
        self._progress.stage(f"export {declared.table_key}", count)
        rows = self._rows(declared) if count else ()
        for written in write_parquet(declared, rows, target):
            self._progress.advance(written)

    def _runs_on_spark(self) -> bool:
        shared = self._tables.is_shared
        if not self._filled or self._visible_counts is not None:
            # Tasks read whole fragments; which rows a view shows is decided in this process.
            return False
        if decide(self._engine, lambda: Work(self._bytes()), EXPORT, shared=shared).on_spark:
            return True
        if note := missing_spark_note(self._engine, self._bytes, shared=shared):
            _log.warning(note)
        return False

    def _spark_export(self) -> SparkExport:
        # An export in this process does not import what only tasks need.
        from omnigraph.export.spark_export import SparkExport

        spark = session_of(self._engine)
        return SparkExport(spark, self._snapshot, self._tables, self._filled, self._progress)

    def _bytes(self) -> int:
        """The stored size of the rows."""
        opened = (self._snapshot.open(self._tables, t.table_key) for t in self._filled)
        return sum(table.stored_bytes() for table in opened)

    def _rows(self, declared: EntityType) -> Iterator[pa.RecordBatch]:
        from omnigraph.read.entities import visible_rows

        return visible_rows(self._snapshot, self._tables, declared, self._view)

    def _count(self, declared: EntityType) -> int:
        if self._visible_counts is not None:
            return self._visible_counts[declared.name]
        entry = self._snapshot.entries.get(declared.table_key)
        return 0 if entry is None else entry.row_count


def _with_progress(
    batches: Iterable[pa.RecordBatch], progress: Progress
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield batch
        progress.advance(batch.num_rows)


def export_snapshot(
    snapshot: Snapshot,
    tables: TableStore,
    target: str | Path | BinaryIO,
    *,
    format: str,
    types: Sequence[str],
    engine: EngineChoice,
    progress: Progress,
    view: ReadView = ReadView.ALL,
) -> int:
    """Write a snapshot in a form that loads read; returns the number of rows.

    Raises `ExportError` when the target cannot be written, `InputError` for a wrong argument.
    """
    export = SnapshotExport(snapshot, tables, types, engine, progress, view)
    if format == "parquet":
        if not isinstance(target, str | Path):
            raise InputError("target must be a new directory for format 'parquet'")
        if is_remote(str(target)):
            return export.to_remote_parquet(str(target))
        return export.to_parquet(Path(target))
    if format != "jsonl":
        raise InputError(f"unknown export format '{format}'; use jsonl or parquet")
    if not isinstance(target, str | Path):
        return export.to_lines(_binary(target))
    if is_remote(str(target)):
        with writing_remote(str(target)) as out:
            return export.to_lines(out)
    path = Path(target)
    try:
        with replacing_bytes(os.fspath(path)) as out:
            return export.to_lines(out, _beside(path))
    except OSError as error:
        raise ExportError(f"'{target}' cannot be written: {error.strerror or error}") from None


def export_batches(
    snapshot: Snapshot, tables: TableStore, types: Sequence[str], view: ReadView
) -> Iterator[tuple[str, pa.RecordBatch]]:
    """The rows of some types, or of all, as Arrow batches with the name of their type."""
    from omnigraph.read.scan import scan_type

    wanted = select_types(view.restrict(snapshot.catalog), types)

    def batches() -> Iterator[tuple[str, pa.RecordBatch]]:
        for declared in wanted:
            for batch in scan_type(snapshot, tables, declared.name, view=view):
                yield declared.name, batch

    return batches()


def _binary(target: object) -> BinaryIO:
    if not hasattr(target, "write"):
        kind = "None" if target is None else type(target).__name__
        raise InputError(f"target must be a path, a URI or a binary stream, not {kind}")
    if hasattr(target, "encoding"):
        raise InputError("target must be a binary stream; open the file with mode 'wb'")
    return cast(BinaryIO, target)


def _beside(path: Path) -> Path | None:
    """The directory of a file, which tasks can write if they can write the file; None for a device."""
    return None if path.exists() and not path.is_file() else path.parent


def select_types(catalog: Catalog, wanted: Sequence[str] = ()) -> tuple[EntityType, ...]:
    """All types by table key, or those a type name (nodes and edges) or a table key asks for.

    Raises `ExportError` for a name the schema does not have.
    """
    by_key = {declared.table_key: declared for declared in catalog}
    names = {declared.name for declared in catalog}
    for name in wanted:
        if ":" in name and name not in by_key:
            raise ExportError(with_hint(f"unknown export table '{name}'", name, by_key))
        if ":" not in name and name not in names:
            raise ExportError(with_hint(f"unknown export type '{name}'", name, names))
    return tuple(
        by_key[key]
        for key in sorted(by_key)
        if not wanted or key in wanted or by_key[key].name in wanted
    )
