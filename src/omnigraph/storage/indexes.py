"""Table indexes: build them, report which rows they cover, and detect damaged ones.

The library trusts index files. A damaged file makes it fail, miss rows or abort the process, so every
index is compared with its checksums before this process first uses it. A damaged index is not listed,
scans ignore it, and the next writer rebuilds it. The checksums are derived state too: an index without
them counts as sound until it fails.
Tests: tests/storage/tables/test_index_checks.py.
"""

from __future__ import annotations

import json
import logging
import os
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, NewType

import lance
import msgspec
import numpy as np
import numpy.typing as npt
from lance import LanceOperation
from lance.dataset import Index as LibraryIndex
from lance.file import LanceFileSession

from omnigraph.errors import SyncFailed
from omnigraph.limits import INDEX_CHECKED_BYTES
from omnigraph.storage.commit_sync import CommitSync
from omnigraph.storage.failures import cause_of, naming_failures
from omnigraph.storage.lineage import Lineage, line_of_base
from omnigraph.storage.objects import ObjectStore
from omnigraph.storage.table import Table
from omnigraph.temporary import TemporaryFolder

if TYPE_CHECKING:
    from omnigraph.storage.stage import StagedChange


CHECKSUMS: Final = "omnigraph-checksums.json"
"""A file in the folder of an index: the size and the CRC-32 of each of the others."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class IndexFolder:
    """Where the files of one part of an index are."""

    uuid: str
    uri: str
    stored_bytes: int | None


class IndexChecks:
    """What this process knows of the indexes below one root. Thread-safe."""

    def __init__(
        self, *, is_local: bool, options: dict[str, str] | None, sync: CommitSync | None
    ) -> None:
        self._is_local = is_local
        self._options = options
        self._sync = sync
        self._damage: dict[str, str | None] = {}
        self._lock = Lock()

    def damaged(self, lineage: Lineage, dataset: lance.LanceDataset) -> Mapping[str, str]:
        """The indexes of an opened version that must not be used, by name, each with the reason."""
        found: dict[str, str] = {}
        for description in dataset.describe_indices():
            for folder in _folders(lineage, dataset, description):
                cause = self._cause(folder, description.name)
                if cause is not None:
                    found[description.name] = cause
        return found

    def has_noticed(self, dataset: lance.LanceDataset) -> bool:
        """Whether an index of an opened version was found damaged before. Compares nothing."""
        segments = [s for described in dataset.describe_indices() for s in described.segments]
        with self._lock:
            return any(self._damage.get(str(segment.uuid)) is not None for segment in segments)

    def condemn(
        self, lineage: Lineage, dataset: lance.LanceDataset, names: Iterable[str], why: str
    ) -> None:
        """Use these indexes no more: a read failed with them and succeeded without."""
        wanted = set(names)
        for description in dataset.describe_indices():
            if description.name in wanted:
                _log.warning("ignoring index %s of %s: %s", description.name, lineage.uri, why)
                with self._lock:
                    for segment in description.segments:
                        self._damage[str(segment.uuid)] = why

    def write(
        self, lineage: Lineage, dataset: lance.LanceDataset, since: lance.LanceDataset
    ) -> None:
        """Write the checksums of indexes that this version has and an earlier one has not."""
        known = {str(s.uuid) for d in since.describe_indices() for s in d.segments}
        for description in dataset.describe_indices():
            for folder in _folders(lineage, dataset, description):
                if folder.uuid not in known:
                    self.write_one(folder)

    def write_one(self, folder: IndexFolder) -> None:
        """Write the checksums of an index that was just built. Best effort."""
        if (folder.stored_bytes or 0) > INDEX_CHECKED_BYTES:
            return
        try:
            files = self._content(folder)
            checks = {name: [len(content), zlib.crc32(content)] for name, content in files.items()}
            self._put(folder, json.dumps(checks))
        except (OSError, ValueError, SyncFailed) as error:
            _log.warning("the index %s has no checksums: %s", folder.uri, cause_of(error))
            return
        with self._lock:
            self._damage[folder.uuid] = None

    def _cause(self, folder: IndexFolder, name: str) -> str | None:
        with self._lock:
            if folder.uuid in self._damage:
                return self._damage[folder.uuid]
        cause = self._compare(folder)
        with self._lock:
            if folder.uuid not in self._damage:
                self._damage[folder.uuid] = cause
                if cause is not None:
                    _log.warning("index %s at %s is damaged: %s", name, folder.uri, cause)
        return cause

    def _compare(self, folder: IndexFolder) -> str | None:
        """What is wrong with the files of an index; None if nothing can be said against them."""
        try:
            checks = self._checksums(folder)
        except ValueError:
            return f"{CHECKSUMS} is not what was written"
        if not checks:
            return self._by_size(folder)
        for name, (size, checksum) in checks.items():
            try:
                content = self._read(folder, name, size)
            except (OSError, ValueError) as error:
                cause = error.strerror if isinstance(error, OSError) else None
                return f"{name} cannot be read: {cause or cause_of(error)}"
            if len(content) != size or zlib.crc32(content) != checksum:
                return f"{name} is not what was written"
        return None

    def _by_size(self, folder: IndexFolder) -> str | None:
        """The same without checksums, where the size of files is known without asking a store."""
        if not self._is_local:
            return None
        try:
            size = sum(e.stat().st_size for e in os.scandir(folder.uri) if e.name != CHECKSUMS)
        except OSError as error:
            return error.strerror or str(error)
        if folder.stored_bytes is not None and size != folder.stored_bytes:
            return f"its files have {size} bytes, {folder.stored_bytes} were written"
        return None

    def _checksums(self, folder: IndexFolder) -> dict[str, tuple[int, int]]:
        """Empty if there are none, which a power loss may have left as an empty file."""
        try:
            if self._is_local:
                content = Path(folder.uri, CHECKSUMS).read_bytes()
            else:
                content = self._download(folder, CHECKSUMS)
        except OSError:
            return {}
        return msgspec.json.decode(content, type=dict[str, tuple[int, int]]) if any(content) else {}

    # -- files ------------------------------------------------------------------------------

    def _content(self, folder: IndexFolder) -> dict[str, bytes]:
        if self._is_local:
            names = [entry.name for entry in os.scandir(folder.uri) if entry.name != CHECKSUMS]
            return {name: Path(folder.uri, name).read_bytes() for name in names}
        names = [path.rpartition("/")[2] for path in self._session(folder).list()]
        return {name: self._download(folder, name) for name in names if name != CHECKSUMS}

    def _read(self, folder: IndexFolder, name: str, size: int) -> bytes:
        if self._is_local:
            return Path(folder.uri, name).read_bytes()
        return self._session(folder).read_range(name, 0, size)

    def _download(self, folder: IndexFolder, name: str) -> bytes:
        with TemporaryFolder("omnigraph-index-") as scratch:
            copy = Path(scratch, name)
            self._session(folder).download_file(name, copy)
            return copy.read_bytes()

    def _put(self, folder: IndexFolder, text: str) -> None:
        if self._is_local:
            path = Path(folder.uri, CHECKSUMS)
            path.write_text(text, encoding="utf-8")
            if self._sync:
                self._sync.note(str(path))
            return
        with TemporaryFolder("omnigraph-index-") as scratch:
            copy = Path(scratch, CHECKSUMS)
            copy.write_text(text, encoding="utf-8")
            self._session(folder).upload_file(copy, CHECKSUMS)

    def _session(self, folder: IndexFolder) -> LanceFileSession:
        return LanceFileSession(folder.uri, storage_options=self._options)


def index_folder(lineage: Lineage, index: Any) -> IndexFolder:
    """The folder of an index that was just built for a line of versions."""
    stored = sum(file.size_bytes for file in index.files) if index.files else None
    return IndexFolder(str(index.uuid), lineage.file(f"_indices/{index.uuid}"), stored)


def _folders(
    lineage: Lineage, dataset: lance.LanceDataset, description: Any
) -> Iterator[IndexFolder]:
    for segment in description.segments:
        line = lineage.uri
        if segment.base_id is not None:
            line = line_of_base(lineage, dataset.base_paths()[segment.base_id].path)
        yield IndexFolder(str(segment.uuid), f"{line}/_indices/{segment.uuid}", segment.size_bytes)


BTREE: Final = "BTREE"
PARTITIONED: Final = "IVF_FLAT"
"""Vectors by the partition whose centre they are nearest to, kept as they are."""

Centres = npt.NDArray[np.float32]
"""A unit vector per partition."""

BuiltIndex = NewType("BuiltIndex", LibraryIndex)
"""An index whose files are written and that is part of nothing yet."""


@dataclass(frozen=True, slots=True)
class Index:
    """An index and the fragments whose rows it knows."""

    name: str
    kind: str
    columns: tuple[str, ...]
    parts: tuple[frozenset[int], ...]
    """The fragments of each of its parts, which a search looks into one after the other."""
    is_borrowed: bool
    """Whether part of it is stored in the line of versions this one was branched from."""

    @property
    def fragment_ids(self) -> frozenset[int]:
        return frozenset[int]().union(*self.parts)


def damaged_indexes(table: Table) -> Mapping[str, str]:
    """The indexes of a table that must not be used, by name, each with the reason."""
    if table.lineage.checks is None:
        return {}
    with naming_failures("read the indexes", table.lineage.uri):
        return table.lineage.checks.damaged(table.lineage, table.dataset)


def noticed_damage(table: Table) -> bool:
    """Whether this process has already found an index of a table damaged. Reads nothing."""
    checks = table.lineage.checks
    return checks is not None and checks.has_noticed(table.dataset)


def condemn_index(table: Table, column: str, kind: str, cause: str) -> None:
    """Use the index of a column no more, after a read failed with it."""
    names = [i.name for i in list_indexes(table) if i.kind == kind and i.columns == (column,)]
    if table.lineage.checks is not None:
        table.lineage.checks.condemn(table.lineage, table.dataset, names, cause)


def list_indexes(table: Table) -> list[Index]:
    """The indexes of a table that can be used, by name; a damaged one is as good as missing."""
    damaged = damaged_indexes(table)
    with naming_failures("list the indexes", table.lineage.uri):
        described = [i for i in table.dataset.describe_indices() if i.name not in damaged]
    return [
        Index(
            found.name,
            found.index_type.upper(),
            tuple(found.field_names),
            tuple(frozenset(segment.fragment_ids) for segment in found.segments),
            any(segment.base_id is not None for segment in found.segments),
        )
        for found in described
    ]


def uncovered_fragments(table: Table, column: str, kind: str = BTREE) -> frozenset[int] | None:
    """The fragments an index does not know; None when none of this kind is on the column alone."""
    current = frozenset(fragment.id for fragment in table.fragments())
    for index in list_indexes(table):
        if index.kind == kind and index.columns == (column,):
            return current - index.fragment_ids
    return None


def stage_btree_index(table: Table, column: str) -> StagedChange | None:
    """An index over all present rows, named after its column; None for a table without rows."""
    return stage_indexes(table, [build_btree(table, column)]) if table.fragments() else None


def build_btree(table: Table, column: str) -> BuiltIndex:
    """A look-up index over all rows of a table that has some, named after its column."""
    return _build(table, column, BTREE)


def build_partitioned(table: Table, column: str, centres: Centres) -> BuiltIndex:
    """An index of vectors by cosine over all rows of a table that has some."""
    return _build(
        table,
        column,
        PARTITIONED,
        metric="cosine",
        num_partitions=len(centres),
        ivf_centroids=centres,
    )


def build_btree_part(table: Table, column: str, fragment_ids: Sequence[int]) -> BuiltIndex:
    """The part of a look-up index that covers some fragments. It is of use when joined with the others."""
    return _build(table, column, BTREE, fragment_ids)


def join_parts(table: Table, parts: Sequence[BuiltIndex]) -> BuiltIndex:
    """One index of the parts that were built over different fragments of a table."""
    if len(parts) == 1:
        return parts[0]
    with naming_failures("join the parts of an index", table.lineage.uri):
        joined = table.dataset.merge_existing_index_segments(list(parts))
    return _checked(table, joined)


def remove_built(objects: ObjectStore, lineage: Lineage, built: Iterable[BuiltIndex]) -> None:
    """Remove the files of indexes that no commit names and none ever will."""
    for index in built:
        objects.delete_prefix(f"{lineage.folder}/_indices/{index.uuid}")


def _build(
    table: Table,
    column: str,
    kind: str,
    fragment_ids: Sequence[int] | None = None,
    **options: Any,
) -> BuiltIndex:
    if fragment_ids is None:
        fragment_ids = [fragment.id for fragment in table.fragments()]
    name = _name(column)
    replaces = name in damaged_indexes(table)
    with naming_failures("build an index", table.lineage.uri):
        built = table.dataset.create_index_uncommitted(
            column, kind, name=name, fragment_ids=list(fragment_ids), replace=replaces, **options
        )
    return _checked(table, built)


def _checked(table: Table, built: LibraryIndex) -> BuiltIndex:
    """An index that was just built, with checksums beside its files."""
    if table.lineage.checks is not None:
        table.lineage.checks.write_one(index_folder(table.lineage, built))
    return BuiltIndex(built)


def stage_indexes(
    table: Table, built: Sequence[BuiltIndex], removed: Collection[str] = ()
) -> StagedChange:
    """Indexes that were built over the present rows, all of which one commit makes known.

    Damaged ones of the same names go, and the indexes of the columns `removed`.
    """
    from omnigraph.storage.stage import RowCounts, StagedChange

    return StagedChange(
        "index",
        table.lineage,
        table.version,
        RowCounts(),
        table.row_count(),
        LanceOperation.CreateIndex(
            new_indices=list(built),
            removed_indices=_stored_as(
                table, {index.name for index in built} | {_name(column) for column in removed}
            ),
        ),
    )


def indexed_columns(table: Table, columns: Collection[str]) -> list[str]:
    """Those of the columns that have an index of their own, be it damaged or not."""
    with naming_failures("list the indexes", table.lineage.uri):
        names = {index.name for index in table.dataset.describe_indices()}
    return [column for column in columns if _name(column) in names]


def _name(column: str) -> str:
    return f"{column}_idx"


def _stored_as(table: Table, names: Collection[str]) -> list[LibraryIndex]:
    """All parts of the indexes of these names, to be removed: the library would keep them beside."""
    with naming_failures("list the indexes", table.lineage.uri):
        described = table.dataset.describe_indices()
    return [
        LibraryIndex(
            str(segment.uuid),
            index.name,
            index.fields,
            table.version,
            segment.fragment_ids,
            segment.index_version,
            base_id=segment.base_id,
        )
        for index in described
        if index.name in names
        for segment in index.segments
    ]


# -- how far a search looks ---------------------------------------------------------------------


def stage_probes(table: Table, probes: Mapping[str, int]) -> StagedChange:
    """A note in the table of how many partitions a search by each column looks into."""
    from omnigraph.storage.stage import RowCounts, StagedChange

    notes: dict[str, str | None] = {
        _probes_key(column): str(number) for column, number in probes.items()
    }
    return StagedChange(
        "note",
        table.lineage,
        table.version,
        RowCounts(),
        table.row_count(),
        LanceOperation.UpdateConfig(config_updates=LanceOperation.UpdateMap(notes)),
    )


def probes_of(table: Table, column: str) -> int | None:
    """How many partitions to look into; None if it is not known yet."""
    with naming_failures("read the settings", table.lineage.uri):
        noted = table.dataset.config().get(_probes_key(column))
    return None if noted is None else int(noted)


def _probes_key(column: str) -> str:
    return f"omnigraph.probes.{column}"
