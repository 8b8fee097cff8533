"""Reading a graph of an older format as it is: converted in memory, with nothing written anywhere.

Storage is looked at on every call. When somebody else converts the graph meanwhile, or an old writer
goes on using it, that is seen.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from threading import Lock

from omnigraph.storage.columns import private_table
from omnigraph.storage.objects import ObjectStore
from omnigraph.storage.refs import StoredBranch
from omnigraph.storage.table import Table
from omnigraph.storage.tables import TableStore
from omnigraph.versioning.contract import ContractFiles, files_of, read_files
from omnigraph.versioning.manifest import Manifest
from omnigraph.versioning.rows import MANIFEST_PATH, rows_table
from omnigraph.versioning.stamp import is_older_format, is_older_graph, newest_manifest, read_stamp
from omnigraph.versioning.upgrade.convert import converted_rows
from omnigraph.versioning.upgrade.identities import UpgradedSchema, upgraded_schema
from omnigraph.versioning.upgrade.manifests import known_table_keys
from omnigraph.versioning.upgrade.old_layout import OldGraph


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
