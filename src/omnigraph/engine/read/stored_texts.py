"""Indexes of texts that are kept beside the tables they belong to.

Nothing depends on them: a first search in a new process is quick with one and correct without. One
that was made of another state of the table still serves the rows that both states share, found by the
stored pieces these are in; the texts of the others are read.

An index is a header, which names what it was made of, and an object with its content. The header is
written last and replaced as a whole.
Tests: tests/behaviour/test_stored_texts.py.
"""

from __future__ import annotations

import logging
import zlib
from typing import TYPE_CHECKING, Final

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from omnigraph.engine.read.numbering import Mask, RowIds
from omnigraph.errors import ObjectMissing
from omnigraph.json_structs import json_line
from omnigraph.storage.objects import ObjectStore
from omnigraph.storage.scan import ROW_ADDRESS, ROW_ID
from omnigraph.storage.table import Table

if TYPE_CHECKING:
    from omnigraph.text.index import TextIndex
    from omnigraph.text.stored import StoredIndex

_FORMAT: Final = 1
_FOLDER: Final = "_text"
_HEADER: Final = "index.json"

_LEAST_SHARED: Final = 0.5
"""Share of the rows that an index must know. With less, a new one is made as quickly."""

_LAG: Final = 0.02
"""Share of the rows that an index may lack before it is written anew."""

_READS_WHILE_REPLACED: Final = 2
"""How often an index is read before it counts as damaged: it may have been replaced meanwhile."""

_FRAGMENT_SHIFT: Final = 32
"""A row address is the number of a fragment, shifted by so many bits, and a place in it."""

_log = logging.getLogger(__name__)


class _Header(Struct, frozen=True, tag=_FORMAT, tag_field="format"):
    """The object with the content, and the pieces it was made of: what each held, by its files.

    `data` is the name of the object in the folder of the header, `checksum` the CRC-32 of its bytes;
    None in a header that was written before there were checksums.
    """

    data: str
    pieces: dict[str, str]
    checksum: int | None = None

    @classmethod
    def of(cls, data: str, table: Table) -> _Header:
        return cls(data, {f.files: content for content, f in table.contents().items()})

    @classmethod
    def parse(cls, text: bytes) -> _Header:
        """Raises `ValueError` for a header of another kind."""
        return msgspec.json.decode(text, type=cls)

    def piece_of(self, table: Table, rows: pa.Table) -> npt.NDArray[np.int32]:
        """The number of the piece each row of a table is in, by its address; -1 for an unknown one."""
        numbers = {files: number for number, files in enumerate(self.pieces)}
        fragments = table.fragments()
        by_fragment = np.full(max((f.id for f in fragments), default=0) + 1, -1, np.int32)
        for fragment in fragments:
            by_fragment[fragment.id] = numbers.get(fragment.files, -1)
        fragments_of_rows = rows.column(ROW_ADDRESS).to_numpy() >> _FRAGMENT_SHIFT
        return np.asarray(by_fragment[fragments_of_rows], np.int32)


