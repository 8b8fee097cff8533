"""Graphs that a writer finds before it dies: how they are built."""

from __future__ import annotations

import json
import os
import signal
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from omnigraph.api.graph import init
from omnigraph.api.graph import open as open_graph
from omnigraph.storage.stage import commit_staged, stage_append
from omnigraph.versioning.contract import IR_FILE, STATE_FILE
from omnigraph.versioning.ids import new_ulid
from omnigraph.versioning.rows import RECOVERY_DIR
from tests.behaviour.graphs import PERSON, Backstage
from tests.behaviour.notes import before_bindings
from tests.support.faults import (
    ENVIRONMENT_VARIABLE,
    Arm,
    Fail,
    FailStorage,
    InjectedFault,
    armed,
    describe,
)
from tests.support.fork_server import fork_server
from tests.upgrade.old_graphs import with_branches

PATIENCE_SECONDS = 120

SCHEMA = """
node Person { name: String @key  age: I32? }
node Company { name: String @key }
edge Knows: Person -> Person { since: Date? }
edge WorksAt: Person -> Company { @unique(src, dst) }
"""
SIZED_SCHEMA = SCHEMA.replace(
    "Company { name: String @key", "Company { name: String @key  size: I32?  founded: I32"
)
NEXT_SCHEMA = """
node Person { name: String @key  age: I32? @index  nick: String? }
node Company { title: String @key @rename_from("name")  size: I32 @backfill(1) }
node Tool { code: String @key }
edge Knows: Person -> Person
edge Uses: Person -> Tool
"""


@dataclass(frozen=True, slots=True, eq=False)
class Builder:
    """Builds a graph in an empty folder, or in one that has the graph of another builder."""

    build: Callable[[Path], None]
    base: Builder | None = None


def on(base: Builder) -> Callable[[Callable[[Path], None]], Builder]:
    """A builder that continues where another one stops."""
    return lambda build: Builder(build, base)


def person(name: str, age: int | None = None) -> str:
    return json.dumps({"type": "Person", "data": {"name": name, "age": age}})


def company(name: str) -> str:
    return json.dumps({"type": "Company", "data": {"name": name}})


def edge(kind: str, source: str, target: str) -> str:
    return json.dumps({"edge": kind, "from": source, "to": target})


def rows(*lines: str) -> bytes:
    """What a load is given."""
    return "\n".join(lines).encode()


def killed(kind: str, root: str | Path, arms: Sequence[Arm], synced: Path | None = None) -> int:
    """Run a writer in a process of its own with traps set; returns how that process ended.

    `synced` gets a line for every file the process had brought onto the disk.
    """
    writer = [kind, str(root), str(synced or os.devnull)]
    environment = {**os.environ, ENVIRONMENT_VARIABLE: describe(arms)}
    with tempfile.NamedTemporaryFile("r") as output:
        process = fork_server().start("tests.crash.dying:run", writer, environment, output.name)
        try:
            code = process.wait(PATIENCE_SECONDS)
        finally:
            process.kill()
        if code not in (0, -signal.SIGKILL):
            raise AssertionError(f"{kind} failed instead of dying:\n{output.read()}")
    return code


@Builder
def nothing(root: Path) -> None:
    """A place where no graph is yet."""


@Builder
def people(root: Path) -> None:
    """Rows in most tables, a branch with rows of its own and one that only inherits."""
    graph = init(root, SCHEMA)
    graph.load(rows(person("ada", 41), person("bo", 29), edge("Knows", "ada", "bo")), "append")
    graph.branches.create("feature")
    graph.load(rows(person("fay", 33)), "append", branch="feature")
    graph.branches.create("fresh")


@Builder
def with_texts(root: Path) -> None:
    """Texts whose vectors nobody has computed yet, in a table that keeps not what vectors are of."""
    node = "node Note { slug: String @key  body: String?  vec: Vector(2)? @embed(body) }\n"
    texts = (json.dumps({"type": "Note", "data": {"slug": s, "body": s * 3}}) for s in "abc")
    with before_bindings():
        init(root, SCHEMA + node).load(rows(person("ada", 41), *texts), "append")


