"""Random policies, graphs and questions: an actor is answered as on a graph without what the policy hides.

What is visible is worked out here from the document of the policy, rule by rule, and rows by the evaluator of
the reference graph.
"""

from __future__ import annotations

import asyncio
import io
import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa
import pytest
import yaml
from hypothesis import HealthCheck, assume, given, note, settings
from hypothesis import strategies as st

import omnigraph as og
from omnigraph.api.graph import Graph
from omnigraph.catalog.compile import compile_schema
from omnigraph.catalog.model import Catalog, EntityType, NodeType
from omnigraph.errors import MergeConflicts, OmnigraphError, PolicyInvalid
from omnigraph.graph.gate import Gate, OpenGate
from omnigraph.language.query.ast import QueryFile
from omnigraph.language.query.print_file import print_queries
from omnigraph.language.syntax import Source
from omnigraph.mcp.backend import AppBackend
from omnigraph.mcp.session import AgentSession
from omnigraph.plan.params import JsonParameters
from omnigraph.policy.gate import open_gate
from omnigraph.server.app import App
from omnigraph.server.call import ServerState
from omnigraph.server.graphs import ServedGraph, ServedGraphs
from omnigraph.server.tokens import Tokens
from omnigraph.stored_queries.registry import StoredQueries
from tests.behaviour.random_reads import (
    CROWDED,
    READS,
    Change,
    changes,
    images,
    parameter_values,
)
from tests.behaviour.read_answers import Question, asked, assert_right, graph_of, image_of
from tests.support.generate import read_queries
from tests.support.generate.rows import row_conditions
from tests.support.model.export import export
from tests.support.model.image import Image
from tests.support.model.read.view import row_test, without_dangling_edges

CATALOG = compile_schema(Source("<schema>", CROWDED))
TYPES = {declared.name: declared for declared in CATALOG}
RELAXED = settings(deadline=None, suppress_health_check=list(HealthCheck))
ACTOR = "ada"
GROUPS = {"staff": ["ada", "bo"], "leads": ["ada"], "others": ["cy"]}
ATTRIBUTES: dict[str, dict[str, Any]] = {
    "ada": {"level": 1, "names": ["a", "x"]},
    "bo": {"level": 2},
}
OWN_CONDITIONS = {
    "A": ["i <= $level", "k in $names", "k != $actor", "@id in $names", "i = $level or b"],
    "B": ["x = $level", "y in $names"],
    "C": ["u > $level", "t is null or t != $actor"],
    "Knows": ["w < $level", "from in $names", "from = to"],
    "Likes": ["coalesce(far, 0) + $level > 1"],
    "Of": ["to in $names"],
}
"""Conditions on attributes, as they are written in policies."""

Document = Mapping[str, Any]

_ID = re.compile(r"\b(?:[0-9A-HJKMNP-TV-Z]{26}|[0-9a-f]{16})\b")
"""Commits, and requests to a server."""


# -- policies -------------------------------------------------------------------------------


@st.composite
def policies(draw: st.DrawFn) -> Document:
    """A policy that fits the schema; the rules of one type show the same properties."""
    hidden = {declared.name: _concealed(draw, declared) for declared in CATALOG}
    rules = []
    for number in range(draw(st.integers(1, 3))):
        types: dict[str, Any] = {}
        for name in draw(st.lists(st.sampled_from([*TYPES]), min_size=1, max_size=4, unique=True)):
            types[name] = _grant(draw, TYPES[name], hidden[name])
        if draw(st.integers(0, 3)) == 0:
            types["*"] = None
        group = draw(st.sampled_from(["staff", "staff", "leads", "others"]))
        rules.append({"id": f"r{number}", "allow": {"actors": {"group": group}, "types": types}})
    actions = ["read", "export", "change", "branch_create", "branch_merge", "branch_delete"]
    return {
        "version": 1,
        "groups": GROUPS,
        "attributes": ATTRIBUTES,
        "rules": [{"id": "all", "allow": {"actors": {"group": "staff"}, "actions": actions}}],
        "read_rules": rules,
    }