class StoredTexts:
    """The stored indexes of one graph."""

    def __init__(self, objects: ObjectStore) -> None:
        self._objects = objects

    def unindexed_rows(self, table: Table, column: str) -> int | None:
        """How many rows are in pieces an index does not know; None if there is no index."""
        found = self._find(table, column)
        if found is None:
            return None
        _, header = found
        return sum(f.rows for f in table.fragments() if f.files not in header.pieces)

    def read(self, table: Table, column: str, row_ids: RowIds) -> TextIndex | None:
        """The index of a column whose rows have these ids, in order; None if none is of help."""

        found = self._find(table, column)
        if found is None:
            return None
        folder, header = found
        try:
            stored = self._content(folder, header)
        except (ObjectMissing, ValueError) as error:
            # Replaced at this very moment, or damaged. The texts themselves are there.
            _log.warning("the stored index of %s.%s is no help: %s", table.path, column, error)
            return None
        return _carried_on(stored, header, table, column, row_ids)

    def damage(self, table: Table, column: str) -> str | None:
        """What is wrong with the index of a column in the table's own line of versions, if anything."""
        folder = _folder(table.lineage.folder, column)
        cause = None
        for _ in range(_READS_WHILE_REPLACED):
            try:
                header = _Header.parse(self._objects.read_bytes(f"{folder}/{_HEADER}"))
            except ObjectMissing:
                return None
            except ValueError as error:
                return f"{folder}/{_HEADER} is not what was written: {error}"
            try:
                self._content(folder, header)
            except (ObjectMissing, ValueError) as error:
                cause = f"{folder}/{header.data}: {error}"
            else:
                return None
        return cause

    def _content(self, folder: str, header: _Header) -> StoredIndex:
        """Raises `ObjectMissing` or `ValueError`."""
        from omnigraph.text.stored import from_bytes

        content = self._objects.read_bytes(f"{folder}/{header.data}")
        if header.checksum not in (None, zlib.crc32(content)):
            raise ValueError("it is not what was written")
        stored = from_bytes(content)
        if stored.pieces.max(initial=-1) >= len(header.pieces):
            raise ValueError("its header does not name all of its pieces")
        return stored

    def write(self, table: Table, column: str) -> None:
        """Keep the index of a column as it is in this version."""
        from omnigraph.text.index import build_index
        from omnigraph.text.stored import StoredIndex, to_bytes
        from omnigraph.versioning.ids import new_ulid

        rows = table.read([ROW_ID, ROW_ADDRESS]).sort_by(ROW_ID)
        row_ids = rows.column(ROW_ID).to_numpy()
        index = self.read(table, column, row_ids)
        if index is None or index.is_in_many_segments:
            texts = table.read([column, ROW_ID]).sort_by(ROW_ID)
            index = build_index(texts.column(column).combine_chunks())
        header = _Header.of(f"{new_ulid()}.arrow", table)
        stored = StoredIndex(index, row_ids, header.piece_of(table, rows))
        folder = _folder(table.lineage.folder, column)
        content = to_bytes(stored)
        header = replace(header, checksum=zlib.crc32(content))
        self._objects.write_bytes(f"{folder}/{header.data}", content)
        self._objects.write_text(f"{folder}/{_HEADER}", json_line(header))
        # Whoever is reading an older one just now reads the texts instead.
        for path in self._objects.list_dir(folder):
            if path.rpartition("/")[2] not in (_HEADER, header.data):
                self._objects.delete(path)

    def extend(self, table: Table, column: str) -> None:
        """Bring an index up to date, if there is one and it lacks a fair share of the rows."""
        missing = self.unindexed_rows(table, column)
        if missing is not None and missing > _LAG * table.row_count():
            self.write(table, column)

    def _find(self, table: Table, column: str) -> tuple[str, _Header] | None:
        """The index of a table's own line of versions, or else that of the main line."""
        for lineage in dict.fromkeys((table.lineage.folder, table.path)):
            folder = _folder(lineage, column)
            header = self._header(f"{folder}/{_HEADER}")
            if header is not None:
                return folder, header
        return None

    def _header(self, path: str) -> _Header | None:
        try:
            return _Header.parse(self._objects.read_bytes(path))
        except ObjectMissing:
            return None
        except ValueError as error:
            _log.warning("%s is no header of an index: %s", path, error)
            return None


def _folder(lineage: str, column: str) -> str:
    return f"{lineage}/{_FOLDER}/{column}"


def _carried_on(
    stored: StoredIndex, header: _Header, table: Table, column: str, row_ids: RowIds
) -> TextIndex | None:
    """The index of this version: the rows it shares with the stored one, and the texts of others."""
    holds, fresh = _shared(stored, header, table)
    if holds.sum() < _LEAST_SHARED * table.row_count():
        return None
    positions = np.full(len(stored.row_ids), -1, np.int64)
    positions[holds] = np.searchsorted(row_ids, stored.row_ids[holds])
    index = stored.moved(positions, len(row_ids))
    if not len(fresh):
        return index
    texts = table.take(pa.array(fresh), [column]).column(column).combine_chunks()
    return index.with_rows(np.searchsorted(row_ids, fresh), texts, len(row_ids))


def _shared(stored: StoredIndex, header: _Header, table: Table) -> tuple[Mask, RowIds]:
    """Which stored rows are rows of this version with the same text, and which rows are not stored."""
    contents = table.contents()
    kept = [content in contents for content in header.pieces.values()]
    holds = np.asarray(kept, np.bool_)[stored.pieces]
    others = {f.id for content, f in contents.items() if header.pieces.get(f.files) != content}
    if not others:
        return holds, np.empty(0, np.uint64)
    # Of a piece only the deletions may differ. Then a row that is in it now has the text it had.
    rows = table.read([ROW_ID, ROW_ADDRESS], fragment_ids=others).sort_by(ROW_ID)
    found = np.asarray(rows.column(ROW_ID).to_numpy(), np.uint64)
    place = np.minimum(np.searchsorted(stored.row_ids, found), len(stored.row_ids) - 1)
    piece = header.piece_of(table, rows)
    known = (piece >= 0) & (stored.row_ids[place] == found) & (stored.pieces[place] == piece)
    holds[place[known]] = True
    return holds, found[~known]
