"""A cluster for tests: a directory of files, a storage root, and the commands run in this process."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import omnigraph as og
from omnigraph.cli.main import main
from omnigraph.storage.durability import Durability
from omnigraph.storage.objects import ObjectStore, open_store
from omnigraph.storage.uris import normalise_root

SCHEMA = "node Person {\n    name: String @key\n    age: I32?\n}\n"
WIDER_SCHEMA = SCHEMA.replace("age: I32?", "age: I32?\n    city: String?")
WRONG_SCHEMA = SCHEMA.replace("age: I32?", "age: [String]?")
QUERY = "query people() {\n    match { $p: Person }\n    return { $p.name }\n}\n"
WIDER_QUERY = QUERY.replace("$p.name }\n}", "$p.name, $p.city }\n}")
POLICY = """\
version: 1
groups:
  staff: [ada]
rules:
  - id: staff-all
    allow:
      actors: {group: staff}
      actions: [read, change, export, invoke_query]
"""
SERVER_POLICY = """\
version: 1
groups:
  staff: [ada]
rules:
  - id: staff-list
    allow:
      actors: {group: staff}
      actions: [graph_list]
"""
ONE_GRAPH = """\
version: 1
graphs:
  team:
    schema: team.pg
    queries: queries/
policies:
  staff:
    file: staff.yaml
    applies_to: [team]
"""
TWO_GRAPHS = ONE_GRAPH.replace("policies:", "  shop:\n    schema: shop.pg\npolicies:")


class Ran(NamedTuple):
    """How a command ended: exit code, document, and what it wrote to standard error."""

    code: int
    document: dict[str, Any]
    err: str

    @property
    def codes(self) -> list[str]:
        return [one["code"] for one in self.document["diagnostics"]]

    def changes(self) -> dict[str, tuple[str, str | None, str | None]]:
        """Operation, disposition and reason by address."""
        return {
            one["resource"]: (one["operation"], one.get("disposition"), one.get("reason"))
            for one in self.document["changes"]
        }


class Cluster:
    """A declaration, and where it is stored."""

    def __init__(self, folder: Path, root: str | None = None) -> None:
        self.folder = folder
        self.root = root or str(folder)
        self._storage = "" if root is None else f"storage: {root}\n"
        folder.mkdir(exist_ok=True, parents=True)
        self.write("team.pg", SCHEMA)
        self.write("shop.pg", SCHEMA.replace("Person", "Item"))
        self.write("queries/people.gq", QUERY)
        self.write("staff.yaml", POLICY)
        self.declare(ONE_GRAPH)

    def declare(self, text: str) -> None:
        self.write("cluster.yaml", text + self._storage)

    def write(self, name: str, text: str) -> None:
        file = self.folder / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)

    def run(self, *args: str) -> Ran:
        """Run `cluster ARGS --json`."""
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            code = main(["cluster", *args, "--config", str(self.folder), "--json"])
        return Ran(code, json.loads(out.getvalue()), err.getvalue())

    def ok(self, *args: str) -> dict[str, Any]:
        """The document of a command that succeeds."""
        ran = self.run(*args)
        assert ran.code == 0, ran.document["diagnostics"]
        assert ran.document["ok"]
        return ran.document

    def converge(self) -> dict[str, Any]:
        document = self.ok("apply")
        assert document["converged"], document["diagnostics"]
        return document

    @property
    def objects(self) -> ObjectStore:
        return open_store(normalise_root(self.root), Durability.NONE)

    def read(self, path: str) -> Any:
        return json.loads(self.objects.read_text(f"__cluster/{path}"))

    def put(self, path: str, document: object) -> None:
        self.objects.write_text(f"__cluster/{path}", json.dumps(document))

    @property
    def state(self) -> Any:
        return self.read("state.json")

    def listed(self, folder: str) -> list[str]:
        return sorted(self.objects.list_dir(f"__cluster/{folder}"))

    def uri(self, graph_id: str = "team") -> str:
        return normalise_root(self.root).join(f"graphs/{graph_id}.omni")

    def graph(self, graph_id: str = "team") -> og.Graph:
        return og.open(self.uri(graph_id))

    def has_graph(self, graph_id: str = "team") -> bool:
        return self.objects.exists(f"graphs/{graph_id}.omni")

    def schema(self, graph_id: str = "team") -> str:
        with self.graph(graph_id) as graph:
            return graph.schema.source


def sidecar(
    kind: str, digest: str | None, graph_id: str = "team", **fields: object
) -> dict[str, Any]:
    """A sidecar as an interrupted run leaves it."""
    return {
        "schema_version": 1,
        "operation_id": "01ARZ3NDEKTSV4RRFFQ69G5FAV",
        "started_at": "2026-01-01T00:00:00Z",
        "actor": "kim",
        "kind": kind,
        "graph_id": graph_id,
        "graph_uri": "anywhere",
        "observed_manifest_version": None,
        "expected_manifest_version": None,
        "desired_schema_digest": digest,
        "state_cas_base": None,
        "approval_id": None,
        **fields,
    }


SIDECAR = "recoveries/01ARZ3NDEKTSV4RRFFQ69G5FAV.json"
