"""One line of versions of a table, its main line or a branch: where its files are.

`KnownValues` remembers the ids in small files this process has written. No index covers such a file
yet, and a look-up would scan dozens of them before they are compacted. A file never changes (rows are
only deleted from it), so a value that was not written into it is in no version or branch of the table.
Of files that are looked into again and again it keeps the hashes of all ids: most ids that writers look
up are new, and then no file has to be read.

The table library stores the absolute URI of the parent table with every version of a branch. In a
graph that was moved or copied, a branch would still read the files at the old location, which are gone
or belong to another graph; `other_root` detects this.
Tests: tests/storage/tables/test_known_values.py, tests/behaviour/test_moved_graphs.py.
"""

from __future__ import annotations

import os
import re
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING, Final, TypeAlias
from urllib.parse import unquote

import lance
import numpy as np
import pyarrow as pa

from omnigraph.limits import (
    KNOWN_FILES,
    KNOWN_IDS_BYTES,
    LOOKUPS_BEFORE_LEARNING,
    ROWS_LEARNT_PER_LOOKUP,
    ROWS_PER_FRAGMENT,
    SMALL_WRITE_ROWS,
)
from omnigraph.storage.filters import And, Comparison, Filter, In, Or

if TYPE_CHECKING:
    from omnigraph.storage.commit_sync import CommitSync
    from omnigraph.storage.indexes import IndexChecks


_COLUMNS: Final = ("id", "src", "dst")
"""The columns that look-ups ask for by value."""


class HashedIds:
    """The ids in a file with many rows. It may take an id for one of them that is not."""

    __slots__ = ("_hashes",)

    def __init__(self, ids: pa.ChunkedArray) -> None:
        hashes = np.fromiter(map(hash, ids.to_pylist()), np.int64, len(ids))
        hashes.sort()
        self._hashes = hashes

    @property
    def nbytes(self) -> int:
        return self._hashes.nbytes

    def __contains__(self, value: object) -> bool:
        wanted = hash(value)
        place = int(self._hashes.searchsorted(wanted))
        return place < len(self._hashes) and int(self._hashes[place]) == wanted

    def isdisjoint(self, values: Iterable[object]) -> bool:
        return not any(value in self for value in values)


_Values = Mapping[str, "frozenset[str | None] | HashedIds"]

FileValues: TypeAlias = "tuple[str, dict[str, list[str | None]]]"
"""The names of the files of a fragment, and its ids and endpoints by column."""


class KnownValues:
    """Ids and edge endpoints by file, for the most recent small files; ids by file for others that
    are often looked into. Thread-safe."""

    def __init__(self) -> None:
        self._files: OrderedDict[str, Mapping[str, frozenset[str | None]]] = OrderedDict()
        self._hashed: OrderedDict[str, HashedIds] = OrderedDict()
        self._hashed_bytes = 0
        self._asked: OrderedDict[str, int] = OrderedDict()
        """How often ids were looked for in files of which they are not known."""
        self._lock = Lock()

    def learn(self, files: str, rows: pa.Table) -> None:
        """Note what was written. Files with many rows are left to the indexes."""
        if rows.num_rows > SMALL_WRITE_ROWS:
            return
        # Texts are equal here exactly when they are in the store, which cannot be said of numbers.
        texts = [f.name for f in rows.schema if f.name in _COLUMNS and pa.types.is_string(f.type)]
        values: dict[str, frozenset[str | None]] = {
            name: frozenset(rows.column(name).to_pylist()) for name in texts
        }
        if values:
            with self._lock:
                self._note(files, values)

    def _note(self, files: str, values: Mapping[str, frozenset[str | None]]) -> None:
        self._files[files] = values
        while len(self._files) > KNOWN_FILES:
            self._files.popitem(last=False)

    def latest(self, most: int) -> list[FileValues]:
        """What is known of the latest small files with about so many ids, the newest first."""
        found: list[FileValues] = []
        with self._lock:
            for files, values in reversed(self._files.items()):
                most -= max(map(len, values.values()))
                if most < 0:
                    break
                found.append((files, {name: list(known) for name, known in values.items()}))
        return found

    def take_over(self, latest: Iterable[FileValues]) -> None:
        """Note what another process knows of small files, which `latest` gave there."""
        with self._lock:
            for files, values in reversed([*latest]):
                if files not in self._files:
                    self._note(files, {name: frozenset(known) for name, known in values.items()})

    def is_worth_learning(self, files: str, rows: int) -> bool:
        """Count a look-up of ids in files. True once, when reading all their ids will soon pay off."""
        if rows > ROWS_PER_FRAGMENT or files in self._files or files in self._hashed:
            return False
        with self._lock:
            asked = self._asked[files] = self._asked.pop(files, 0) + 1
            while len(self._asked) > KNOWN_FILES:
                self._asked.popitem(last=False)
        return asked == LOOKUPS_BEFORE_LEARNING + rows // ROWS_LEARNT_PER_LOOKUP

    def learn_ids(self, files: str, ids: pa.ChunkedArray) -> None:
        """Note all ids in files, those of deleted rows too."""
        hashed = HashedIds(ids)
        with self._lock:
            before = self._hashed.pop(files, None)
            self._hashed[files] = hashed
            self._hashed_bytes += hashed.nbytes - (before.nbytes if before else 0)
            self._asked.pop(files, None)
            while self._hashed_bytes > KNOWN_IDS_BYTES:
                _, oldest = self._hashed.popitem(last=False)
                self._hashed_bytes -= oldest.nbytes

    def may_match(self, files: str, filter: Filter) -> bool:
        """Whether rows in these files may satisfy a filter, as far as it is known."""
        values = self._files.get(files)
        if values is None:
            hashed = self._hashed.get(files)
            return hashed is None or _may_match({"id": hashed}, filter)
        return _may_match(values, filter)


