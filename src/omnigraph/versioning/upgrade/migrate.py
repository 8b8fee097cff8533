"""Upgrade a graph of an older format in place, or read it without changing it.

Every step can be repeated. A converted branch is left alone; main is converted last, so its stamp says
whether anything remains to be done. Rows, table folders, table versions and branch names stay as they
are, and the tables of old commits are left for a later cleanup.

A read-only handle converts in memory and writes nothing. It reads storage on every call, so it sees
another process converting the graph, and an old writer that continues to use it.
Tests: tests/upgrade.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from threading import Lock

from omnigraph.errors import ForkInUse, TableConflict
from omnigraph.faults import declare
from omnigraph.storage.columns import (
    annotate_column,
    annotate_table,
    is_keyed,
    private_table,
    stage_reshaped,
)
from omnigraph.storage.indexes import list_indexes
from omnigraph.storage.objects import ObjectStore
from omnigraph.storage.refs import StoredBranch
from omnigraph.storage.stage import commit_staged
from omnigraph.storage.table import Table
from omnigraph.storage.tables import TableStore
from omnigraph.storage.uris import GraphRoot
from omnigraph.versioning.contract import (
    ContractFiles,
    files_of,
    read_files,
    write_compiled,
    write_history,
)
from omnigraph.versioning.ids import new_ulid
from omnigraph.versioning.locks import HeldLock, WriterLocks
from omnigraph.versioning.manifest import Manifest
from omnigraph.versioning.manifest_compaction import index_manifest
from omnigraph.versioning.rows import (
    KEY_COLUMN,
    KEY_METADATA,
    MANIFEST_PATH,
    STAMP_KEY,
    is_older_format,
    is_older_graph,
    newest_manifest,
    read_stamp,
    rows_table,
)
from omnigraph.versioning.upgrade.convert import (
    UpgradedSchema,
    converted_rows,
    known_table_keys,
    upgraded_schema,
)
from omnigraph.versioning.upgrade.old_layout import (
    KEYED_STAMP,
    WITHOUT_RUNS_STAMP,
    OldGraph,
    is_run,
)

AFTER_KEY = declare("upgrade.after_key_annotation", "after the manifest's key is declared")
AFTER_KEY_STAMP = declare("upgrade.after_key_stamp", "after that is recorded in the stamp")
AFTER_SWEEP = declare("upgrade.after_run_sweep", "after left-over run branches are removed")
AFTER_SWEEP_STAMP = declare("upgrade.after_run_sweep_stamp", "after that is recorded, too")
AFTER_NAMES = declare("upgrade.after_branch_names", "after branches are named in their refs")
AFTER_SCHEMA = declare("upgrade.after_schema_written", "after the schema has its identities")
BEFORE_OVERWRITE = declare("upgrade.before_overwrite", "before a branch's manifest is converted")
AFTER_OVERWRITE = declare("upgrade.after_overwrite", "after a branch's manifest is converted")

_log = logging.getLogger(__name__)


def migrate(root: GraphRoot, objects: ObjectStore, tables: TableStore) -> None:
    """Convert a graph of an older format; one that is up to date costs a look at its manifest.

    Raises `NewerFormat` and, where there is no graph, `TableMissing`.
    """
    if not is_older_graph(tables):
        return
    branches = OldGraph(tables).all_branches()
    with WriterLocks(root, objects).hold_all([None, *branches], "upgrade") as lock:
        _Migration(objects, tables, lock).run()


class _Migration:
    """The steps, all of them under the locks of all branches."""

    def __init__(self, objects: ObjectStore, tables: TableStore, lock: HeldLock) -> None:
        self._objects = objects
        self._tables = tables
        self._lock = lock
        self._old = OldGraph(tables)

    def run(self) -> None:
        main = self._newest(None)
        if not is_older_format(main.schema):
            return
        stamp = read_stamp(main.schema)
        if stamp < KEYED_STAMP:
            self._lock.check()
            if not is_keyed(main, KEY_COLUMN):
                main = annotate_column(main, KEY_COLUMN, KEY_METADATA)
            AFTER_KEY.hit()
            self._lock.check()
            main = annotate_table(main, {STAMP_KEY: str(KEYED_STAMP)})
            AFTER_KEY_STAMP.hit()
        if stamp < WITHOUT_RUNS_STAMP:
            self._sweep_runs()
            AFTER_SWEEP.hit()
            self._lock.check()
            annotate_table(main, {STAMP_KEY: str(WITHOUT_RUNS_STAMP)})
            AFTER_SWEEP_STAMP.hit()
        self._name_branches()
        AFTER_NAMES.hit()
        branches = sorted(self._old.branches(WITHOUT_RUNS_STAMP))
        schema = self._write_schema(branches)
        AFTER_SCHEMA.hit()
        for branch in [*branches, None]:
            self._convert(branch, schema)

    def _sweep_runs(self) -> None:
        """Remove run branches; one that a branch was made from stays until nothing needs it."""
        runs = {name for name in self._old.all_branches() if is_run(name)}
        removed: set[str] | None = None
        while runs and removed != set():
            removed = set()
            for name in sorted(runs):
                self._lock.check()
                try:
                    self._tables.reclaim_branch(MANIFEST_PATH, name, self._objects)
                except ForkInUse:
                    continue
                removed.add(name)
            runs -= removed
        for name in sorted(runs):
            _log.warning("keeping run branch %s: another branch was made from it", name)

    def _name_branches(self) -> None:
        """Note public names before anything is converted: a converted branch is not looked at again."""
        stored = self._old.all_branches()
        for name, named in self._old.branches(WITHOUT_RUNS_STAMP).items():
            if named != stored[name]:
                self._lock.check()
                self._tables.describe_branch(MANIFEST_PATH, name, named.metadata, self._objects)

    def _write_schema(self, branches: list[str]) -> UpgradedSchema:
        keys = known_table_keys(self._tables, branches)
        schema = upgraded_schema(read_files(self._objects), keys)
        self._lock.check()
        write_history(self._objects, schema.contract.ir)
        write_compiled(self._objects, schema.contract)
        return schema

    def _convert(self, branch: str | None, schema: UpgradedSchema) -> None:
        table = self._newest(branch)
        operation_id = new_ulid()
        if is_older_format(table.schema):
            rows = rows_table(converted_rows(self._old.branch(table), schema))
            staged = stage_reshaped(table, rows)
            BEFORE_OVERWRITE.hit(branch=branch)
            self._lock.check()
            try:
                table = commit_staged(
                    table, staged, operation_id=operation_id, writer_kind="Upgrade"
                )
            except TableConflict:
                # Where the lock does not reach, the overwrite decides: another process has converted it.
                table = self._tables.open(MANIFEST_PATH, branch)
                if is_older_format(table.schema):
                    raise
            AFTER_OVERWRITE.hit(branch=branch)
        if not list_indexes(table):
            index_manifest(table, operation_id)

    def _newest(self, branch: str | None) -> Table:
        """The newest version of a branch's manifest; one that a power loss has torn is taken away."""
        torn = self._tables.find_torn(MANIFEST_PATH, branch)
        if torn is not None:
            self._lock.check()
            self._tables.remove_torn(torn, self._objects)
        return self._tables.open(MANIFEST_PATH, branch)


