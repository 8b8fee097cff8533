"""Random changes of what a pattern matches: the engine and the reference evaluator agree."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from omnigraph.api.graph import init
from omnigraph.errors import OmnigraphError
from omnigraph.language.syntax import Source
from omnigraph.mutation import MutationIds, prepare_mutation
from omnigraph.plan.compile import compile_query
from omnigraph.plan.ir import NOW_PARAMETER
from omnigraph.providers.documents import DocumentVectors
from tests.support.model.graph import numbered_ids
from tests.support.model.image import Image
from tests.support.model.load import load as reference_load
from tests.support.model.mutate import mutate
from tests.support.outcome import Refusal

CASES = Path(__file__).parents[1] / "cases"
NOW = 1_600_000_000_000
ROUNDS = 12

PATTERNS = (
    "$a: Town",
    "$a: Town  $a.pop >= 300",
    "$a road $b",
    "$a $e: road $b",
    "$a $e: (road | rail) $b",
    "$a $e: <road | rail> $b",
    "$a road{1,2} $b",
    "$f basedIn $a",
    "$a: Town  optional { $a $e: rail $b }",
    "$a: Town  not { $a road $b }",
    "$a $e: road $a",
    "$a: Town  $b: Town  $a.pop = $b.pop",
    '$a $p: shortest road{1,3} $b  $b.name != "ash"',
)
ACTIONS = (
    "update $a { pop: coalesce($a.pop, 0) + 1 } return { name, pop }",
    "update $b { note: $a.name }",
    'update $b { note: "same", pop: count { $b road $_ } } return { @id, pop }',
    "update $e { km: 1.5 } return { @id, @src, $e.km as before }",
    "update $e { km: $e.km + 1.0 }",
    "delete $e return { @id }",
    "delete $a return { name }",
    "delete $a, $b",
    "delete $b, $e return { @id, @type }",
    "insert Road { from: $a, to: $b, km: 1.0 }",
    "insert Road { from: $b, to: $a } return { @id, @src, $a.name }",
    'insert $n: Town { name: $a.name + "+" } return { name }',
    "insert Rail { from: $n, to: $a } return { @src, to, $n as made }",
    "insert BasedIn { from: $f, to: $a, staff: 3 }",
    "insert Firm { code: $a.name, title: $b.name }",
    "upsert Town { name: $b.name, note: $a.name }",
    'upsert Town { name: "x" + $a.name, pop: 1 } return { name, pop, note }',
)
PLAIN = (
    'insert Town { name: "new", pop: 300 }',
    'insert Road { from: "elm", to: "ash", km: 2.0 }',
    "update Town set { pop: 300 } where pop is null",
    'delete Town where name = "cob"',
    "delete Road where toll = true",
)


def mutation(chance: random.Random) -> str:
    statements = []
    for _ in range(chance.randint(1, 3)):
        if chance.random() < 0.3:
            statements.append(chance.choice(PLAIN))
        actions = " ".join(chance.sample(ACTIONS, chance.choice((1, 1, 2, 3))))
        statements.append(f"match {{ {chance.choice(PATTERNS)} }} do {{ {actions} }}")
    return f"query q() {{ {' '.join(statements)} }}"


@pytest.fixture(scope="module")
def roads():
    graph = init("memory://random-matches", (CASES / "roads.pg").read_text())
    graph.load((CASES / "roads.jsonl").read_bytes(), "append")
    return graph


def by_engine(graph, plan):
    try:
        done = prepare_mutation(
            plan,
            {},
            graph._snapshot(),
            graph._core.tables,
            MutationIds(numbered_ids().__next__, NOW),
            DocumentVectors(),
        )
    except OmnigraphError as error:
        return type(error).__name__
    put = {w.table_key: set(w.rows.column("id").to_pylist()) for w in done.change.writes}
    gone = {w.table_key: set(w.deletes.to_pylist()) for w in done.change.writes}
    rows = {
        (w.table_key, row["id"]): {k: row[k] for k in ("pop", "note", "km", "title") if k in row}
        for w in done.change.writes
        for row in w.rows.to_pylist()
    }
    shown = [
        (r.statement, r.columns, [tuple(row.values()) for row in r.to_dicts()])
        for r in done.returned
    ]
    return done.affected_nodes, done.affected_edges, _filled(put), _filled(gone), rows, shown


def by_reference(image, plan):
    try:
        done = mutate(image, plan, {NOW_PARAMETER: NOW}, numbered_ids())
    except Refusal as refusal:
        return refusal
    put, gone, rows = {}, {}, {}
    for key, ids in done.touched.items():
        now = done.image.tables[key]
        put[key] = {id for id in ids if id in now}
        gone[key] = {id for id in ids if id not in now and id in image.tables[key]}
        for id in put[key]:
            names = ("pop", "note", "km", "title")
            rows[key, id] = {k: now[id][k] for k in names if k in now[id]}
    shown = [(number, list(names), found) for number, names, found in done.returned]
    return done.affected_nodes, done.affected_edges, _filled(put), _filled(gone), rows, shown


def _filled(found):
    return {key: ids for key, ids in found.items() if ids}


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_both_make_the_same_changes(roads, seed):
    chance = random.Random(seed)
    snapshot = roads._snapshot()
    text = (CASES / "roads.jsonl").read_text()
    empty = Image.empty(snapshot.catalog)
    image = reference_load(empty, text, "append", numbered_ids(), 10**9, quarantine=False).image
    compared = refused = 0
    while compared < 10:
        written = mutation(chance)
        try:
            plan = compile_query(Source("<query>", written), snapshot.catalog).mutation_plan()
        except OmnigraphError:
            continue
        compared += 1
        found, wanted = by_engine(roads, plan), by_reference(image, plan)
        if isinstance(wanted, Refusal):
            assert isinstance(found, str), (written, wanted.message)
            assert (found == "DifferentValues") == (
                wanted.message == "different values for one entity"
            ), written
            refused += 1
        else:
            assert found == wanted, written
    assert refused < compared
