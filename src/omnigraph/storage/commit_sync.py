"""Bringing the files of a table commit onto the disk, in the order that survives a power loss.

The table library never syncs. What a commit adds is known from its transaction, so its cost does
not depend on how many files a table has.
Tests: tests/storage/tables/test_commit_sync.py.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any

import lance
from lance import LanceOperation

from omnigraph.storage.durability import DiskSync
from omnigraph.storage.lineage import Lineage, version_file
from omnigraph.storage.versions import read_transaction


@dataclass(frozen=True, slots=True)
class TableCommit:
    """A transaction and the version of a table that it became, or is to become."""

    lineage: Lineage
    transaction: lance.Transaction

    @property
    def version(self) -> int:
        return int(self.transaction.read_version) + 1

    def files(self) -> tuple[str, str]:
        """The files of the version itself, besides those that it names."""
        version = self.lineage.file(version_file(self.version))
        return _transaction_file(self.lineage, self.transaction), version


class CommitSync:
    """Syncs what commits add, and remembers which version of each line was synced last."""

    def __init__(self, disk: DiskSync) -> None:
        self._disk = disk
        self._safe: dict[str, int] = {}
        self._lock = Lock()

    def before_commits(self, commits: Iterable[TableCommit]) -> None:
        """Data, deletion and index files first: a version must never name a file that may vanish."""
        self._disk.files(f.path for c in commits for f in added_files(c.lineage, c.transaction))

    def fragments(self, lineage: Lineage, fragments: Iterable[lance.FragmentMetadata]) -> None:
        """The files of new fragments, for commits whose transaction only the library sees."""
        self._disk.files(file.path for file in _data_files(lineage, fragments))

    def after_commits(self, commits: Sequence[TableCommit]) -> None:
        """Then the transactions and the versions that name them."""
        self._disk.files([path for c in commits for path in c.files()])
        self._note(commits)

    def all_at_once(self, commits: Sequence[TableCommit], *, with_records: bool = True) -> None:
        """Everything in any order: for publishes, whose files are looked at before another is built
        on one that may be unsynced, and for versions that recovery undoes unless they are published.

        These need no record of their transaction either, which the version repeats.
        """
        files = [f.path for c in commits for f in added_files(c.lineage, c.transaction)]
        files += [path for c in commits for path in (c.files() if with_records else c.files()[1:])]
        self._disk.files(files)
        self._note(commits)

    def _note(self, commits: Iterable[TableCommit]) -> None:
        with self._lock:
            for commit in commits:
                self._safe[commit.lineage.uri] = commit.version

    def _version_file(self, lineage: Lineage, version: int, *others: str) -> None:
        self._disk.files([*others, lineage.file(version_file(version))])
        with self._lock:
            self._safe[lineage.uri] = version

    def note(self, path: str) -> None:
        """A file that is written beside the versions."""
        self._disk.files([path])

    def commit(self, lineage: Lineage, dataset: lance.LanceDataset) -> None:
        """Everything the opened version added, for commits the library makes in one go.

        Also for a version of another process, which may have died before it synced: a writer that builds
        on a version makes sure of it first, so that safe versions never rest on an unsafe one.
        """
        version = dataset.version
        if self.is_safe(lineage, version):
            return
        transaction = read_transaction(dataset, version)
        if transaction is not None:
            rows = added_files(lineage, transaction, with_indexes=False)
            derived = [f for f in added_files(lineage, transaction) if f not in rows]
            record = _transaction_file(lineage, transaction)
            # Indexes and the record of the transaction, which the version repeats, may have been lost
            # since; nothing depends on them.
            found = [f.path for f in derived if os.path.exists(f.path)]
            self._disk.files([*(file.path for file in rows), *found])
            self._version_file(lineage, version, *([record] if os.path.exists(record) else ()))
        else:
            self._disk.files(file.path for file in files_of_version(lineage, dataset))
            self._version_file(lineage, version, *_transaction_files(lineage, version))

    def is_safe(self, lineage: Lineage, version: int) -> bool:
        """Whether a version is known to be on the disk with all its files."""
        with self._lock:
            # Not "up to this one": a branch made again has lower numbers that are not synced yet.
            return self._safe.get(lineage.uri) == version

    def trust(self, lineage: Lineage, version: int) -> None:
        """Take it from another process that a version is on the disk with all its files."""
        with self._lock:
            self._safe[lineage.uri] = version

    def commits(self, lineage: Lineage, dataset: lance.LanceDataset, after: int) -> None:
        """All versions after one up to the opened one, of a call that makes several.

        Recovery classifies an interrupted write by each of them.
        """
        for version in range(after + 1, dataset.version):
            self.commit(lineage, dataset.checkout_version(version))
        self.commit(lineage, dataset)

    def branch(self, lineage: Lineage, ref_file: str, dataset: lance.LanceDataset) -> None:
        """A new branch: its first version, then the ref that makes it exist."""
        self.commit(lineage, dataset)
        self._disk.files([ref_file])


@dataclass(frozen=True, slots=True)
class AddedFile:
    """A local file that a commit adds, and its size where the commit records it."""

    path: str
    size: int | None = None


def added_files(
    lineage: Lineage, transaction: lance.Transaction, *, with_indexes: bool = True
) -> list[AddedFile]:
    """The files that a transaction adds to a line of versions, besides its own record."""
    operation = transaction.operation
    data: Iterable[Any] = ()
    shrunk: Iterable[Any] = ()
    indexes: Iterable[Any] = ()
    match operation:
        case LanceOperation.Append() | LanceOperation.Overwrite() | LanceOperation.Merge():
            data = operation.fragments
        case LanceOperation.Update():
            data, shrunk = operation.new_fragments, operation.updated_fragments
        case LanceOperation.Delete():
            shrunk = operation.updated_fragments
        case LanceOperation.Rewrite():
            data = (f for group in operation.groups for f in group.new_fragments)
        case LanceOperation.CreateIndex() if with_indexes:
            indexes = operation.new_indices
    return [
        *_data_files(lineage, data),
        *_deletion_files(lineage, shrunk, transaction.read_version),
        *_index_files(lineage, indexes),
    ]


def files_of_version(
    lineage: Lineage, dataset: lance.LanceDataset, *, with_indexes: bool = True
) -> list[AddedFile]:
    """All files of a version, for one whose transaction cannot be read: made by a compaction."""
    metadata = [fragment.metadata for fragment in dataset.get_fragments()]
    indexes = dataset.describe_indices() if with_indexes else []
    own = [s.uuid for index in indexes for s in index.segments if s.base_id is None]
    return [
        *_data_files(lineage, metadata),
        *(
            AddedFile(lineage.file(m.deletion_file.path(m.id)))
            for m in metadata
            if m.deletion_file is not None and m.deletion_file.base_id is None
        ),
        *(
            AddedFile(entry.path)
            for uuid in own
            for entry in _entries(lineage.file(f"_indices/{uuid}"))
        ),
    ]


def _transaction_file(lineage: Lineage, transaction: lance.Transaction) -> str:
    name = f"{transaction.read_version}-{transaction.uuid}.txn"
    return lineage.file(f"_transactions/{name}")


def _entries(folder: str) -> list[os.DirEntry[str]]:
    """What is in the folder of an index; nothing if the index was lost, which costs no row."""
    try:
        return list(os.scandir(folder))
    except FileNotFoundError:
        return []


def _transaction_files(lineage: Lineage, version: int) -> list[str]:
    """Those that may have made a version, for one whose transaction cannot be read."""
    # A compaction names the version it was planned on, and there may be one in between.
    planned_on = (f"{version - 1}-", f"{version - 2}-")
    entries = os.scandir(lineage.file("_transactions"))
    return [entry.path for entry in entries if entry.name.startswith(planned_on)]


def _data_files(lineage: Lineage, fragments: Iterable[Any]) -> Iterator[AddedFile]:
    for fragment in fragments:
        for file in fragment.files:
            # One with a base belongs to the line of versions this one was branched from.
            if file.base_id is None:
                path = lineage.file(f"data/{file.path}")
                yield from map(AddedFile, _large_values(path))
                yield AddedFile(path, file.file_size_bytes)


def _large_values(data_file: str) -> list[str]:
    """Blobs that are kept beside a data file, in a directory of its name."""
    directory = os.path.splitext(data_file)[0]
    return [entry.path for entry in os.scandir(directory)] if os.path.isdir(directory) else []


def _deletion_files(
    lineage: Lineage, fragments: Iterable[Any], read_version: int
) -> Iterator[AddedFile]:
    for fragment in fragments:
        deletion = fragment.deletion_file
        # Older deletions have been there before; only a new one carries the version it was read at.
        if deletion is not None and deletion.read_version == read_version:
            yield AddedFile(lineage.file(deletion.path(fragment.id)))


def _index_files(lineage: Lineage, indexes: Iterable[Any]) -> Iterator[AddedFile]:
    for index in indexes:
        for file in index.files or ():
            yield AddedFile(lineage.file(f"_indices/{index.uuid}/{file.path}"), file.size_bytes)
