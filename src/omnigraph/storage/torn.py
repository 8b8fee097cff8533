"""A newest version that a power loss left incomplete: finding it, and taking it away.

A version becomes visible before its files are synced. What a power loss tears is therefore always
the newest version of a line, and one that was never acknowledged. The commit of a compaction makes two
versions before the first can be synced, so both may be torn. A turn that writers share makes several,
which are synced together. Nothing else is ever removed.

Torn means incomplete: a file is missing, too short, or ends in zeros. A file that is there to its end and
cannot be read is damaged, and so is whatever cannot be read on an object store, which keeps whole
objects or none. Files of indexes do not count: an index is derived from the rows (`index_checks`).
Tests: tests/storage/tables/test_torn.py.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Final

import lance
from lance.file import LanceFileSession

from omnigraph.errors import StoreCallFailed
from omnigraph.storage.commit_sync import AddedFile, added_files, files_of_version
from omnigraph.storage.failures import is_library_failure, naming_failures
from omnigraph.storage.lineage import Lineage, version_file, version_of_file
from omnigraph.storage.objects import ObjectStore
from omnigraph.storage.table import Table
from omnigraph.storage.versions import read_transaction

_MAGIC: Final = b"LANC"
"""How version, data and index files end."""

_FOOTER_BYTES: Final = 16
"""The last part of every such file. A file system may keep the size of a lost file and not its bytes:
then it is zeros."""

_FIRST_FIELDS: Final = (0x0A, 0x08)
"""How the first section of a version file begins: a list of indexes, or a transaction."""


@dataclass(frozen=True, slots=True)
class Torn:
    """The newest version of a line, which cannot be used, and the one before it."""

    lineage: Lineage
    version: int
    previous: int | None
    cause: str
    below: int | None = None
    """The version between the two, if it is torn as well."""

    @property
    def line(self) -> tuple[str, str | None]:
        """The table and the branch of it."""
        return self.lineage.path, self.lineage.branch


def find_torn_version(lineage: Lineage, options: dict[str, str] | None) -> Torn | None:
    """The newest version of a line, if it is unreadable while the one before it can be opened.

    Or the one before that: then the file of the version in between must be cut off, which does not
    happen to one that was ever synced. Whatever else keeps a table from being opened is not explained by a power loss.
    """
    if not lineage.is_local:
        return None
    found = _versions(lineage, options)
    if not found:
        return None
    newest = found[0]
    previous, last = (*found[1:3], None, None)[:2]
    cause = _damage(lineage, newest, options)
    if cause is None:
        return None
    if previous is None or _damage(lineage, previous, options) is None:
        return Torn(lineage, newest, previous, cause)
    if (
        last is None
        or is_whole_version(lineage.file(version_file(previous)))
        or _damage(lineage, last, options)
    ):
        return None
    return Torn(lineage, newest, last, cause, below=previous)


def remove_broken_run(
    lineage: Lineage, after: int, options: dict[str, str] | None, objects: ObjectStore
) -> tuple[int, ...]:
    """Remove all versions after one if a power loss has torn some of them; returns those removed.

    For versions that were never published, by a caller that holds the lock of the branch.
    """
    if not lineage.is_local:
        return ()
    later = [version for version in _versions(lineage, options) if version > after]
    is_gapless = later == list(range(after + len(later), after, -1))
    if is_gapless and not any(_damage(lineage, version, options) for version in later):
        return ()
    # From the end: a process that dies in between leaves a shorter run.
    for version in later:
        objects.delete(f"{lineage.folder}/{version_file(version)}")
    return tuple(later)


def _versions(lineage: Lineage, options: dict[str, str] | None) -> list[int]:
    """The versions of a line that have a file, newest first."""
    files = LanceFileSession(lineage.uri, storage_options=options)
    with naming_failures("list the versions", lineage.uri):
        names = files.list("_versions")
    return sorted((v for v in map(version_of_file, names) if v is not None), reverse=True)


def remove_torn_version(torn: Torn, objects: ObjectStore) -> None:
    """Take the version away; the caller holds the lock of the branch. Its other files are orphans."""
    lineage = torn.lineage
    # From the end: a process that dies in between leaves the next torn version.
    for version in (torn.version, torn.below):
        if version is not None:
            objects.delete(f"{lineage.folder}/{version_file(version)}")


def refuse_incomplete(table: Table) -> None:
    """Raise `StoreCallFailed` for a newest version that lacks some of the rows it added.

    Not all of its files are read when it is: who builds on such a version would make the damage last.
    A version that this process has brought onto the disk is not looked at again. One that does not
    sync looks as well: others may have, and lost the power.
    """
    lineage = table.lineage
    is_safe = lineage.sync is not None and lineage.sync.is_safe(lineage, table.version)
    if lineage.is_local and not is_safe:
        missing = _missing(lineage, table.dataset)
        if missing is not None:
            raise StoreCallFailed("open", lineage.uri, missing)


def _damage(lineage: Lineage, version: int, options: dict[str, str] | None) -> str | None:
    """What a version lacks; None when it and everything it added is there to its end."""
    file = lineage.file(version_file(version))
    try:
        if _is_cut_off(file):
            return "its version file is incomplete"
        dataset = lance.dataset(lineage.uri, version=version, storage_options=options)
        return _missing(lineage, dataset)
    except BaseException as error:
        if not is_library_failure(error):
            raise
        # The file is complete and cannot be used all the same: no power loss did that.
        return None


def _missing(lineage: Lineage, dataset: lance.LanceDataset) -> str | None:
    """Which of the files with rows that a version added are incomplete."""
    transaction = read_transaction(dataset, dataset.version)
    if transaction is not None:
        added = added_files(lineage, transaction, with_indexes=False)
    else:
        added = files_of_version(lineage, dataset, with_indexes=False)
    torn = [os.path.basename(file.path) for file in added if not _is_complete(file)]
    return f"incomplete: {', '.join(torn)}" if torn else None


def _is_complete(file: AddedFile) -> bool:
    try:
        size = os.path.getsize(file.path)
        return (
            size > 0 if file.size is None else size >= file.size and not _ends_in_zeros(file.path)
        )
    except FileNotFoundError:
        return False


def is_whole_version(path: str) -> bool:
    """Whether a version file is there to its end, whatever it says."""
    try:
        return not _is_cut_off(path)
    except FileNotFoundError:
        return False


def _is_cut_off(path: str) -> bool:
    """Whether the end of a version file is missing."""
    with open(path, "rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - _FOOTER_BYTES))
        footer = file.read()
        if not any(footer):
            return True
        if footer.endswith(_MAGIC):
            return False
        file.seek(0)
        content = file.read()
    # Without its last bytes: sections, each after its length, tell where they were to be.
    end = len(content) - _FOOTER_BYTES
    position = 0
    while position < end:
        position += 4 + int.from_bytes(content[position : position + 4], "little")
    begins_well = len(content) <= 4 or content[4] in _FIRST_FIELDS
    return position != end and begins_well


def _ends_in_zeros(path: str) -> bool:
    with open(path, "rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - _FOOTER_BYTES))
        return not any(file.read())
