"""Operations that an engine and the reference graph both understand, written in a few signs.

Rows: `a` and `a=3` are people, `X` is a company, `a>X` says that one works there, `a-b` that one
knows the other. Statements: `+` before a row inserts it, `a:=3` updates a person, `!` before a person
or company deletes it, `!a>` and `!a-` delete edges that begin there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, Literal, cast

from omnigraph.api.graph import Graph
from omnigraph.catalog.compile import build_declared
from omnigraph.catalog.migrate import carry_identities, plan_migration
from omnigraph.language.syntax import Source
from omnigraph.plan.compile import compile_query
from tests.support.model import ReferenceGraph
from tests.support.outcome import Refusal

SCHEMA = """
node Person { name: String @key  age: I32? }
node Company { name: String @key }
edge Knows: Person -> Person
edge WorksAt: Person -> Company { @unique(src, dst) }
"""

SHAPES = {
    "plain": SCHEMA,
    "nick": SCHEMA.replace("age: I32?", "age: I32?  nick: String?"),
    "size": SCHEMA.replace(
        "Company { name: String @key", "Company { name: String @key  size: I32? @backfill(1)"
    ),
    "since": SCHEMA.replace(
        "edge Knows: Person -> Person", "edge Knows: Person -> Person { since: Date? }"
    ),
    "tool": SCHEMA + "node Tool { name: String @key }\nedge Uses: Person -> Tool\n",
}
"""Schemas that all rows of these tests fit."""

Mode = Literal["append", "merge", "overwrite", "patch"]
_ROW = re.compile(
    r"(?P<person>[a-z])(=(?P<age>\d))?|(?P<company>[A-Z])"
    r"|(?P<source>[a-z])(?P<sign>[>-])(?P<target>[a-zA-Z])"
)
_EDGES = {">": "WorksAt", "-": "Knows"}


@dataclass(frozen=True)
class Operation:
    """Something done to a graph, and to the model of it."""

    on_engine: Callable[[Graph], object]
    on_model: Callable[[ReferenceGraph], object]

    def foretell(self, model: ReferenceGraph) -> ReferenceGraph | Refusal:
        """The model afterwards, or why there is none. The given one stays as it is."""
        after = twin(model)
        try:
            self.on_model(after)
        except Refusal as refusal:
            return refusal
        return after


def twin(model: ReferenceGraph) -> ReferenceGraph:
    """A model that can go its own way. What it holds is never changed in place."""
    other = copy(model)
    for name in ("_commits", "_heads", "_created_from", "_loads"):
        setattr(other, name, dict(getattr(model, name)))
    return other


def load(
    branch: str, mode: Mode, rows: Sequence[str], load_id: str | None, *, cascade: bool = False
) -> Operation:
    text = "\n".join(json.dumps(_record(row)) for row in rows)
    options: Any = {"branch": branch, "load_id": load_id, "cascade": cascade}
    return Operation(
        lambda graph: graph.load(text.encode(), mode, **options),
        lambda model: model.load(text, mode, **options),
    )


def mutate(branch: str, statements: Sequence[str]) -> Operation:
    query = f"query q() {{ {' '.join(map(_statement, statements))} }}"

    def on_model(model: ReferenceGraph) -> None:
        plan = compile_query(Source("<query>", query), model.catalog).mutation_plan()
        model.mutate(plan, {}, branch=branch)

    return Operation(lambda graph: graph.mutate(query, branch=branch), on_model)


def create_branch(name: str, source: str) -> Operation:
    def on_model(model: ReferenceGraph) -> None:
        # Where both names are wrong, an engine speaks of the source.
        model.head(source)
        model.create_branch(name, source)

    return Operation(lambda graph: graph.branches.create(name, source), on_model)


def delete_branch(name: str) -> Operation:
    return Operation(
        lambda graph: graph.branches.delete(name), lambda model: model.delete_branch(name)
    )


def merge(source: str, into: str) -> Operation:
    return Operation(
        lambda graph: graph.merge(source, into), lambda model: model.merge(source, into)
    )


def reshape(shape: str) -> Operation:
    """Make one of the `SHAPES` the schema."""
    text = SHAPES[shape]

    def on_model(model: ReferenceGraph) -> None:
        accepted, desired = model.catalog.ir, build_declared(Source("<schema>", text))
        plan = plan_migration(accepted, desired)
        model.apply_schema(carry_identities(accepted, desired, plan) if plan.steps else accepted)

    return Operation(lambda graph: graph.schema.apply(text), on_model)


def nothing(on_engine: Callable[[Graph], object]) -> Operation:
    """Something that changes no content."""
    return Operation(on_engine, lambda model: None)


# -- from signs to records and statements ----------------------------------------------------


def _parts(row: str) -> dict[str, Any]:
    match = _ROW.fullmatch(row)
    assert match is not None, row
    return match.groupdict()


def _record(row: str) -> dict[str, Any]:
    parts = _parts(row)
    if parts["person"]:
        age = None if parts["age"] is None else int(parts["age"])
        return {"type": "Person", "data": {"name": parts["person"], "age": age}}
    if parts["company"]:
        return {"type": "Company", "data": {"name": parts["company"]}}
    edge = _EDGES[parts["sign"]]
    return {"edge": edge, "from": parts["source"], "to": parts["target"]}


def _statement(signs: str) -> str:
    if ":=" in signs:
        name, age = signs.split(":=")
        return f'update Person set {{ age: {age} }} where name = "{name}"'
    if signs.startswith("!"):
        if signs[-1] in _EDGES:
            return f'delete {_EDGES[signs[-1]]} where from = "{signs[1]}"'
        kind = "Person" if signs[1].islower() else "Company"
        return f'delete {kind} where name = "{signs[1]}"'
    record = _record(signs[1:])
    if "edge" in record:
        ends = f'from: "{record["from"]}", to: "{record["to"]}"'
        return f"insert {record['edge']} {{ {ends} }}"
    data = cast(dict[str, Any], record["data"])
    age = "" if data.get("age") is None else f", age: {data['age']}"
    return f'insert {record["type"]} {{ name: "{data["name"]}"{age} }}'