def asks_for_values(filter: Filter | None) -> bool:
    """Whether some files can be passed over because of a filter at all."""
    return filter is not None and not _may_match(dict.fromkeys(_COLUMNS, frozenset()), filter)


def _may_match(values: _Values, filter: Filter) -> bool:
    match filter:
        case Comparison(column, "=", value) if column in values:
            return value in values[column]
        case In(column, wanted) if column in values:
            return not values[column].isdisjoint(wanted)
        case And(parts):
            return all(_may_match(values, part) for part in parts)
        case Or(parts):
            return any(_may_match(values, part) for part in parts)
        case _:
            return True


_AUTHORITY: Final = re.compile(r"\A[a-z0-9-]+://[^/]*")
_NEWEST_NAME: Final = 2**64 - 1


@dataclass(frozen=True, slots=True)
class Lineage:
    """The place of one line of versions."""

    path: str
    branch: str | None
    uri: str
    """What the table library opens."""
    is_local: bool
    sync: CommitSync | None = field(compare=False)
    """Brings new files onto the disk; None where an acknowledged write is durable anyway."""
    known: KnownValues = field(default_factory=KnownValues, compare=False)
    checks: IndexChecks | None = field(default=None, compare=False)
    """Tells which indexes are damaged; None where nothing outlives the process."""

    @property
    def is_remote(self) -> bool:
        """Whether it is on an object store, where every look is a request."""
        return self.uri.startswith("s3://")

    @property
    def name(self) -> str:
        """How messages call it."""
        return self.path if self.branch is None else f"{self.path} on branch {self.branch}"

    @property
    def folder(self) -> str:
        """Where its files are, counted from the root of the graph."""
        return self.path if self.branch is None else f"{self.path}/tree/{self.branch}"

    @property
    def path_in_store(self) -> str:
        """The path counted from the root of the disk or the bucket, without a leading slash."""
        return _AUTHORITY.sub("", self.uri).lstrip("/")

    def file(self, relative: str) -> str:
        """The path or address of a file of this line of versions."""
        return f"{self.uri}/{relative}"


def version_file(version: int) -> str:
    """The file that makes a version exist. Names count down, so that listings start with the newest."""
    return f"_versions/{_NEWEST_NAME - version:020d}.manifest"


def version_of_file(name: str) -> int | None:
    """The version a file of `_versions` stands for; None for any other file."""
    match = re.fullmatch(r"(\d{20})\.manifest", name.rpartition("/")[2])
    return _NEWEST_NAME - int(match[1]) if match else None


_TREE: Final = re.compile(r"/tree/.*")
_FILE_SCHEME: Final = re.compile(r"\Afile(?:-object-store)?://")


def other_root(lineage: Lineage, dataset: lance.LanceDataset) -> str | None:
    """Where the graph was when a branch was made, if that is not where it is now.

    What is stored is compared as text. On a local disk another text may still mean the same folder.
    """
    here = lineage.uri.removesuffix(f"/{lineage.folder}")
    for base in dataset.base_paths().values():
        address = base.path
        if _FILE_SCHEME.match(address):
            address = unquote(_FILE_SCHEME.sub("", address))
        table = _TREE.sub("", address.removeprefix(here)) if address.startswith(here) else None
        if table == f"/{lineage.path}":
            continue
        root = _root_of(address, lineage.path)
        if root is not None and not (lineage.is_local and _is_same_folder(root, here)):
            return root
    return None


def line_of_base(lineage: Lineage, base: str) -> str:
    """The line of versions that a branch was made from, where the table is now.

    The library stores an absolute path, escaped in some cases; only what follows the table counts.
    """
    table = lineage.uri.removesuffix("" if lineage.branch is None else f"/tree/{lineage.branch}")
    return f"{table}{base.rpartition(lineage.path)[2]}"


def _root_of(address: str, path: str) -> str | None:
    """The root of the graph in whose table, or in a branch of that, an address lies."""
    root, found, rest = address.rpartition(f"/{path}")
    return root if found and (not rest or _TREE.fullmatch(rest)) else None


def _is_same_folder(one: str, other: str) -> bool:
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False
