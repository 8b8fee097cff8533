"""Full-text indexes stored beside their tables.

Results never depend on them: a stored index makes the first search of a process fast. An index built from
another version of the table still serves the rows in fragments that both versions share; the texts of the
other rows are read.

An index is a data object and a header that names the fragments it was built from. The header is written last
and replaced atomically. Tests: tests/behaviour/test_text_indexes.py.
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

from omnigraph.errors import ObjectMissing
from omnigraph.json_structs import described, json_line
from omnigraph.read.positions import Mask, RowIds
from omnigraph.storage.objects import ObjectStore
from omnigraph.storage.scan import ROW_ADDRESS, ROW_ID
from omnigraph.storage.table import Table

if TYPE_CHECKING:
    from omnigraph.text.index import StoredIndex, TextIndex

_FORMAT: Final = 1
_FOLDER: Final = "_text"
_HEADER: Final = "index.json"

MIN_SHARED_ROWS: Final = 0.5
"""Share of rows that a stored index must cover; below it, building a new one is as fast."""

MAX_UNINDEXED_SHARE: Final = 0.02
"""Share of rows that an index may lack before it is written again."""

READ_ATTEMPTS: Final = 2
"""Failed reads after which an index counts as damaged; it may have been replaced during one."""

_FRAGMENT_SHIFT: Final = 32
"""A row address is a fragment number, shifted by this many bits, plus an offset."""

_log = logging.getLogger(__name__)


class _Header(Struct, frozen=True, tag=_FORMAT, tag_field="format", rename={"fragments": "pieces"}):
    """The data object, and the content of each fragment it was built from, by the fragment's files.

    `data` is the object's name in the header's folder, `checksum` the CRC-32 of its bytes; None in headers
    from before checksums. The JSON field of `fragments` is "pieces".
    """

    data: str
    fragments: dict[str, str]
    checksum: int | None = None

    @classmethod
    def of(cls, data: str, table: Table) -> _Header:
        return cls(data, {f.files: content for content, f in table.contents().items()})

    @classmethod
    def parse(cls, text: bytes) -> _Header:
        """Raises `ValueError` for an invalid header."""
        return msgspec.json.decode(text, type=described(cls))

    def fragment_numbers(self, table: Table, rows: pa.Table) -> npt.NDArray[np.int32]:
        """The number of each row's fragment in this header, by row address; -1 if unknown."""
        numbers = {files: number for number, files in enumerate(self.fragments)}
        fragments = table.fragments()
        by_fragment = np.full(max((f.id for f in fragments), default=0) + 1, -1, np.int32)
        for fragment in fragments:
            by_fragment[fragment.id] = numbers.get(fragment.files, -1)
        fragments_of_rows = rows.column(ROW_ADDRESS).to_numpy() >> _FRAGMENT_SHIFT
        return np.asarray(by_fragment[fragments_of_rows], np.int32)


