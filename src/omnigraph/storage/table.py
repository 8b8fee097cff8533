"""A table opened at one version: what it holds, and what storage knows about it. Reading only."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, cast

import lance
import pyarrow as pa

from omnigraph.limits import SMALL_WRITE_ROWS
from omnigraph.storage.failures import naming_failures
from omnigraph.storage.filters import Filter, In
from omnigraph.storage.lineage import Lineage, asks_for_values
from omnigraph.storage.scan import Scan, lookup, scan
from omnigraph.storage.versions import (
    VersionInfo,
    VersionRecord,
    VersionWatch,
    version_info,
    version_record,
    watch_version,
)

_MIN_SKIPPED_FRAGMENTS: Final = 4
"""Naming the fragments of a scan takes about as long as scanning a few small ones on a local disk."""


@dataclass(frozen=True, slots=True)
class Fragment:
    """A part of a table that is stored together. `rows` are those that are not deleted.

    `files` hold its rows, the deleted ones too; their names are never given again.
    """

    id: int
    rows: int
    stored_rows: int
    files: str


class Table:
    """One version of a table. It never changes; a commit gives a new one."""

    __slots__ = (
        "_contents", "_dataset", "_fragments", "_names", "_row_count", "_schema", "_watch", "_written_at",
        "lineage", "version",
    )  # fmt: skip

    def __init__(
        self, lineage: Lineage, dataset: lance.LanceDataset, watch: VersionWatch | None = None
    ) -> None:
        self.lineage = lineage
        self._watch = watch
        self.version: int = dataset.version
        self._dataset = dataset
        self._contents: dict[str, Fragment] | None = None
        self._fragments: tuple[Fragment, ...] | None = None
        self._row_count: int | None = None
        self._schema: pa.Schema | None = None
        self._names: frozenset[str] | None = None
        self._written_at: datetime | None = None

    @property
    def path(self) -> str:
        return self.lineage.path

    @property
    def branch(self) -> str | None:
        return self.lineage.branch

    def has_column(self, name: str) -> bool:
        if self._names is None:
            self._names = frozenset(self.schema.names)
        return name in self._names

    @property
    def schema(self) -> pa.Schema:
        if self._schema is None:
            self._schema = self._dataset.schema
        return self._schema

    @property
    def dataset(self) -> lance.LanceDataset:
        """The library's handle, for the modules of this package. It must not be committed to."""
        return self._dataset

    @property
    def written_at(self) -> datetime:
        """When this version was made. Known without reading, like its number."""
        if self._written_at is None:
            self._written_at = cast(datetime, self._dataset.get_version()["timestamp"])
        return self._written_at

    def writable_handle(self) -> lance.LanceDataset:
        """A handle of its own for library calls that move the handle they are called on."""
        return self._dataset.checkout_version(self.version)

    def row_count(self) -> int:
        if self._row_count is None:
            with naming_failures("count", self.lineage.uri):
                self._row_count = int(self._dataset.count_rows())
        return self._row_count

    def scan(
        self,
        columns: Sequence[str] | None = None,
        filter: Filter | None = None,
        *,
        with_row_ids: bool = False,
        limit: int | None = None,
        order_by: str | None = None,
        fragment_ids: Collection[int] | None = None,
    ) -> pa.RecordBatchReader:
        """Stream rows; `_rowid`, `_rowaddr` and the row-version columns are read by naming them."""
        names = list(self.schema.names if columns is None else columns)
        if with_row_ids:
            names.append("_rowid")
        if fragment_ids is None:
            fragment_ids = self._worth_reading(filter)
        wanted = Scan(names, filter, limit, order_by, fragment_ids)
        return scan(self._dataset, self.lineage, wanted)

    def read(
        self,
        columns: Sequence[str] | None = None,
        filter: Filter | None = None,
        *,
        with_row_ids: bool = False,
        limit: int | None = None,
        order_by: str | None = None,
        fragment_ids: Collection[int] | None = None,
    ) -> pa.Table:
        """All rows of `scan` at once."""
        return self.scan(
            columns,
            filter,
            with_row_ids=with_row_ids,
            limit=limit,
            order_by=order_by,
            fragment_ids=fragment_ids,
        ).read_all()

    def lookup(self, ids: pa.Array, columns: Sequence[str] = ("id",)) -> pa.Table:
        """The rows with the given distinct ids, in no order; missing ones are left out."""
        if len(ids) > SMALL_WRITE_ROWS:
            return lookup(self._dataset, self.lineage, ids, columns)
        if self.lineage.is_local:
            self._learn_ids()
        worth_reading = self._worth_reading(In("id", tuple(ids.to_pylist())))
        if worth_reading == [] and list(columns) == ["id"]:
            return self.schema.empty_table().select(["id"])
        return lookup(self._dataset, self.lineage, ids, columns, worth_reading)

    def _learn_ids(self) -> None:
        """Read the ids of files in which ids are looked for again and again.

        Of files without deleted rows: earlier versions still have a row that is deleted here.
        """
        known = self.lineage.known
        for fragment in self.fragments():
            if fragment.rows == fragment.stored_rows and known.is_worth_learning(
                fragment.files, fragment.rows
            ):
                known.learn_ids(fragment.files, self.read(["id"], fragment_ids=[fragment.id])["id"])

    def _worth_reading(self, filter: Filter | None) -> list[int] | None:
        """The fragments that may have rows for a filter; None for all, also where little is saved."""
        if filter is None or not asks_for_values(filter):
            return None
        fragments, known = self.fragments(), self.lineage.known
        left = [f.id for f in fragments if known.may_match(f.files, filter)]
        least = 1 if self.lineage.is_remote or not left else _MIN_SKIPPED_FRAGMENTS
        return left if len(fragments) - len(left) >= least else None

    def take(self, row_ids: pa.Array, columns: Sequence[str]) -> pa.Table:
        """The rows with the given row ids, in their order. All of them must exist."""
        with naming_failures("read", self.lineage.uri):
            taken = self._dataset._take_rows(row_ids.to_pylist(), columns=list(columns))
        return pa.table(taken).select(list(columns))

    def latest_version(self) -> int:
        """The newest version of this line of versions as stored now."""
        with naming_failures("look for the newest version", self.lineage.uri):
            return int(self._dataset.latest_version)

    def watch(self) -> VersionWatch | None:
        """What tells cheaply whether this version is still the newest; None if nothing does."""
        return self._watch or watch_version(self.lineage, self.version)

    def version_info(self) -> VersionInfo:
        return version_info(self.lineage, self.version)

    def record(self, version: int | None = None) -> VersionRecord:
        """What made this version, or another one of the same line."""
        return version_record(self.lineage, self._dataset, version or self.version)

    def fragments(self) -> tuple[Fragment, ...]:
        if self._fragments is None:
            found = self._dataset.get_fragments()
            self._fragments = tuple(_fragment(fragment.metadata) for fragment in found)
        return self._fragments

    def files(self) -> set[str]:
        """The names of the data files this version is made of."""
        metadata = (fragment.metadata for fragment in self._dataset.get_fragments())
        return {file._path for m in metadata for file in m.files}

    def stored_bytes(self) -> int:
        """The size of the data files of this version."""
        metadata = (fragment.metadata for fragment in self._dataset.get_fragments())
        return sum(file.file_size_bytes or 0 for m in metadata for file in m.files)

    def contents(self) -> Mapping[str, Fragment]:
        """The fragments by what they hold: the stored rows and which of them are deleted.

        The key is the same in every version and branch that shares a fragment.
        """
        if self._contents is None:
            metadata = (found.metadata for found in self._dataset.get_fragments())
            self._contents = {_content(m): _fragment(m) for m in metadata}
        return self._contents

    def __repr__(self) -> str:
        return f"Table({self.lineage.name!r}, version {self.version})"


def _fragment(metadata: lance.FragmentMetadata) -> Fragment:
    return Fragment(metadata.id, metadata.num_rows, metadata.physical_rows, file_names(metadata))


def file_names(fragment: lance.FragmentMetadata) -> str:
    """The files of a fragment as one text, which no other fragment has."""
    # The public property defines a class at every call, which takes longer than all the rest.
    return ",".join(file._path for file in fragment.files)


def _content(fragment: lance.FragmentMetadata) -> str:
    deleted = fragment.deletion_file
    files = file_names(fragment)
    return files if deleted is None else f"{files}-{deleted.read_version}-{deleted.id}"
