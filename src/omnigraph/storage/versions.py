"""Versions of a table: where one is stored, and what made it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final, Literal, Protocol, TypeAlias

import lance
from msgspec import Struct

from omnigraph.errors import ObjectMissing, TableMissing
from omnigraph.json_structs import json_line
from omnigraph.side_by_side import each
from omnigraph.storage.failures import naming_failures
from omnigraph.storage.lineage import Lineage, version_file, version_of_file
from omnigraph.storage.objects import VersionToken
from omnigraph.storage.refs import REFS_DIR, StoredBranch, parse_ref
from omnigraph.storage.uris import GraphRoot

OPERATION_ID: Final = "omnigraph.operation_id"
WRITER_KIND: Final = "omnigraph.writer_kind"

_NEWEST_NOTE: Final = "_versions/latest_version_hint.json"
_NUMBERS_TRIED: Final = 64

Operation = Literal[
    "append", "clone", "create_index", "delete", "merge", "overwrite", "project", "restore",
    "rewrite", "update", "update_config", "unnamed", "unknown",
]  # fmt: skip

_OPERATIONS: Final[Mapping[str, Operation]] = {
    "Append": "append",
    "BaseOperation": "unnamed",
    "Clone": "clone",
    "CreateIndex": "create_index",
    "Delete": "delete",
    "Merge": "merge",
    "Overwrite": "overwrite",
    "Project": "project",
    "Restore": "restore",
    "Rewrite": "rewrite",
    "Update": "update",
    "UpdateConfig": "update_config",
}


class VersionInfo(Struct, frozen=True):
    """Where a version is stored. For information only: tables are opened by path and number."""

    manifest_path: str
    manifest_size: int | None
    e_tag: str | None
    naming_scheme: Literal["V1", "V2"] | None

    def to_json(self) -> str:
        return json_line(self)


@dataclass(frozen=True, slots=True)
class VersionRecord:
    """What made a version.

    The library does not name every operation: `unnamed` is what the first of the two commits of a
    compaction, which reserves fragment numbers, looks like. `unknown` are those it names and nothing
    of ours makes; they may change rows.
    """

    version: int
    operation: Operation
    properties: Mapping[str, str]

    @property
    def operation_id(self) -> str | None:
        return self.properties.get(OPERATION_ID)

    @property
    def writer_kind(self) -> str | None:
        return self.properties.get(WRITER_KIND)


def newest_version(lineage: Lineage) -> int | None:
    """The newest version of a line on a local disk, found without listing all of them.

    After every commit the library notes the version it made. A writer that died before that, or lost the
    note to a power loss, leaves one that is behind, so the next numbers are tried, as the library
    does when it commits. None: the versions have to be listed.
    """
    version = noted_version(lineage)
    if version is None or not _exists(lineage, version):
        return None
    for number in range(version, version + _NUMBERS_TRIED):
        if not _exists(lineage, number + 1):
            return number
    return None


def noted_version(lineage: Lineage) -> int | None:
    """The version the library noted as the newest it made; also one that was never synced."""
    return newest_noted(lineage.file(_NEWEST_NOTE))


def confirm_newest(lineage: Lineage, version: int) -> None:
    """Make the note of the newest version true for good, before versions below it are removed.

    Otherwise a note that is behind, now or after a power loss, would name a version that stays while
    the next number is one of those that went: it would pass for the newest.
    """
    if not lineage.is_local:
        return
    note = lineage.file(_NEWEST_NOTE)
    if newest_noted(note) != version:
        written = f"{note}.{os.getpid()}"
        with open(written, "w", encoding="utf-8") as file:
            json.dump({"version": version}, file)
        os.replace(written, note)
    if lineage.sync:
        lineage.sync.note(note)


def newest_noted(note: str) -> int | None:
    """The version a note names; None if the note is missing or unreadable."""
    try:
        with open(note, encoding="utf-8") as file:
            return int(json.load(file)["version"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


FileIdentity: TypeAlias = "tuple[int, int, int]"
"""What tells a file on a local disk from another one of its name: inode, size, time of change."""


class VersionWatch(Protocol):
    """Tells without opening anything whether a version is still the newest of its line.

    A file of the same name that was written again, as after a branch was deleted, is not the same.
    """

    def is_newest(self) -> bool: ...


def watch_version(lineage: Lineage, version: int) -> VersionWatch | None:
    """The watch of a version on a local disk; None elsewhere."""
    if not lineage.is_local:
        return None
    file = lineage.file(version_file(version))
    identity = _file_identity(file)
    if identity is None:
        return None
    return FileWatch(file, lineage.file(version_file(version + 1)), identity)


@dataclass(frozen=True, slots=True)
class FileWatch:
    """A version on a local disk."""

    file: str
    successor: str
    identity: FileIdentity

    def is_newest(self) -> bool:
        return _file_identity(self.file) == self.identity and not os.path.exists(self.successor)


@dataclass(frozen=True, slots=True)
class VersionObject:
    """The object of an object store that makes a version exist, and the token of its content."""

    version: int
    token: VersionToken


class RemoteVersions:
    """The versions and branches of tables on an object store. Thread-safe."""

    def __init__(self, root: GraphRoot) -> None:
        from omnigraph.storage.remote_objects import RemoteObjects

        self._objects = RemoteObjects(root)
        self._refs: dict[str, tuple[VersionToken, StoredBranch]] = {}

    def newest(self, lineage: Lineage) -> VersionObject | None:
        """The newest version of a line, in one request: names of versions count down."""
        first = self._objects.first_below(f"{lineage.folder}/_versions")
        if first is None:
            return None
        name, token = first
        version = version_of_file(name)
        return None if version is None else VersionObject(version, token)

    def refs(self, path: str) -> dict[str, StoredBranch] | None:
        """The branches of a table: one request, and one more for every ref that is new.

        None if a ref is there that only the library can read, or tell what is wrong with.
        """
        folder = f"{path}/{REFS_DIR}"
        listed = {file: t for file, t in self._objects.list_level(folder).objects.items() if t}
        if any("%" in file for file in listed):
            return None
        known = {file: ref for file, ref in self._refs.items() if listed.get(file) == ref[0]}
        missing = [file for file in listed if file not in known]
        try:
            found = each([partial(self._read_ref, file, listed[file]) for file in missing])
        except (ValueError, KeyError, TypeError):
            return None
        known |= {file: ref for file, ref in zip(missing, found, strict=True) if ref is not None}
        self._refs = {f: ref for f, ref in self._refs.items() if not f.startswith(folder)} | known
        return {
            file.removeprefix(f"{folder}/").removesuffix(".json"): known[file][1]
            for file in listed
            if file in known
        }

    def _read_ref(self, file: str, token: VersionToken) -> tuple[VersionToken, StoredBranch] | None:
        """None for a ref that was deleted meanwhile."""
        try:
            # One that was changed since it was listed is newer than its token, and read again then.
            return token, parse_ref(self._objects.read_text_of(file, token))
        except ObjectMissing:
            return None


class ObjectWatch:
    """A version on an object store. One question is one request."""

    def __init__(
        self, versions: RemoteVersions, lineage: Lineage, version: int, token: VersionToken | None
    ) -> None:
        """Without a token, that of the first answer is taken: for a version that this process has
        written itself."""
        self._versions = versions
        self._lineage = lineage
        self._version = version
        self._token = token

    @property
    def token(self) -> VersionToken | None:
        """The token of the version, as far as it is known."""
        return self._token

    def is_newest(self) -> bool:
        return self.matches(self._versions.newest(self._lineage))

    def matches(self, found: VersionObject | None) -> bool:
        """Whether the newest version that was found is the one that is watched."""
        if found is None or found.version != self._version:
            return False
        if self._token is None:
            self._token = found.token
        return self._token == found.token


def _file_identity(file: str) -> FileIdentity | None:
    try:
        found = os.stat(file)
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def _exists(lineage: Lineage, version: int) -> bool:
    return os.path.exists(lineage.file(version_file(version)))


def version_info(lineage: Lineage, version: int) -> VersionInfo:
    """The library tells neither size nor e-tag; on a local disk the size is looked up.

    Raises `TableMissing` for a version that was taken away meanwhile.
    """
    name = version_file(version)
    path = f"{lineage.path_in_store}/{name}"
    try:
        size = os.stat(lineage.file(name)).st_size if lineage.is_local else None
    except FileNotFoundError as error:
        raise TableMissing("look up a version", lineage.uri, str(error)) from error
    return VersionInfo(path, size, None, "V2")


def version_record(lineage: Lineage, dataset: lance.LanceDataset, version: int) -> VersionRecord:
    """Raises `TableMissing` for a version that does not exist (any more)."""
    with naming_failures("read the history", lineage.uri):
        transaction = read_transaction(dataset, version)
    if transaction is None:
        return VersionRecord(version, "rewrite", {})
    operation = _OPERATIONS.get(type(transaction.operation).__name__, "unknown")
    return VersionRecord(version, operation, dict(transaction.transaction_properties or {}))


def read_transaction(dataset: lance.LanceDataset, version: int) -> lance.Transaction | None:
    """What made a version; None for a compaction that rewrote an index.

    The library's Python side cannot build the object for such a transaction, and fails before it
    returns anything of it.
    """
    try:
        return dataset.read_transaction(version)
    except TypeError as error:
        if "RewrittenIndex" not in str(error):
            raise
        return None