class TextIndexStore:
    """The stored full-text indexes of one graph."""

    def __init__(self, objects: ObjectStore) -> None:
        self._objects = objects

    def unindexed_rows(self, table: Table, column: str) -> int | None:
        """Rows in fragments that an index does not cover; None if there is no index."""
        found = self._find(table, column)
        if found is None:
            return None
        _, header = found
        return sum(f.rows for f in table.fragments() if f.files not in header.fragments)

    def read(self, table: Table, column: str, row_ids: RowIds) -> TextIndex | None:
        """The index of a column whose rows have these ascending row ids; None if unusable."""
        found = self._find(table, column)
        if found is None:
            return None
        folder, header = found
        try:
            stored = self._content(folder, header)
        except (ObjectMissing, ValueError) as error:
            # It was replaced during the read, or is damaged.
            _log.warning("ignoring the stored index of %s.%s: %s", table.path, column, error)
            return None
        return _apply(stored, header, table, column, row_ids)

    def damage(self, table: Table, column: str) -> str | None:
        """What is wrong with the index of a column in the table's own lineage, if anything."""
        folder = _folder(table.lineage.folder, column)
        cause = None
        for _ in range(READ_ATTEMPTS):
            try:
                header = _Header.parse(self._objects.read_bytes(f"{folder}/{_HEADER}"))
            except ObjectMissing:
                return None
            except ValueError as error:
                return f"{folder}/{_HEADER} is damaged: {error}"
            try:
                self._content(folder, header)
            except (ObjectMissing, ValueError) as error:
                cause = f"{folder}/{header.data}: {error}"
            else:
                return None
        return cause

    def _content(self, folder: str, header: _Header) -> StoredIndex:
        """Raises `ObjectMissing` or `ValueError`."""
        from omnigraph.text.index import from_bytes

        content = self._objects.read_bytes(f"{folder}/{header.data}")
        if header.checksum not in (None, zlib.crc32(content)):
            raise ValueError("checksum mismatch")
        stored = from_bytes(content)
        if stored.fragments.max(initial=-1) >= len(header.fragments):
            raise ValueError("its header does not name all of its fragments")
        return stored

    def write(self, table: Table, column: str) -> None:
        """Store the index of a column of this version."""
        from omnigraph.text.index import StoredIndex, build_index, to_bytes
        from omnigraph.versioning.ids import new_ulid

        rows = table.read([ROW_ID, ROW_ADDRESS]).sort_by(ROW_ID)
        row_ids = rows.column(ROW_ID).to_numpy()
        index = self.read(table, column, row_ids)
        if index is None or index.has_many_segments:
            texts = table.read([column, ROW_ID]).sort_by(ROW_ID)
            index = build_index(texts.column(column).combine_chunks())
        header = _Header.of(f"{new_ulid()}.arrow", table)
        stored = StoredIndex(index, row_ids, header.fragment_numbers(table, rows))
        folder = _folder(table.lineage.folder, column)
        content = to_bytes(stored)
        header = replace(header, checksum=zlib.crc32(content))
        self._objects.write_bytes(f"{folder}/{header.data}", content)
        self._objects.write_text(f"{folder}/{_HEADER}", json_line(header))
        # A concurrent reader of an older object falls back to the texts.
        for path in self._objects.list_dir(folder):
            if path.rpartition("/")[2] not in (_HEADER, header.data):
                self._objects.delete(path)

    def extend(self, table: Table, column: str) -> None:
        """Update an index, if there is one and it lacks more than a small share of the rows."""
        missing = self.unindexed_rows(table, column)
        if missing is not None and missing > MAX_UNINDEXED_SHARE * table.row_count():
            self.write(table, column)

    def _find(self, table: Table, column: str) -> tuple[str, _Header] | None:
        """The index in the table's own lineage, or else the one in the main lineage."""
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
            _log.warning("%s is not a valid index header: %s", path, error)
            return None


def _folder(lineage: str, column: str) -> str:
    return f"{lineage}/{_FOLDER}/{column}"


def _apply(
    stored: StoredIndex, header: _Header, table: Table, column: str, row_ids: RowIds
) -> TextIndex | None:
    """The index of this version: rows shared with the stored one, and the texts of the others."""
    holds, fresh = _shared(stored, header, table)
    if holds.sum() < MIN_SHARED_ROWS * table.row_count():
        return None
    positions = np.full(len(stored.row_ids), -1, np.int64)
    positions[holds] = np.searchsorted(row_ids, stored.row_ids[holds])
    index = stored.remapped(positions, len(row_ids))
    if not len(fresh):
        return index
    texts = table.take(pa.array(fresh), [column]).column(column).combine_chunks()
    return index.with_rows(np.searchsorted(row_ids, fresh), texts, len(row_ids))


def _shared(stored: StoredIndex, header: _Header, table: Table) -> tuple[Mask, RowIds]:
    """Which stored rows exist in this version with the same text, and the row ids not stored."""
    contents = table.contents()
    kept = [content in contents for content in header.fragments.values()]
    holds = np.asarray(kept, np.bool_)[stored.fragments]
    others = {f.id for content, f in contents.items() if header.fragments.get(f.files) != content}
    if not others:
        return holds, np.empty(0, np.uint64)
    # Only the deletions of a fragment may differ. A row that is still in it has the same text.
    rows = table.read([ROW_ID, ROW_ADDRESS], fragment_ids=others).sort_by(ROW_ID)
    found = np.asarray(rows.column(ROW_ID).to_numpy(), np.uint64)
    at = np.minimum(np.searchsorted(stored.row_ids, found), len(stored.row_ids) - 1)
    fragment = header.fragment_numbers(table, rows)
    known = (fragment >= 0) & (stored.row_ids[at] == found) & (stored.fragments[at] == fragment)
    holds[at[known]] = True
    return holds, found[~known]