@dataclass(frozen=True, slots=True)
class _Source:
    """What a conversion was made from; it holds as long as all of that is the same."""

    version: int
    written_at: datetime
    beside: tuple[int | None, ...]
    files: ContractFiles
    known_tables: int


class OldManifest(Manifest):
    """The manifest of an older graph, presented in the present format. Thread-safe."""

    def __init__(self, tables: TableStore, objects: ObjectStore) -> None:
        super().__init__(tables)
        self._objects = objects
        self._old = OldGraph(tables)
        self._converted: dict[str | None, tuple[_Source, Table]] = {}
        self._converting = Lock()
        self._keys: set[str] = set()
        self._upgraded: tuple[tuple[ContractFiles, int], UpgradedSchema] | None = None

    def contract_files(self) -> ContractFiles:
        """The schema files as they would be after a conversion."""
        files = read_files(self._objects)
        if not is_older_graph(self.tables):
            return files
        with self._converting:
            return files_of(self._schema(files).contract)

    def refs(self) -> Mapping[str, StoredBranch]:
        main = newest_manifest(self.tables)
        if not is_older_format(main.schema):
            return super().refs()
        return self._old.branches(read_stamp(main.schema))

    def _checked(self, table: Table) -> Table:
        if not is_older_format(table.schema):
            return table
        with self._converting:
            files, beside = read_files(self._objects), self._old.beside(table.branch)
            source = _Source(table.version, table.written_at, beside, files, len(self._keys))
            known = self._converted.get(table.branch)
            if known is not None and known[0] == source:
                return known[1]
            old = self._old.branch(table)
            schema = self._schema(files, {row.table_key for row in old.rows})
            rows = rows_table(converted_rows(old, schema))
            converted = private_table(MANIFEST_PATH, table.branch, rows)
            source = replace(source, known_tables=len(self._keys))
            self._converted[table.branch] = (source, converted)
            return converted

    def _schema(
        self, files: ContractFiles, needed: set[str] | frozenset[str] = frozenset()
    ) -> UpgradedSchema:
        """The schema with its identities; the tables of all branches are asked for when needed."""
        if not self._keys or not needed <= self._keys:
            main = newest_manifest(self.tables)
            branches = self._old.branches(read_stamp(main.schema))
            self._keys |= known_table_keys(self.tables, branches)
        source = (files, len(self._keys))
        if self._upgraded is None or self._upgraded[0] != source:
            self._upgraded = (source, upgraded_schema(files, self._keys))
        return self._upgraded[1]