@on(people)
def branch_of_branch(root: Path) -> None:
    """A branch that has tables from another one."""
    open_graph(root).branches.create("new/er", "feature")


@Builder
def only_main(root: Path) -> None:
    """Rows in all tables, and no branch, as a change of the schema needs it."""
    found = [person("ada", 41), person("bo", 29), company("acme")]
    edges = [edge("Knows", "ada", "bo"), edge("WorksAt", "bo", "acme")]
    init(root, SCHEMA).load(rows(*found, *edges), "append")


@Builder
def with_sizes(root: Path) -> None:
    """Values that a change of the schema requires, and no branch."""
    graph = init(root, SIZED_SCHEMA)
    data = {"type": "Company", "data": {"name": "acme", "size": 3, "founded": 1999}}
    graph.load(rows(person("ada", 41), json.dumps(data)), "append")


@on(people)
def diverged(root: Path) -> None:
    """Branches that changed one table each in its own way, and main another one as well."""
    graph = open_graph(root)
    graph.load(rows(person("gil", 7), company("acme"), edge("Knows", "gil", "ada")), "append")
    graph.mutate('query q() { delete Knows where from = "ada" }', branch="feature")
    update = 'query q() { update Person set { age: 34 } where name = "fay" }'
    graph.mutate(update, branch="feature")


@on(diverged)
def tagged(root: Path) -> None:
    """The same, and a name for a commit."""
    open_graph(root).tags.create("v1", "main~1")


@on(people)
def fragmented(root: Path) -> None:
    """Several versions of a table, in several fragments, and a fork without a reference."""
    graph = open_graph(root)
    for name in ("cy", "dee", "eve"):
        graph.load(rows(person(name)), "append")
    with armed("branch_delete.before_table_cleanup", FailStorage()):
        graph.branches.delete("feature")


def unfinished(
    write: Callable[[str], None], point: str, hit: int = 1, found: Builder = people
) -> Builder:
    """What another process leaves that dies at a step."""

    @on(found)
    def build(root: Path) -> None:
        with armed(point, Fail(), first=hit), suppress(InjectedFault):
            write(str(root))
        (sidecar,) = (root / RECOVERY_DIR).iterdir()
        document = json.loads(sidecar.read_text())
        sidecar.write_text(json.dumps({**document, "owner": new_ulid()}))

    return build


def orphaned(write: Callable[[str], None]) -> Builder:
    """An unfinished write of a branch that was deleted before it was recovered."""

    @on(unfinished(write, "mutation.post_table_commit"))
    def build(root: Path) -> None:
        backstage = Backstage(root)
        backstage.branches.delete(backstage.branches.find("fresh"), lambda: None)

    return build


@on(people)
def drifted(root: Path) -> None:
    """A table that another program moved past the graph, without a sidecar."""
    backstage = Backstage(root)
    backstage.append(open_graph(root, read_only=True)._snapshot().entry(PERSON), ["eve"])


@on(people)
def overtaken(root: Path) -> None:
    """A table that a writer moved after its operation had been recovered without it."""
    backstage = Backstage(root)
    operation_id = new_ulid()
    backstage.publish(operation_id=operation_id)
    entry = open_graph(root, read_only=True)._snapshot().entry(PERSON)
    table = backstage.tables.open(entry.location)
    found = table.read()
    staged = stage_append(table, found.slice(0, 1))
    commit_staged(table, staged, operation_id=operation_id, writer_kind="Load")


@Builder
def without_compiled_schema(root: Path) -> None:
    init(root, SCHEMA).load(rows(person("ada", 41)), "append")
    for name in (IR_FILE, STATE_FILE):
        (root / name).unlink()


@Builder
def of_an_older_format(root: Path) -> None:
    with_branches(root, 1)
