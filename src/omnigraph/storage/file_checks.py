"""Whether the files that a version of a table is made of are there, as long as they were written.

What a file holds is not looked at: who reads all rows finds out whether it can be decoded. On an object
store that is all there is; a listing would tell no sizes.
Tests: tests/behaviour/test_verify_files.py.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import StoreCallFailed
from omnigraph.storage.blobs import BlobPlace
from omnigraph.storage.failures import naming_failures
from omnigraph.storage.lineage import line_of_base
from omnigraph.storage.scan import ROW_ADDRESS
from omnigraph.storage.table import Table

_EXTERNAL: Final = 3
_FRAGMENT_SHIFT: Final = 32
_FILE_OF_BLOB: Final = ["fragment", "kind", "blob_id", "blob_uri"]
"""What the blobs of one file have in common."""


@dataclass(frozen=True, slots=True)
class FragmentFile:
    """A file of a fragment; `size` is None where the library does not record it."""

    fragment_id: int
    address: str
    size: int | None


@dataclass(frozen=True, slots=True)
class FileProblem:
    """A file that is missing or cannot be used, and why; `fragment_id` is that of its rows."""

    fragment_id: int
    address: str
    cause: str


def fragment_files(table: Table) -> tuple[FragmentFile, ...]:
    """The data files and deletion files of a version, those it shares with others included."""
    with naming_failures("list the files", table.lineage.uri):
        return tuple(_files(table))


def _files(table: Table) -> Iterator[FragmentFile]:
    bases = table.dataset.base_paths()

    def line(base_id: int | None) -> str:
        if base_id is None:
            return table.lineage.uri
        return line_of_base(table.lineage, bases[base_id].path)

    for fragment in table.dataset.get_fragments():
        found: Any = fragment.metadata
        for file in found.files:
            size = file.file_size_bytes
            yield FragmentFile(found.id, f"{line(file.base_id)}/data/{file._path}", size)
        deleted = found.deletion_file
        if deleted is not None:
            path = deleted.path(found.id)
            yield FragmentFile(found.id, f"{line(deleted.base_id)}/{path}", None)


def find_problems(table: Table, files: Sequence[FragmentFile]) -> list[FileProblem]:
    """The files on a local disk that are missing or have another length."""
    if not table.lineage.is_local:
        return []
    checked = ((file, _cause(file)) for file in files)
    return [FileProblem(f.fragment_id, f.address, cause) for f, cause in checked if cause]


def _cause(file: FragmentFile) -> str | None:
    try:
        found = os.stat(file.address).st_size
    except FileNotFoundError:
        return "it is missing"
    except OSError as error:
        return error.strerror or str(error)
    if file.size is not None and found != file.size:
        return f"it has {found} bytes, {file.size} were written"
    return None


# -- blobs --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LastBlob:
    """The last blob of a file: if it can be read, the file reaches as far as it should."""

    address: int
    uri: str | None
    """The file, if it lies outside of the graph."""


def last_blobs(descriptors: pa.Array, addresses: pa.Array) -> pa.Table:
    """Of each file that a batch of blobs refers to, the blob that ends last."""
    there = descriptors.is_valid()
    described, kept = descriptors.filter(there), addresses.filter(there)
    kind, position, size, blob_id, uri = (
        described.field(name) for name in ("kind", "position", "size", "blob_id", "blob_uri")
    )
    rows = pa.table(
        {
            "fragment": pc.shift_right(kept, pa.scalar(_FRAGMENT_SHIFT, pa.uint64())),
            "kind": kind,
            "blob_id": blob_id,
            "blob_uri": uri,
            "end": pc.add(position, size),
            ROW_ADDRESS: kept,
        }
    )
    return _last(rows)


def joined(batches: Sequence[pa.Table]) -> Iterator[LastBlob]:
    """The same for all batches of a column."""
    if not batches:
        return
    for row in _last(pa.concat_tables(batches)).to_pylist():
        uri = row["blob_uri"] if row["kind"] == _EXTERNAL else None
        yield LastBlob(row[ROW_ADDRESS], uri)


def _last(rows: pa.Table) -> pa.Table:
    ordered = rows.sort_by("end").group_by(_FILE_OF_BLOB, use_threads=False)
    last = ordered.aggregate([("end", "last"), (ROW_ADDRESS, "last")])
    names = {"end_last": "end", f"{ROW_ADDRESS}_last": ROW_ADDRESS}
    return last.rename_columns([names.get(name, name) for name in last.column_names])


def read_last_byte(table: Table, column: str, blob: LastBlob) -> None:
    """Raises `StoreCallFailed` for a blob whose last byte is not there."""
    opened = BlobPlace(table, column, blob.address, blob.uri).open()
    if opened.size and len(opened.read(opened.size - 1, 1)) != 1:
        raise StoreCallFailed("read a blob", opened.where, "it ends too early")
