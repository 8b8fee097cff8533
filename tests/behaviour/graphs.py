"""The standard graph of these tests, and the way behind its façade.

`Backstage` opens the same graph a second time, without the façade, and publishes commits that no
public call makes yet.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from omnigraph.api.graph import Graph
from omnigraph.settings import read_settings
from omnigraph.storage.durability import Durability
from omnigraph.storage.objects import open_store
from omnigraph.storage.stage import commit_staged, stage_append
from omnigraph.storage.table import Table
from omnigraph.storage.tables import TableStore
from omnigraph.storage.uris import normalise_root
from omnigraph.versioning.branches import Branches
from omnigraph.versioning.commits import (
    CommitDraft,
    CommitId,
    CommitRecord,
    OperationId,
    OperationKind,
)
from omnigraph.versioning.contract import check_files, read_files
from omnigraph.versioning.ids import new_ulid, now_micros
from omnigraph.versioning.locks import WriterLocks
from omnigraph.versioning.manifest import Manifest
from omnigraph.versioning.publish import Publication, publish
from omnigraph.versioning.rows import MANIFEST_PATH, TableVersion, VersionRef
from omnigraph.versioning.snapshot import SnapshotEntry

SCHEMA = """
node Person { name: String @key  age: I32? }
node Company { name: String @key }
edge Knows: Person -> Person { since: Date? }
edge WorksAt: Person -> Company
"""
OTHER_SCHEMA = "node Robot { serial: I64 @key }\n"

PERSON, COMPANY = "node:Person", "node:Company"
KEYS = ["edge:Knows", "edge:WorksAt", COMPANY, PERSON]


class Backstage:
    """A graph without its façade."""

    def __init__(self, uri: str | Path) -> None:
        self.root = normalise_root(str(uri))
        durability = Durability(read_settings().durability)
        self.objects = open_store(self.root, durability)
        self.tables = TableStore(self.root, durability)
        self.manifest = Manifest(self.tables)
        self.branches = Branches(self.manifest, self.tables, self.objects)
        self.locks = WriterLocks(self.root, self.objects)

    def draft(self, **fields: Any) -> CommitDraft:
        contract = check_files(read_files(self.objects))
        given = {"operation": OperationKind.MUTATE, **fields}
        return CommitDraft(
            **{
                "graph_commit_id": CommitId(new_ulid()),
                "operation_id": OperationId(new_ulid()),
                "created_at": now_micros(),
                "schema_ir_hash": contract.hash,
                "schema_ref": contract.reference,
                **given,
            }
        )

    def publish(self, branch: str = "main", **fields: Any) -> CommitRecord:
        """A commit that changes no table."""
        physical = self.branches.find(branch).physical
        return publish(self.manifest, physical, Publication(self.draft(**fields)))

    def append(self, entry: SnapshotEntry, names: Sequence[str]) -> TableVersion:
        """Rows in a table of main, not published yet."""
        table = self.tables.open(entry.location)
        rows = pa.table(
            {
                field.name: pa.array(
                    names if field.name in ("id", "name") else [None] * len(names), field.type
                )
                for field in table.schema
            }
        )
        return self._appended(entry, table, rows)

    def _appended(self, entry: SnapshotEntry, table: Table, rows: pa.Table) -> TableVersion:
        staged = stage_append(table, rows)
        committed = commit_staged(table, staged, operation_id=new_ulid(), writer_kind="Load")
        return TableVersion(
            entry.table_id,
            committed.version,
            None,
            committed.row_count(),
            committed.version_info().to_json(),
        )

    def add(self, graph: Graph, table_key: str, names: Sequence[str]) -> CommitRecord:
        """Rows in a table of main, in one commit."""
        entry = graph._snapshot("main").entry(table_key)
        return self._publish_version(entry, self.append(entry, names))

    def add_rows(self, graph: Graph, table_key: str, rows: Mapping[str, Any]) -> CommitRecord:
        """Rows in a table of main, in one commit, whatever a load would say about their values."""
        entry = graph._snapshot("main").entry(table_key)
        table = self.tables.open(entry.location)
        stored = pa.table({f.name: pa.array(rows[f.name], f.type) for f in table.schema})
        return self._publish_version(entry, self._appended(entry, table, stored))

    def _publish_version(self, entry: SnapshotEntry, version: TableVersion) -> CommitRecord:
        expected = {entry.table_id: entry.version_ref}
        return publish(
            self.manifest, None, Publication(self.draft(), (version,), expected=expected)
        )

    def rows(self, branch: str | None = None, version: int | None = None) -> list[dict[str, Any]]:
        """The rows of the manifest, at its newest or another stored version."""
        found: list[dict[str, Any]] = (
            self.tables.open(MANIFEST_PATH, branch, version).read().to_pylist()
        )
        return found


def pins(graph: Graph, branch: str = "main") -> dict[str, VersionRef]:
    return {key: entry.version_ref for key, entry in graph._snapshot(branch).entries.items()}


def tree(folder: Path) -> dict[str, tuple[int, str]]:
    """Every file and folder below one: when it was changed, and the hash of what it holds."""
    found = {}
    for path in [folder, *sorted(folder.rglob("*"))]:
        content = path.read_bytes() if path.is_file() else b""
        digest = hashlib.sha256(content).hexdigest()
        found[str(path.relative_to(folder))] = (path.stat().st_mtime_ns, digest)
    return found


@contextmanager
def without_write_access(folder: Path) -> Iterator[None]:
    """Nothing below the folder can be changed by this process, not even if it runs as root."""
    changed = [folder, *folder.rglob("*")]
    modes = {path: path.stat().st_mode for path in changed}
    for path in changed:
        path.chmod(0o555 if path.is_dir() else 0o444)
    user = os.geteuid()
    try:
        if user == 0:
            os.seteuid(65534)
        yield
    finally:
        if user == 0:
            os.seteuid(0)
        for path, mode in modes.items():
            path.chmod(mode)
