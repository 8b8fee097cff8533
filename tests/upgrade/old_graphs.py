"""Graphs as older formats stored them, built from real tables, with a record of what was in them.

The builder knows nothing of the code under test but the names of files, tables and columns.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
from ulid import ULID

from omnigraph.catalog.compile import build_declared
from omnigraph.language.syntax import Source
from omnigraph.storage.uris import s3_options
from omnigraph.versioning.upgrade.old_layout import ACTORS_PATH, COMMITS_PATH, RECOVERIES_PATH

SCHEMA = """
interface Named { name: String }
node Person implements Named { name: String @key  age: I32? }
node Company { name: String @key }
edge Knows: Person -> Person { since: Date? }
"""
PERSON, COMPANY, KNOWS = "node:Person", "node:Company", "edge:Knows"
KEYS = (KNOWS, COMPANY, PERSON)
RECOVERY = "omnigraph:recovery"

_FOLDERS = {
    PERSON: "nodes/40d76f1f51639ec0",
    COMPANY: "nodes/7cb4e55c59663b1c",
    KNOWS: "edges/602a25a3bd0b455b",
    "node:Gone": "nodes/00000000000000aa",
}
_COLUMNS = {
    PERSON: [("id", pa.utf8()), ("age", pa.int32()), ("name", pa.utf8())],
    COMPANY: [("id", pa.utf8()), ("name", pa.utf8())],
    KNOWS: [("id", pa.utf8()), ("src", pa.utf8()), ("dst", pa.utf8()), ("since", pa.date32())],
    "node:Gone": [("id", pa.utf8()), ("name", pa.utf8())],
}
_NOT_NULL = ("id", "src", "dst", "name")
_TIME = pa.timestamp("us")
_COMMITS = pa.schema(
    [
        pa.field("graph_commit_id", pa.utf8(), nullable=False),
        pa.field("manifest_branch", pa.utf8()),
        pa.field("manifest_version", pa.uint64(), nullable=False),
        pa.field("parent_commit_id", pa.utf8()),
        pa.field("merged_parent_commit_id", pa.utf8()),
        pa.field("created_at", _TIME, nullable=False),
    ]
)
_ACTORS = pa.schema(
    [
        pa.field("graph_commit_id", pa.utf8(), nullable=False),
        pa.field("actor_id", pa.utf8(), nullable=False),
        pa.field("created_at", _TIME, nullable=False),
    ]
)
_RECOVERIES = pa.schema(
    [
        pa.field("graph_commit_id", pa.utf8(), nullable=False),
        pa.field("recovery_kind", pa.utf8(), nullable=False),
        pa.field("recovery_for_actor", pa.utf8()),
        pa.field("operation_id", pa.utf8(), nullable=False),
        pa.field("sidecar_writer_kind", pa.utf8(), nullable=False),
        pa.field("per_table_outcomes_json", pa.utf8(), nullable=False),
        pa.field("created_at", _TIME, nullable=False),
    ]
)
_BEGINNING = datetime(2025, 1, 1)


@dataclass(frozen=True)
class Entry:
    """A table of a snapshot: where it is, and the ids of its rows."""

    version: int
    branch: str | None
    ids: tuple[str, ...]


@dataclass(frozen=True)
class Past:
    """A commit, and what was in the graph when it was made."""

    id: str
    branch: str | None
    parent: str | None
    actor: str | None
    created_at: int
    tables: Mapping[str, Entry]


class OldGraph:
    """A graph of format 1, 2 or 3 under construction. Branch None is main.

    With `uri` its tables are there, and only its schema files below `root`.
    """

    def __init__(
        self, root: Path, stamp: int, *, extra: Sequence[str] = (), uri: str | None = None
    ) -> None:
        self.root = root
        self._home = str(root) if uri is None else uri
        self._options = None if uri is None else s3_options()
        self.history: dict[str | None, list[Past]] = {None: []}
        self._tables: dict[str | None, dict[str, Entry]] = {None: {}}
        self._clock = 0
        root.mkdir()
        self._write_schema()
        for key in [*KEYS, *extra]:
            fields = [pa.field(n, t, nullable=n not in _NOT_NULL) for n, t in _COLUMNS[key]]
            self._create(_FOLDERS[key], pa.schema(fields).empty_table())
            self._tables[None][key] = Entry(1, None, ())
        rows = [row for key in self._tables[None] for row in self._first_rows(key)]
        self._create("__manifest", pa.Table.from_pylist(rows, _manifest_schema(stamp)))
        self._open("__manifest").update_config({"table_version_management": "true"})
        self._create(COMMITS_PATH, _COMMITS.empty_table())
        self._create(ACTORS_PATH, _ACTORS.empty_table())
        self._record(None, None)

    # -- what happens to the graph ----------------------------------------------------------

    def add(
        self, key: str, ids: Sequence[str], *, branch: str | None = None, actor: str | None = None
    ) -> Past:
        """Rows in a table, and their commit."""
        self.publish(key, ids, branch)
        return self._record(branch, actor)

    def publish(self, key: str, ids: Sequence[str], branch: str | None = None) -> None:
        """The same, ended by a crash before the commit was recorded."""
        before = self._tables[branch][key]
        path = _FOLDERS[key]
        if branch is not None and before.branch != branch:
            self._open(path).create_branch(branch, (before.branch, before.version))
        table = self._open(path, branch)
        stored = self._append(table, {name: _values(name, ids) for name in table.schema.names})
        entry = Entry(stored.version, branch, (*before.ids, *ids))
        self._tables[branch][key] = entry
        self._insert(branch, [_version_row(key, entry)])

    def drop(self, key: str, *, actor: str | None = None) -> Past:
        """A type is dropped: its table gets a tombstone."""
        entry = self._tables[None].pop(key)
        tombstone = {
            "object_id": f"{key}$tombstone${entry.version:020d}",
            "object_type": "table_tombstone",
            "table_key": key,
            "table_version": entry.version,
        }
        self._insert(None, [tombstone])
        return self._record(None, actor)

    def recover(self, key: str, ids: Sequence[str], *, for_actor: str, operation: str) -> Past:
        """What a dead writer had begun is rolled forward."""
        before = self._tables[None][key].version
        self.publish(key, ids)
        past = self._record(None, RECOVERY)
        outcome = {"table_key": key, "from_version": before, "to_version": before + 1}
        row = {
            "graph_commit_id": past.id,
            "recovery_kind": "RolledForward",
            "recovery_for_actor": for_actor,
            "operation_id": operation,
            "sidecar_writer_kind": "Mutation",
            "per_table_outcomes_json": json.dumps([outcome]),
            "created_at": past.created_at,
        }
        self._create(RECOVERIES_PATH, pa.Table.from_pylist([row], _RECOVERIES))
        return past

    def fork(self, name: str, source: str | None = None, *, with_commits: bool = True) -> None:
        """A branch under the name somebody gave it, as it is."""
        paths = ["__manifest", COMMITS_PATH] if with_commits else ["__manifest"]
        for path in paths:
            table = self._open(path, source)
            table.create_branch(name, (source, table.version))
        self.history[name] = list(self.history[source])
        self._tables[name] = dict(self._tables[source])

    # -- how it is stored -------------------------------------------------------------------

    def _write_schema(self) -> None:
        document = _first_ir(build_declared(Source("_schema.pg", SCHEMA)).to_json())
        text = json.dumps(document, separators=(",", ":"), ensure_ascii=False)
        state = {
            "format_version": 1,
            "schema_ir_hash": f"sha256:{hashlib.sha256(text.encode()).hexdigest()}",
            "schema_identity_version": 1,
        }
        (self.root / "_schema.pg").write_text(SCHEMA)
        (self.root / "_schema.ir.json").write_text(json.dumps(document, indent=2))
        (self.root / "__schema_state.json").write_text(json.dumps(state, indent=2))

    def _first_rows(self, key: str) -> list[dict[str, Any]]:
        table = {
            "object_id": key,
            "object_type": "table",
            "location": _FOLDERS[key],
            "table_key": key,
        }
        return [table, _version_row(key, self._tables[None][key])]

    def _record(self, branch: str | None, actor: str | None) -> Past:
        self._clock += 1
        moment = _BEGINNING + timedelta(minutes=self._clock)
        history = self.history[branch]
        past = Past(
            id=str(ULID.from_datetime(moment)),
            branch=branch,
            parent=history[-1].id if history else None,
            actor=actor,
            created_at=int(moment.timestamp() * 1_000_000),
            tables=dict(self._tables[branch]),
        )
        commit = {
            "graph_commit_id": past.id,
            "manifest_branch": branch,
            "manifest_version": self._open("__manifest", branch).version,
            "parent_commit_id": past.parent,
            "created_at": past.created_at,
        }
        self._append(self._open(COMMITS_PATH, branch), {n: [commit.get(n)] for n in _COMMITS.names})
        if actor is not None:
            row = {
                "graph_commit_id": [past.id],
                "actor_id": [actor],
                "created_at": [past.created_at],
            }
            self._append(self._open(ACTORS_PATH), row)
        history.append(past)
        return past

    def _insert(self, branch: str | None, rows: list[dict[str, Any]]) -> None:
        manifest = self._open("__manifest", branch)
        columns = {name: [row.get(name) for row in rows] for name in manifest.schema.names}
        self._append(manifest, columns)

    def _append(self, table: lance.LanceDataset, columns: Mapping[str, Any]) -> lance.LanceDataset:
        return lance.write_dataset(
            pa.table(dict(columns), schema=table.schema), table, mode="append"
        )

    def _create(self, path: str, rows: pa.Table) -> None:
        lance.write_dataset(
            rows,
            f"{self._home}/{path}",
            storage_options=self._options,
            mode="create",
            enable_stable_row_ids=True,
            data_storage_version="2.2",
            auto_cleanup_options=None,
        )

    def _open(self, path: str, branch: str | None = None) -> lance.LanceDataset:
        place = f"{self._home}/{path}" + ("" if branch is None else f"/tree/{branch}")
        return lance.dataset(place, storage_options=self._options)


def _manifest_schema(stamp: int) -> pa.Schema:
    key = {"lance-schema:unenforced-primary-key": "true"} if stamp > 1 else None
    metadata = {"omnigraph:internal_schema_version": str(stamp)} if stamp > 1 else None
    return pa.schema(
        [
            pa.field("object_id", pa.utf8(), nullable=False, metadata=key),
            pa.field("object_type", pa.utf8(), nullable=False),
            pa.field("location", pa.utf8()),
            pa.field("metadata", pa.utf8()),
            pa.field("base_objects", pa.list_(pa.field("item", pa.utf8()))),
            pa.field("table_key", pa.utf8(), nullable=False),
            pa.field("table_version", pa.uint64()),
            pa.field("table_branch", pa.utf8()),
            pa.field("row_count", pa.uint64()),
        ],
        metadata=metadata,
    )


def _version_row(key: str, entry: Entry) -> dict[str, Any]:
    info = {"manifest_path": "x", "manifest_size": None, "e_tag": None, "naming_scheme": "V2"}
    return {
        "object_id": f"{key}${entry.version:020d}",
        "object_type": "table_version",
        "metadata": json.dumps(info),
        "table_key": key,
        "table_version": entry.version,
        "table_branch": entry.branch,
        "row_count": len(entry.ids),
    }


def _values(column: str, ids: Sequence[str]) -> list[Any]:
    if column in ("id", "name"):
        return list(ids)
    if column in ("src", "dst"):
        return [id.split("-")[column == "dst"] for id in ids]
    return [None] * len(ids)


def _first_ir(document: Any) -> Any:
    """The compiled schema as it was: numbers made from names, and no columns."""
    if isinstance(document, list):
        return [_first_ir(item) for item in document]
    if not isinstance(document, dict):
        return document
    made = {k: _first_ir(v) for k, v in document.items() if k not in ("next_id", "column")}
    for number in ("type_id", "prop_id"):
        if number in made:
            made[number] = int(hashlib.sha256(made["name"].encode()).hexdigest()[:7], 16)
    if "ir_version" in made:
        made["ir_version"] = 1
    return made


def with_history(root: Path, stamp: int) -> OldGraph:
    """Twenty commits by several people, among them a recovery and the end of a type."""
    old = OldGraph(root, stamp, extra=["node:Gone"])
    people = ["ada", "bo", "cy"]
    old.add(PERSON, people, actor="act-ada")
    old.add("node:Gone", ["g1"])
    for number in range(7):
        old.add(PERSON, [f"p{number}"], actor=f"act-{people[number % 3]}")
    old.recover(COMPANY, ["acme"], for_actor="act-bo", operation=str(ULID.from_timestamp(1.7e9)))
    old.drop("node:Gone", actor="act-ada")
    for number in range(8):
        old.add(KNOWS, [f"ada-p{number % 7}"] if number < 7 else ["bo-cy"])
    assert len(old.history[None]) == 20
    return old


def with_branches(root: Path, stamp: int, uri: str | None = None) -> OldGraph:
    """Branches of people and of single writes, some with rows of their own."""
    old = OldGraph(root, stamp, uri=uri)
    old.add(PERSON, ["ada"], actor="act-ada")
    old.fork("feature")
    old.add(PERSON, ["fay"], branch="feature", actor="act-fay")
    old.fork("__run__a")
    old.fork("__run__b", "__run__a")
    old.fork("my_branch")
    old.add(PERSON, ["mo"], branch="my_branch")
    old.add(COMPANY, ["mine"], branch="my_branch")
    old.fork("a/b", "feature")
    old.add(COMPANY, ["acme"], branch="a/b", actor="act-ab")
    old.add(PERSON, ["bo"])
    return old
