"""Where an export goes: a file, a directory, an object store or a stream; or nowhere, as batches."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, cast

import pyarrow as pa

from omnigraph.engine.engines import EngineChoice
from omnigraph.engine.export.snapshot import SnapshotExport
from omnigraph.engine.read.view import ReadView
from omnigraph.errors import ExportError, InputError
from omnigraph.export import select_types
from omnigraph.progress import Progress
from omnigraph.replace_file import replacing_bytes
from omnigraph.storage.files import is_remote, writing_remote
from omnigraph.storage.tables import TableStore
from omnigraph.versioning.snapshot import Snapshot


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
    if not view.sees_all:
        # JSON lines and Parquet files are made of stored rows, which the view would have to filter.
        raise InputError("export needs a handle without a view; use scan or export_batches")
    export = SnapshotExport(snapshot, tables, types, engine, progress)
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
    from omnigraph.engine.read.scan import scan_type

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
    """The directory of a file, which tasks see if they see the file. Devices are in none."""
    return None if path.exists() and not path.is_file() else path.parent