def _concealed(draw: st.DrawFn, declared: EntityType) -> list[str]:
    key = declared.key or () if isinstance(declared, NodeType) else ()
    able = sorted(declared.properties.keys() - {*key})
    if not able:
        return []
    return draw(st.lists(st.sampled_from(able), max_size=2, unique=True))


def _grant(draw: st.DrawFn, declared: EntityType, hidden: list[str]) -> Mapping[str, Any] | None:
    grant: dict[str, Any] = {}
    lists_visible = draw(st.booleans())
    if hidden and lists_visible:
        grant["properties"] = sorted(declared.properties.keys() - {*hidden})
    elif hidden:
        grant["except"] = hidden
    match draw(st.integers(0, 3)):
        case 0 | 1:
            grant["where"] = draw(row_conditions(CATALOG, declared, READS))
        case 2 if declared.name in OWN_CONDITIONS:
            grant["where"] = draw(st.sampled_from(OWN_CONDITIONS[declared.name]))
    return grant or None


@dataclass(frozen=True)
class Seen:
    """What the actor sees of a type: its properties, and conditions of which a row has to satisfy one."""

    properties: frozenset[str]
    conditions: tuple[str | None, ...]


def what_is_seen(document: Document) -> dict[str, Seen]:
    """By type, for types of which anything is visible."""
    named = {name for rule in document["read_rules"] for name in rule["allow"]["types"]}
    seen = {}
    for declared in CATALOG:
        if not named & {declared.name, "*"}:
            seen[declared.name] = Seen(frozenset(declared.properties), (None,))
            continue
        grants = []
        for rule in document["read_rules"]:
            types = rule["allow"]["types"]
            if ACTOR in GROUPS[rule["allow"]["actors"]["group"]]:
                grants += [types[name] or {} for name in (declared.name, "*") if name in types][:1]
        if grants:
            shown = [_shown(declared, grant) for grant in grants]
            conditions = tuple(grant.get("where") for grant in grants)
            seen[declared.name] = Seen(frozenset().union(*shown), conditions)
    return seen


def _shown(declared: EntityType, grant: Mapping[str, Any]) -> set[str]:
    key = declared.key or () if isinstance(declared, NodeType) else ()
    given = grant.get("properties", declared.properties)
    return {*given, *key} - {*grant.get("except", ())}


def reduced(image: Image, seen: Mapping[str, Seen], catalog: Catalog) -> Image:
    """The image without what is hidden, under the schema that is left."""
    params = {**ATTRIBUTES[ACTOR], "actor": ACTOR}
    tables: dict[str, dict[str, Any]] = {}
    for declared in image.catalog:
        own = seen.get(declared.name)
        tests = [row_test(declared, one, params) for one in own.conditions] if own else []
        tables[declared.table_key] = {
            id: row
            for id, row in image.tables[declared.table_key].items()
            if any(test(row) for test in tests)
        }
    whole = without_dangling_edges(Image(image.catalog, tables))
    kept = {}
    for declared in catalog:
        names = {"id", "src", "dst", *declared.properties}
        rows = whole.tables[declared.table_key]
        kept[declared.table_key] = {
            id: {name: value for name, value in row.items() if name in names}
            for id, row in rows.items()
        }
    return Image(catalog, kept)


# -- one graph with a policy, and one without what it hides ---------------------------------


@dataclass
class Pair:
    whole: Graph
    limited: Graph
    document: Document
    seen: Mapping[str, Seen]
    catalog: Catalog
    """What is left of the schema."""
    source: str

    def visible(self) -> Image:
        return reduced(image_of(self.whole), self.seen, self.catalog)


def pair_of(image: Image, document: Document) -> Pair:
    seen = what_is_seen(document)
    assume(any(name in CATALOG.nodes for name in seen))
    whole = graph_of(CROWDED, image)
    try:
        limited = og.open(whole.uri, policy=yaml.safe_dump(document), actor=ACTOR)
    except PolicyInvalid as problem:
        # Conditions that each fit can be wrong together.
        note(str(problem))
        assume(False)
    source = limited.schema.source
    catalog = compile_schema(Source("<schema>", source))
    edges = {
        name
        for name in seen
        if name not in CATALOG.edges
        or {CATALOG.edges[name].from_type, CATALOG.edges[name].to_type} <= seen.keys()
    }
    assert {declared.name for declared in catalog} == edges
    for declared in catalog:
        assert declared.properties.keys() == seen[declared.name].properties
    return Pair(whole, limited, document, seen, catalog, source)


