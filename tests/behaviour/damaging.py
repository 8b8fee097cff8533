"""A graph to be damaged behind the engine's back, and the ways to do so."""

from __future__ import annotations

import base64
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
from msgspec.structs import replace

from omnigraph.api.graph import Graph, init
from omnigraph.api.graph import open as open_graph
from omnigraph.maintenance.verify import verify_graph
from omnigraph.maintenance.verify_report import VerifyProblem, VerifyReport
from omnigraph.versioning.publish import Publication, publish
from omnigraph.versioning.rows import MANIFEST_PATH, TableVersion
from tests.behaviour.graphs import Backstage

SCHEMA = """
node Person {
    name: String @key
    mail: String? @unique
    age: I32?
    handle: String?
    mood: enum(calm, cross)?
    score: F64?
    scores: [F64]?
    face: Vector(2)?
    born: DateTime?
    city: String
    picture: Blob?
    notes: String? @index
    @range(age, 0..150)
    @check(handle, "^[a-z]+$")
}
node Place { country: String  town: String  size: F64?  @key(country, town) }
edge Knows: Person -> Person @card(0..3) { since: Date?  @unique(src, dst) }
edge Visited: Person -> Place { how: String? }
"""
PERSON, PLACE, KNOWS, VISITED = "node:Person", "node:Place", "edge:Knows", "edge:Visited"
BRANCHES = ["main", "dev"]
SMALL, LARGE = b"small", bytes(range(256)) * 400


def blob(content: bytes) -> str:
    return "base64:" + base64.b64encode(content).decode()


def _line(record: dict[str, Any]) -> bytes:
    return json.dumps(record).encode() + b"\n"


def person(name: str, **more: Any) -> bytes:
    return _line({"type": "Person", "data": {"name": name, "city": "Rome", **more}})


def place(country: str, town: str, **more: Any) -> bytes:
    return _line({"type": "Place", "data": {"country": country, "town": town, **more}})


def edge(kind: str, source: str, destination: str, **data: Any) -> bytes:
    return _line({"edge": kind, "from": source, "to": destination, "data": data})


ROME, ACCRA = '["it","Rome"]', '["gh","Accra"]'
ROWS = b"".join(
    [
        person("ada", mail="a@x", age=36, handle="ada", mood="calm", score=1.5, face=[0.5, 1]),
        person("bo", scores=[1, 2.5], born="2001-02-03T04:05:06Z", picture=blob(SMALL)),
        person("cy", picture=blob(LARGE), notes="a word or two"),
        place("it", "Rome", size=2.0),
        place("gh", "Accra"),
        edge("Knows", "ada", "bo", since="2020-01-01"),
        edge("Knows", "bo", "cy"),
        edge("Visited", "ada", ROME, how="by train"),
        edge("Visited", "cy", ACCRA),
    ]
)
ON_BRANCH = b"".join(
    [
        person("dee", mail="d@x"),
        place("pe", "Lima"),
        edge("Knows", "dee", "ada"),
        edge("Visited", "dee", '["pe","Lima"]'),
    ]
)


class Victim:
    """A graph with a branch that has written to every table, to be damaged in one place."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @property
    def graph(self) -> Graph:
        return open_graph(self.root, read_only=True)

    def verify(self, *branches: str) -> VerifyReport:
        return verify_graph(self.graph._core.parts, branches=branches or None)

    def folder(self, table_key: str, branch: str) -> Path:
        """Where a branch's own line of versions of a table is."""
        if table_key == MANIFEST_PATH:
            location, line = MANIFEST_PATH, None if branch == "main" else branch
        else:
            entry = self.graph._snapshot(branch).entry(table_key)
            location, line = entry.location, entry.branch
        path = self.root / location
        return path if line is None else path / "tree" / line

    def files(self, table_key: str, branch: str, pattern: str = "data/*.lance") -> list[Path]:
        return sorted(self.folder(table_key, branch).glob(pattern))

    def dataset(self, table_key: str, branch: str) -> lance.LanceDataset:
        return lance.dataset(str(self.folder(table_key, branch)))

    def publish(self, table_key: str, branch: str, **changes: Any) -> None:
        """Make the newest stored version of a table that of the branch."""
        backstage = Backstage(self.root)
        entry = self.graph._snapshot(branch).entry(table_key)
        table = backstage.tables.open(entry.location, entry.branch)
        info = table.version_info().to_json()
        version = TableVersion(entry.table_id, table.version, entry.branch, table.row_count(), info)
        publication = Publication(
            backstage.draft(),
            (replace(version, **changes),),
            expected={entry.table_id: entry.version_ref},
        )
        publish(backstage.manifest, backstage.branches.find(branch).physical, publication)

    def add(self, table_key: str, branch: str, *rows: dict[str, Any]) -> None:
        """Rows that no write would take."""
        dataset = self.dataset(table_key, branch)
        table = pa.Table.from_pylist([dict(row) for row in rows], schema=_without_blobs(dataset))
        lance.write_dataset(table, dataset, mode="append")
        self.publish(table_key, branch)

    def rewrite(self, table_key: str, branch: str, change: Callable[[pa.Table], pa.Table]) -> None:
        """All rows rewritten, under a schema that allows anything."""
        dataset = self.dataset(table_key, branch)
        stored = dataset.to_table(columns=_without_blobs(dataset).names)
        changed = change(stored)
        loose = pa.schema([field.with_nullable(True) for field in changed.schema])
        lance.write_dataset(changed.cast(loose), dataset, mode="overwrite")
        self.publish(table_key, branch)


def _without_blobs(dataset: lance.LanceDataset) -> pa.Schema:
    return pa.schema([f for f in dataset.schema if not isinstance(f.type, pa.ExtensionType)])


def found(report: VerifyReport) -> set[tuple[str, str, str | None]]:
    return {(p.kind.value, p.branch, p.table_key) for p in report.problems}


def only(report: VerifyReport) -> VerifyProblem:
    assert len(report.problems) == 1, report.problems
    return report.problems[0]


def make_graph(root: Path) -> None:
    """The graph that is damaged, and a copy of it to go back to."""
    graph = init(root, SCHEMA)
    graph.load(ROWS, "merge")
    graph.maintenance.ensure_indexes()
    dev = graph.branches.create("dev")
    dev.load(ON_BRANCH, "merge")
    dev.maintenance.ensure_indexes()
    graph.load(person("eve"), "merge")
    graph.maintenance.wait()
    shutil.copytree(root, root.with_name("kept"))


def restored(root: Path) -> Victim:
    """The graph in its place, as it was made: branches know where that is."""
    shutil.rmtree(root)
    shutil.copytree(root.with_name("kept"), root)
    return Victim(root)


def spoil(path: Path, how: str) -> None:
    whole = path.read_bytes()
    match how:
        case "missing":
            path.unlink()
        case "empty":
            path.write_bytes(b"")
        case "half":
            path.write_bytes(whole[: len(whole) // 2])
        case "zeros":
            path.write_bytes(bytes(len(whole)))
        case "garbage":
            path.write_bytes(bytes(byte ^ 0x5A for byte in whole))
