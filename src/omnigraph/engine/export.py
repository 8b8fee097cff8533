"""Exporting a snapshot: types by key, rows by id, as JSON lines or as one Parquet file per type."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

import pyarrow as pa

from omnigraph.catalog.model import EntityType
from omnigraph.engine.write.columns import carried_blobs, property_columns
from omnigraph.errors import ExportError
from omnigraph.export import export_lines, file_names, select_types, write_parquet
from omnigraph.limits import BLOB_ROWS
from omnigraph.progress import SILENT, Progress
from omnigraph.rows.schema import row_type
from omnigraph.storage.filters import Filter
from omnigraph.storage.ordered import scan_by_id
from omnigraph.storage.scan import ROW_ID
from omnigraph.storage.tables import TableStore
from omnigraph.versioning.snapshot import Snapshot


def export_snapshot(
    snapshot: Snapshot,
    tables: TableStore,
    out: TextIO,
    wanted: Sequence[str] = (),
    progress: Progress = SILENT,
) -> int:
    """Write a snapshot's rows in the form loads read. Returns how many there were."""
    total = 0
    for declared in select_types(snapshot.catalog, wanted):
        count = _row_count(snapshot, declared)
        if not count:
            continue
        total += count
        progress.stage(f"export {declared.table_key}", count)
        rows = _told(read_rows(snapshot, tables, declared), progress)
        for piece in export_lines(declared, rows):
            out.write(piece.to_pybytes().decode())
    return total


def export_parquet(
    snapshot: Snapshot,
    tables: TableStore,
    folder: Path,
    wanted: Sequence[str] = (),
    progress: Progress = SILENT,
) -> int:
    """Write a snapshot's rows to a new folder, a file per type. Returns how many there were.

    Types without rows have a file too, so that loading the folder replaces what it stands for. The
    folder appears when all is written. Raises `ExportError` when it cannot be made.
    """
    total = 0
    types = select_types(snapshot.catalog, wanted)
    names = file_names(types)
    with _new_folder(folder) as place:
        for declared in types:
            count = _row_count(snapshot, declared)
            progress.stage(f"export {declared.table_key}", count)
            rows = read_rows(snapshot, tables, declared) if count else ()
            with (place / names[declared.table_key]).open("xb") as file:
                for written in write_parquet(declared, rows, file):
                    progress.advance(written)
                    total += written
    return total


def read_rows(
    snapshot: Snapshot, tables: TableStore, declared: EntityType, wanted: Filter | None = None
) -> Iterator[pa.RecordBatch]:
    """Rows by id under property names; a property the stored version does not have is null."""
    table = snapshot.open(tables, declared.table_key)
    stored = property_columns(declared, table.schema)
    plain = [name for name in stored if name not in declared.blobs]
    blobs = [name for name in stored if name in declared.blobs]
    columns = [stored[name] for name in plain]
    missing = {n: row_type(p.type) for n, p in declared.properties.items() if n not in stored}
    batches: Iterable[pa.RecordBatch]
    if wanted is None:
        batches = scan_by_id(table, columns, with_row_ids=bool(blobs))
    else:
        batches = table.scan(columns, wanted, with_row_ids=bool(blobs), order_by="id")
    for batch in _in_parts(batches, BLOB_ROWS) if blobs else batches:
        found = dict(zip(plain, batch.columns, strict=False))
        for name in blobs:
            found[name] = carried_blobs(table, stored[name], batch.column(ROW_ID))
        found |= {name: pa.nulls(batch.num_rows, kind) for name, kind in missing.items()}
        names = list(declared.columns)
        yield pa.RecordBatch.from_arrays([found[name] for name in names], names=names)


def _row_count(snapshot: Snapshot, declared: EntityType) -> int:
    entry = snapshot.entries.get(declared.table_key)
    return 0 if entry is None else entry.row_count


def _in_parts(batches: Iterable[pa.RecordBatch], size: int) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for start in range(0, batch.num_rows, size):
            yield batch.slice(start, size)


def _told(batches: Iterable[pa.RecordBatch], progress: Progress) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield batch
        progress.advance(batch.num_rows)


@contextmanager
def _new_folder(folder: Path) -> Iterator[Path]:
    """A folder to fill, which gets its name when it is full. Raises `ExportError`."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ExportError(f"{folder}: exists and is no empty folder; name a new one")
    target = folder.resolve()
    place = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    try:
        place.mkdir(parents=True)
    except OSError as error:
        raise ExportError(f"{folder}: cannot be made: {error.strerror}") from None
    try:
        yield place
        os.replace(place, target)
    except OSError as error:
        raise ExportError(f"{folder}: cannot be written: {error.strerror}") from None
    finally:
        shutil.rmtree(place, ignore_errors=True)