def written(lines: list[str]) -> list[str]:
    return sorted(json.dumps(json.loads(line), sort_keys=True) for line in lines)


def exported(graph: Graph) -> list[str]:
    out = io.BytesIO()
    graph.export(out)
    return written(out.getvalue().decode().splitlines())


def outcome(call: Callable[..., Any], *given: Any) -> Any:
    """A result, or the code and text of the error, without the commits that it names."""
    try:
        return call(*given)
    except OmnigraphError as error:
        return error.code, _ID.sub("<id>", str(error))


def rows_of(graph: Graph, text: str) -> list[str]:
    return sorted(map(repr, graph.query(text).to_arrow().to_pylist()))


def scanned(graph: Graph, name: str, column: str) -> list[str]:
    return sorted(map(repr, graph.scan(name, columns=[column]).read_all().to_pylist()))


def degrees(graph: Graph, name: str) -> list[str]:
    return sorted(map(repr, graph.analyze("degrees", nodes=[name]).to_dicts()))


def everything(graph: Graph) -> Iterator[tuple[str, Any]]:
    """What a graph says of itself, whatever names it is asked for: right ones, hidden ones, mistakes."""
    yield "schema", graph.schema.source
    yield "counts", graph.at("main").counts
    yield "export", exported(graph)
    for declared in CATALOG:
        name = declared.name
        yield f"degrees of {name}", outcome(degrees, graph, name)
        yield f"no {name}", outcome(graph.get, name, "nobody")
        texts = [
            f"$x: {name} }} return {{ count($x)",
            f"$x: {name}x }} return {{ $x",
            f"$x: A  $x {name.lower()} $y }} return {{ $x, $y",
            f"$x: A  $x shortest <{name.lower()}>{{1,3}} $y }} return {{ $x, $y",
            *(f"$x: {name} }} return {{ $x.{prop}x" for prop in declared.properties),
        ]
        for text in texts:
            yield text, outcome(rows_of, graph, f"query q() {{ match {{ {text} }} }}")
        for column in ("id", *declared.properties):
            yield f"{name}.{column}", outcome(scanned, graph, name, column)


def changed_rows(before: Image, after: Image) -> list[tuple[str, str, str]]:
    """The net changes, as both images tell them."""
    found = []
    for key, rows in before.tables.items():
        for id in rows.keys() | after.tables[key].keys():
            old, new = rows.get(id), after.tables[key].get(id)
            if repr(old) != repr(new):
                op = "insert" if old is None else "delete" if new is None else "update"
                found.append((op, key, id))
    return sorted(found)


def told(documents: Any, catalog: Catalog) -> list[tuple[str, str, str]]:
    """Changes as they are reported, whose rows have only what the schema has."""
    found = []
    for one in documents:
        declared = next(d for d in catalog if d.table_key == one["table_key"])
        for row in (one["before"], one["after"]):
            if row is not None:
                assert row.keys() <= {"id", "src", "dst", *declared.properties}, one
        found.append((one["op"], one["table_key"], one["id"]))
    return sorted(found)


def table_of(state: Graph | og.GraphAt, question: Question) -> pa.Table:
    return state.query(question.text, JsonParameters(question.params)).to_arrow()


def agree(data: st.DataObject) -> None:
    pair = pair_of(data.draw(images(CATALOG)), data.draw(policies()))
    note(yaml.safe_dump(pair.document["read_rules"]))
    first = pair.visible()
    begin, cursor = pair.whole.head().id, pair.limited.cursor()
    with suppress(OmnigraphError):
        data.draw(changes(image_of(pair.whole)))(pair.whole)
    now = pair.visible()
    without = graph_of(pair.source, now)

    for (what, said), (_, expected) in zip(
        everything(pair.limited), everything(without), strict=True
    ):
        assert said == expected, what
    assert exported(pair.limited) == written(export(now, ()))
    then = pair.limited.at(begin)
    assert then.counts == {d.name: len(first.tables[d.table_key]) for d in pair.catalog}

    for _ in range(3):
        query = data.draw(read_queries(pair.catalog, READS))
        text = print_queries(QueryFile((query,)))
        question = asked(text, data.draw(parameter_values(query)))
        for image, state in ((now, pair.limited), (first, then)):
            assert_right(image, question, partial(table_of, state))

    expected = changed_rows(first, now)
    difference = pair.limited.diff(begin, "main").to_json(rows=True)["changes"]
    assert told(difference, pair.catalog) == expected
    fed = [row for one in pair.limited.changes(cursor) for row in one.to_json(rows=True)["changes"]]
    assert told(fed, pair.catalog) == expected
    for op, key, id in expected:
        history = list(pair.limited.history(key.partition(":")[2], id))
        assert [one.op.value for one in history][-1] == op
    assert_tools_agree(pair, without)
    assert_conflicts_show_what_is_visible(pair, data.draw(changes(image_of(pair.whole))), data)


