"""The tables of one graph, and the only access to the table library.

Creating, opening and branching tables. Changes to a table are staged (`stage`, `delta`, `indexes`)
and committed one by one; nothing here makes a change visible in the graph.
Tests: tests/storage/tables.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

import lance
import pyarrow as pa
from lance.file import LanceFileSession
from lance.lance import _Session as Session

from omnigraph.errors import (
    FileDamaged,
    ForkExists,
    ForkInUse,
    GraphMoved,
    StoreCallFailed,
    TableExists,
    TableMissing,
    TornVersion,
)
from omnigraph.limits import INDEX_CACHE_BYTES, KEPT_TABLES, METADATA_CACHE_BYTES
from omnigraph.storage import refs
from omnigraph.storage.commit_sync import CommitSync
from omnigraph.storage.durability import DiskSync, Durability
from omnigraph.storage.failures import UNREACHABLE, Failure, classify, naming_failures
from omnigraph.storage.indexes import IndexChecks
from omnigraph.storage.lineage import KnownValues, Lineage, version_file, version_of_file
from omnigraph.storage.objects import ObjectStore
from omnigraph.storage.refs import StoredBranch
from omnigraph.storage.table import Table
from omnigraph.storage.uris import GraphRoot, s3_options
from omnigraph.storage.versions import (
    ObjectWatch,
    RemoteVersions,
    VersionObject,
    VersionWatch,
    newest_version,
    noted_version,
)
from omnigraph.temporary import TemporaryFolder

if TYPE_CHECKING:
    from omnigraph.storage.torn import Torn

_NO_CONFIG: Final[Mapping[str, str]] = MappingProxyType({})
_PLAIN_PATH: Final = re.compile(r"[\w/. -]+", re.ASCII)
"""Paths that the library never escapes."""


class TableStore:
    """The tables below one root. Thread-safe; all handles share one cache."""

    def __init__(self, root: GraphRoot, durability: Durability) -> None:
        self._root = root
        self._durability = durability
        self._options = s3_options() if root.kind == "s3" else None
        self._session = Session(
            index_cache_size_bytes=INDEX_CACHE_BYTES,
            metadata_cache_size_bytes=METADATA_CACHE_BYTES,
        )
        self._remote = RemoteVersions(root) if root.kind == "s3" else None
        self._known = KnownValues()
        self._kept: dict[tuple[str, str | None], Table] = {}
        on_disk = root.kind == "local" and durability is Durability.FSYNC
        self._sync = CommitSync(DiskSync(root.uri, durability)) if on_disk else None
        self._checks = None
        if root.kind != "memory":
            is_local = root.kind == "local"
            self._checks = IndexChecks(is_local=is_local, options=self._options, sync=self._sync)

    def is_like(self, other: TableStore) -> bool:
        """Whether another object stands for the same tables and is as careful with the disk."""
        mine, theirs = self._root.identity, other._root.identity
        return (mine, self._durability) == (theirs, other._durability)

    def __reduce__(self) -> tuple[type[TableStore], tuple[GraphRoot, Durability]]:
        """In another process the same tables, reached from there."""
        return TableStore, (self._root, self._durability)

    def uncached(self) -> TableStore:
        """The same tables, without anything that was read of them before."""
        return TableStore(self._root, self._durability)

    @property
    def root(self) -> GraphRoot:
        """The graph the tables belong to."""
        return self._root

    @property
    def is_shared(self) -> bool:
        """Whether other processes can see these tables."""
        return self._root.kind != "memory"

    @property
    def is_remote(self) -> bool:
        """Whether the tables are on an object store, where every read is a request."""
        return self._remote is not None

    def create(
        self,
        path: str,
        schema: pa.Schema,
        *,
        rows: pa.Table | None = None,
        config: Mapping[str, str] = _NO_CONFIG,
        keeps_row_ids: bool = True,
    ) -> Table:
        """Create a table with its first rows and the schema's metadata in one commit.

        A table that keeps row ids also keeps in each of its versions when every row was last
        written: with a row per commit, a version then grows with the history.
        `config` follows in a second one, as the library has no way to give it with the first.
        Raises `TableExists`.
        """
        from omnigraph.storage.blobs import stored_schema
        from omnigraph.storage.stage import WRITE_OPTIONS, fit_rows

        lineage = self._lineage(path, None)
        stored = stored_schema(schema)
        content = fit_rows(stored.empty_table() if rows is None else rows, stored)
        with naming_failures("create", lineage.uri):
            try:
                dataset = lance.write_dataset(
                    content,
                    lineage.uri,
                    mode="create",
                    enable_stable_row_ids=keeps_row_ids,
                    enable_v2_manifest_paths=True,
                    auto_cleanup_options=None,
                    storage_options=self._options,
                    session=self._session,
                    **WRITE_OPTIONS,
                )
            except OSError as error:
                if classify(error) is not Failure.ALREADY_EXISTS:
                    raise
                raise TableExists(path) from error
            self._synced(lineage, dataset)
            if config:
                dataset.update_config(dict(config))
                self._synced(lineage, dataset)
        return Table(lineage, dataset)

    def open(self, path: str, branch: str | None = None, version: int | None = None) -> Table:
        """Open a table at its newest or a given version.

        Raises `TableMissing`, `TornVersion` for a newest version that a power loss left incomplete,
        `FileDamaged` for one whose file is there to its end and cannot be used, and `GraphMoved` for
        a branch that was made at another address.
        """
        kept = self._kept.get((path, branch))
        if kept is not None and kept.version == version:
            return kept
        lineage = self._lineage(path, branch)
        try:
            with naming_failures("open", lineage.uri):
                table = Table(lineage, self._open(lineage, version))
                _ = table.schema
        except TableMissing as error:
            if version is not None:
                # A file of zeros says that it is another version.
                self._refuse_damaged(lineage, version, error)
            raise
        except StoreCallFailed as error:
            if error.cause == UNREACHABLE:
                raise
            torn = self.find_torn(path, branch) if version is None else None
            if torn is not None:
                raise TornVersion(lineage.uri, torn.version, torn.previous, torn.cause) from error
            self._refuse_damaged(lineage, version, error)
            raise
        if branch is not None:
            self._refuse_moved(table, branch)
        return table

    def keep(self, tables: Iterable[Table]) -> None:
        """Remember versions that this process has written, where opening one takes requests.

        Only there is a name of a branch, and with it the number of a version, given once.
        """
        if self._remote is not None:
            for table in tables:
                self._kept.pop((table.path, table.branch), None)
                self._kept[table.path, table.branch] = table
            while len(self._kept) > KEPT_TABLES:
                self._kept.pop(next(iter(self._kept)), None)

    def forget_kept(self) -> None:
        """Forget them: there may be another graph in the place of the one that was known."""
        self._kept.clear()

    def line(self, path: str, branch: str | None) -> Lineage:
        """Where the versions of a table are, without looking at them."""
        return self._lineage(path, branch)

    def newest_object(self, path: str, branch: str | None) -> VersionObject | None:
        """The newest version of a line on an object store, in one request; None if there is none."""
        if self._remote is None:
            return None
        return self._remote.newest(self._lineage(path, branch))

    def open_found(self, path: str, branch: str | None, found: VersionObject) -> Table:
        """Open a version that a look at an object store has found; `Table.watch` then works."""
        table = self.open(path, branch, found.version)
        return Table(table.lineage, table.dataset, self.watch_found(path, branch, found))

    def watch_found(self, path: str, branch: str | None, found: VersionObject) -> VersionWatch:
        """The watch of a version that a look at an object store has found."""
        assert self._remote is not None
        return ObjectWatch(self._remote, self._lineage(path, branch), found.version, found.token)

    def watch_written(self, table: Table) -> VersionWatch | None:
        """The watch of a version that this process has just written."""
        if self._remote is None:
            return table.watch()
        return ObjectWatch(self._remote, table.lineage, table.version, None)

    def _refuse_moved(self, table: Table, branch: str) -> None:
        from omnigraph.storage.lineage import other_root

        made_at = other_root(table.lineage, table.dataset)
        if made_at is not None:
            raise GraphMoved(branch, made_at, self._root.uri)

    def _refuse_damaged(
        self, lineage: Lineage, version: int | None, error: StoreCallFailed
    ) -> None:
        """Raise `FileDamaged` if the file of a version that cannot be opened can be read as bytes.

        Otherwise it is the store that fails, and the file may be as it was.
        """
        files = LanceFileSession(lineage.uri, storage_options=self._options)
        with suppress(OSError, RuntimeError):  # The library has both for a store that fails.
            if version is None:
                listed = map(version_of_file, files.list("_versions"))
                version = max((v for v in listed if v is not None), default=None)
            if version is not None and files.contains(version_file(version)):
                with TemporaryFolder("omnigraph-version-") as scratch:
                    files.download_file(version_file(version), f"{scratch}/version")
                what = f"version {version} of {lineage.name}"
                raise FileDamaged(lineage.file(version_file(version)), what, error.cause) from error

    def lost_version(self, table: Table) -> Torn | None:
        """A version after the newest one there is, of which only the library's note is left."""
        lineage = table.lineage
        noted = noted_version(lineage) if lineage.is_local else None
        if noted is None or noted <= table.version:
            return None
        if os.path.exists(lineage.file(version_file(noted))):
            return None  # It was made since the table was opened.
        from omnigraph.storage.torn import Torn

        return Torn(lineage, noted, table.version, "it is missing")

    def exists(self, path: str) -> bool:
        """Whether there is a table, or a torn beginning of one."""
        try:
            self.open(path)
        except TableMissing:
            return False
        except TornVersion:
            return True
        return True

    def directories(self, folder: str) -> list[str]:
        """The paths of everything below a folder that is, or was to be, a table."""
        with naming_failures("list the tables", self._root.join(folder)):
            found = self._files("").list_with_delimiter(folder).common_prefixes
        return sorted(f"{folder}/{path.rpartition('/')[2]}" for path in found)

    def has_files(self, folder: str) -> bool:
        """Whether there is anything in a folder of the graph."""
        with naming_failures("list", self._root.join(folder)):
            return bool(self._files("").list(folder))

    def remove(self, path: str, objects: ObjectStore) -> None:
        """Remove a table with all its versions and branches."""
        if self._root.kind == "memory":
            files = self._files(path)
            for file in files.list():
                files.delete_file(file)
        else:
            objects.delete_prefix(path)

    def create_branch(
        self, path: str, name: str, *, source_branch: str | None, source_version: int
    ) -> Table:
        """Branch a table at a version; nothing is copied. Raises `ForkExists`."""
        lineage = self.fork(self.open(path, source_branch, source_version), name)
        with naming_failures("open", lineage.uri):
            return Table(lineage, self._open(lineage, None))

    def fork(self, source: Table, name: str) -> Lineage:
        """The same for a table that is open at the version. Returns where the branch is."""
        path = source.path
        lineage = self._lineage(path, refs.check_branch_name(name))
        with naming_failures("create a branch", lineage.uri):
            try:
                at = (source.branch, source.version)
                self._branching_handle(source).create_branch(name, at)
            except (OSError, ValueError) as error:
                # The library has several words for "exists"; what is stored decides. It has none for
                # a disk that is full, and then what is stored may be what this call has left.
                if classify(error) is Failure.OTHER or not self.has_branch_files(path, name):
                    raise
                raise ForkExists(path, name) from error
            if self._sync:
                ref_file = self._lineage(path, None).file(refs.ref_of(name))
                self._sync.branch(lineage, ref_file, self._open(lineage, None))
        return lineage

    def list_branches(self, path: str) -> dict[str, StoredBranch]:
        """The branches of a table that have a ref, without those a power loss left half made."""
        from omnigraph.storage.refs import list_whole_branches

        if self._remote is not None:
            listed = self._remote.refs(path)
            if listed is not None:
                return listed
        try:
            table = self.open(path)
        except TornVersion as torn:
            if torn.previous is None:
                raise
            table = self.open(path, version=torn.previous)
        if not table.lineage.is_local:
            return refs.list_refs(table.dataset, table.lineage.uri)
        return list_whole_branches(table.dataset, table.lineage.uri)

    def torn_branches(self, path: str) -> set[str]:
        """Branches of a table that a power loss left half made; they were never acknowledged."""
        from omnigraph.storage.refs import torn_branches

        lineage = self._lineage(path, None)
        return torn_branches(lineage.uri) if lineage.is_local else set()

    def find_branch(self, path: str, name: str, objects: ObjectStore) -> StoredBranch | None:
        """One branch of a table, if it has a ref. Costs one request where listing costs many."""
        # Object stores escape the name of a ref with a slash once more; it is of an older format.
        if self._root.kind != "memory" and "/" not in name:
            with suppress(ValueError, KeyError, TypeError):
                return refs.read_ref(path, name, objects)
        return self.list_branches(path).get(name)

    def oldest_branch(self, path: str) -> str | None:
        """A branch of a table on a local disk, the oldest one; None without any, or elsewhere."""
        from omnigraph.storage.refs import oldest_branch

        lineage = self._lineage(path, None)
        return oldest_branch(lineage.uri) if lineage.is_local else None

    def has_branch_files(self, path: str, name: str) -> bool:
        """Whether anything of a branch is stored, even without a ref (a zombie)."""
        return refs.remains(self._files(path), self._root.join(path), name)

    def zombie_branches(self, path: str) -> set[str]:
        """Branches of a table that have files but no ref."""
        known = self.list_branches(path)
        found = refs.trees(self._files(path), self._root.join(path)) - set(known)
        # Some object stores list a folder that has nothing in it any more.
        return {
            name
            for name in found
            if not refs.encloses(name, known) and self.has_branch_files(path, name)
        }

    def describe_branch(
        self, path: str, name: str, metadata: Mapping[str, str], objects: ObjectStore
    ) -> None:
        """Note something about a branch in its ref, instead of what is noted there."""
        if self._root.kind == "local":
            # The library would put a ref in place that is not on the disk yet, and a power loss
            # could then take a branch that has long been there.
            refs.rewrite_metadata(path, name, metadata, objects)
        else:
            table = self.open(path)
            refs.set_metadata(table.dataset, table.lineage.uri, name, metadata)

    def reclaim_branch(self, path: str, name: str, objects: ObjectStore) -> None:
        """Remove a branch of a table with all its files, if it exists.

        Raises `ForkInUse` while other branches of the table were made from it.
        """
        refs.check_branch_name(name)
        try:
            table = self.open(path)
        except TableMissing:
            return
        if self.torn_branches(path):
            # The library reads all refs before it deletes one, and stumbles over a torn one.
            if any(other.parent == name for other in self.list_branches(path).values()):
                raise ForkInUse(path, name)
            refs.remove_ref_file(path, name, objects)
        else:
            refs.delete_ref(table.dataset, path, table.lineage.uri, name)
        if refs.encloses(name, self.list_branches(path)):
            # Older formats have `a` beside `a/b`; what is left of `a` is unused and harmless.
            return
        if self._root.kind == "memory":
            refs.remove_memory_files(self._files(path), name)
        else:
            refs.remove_files(path, name, objects)

    def find_torn(self, path: str, branch: str | None = None) -> Torn | None:
        """The newest version of a table, if a power loss has left it incomplete."""
        from omnigraph.storage.torn import find_torn_version

        return find_torn_version(self._lineage(path, branch), self._options)

    def remove_torn(self, torn: Torn, objects: ObjectStore) -> None:
        """Remove a torn version, under the branch lock."""
        from omnigraph.storage.torn import remove_torn_version

        remove_torn_version(torn, objects)

    def remove_broken_run(
        self, path: str, branch: str | None, after: int, objects: ObjectStore
    ) -> tuple[int, ...]:
        """Remove the versions after one if some of them are torn; returns those removed."""
        from omnigraph.storage.torn import remove_broken_run

        return remove_broken_run(self._lineage(path, branch), after, self._options, objects)

    def _lineage(self, path: str, branch: str | None) -> Lineage:
        uri = self._root.join(path if branch is None else f"{path}/{refs.tree_of(branch)}")
        is_local = self._root.kind == "local"
        return Lineage(path, branch, uri, is_local, self._sync, self._known, self._checks)

    def _open(self, lineage: Lineage, version: int | None) -> lance.LanceDataset:
        # The library lists the versions to find the newest, which takes the longer the more there
        # are. What it says about a version that cannot be opened is clearer when it has done so.
        newest = newest_version(lineage) if version is None and lineage.is_local else None
        if newest is not None:
            with suppress(OSError, ValueError):
                return self._open(lineage, newest)
        dataset = lance.dataset(
            lineage.uri, version=version, storage_options=self._options, session=self._session
        )
        # The file of another version, or one of zeros, which opens as version zero.
        if dataset.version == 0 or version not in (None, dataset.version):
            cause = f"its version file says version {dataset.version}"
            raise StoreCallFailed("open", lineage.uri, cause)
        return dataset

    def _branching_handle(self, source: Table) -> lance.LanceDataset:
        """A handle to make a branch with.

        On a local disk the library makes an empty directory first, under the escaped form of the
        path: `%C3%BC` beside `ü`. Where it may not, there is no branch. Through its other way to
        the disk it makes none.
        """
        uri = source.lineage.uri
        if self._root.kind != "local" or _PLAIN_PATH.fullmatch(uri):
            return source.dataset
        other_way = f"file-object-store://{quote(uri)}"
        return lance.dataset(other_way, version=source.version, session=self._session)

    def _files(self, path: str) -> LanceFileSession:
        return LanceFileSession(self._root.join(path), storage_options=self._options)

    def _synced(self, lineage: Lineage, dataset: lance.LanceDataset) -> None:
        if self._sync:
            self._sync.commit(lineage, dataset)
