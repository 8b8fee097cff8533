"""A newest version that a power loss left incomplete: finding it, and taking it away.

A version becomes visible before its files are synced. What a power loss tears is therefore always
the newest version of a line, and one that was never acknowledged. The commit of a compaction makes two
versions before anybody can sync the first, so both may be torn. Nothing else is ever removed.
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
from omnigraph.storage.conflicts import cause_of, is_library_failure, naming_failures
from omnigraph.storage.lineage import Lineage, version_file, version_of_file
from omnigraph.storage.objects import ObjectStore
from omnigraph.storage.table import Table
from omnigraph.storage.versions import read_transaction

_MAGIC: Final = b"LANC"
"""How version, data and index files end. A file system may keep the size of a lost file and not its
bytes."""


@dataclass(frozen=True, slots=True)
class Torn:
    """The newest version of a line, which cannot be used, and the one before it."""

    lineage: Lineage
    version: int
    previous: int | None
    cause: str
    below: int | None = None
    """The version between the two, if it is torn as well."""


def find_torn_version(lineage: Lineage, options: dict[str, str] | None) -> Torn | None:
    """The newest version of a line, if it is unreadable while the one before it can be opened.

    Or the one before that: then the file of the version in between must be cut off, which does not
    happen to one that was ever synced. Whatever else keeps a table from being opened is not explained by a power loss.
    """
    files = LanceFileSession(lineage.uri, storage_options=options)
    with naming_failures("list the versions", lineage.uri):
        names = files.list("_versions")
    found = sorted((v for v in map(version_of_file, names) if v is not None), reverse=True)
    if not found:
        return None
    newest = found[0]
    previous, last = (*found[1:3], None, None)[:2]
    cause = _damage(lineage, newest, options)
    if cause is None:
        return None
    if previous is None or _damage(lineage, previous, options) is None:
        return Torn(lineage, newest, previous, cause)
    if last is None or not _is_cut_off(lineage, previous) or _damage(lineage, last, options):
        return None
    return Torn(lineage, newest, last, cause, below=previous)


def remove_torn_version(torn: Torn, objects: ObjectStore) -> None:
    """Take the version away; the caller holds the lock of the branch. Its other files are orphans."""
    lineage = torn.lineage
    folder = lineage.path if lineage.branch is None else f"{lineage.path}/tree/{lineage.branch}"
    # From the end: whoever dies in between leaves the next torn version.
    for version in (torn.version, torn.below):
        if version is not None:
            objects.delete(f"{folder}/{version_file(version)}")


def refuse_incomplete(table: Table) -> None:
    """Raise `StoreCallFailed` for a newest version that lacks some of the files it added.

    Not all of them are read when it is: who builds on a version whose index was torn would make the
    damage last. A version that this process has brought onto the disk is not looked at again. One
    that does not sync looks as well: others may have, and lost the power.
    """
    lineage = table.lineage
    is_safe = lineage.sync is not None and lineage.sync.is_safe(lineage, table.version)
    if lineage.is_local and not is_safe:
        damage = _damage_of(lineage, table.dataset)
        if damage is not None:
            raise StoreCallFailed("open", lineage.uri, damage)


def _damage(lineage: Lineage, version: int, options: dict[str, str] | None) -> str | None:
    """Why a version cannot be used; None when it and everything it added is complete."""
    try:
        dataset = lance.dataset(lineage.uri, version=version, storage_options=options)
    except BaseException as error:
        if not is_library_failure(error):
            raise
        return cause_of(error)
    return _damage_of(lineage, dataset)


def _damage_of(lineage: Lineage, dataset: lance.LanceDataset) -> str | None:
    try:
        transaction = read_transaction(dataset, dataset.version)
        if transaction is not None:
            added = added_files(lineage, transaction)
        else:
            added = files_of_version(lineage, dataset)
    except BaseException as error:
        if not is_library_failure(error):
            raise
        return cause_of(error)
    if lineage.is_local:
        torn = [os.path.basename(file.path) for file in added if not _is_complete(file)]
        if torn:
            return f"incomplete: {', '.join(torn)}"
    return None


def _is_cut_off(lineage: Lineage, version: int) -> bool:
    return lineage.is_local and not ends_like_a_table_file(lineage.file(version_file(version)))


def _is_complete(file: AddedFile) -> bool:
    try:
        size = os.path.getsize(file.path)
    except FileNotFoundError:
        return False
    if file.size is None:
        return size > 0
    return size == file.size and ends_like_a_table_file(file.path)


def ends_like_a_table_file(path: str) -> bool:
    """Whether a version, data or index file is there to its end."""
    with open(path, "rb") as file:
        if file.seek(0, os.SEEK_END) < len(_MAGIC):
            return False
        file.seek(-len(_MAGIC), os.SEEK_END)
        return file.read() == _MAGIC