def assert_conflicts_show_what_is_visible(pair: Pair, change: Change, data: st.DataObject) -> None:
    """Two branches change the same graph; what a merge tells of it is part of what either side shows."""
    draft = pair.whole.branches.create("draft")
    for graph, one in ((pair.whole, change), (draft, data.draw(changes(image_of(pair.whole))))):
        with suppress(OmnigraphError):
            one(graph)
    sides = [pair.visible(), reduced(image_of(draft), pair.seen, pair.catalog)]
    known = {(key, id) for side in sides for key, rows in side.tables.items() for id in rows}
    tried = pair.limited.merge("draft", dry_run=True)
    for conflict in tried.conflicts:
        if conflict.row_id is not None:
            assert (conflict.table_key, conflict.row_id) in known | _before(pair)
        declared = next(d for d in pair.catalog if d.table_key == conflict.table_key)
        for row in (conflict.base, conflict.ours, conflict.theirs):
            assert row is None or row.keys() <= {"id", "src", "dst", *declared.properties}
    with suppress(MergeConflicts):
        pair.limited.merge("draft")


def _before(pair: Pair) -> set[tuple[str, str]]:
    """Rows that were visible before both sides changed them."""
    base = pair.limited.at("draft~1") if len(pair.whole.log("draft")) > 1 else None
    if base is None:
        return set()
    return {
        (declared.table_key, row["id"])
        for declared in pair.catalog
        for row in base.scan(declared.name, columns=["id"]).read_all().to_pylist()
    }


def assert_tools_agree(pair: Pair, without: Graph) -> None:
    """An agent of the actor, behind a server with the policy, is told what one is told of the other graph."""
    gates: dict[str, Gate] = {
        pair.whole.uri: open_gate(yaml.safe_dump(pair.document)),
        without.uri: OpenGate(),
    }
    assert pair.whole.uri != without.uri
    asked_by_one, asked_by_other = (asyncio.run(tool_answers(*one)) for one in gates.items())
    for said, expected in zip(asked_by_one, asked_by_other, strict=True):
        assert said == expected


async def tool_answers(uri: str, gate: Gate) -> list[str]:
    """What tools answer to questions about every type, without commits and times."""
    with og.open(uri, policy=gate) as graph:
        served = ServedGraphs(
            [ServedGraph("default", uri, graph, gate, StoredQueries())], is_multi=False
        )
        app = App(ServerState(served, server_gate=gate), Tokens({ACTOR: "t"}))
        backend = AppBackend(app, "default", is_multi=False, authorization=b"Bearer t")
        session = AgentSession(backend, actor=ACTOR)
        answers = [(await session.call("schema_get", {})).text]
        for name in TYPES:
            text = (
                f"query q() {{ match {{ $x: {name} }} return {{ $x.@id as id }} order {{ id }} }}"
            )
            answers.append((await session.call("query", {"query": text})).text)
            answers.append((await session.call("entity_get", {"type": name, "id": "a"})).text)
    return [_ID.sub("<id>", answer) for answer in answers]


@settings(RELAXED, max_examples=4)
@given(st.data())
def test_an_actor_is_answered_as_on_a_graph_without_what_is_hidden(data):
    agree(data)


@pytest.mark.slow
@settings(RELAXED, max_examples=300)
@given(st.data())
def test_many_more_actors_are_answered_so(data):
    agree(data)
