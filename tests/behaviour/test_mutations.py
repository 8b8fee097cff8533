"""Mutations through the graph: commits, receipts, branches, blobs, vectors and other writers.

What single statements do is told by the stories in `tests/cases`.
"""

from __future__ import annotations

import base64
import datetime as dt
import io
import json
from dataclasses import replace

import pytest

import omnigraph as og
from omnigraph.errors import (
    AssignmentError,
    BranchNotFound,
    ConflictError,
    ExternalBlobRefused,
    HeadMoved,
    HostValueError,
    MutationError,
    ParameterError,
    QuerySelectionError,
    ReadOnlyHandle,
    TypeCheckError,
)
from omnigraph.mutation import prepare_mutation
from omnigraph.mutation import run as mutation
from tests.support.workshop import WORKSHOP, WORKSHOP_ROWS

PICTURES = "node Picture { name: String @key  pic: Blob?  thumb: Blob?  note: String? }\n"
ADD_SHED = "query add($slug: String) { insert Shed { slug: $slug } }\n"


@pytest.fixture
def workshop(memory_uri):
    graph = og.init(memory_uri, WORKSHOP)
    graph.load(WORKSHOP_ROWS.encode(), "merge")
    return graph


def run(graph, statements, **options):
    return graph.mutate(f"query q() {{ {statements} }}", **options)


def rows(graph, type_name, **options):
    """The data of all rows of a type, by id and without nulls."""
    out = io.BytesIO()
    graph.export(out, types=[type_name], **options)
    found = [json.loads(line)["data"] for line in out.getvalue().decode().splitlines()]
    return {
        row["id"]: {k: v for k, v in row.items() if k != "id" and v is not None} for row in found
    }


def counts(result):
    return {k: (c.inserted, c.updated, c.deleted) for k, c in result.receipt.counts.items()}


# -- one query, one commit ----------------------------------------------------------------------


@pytest.mark.acceptance("L-214")
def test_an_update_sees_the_row_inserted_before_it(workshop):
    before = len(workshop.log(reverse=True))
    done = run(
        workshop,
        'insert Maker { handle: "fay", age: 10 }'
        '  update Maker set { age: 11 } where handle = "fay"',
    )
    assert (done.affected_nodes, done.affected_edges) == (2, 0)
    assert counts(done) == {"node:Maker": (1, 0, 0)}
    assert rows(workshop, "Maker")["fay"]["age"] == 11
    assert len(workshop.log(reverse=True)) == before + 1


@pytest.mark.acceptance("L-216")
def test_deleting_a_node_takes_its_edges_along(workshop):
    done = run(workshop, 'delete Maker where handle = "bo"')
    assert (done.affected_nodes, done.affected_edges) == (1, 4)
    assert counts(done) == {
        "node:Maker": (0, 0, 1),
        "edge:Mentors": (0, 0, 2),
        "edge:Borrows": (0, 0, 2),
    }
    assert sorted(rows(workshop, "Maker")) == ["ada", "cy", "dee"]
    assert len(rows(workshop, "Mentors")) == 2
    assert len(rows(workshop, "Borrows")) == 2


def test_the_result_says_what_was_run_and_where(workshop):
    draft = workshop.branches.create("draft")
    done = draft.as_actor("ada").mutate(ADD_SHED, {"slug": "east"}, message="one more")
    assert (done.query_name, done.branch) == ("add", "draft")
    commit = workshop.commit(done.receipt.graph_commit_id)
    assert (commit.actor, commit.message) == ("ada", "one more")
    assert (
        done.to_json().items()
        >= {
            "branch": "draft",
            "query_name": "add",
            "affected_nodes": 1,
            "affected_edges": 0,
            "actor_id": "ada",
            "graph_commit_id": commit.id,
            "operation": "mutate",
        }.items()
    )
    assert "east" in rows(draft, "Shed")
    assert "east" not in rows(workshop, "Shed", branch="main")


def test_nothing_changed_is_no_commit_and_names_the_head(workshop):
    head = workshop.head().id
    done = run(workshop, 'insert Shed { slug: "w" }  delete Shed where slug = "w"')
    assert (done.receipt.graph_commit_id, done.receipt.parent_commit_id) == (None, head)
    assert (done.affected_nodes, done.receipt.counts) == (2, {})
    assert workshop.head().id == head


def test_many_statements_in_a_row_add_up(workshop):
    for number in range(12):
        workshop.mutate(ADD_SHED, {"slug": f"s{number}"})
        run(workshop, f'insert Maker {{ handle: "m{number}", age: {number} }}')
    done = run(workshop, "update Maker set { score: 1.5 } where age < 12")
    assert done.affected_nodes == 12
    found = rows(workshop, "Maker")
    assert [found[f"m{n}"]["score"] for n in range(12)] == [1.5] * 12
    assert len(rows(workshop, "Shed")) == 14


# -- how it is called ---------------------------------------------------------------------------


def test_a_query_comes_as_text_or_from_a_file_and_parameters_in_a_mapping(workshop, tmp_path):
    file = tmp_path / "sheds.gq"
    file.write_text(ADD_SHED + 'query other() { insert Shed { slug: "o" } }\n')
    workshop.mutate(str(file), {"slug": "one"}, name="add")
    workshop.mutate(file, {"slug": "two"}, name="add")
    workshop.mutate(ADD_SHED, {"slug": "three"})
    named = "query q($name: String) { insert Shed { slug: $name } }"
    workshop.mutate(named, {"name": "four"})
    assert rows(workshop, "Shed").keys() >= {"one", "two", "three", "four"}


def test_parameters_are_values_of_python(workshop):
    query = (
        'query q($d: Date, $s: [String]) { insert Maker { handle: "x", joined: $d, skills: $s } }'
    )
    workshop.mutate(query, {"d": dt.date(2024, 2, 29), "s": ["a", "b"]})
    found = rows(workshop, "Maker")["x"]
    assert (found["joined"], found["skills"]) == (19782, ["a", "b"])


@pytest.mark.parametrize(
    ("kind", "set_to"),
    [("F64", "score"), ("F32", "weight"), ("[F64]", "scores"), ("Vector(2)", "v")],
)
@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_numbers_that_are_not_finite_are_refused_by_name(memory_uri, kind, set_to, number):
    schema = "node T { k: String @key  score: F64?  weight: F32?  scores: [F64]?  v: Vector(2)? }"
    graph = og.init(memory_uri, schema)
    value = number if kind.startswith("F") else [1.0, number]
    for text in ('insert T { k: "a", %s: $%s }', 'update T set { %s: $%s } where k = "a"'):
        query = f"query q(${set_to}: {kind}) {{ {text % (set_to, set_to)} }}"
        with pytest.raises(HostValueError, match=f"'{set_to}'"):
            graph.mutate(query, {set_to: value})


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda g: g.mutate(ADD_SHED, {"slug": "a", "slugg": "b"}), ParameterError),
        (lambda g: g.mutate(ADD_SHED, {"slug": "b"}, name="nope"), QuerySelectionError),
        (
            lambda g: g.mutate("query q() { match { $m: Maker } return { $m } }"),
            QuerySelectionError,
        ),
        (lambda g: run(g, 'insert Ghost { a: "b" }'), TypeCheckError),
        (lambda g: run(g, 'insert Shed { slug: "e" }', branch="gone"), BranchNotFound),
        (lambda g: run(g, 'insert Shed { slug: "e" }', expected_head="old"), HeadMoved),
        (lambda g: run(g, 'insert Maker { handle: "e", age: 2.5 }'), AssignmentError),
    ],
)
def test_a_call_that_cannot_be_made_changes_nothing(workshop, call, error):
    head = workshop.head().id
    with pytest.raises(error):
        call(workshop)
    assert workshop.head().id == head


def test_a_graph_opened_for_reading_refuses(local_uri):
    og.init(local_uri, WORKSHOP)
    with pytest.raises(ReadOnlyHandle):
        og.open(local_uri, read_only=True).mutate(ADD_SHED, {"slug": "x"})


def test_every_broken_rule_is_listed_and_many_are_counted(memory_uri):
    graph = og.init(memory_uri, "node N { k: I32 @key  a: I32?  @range(a, 0..1) }\n")
    graph.load(
        "".join(f'{{"type":"N","data":{{"k":{n}}}}}\n' for n in range(150)).encode(), "merge"
    )
    with pytest.raises(MutationError) as refused:
        run(graph, "update N set { a: 7 } where k >= 0")
    assert len(refused.value.problems) == 100
    assert refused.value.problems_total == 150
    assert str(refused.value).endswith("; … and 50 more")


# -- blobs --------------------------------------------------------------------------------------


def text_of(data):
    return "base64:" + base64.b64encode(data).decode()


@pytest.fixture
def pictures(memory_uri):
    return og.init(memory_uri, PICTURES)


INSERT_PICTURE = 'query q($p: Blob) { insert Picture { name: "a", pic: $p, note: "old" } }'


@pytest.mark.parametrize("data", [b"", b"hello", b"\0" * 200_000])
def test_an_update_carries_the_blobs_it_does_not_assign(pictures, data):
    pictures.mutate(INSERT_PICTURE, {"p": text_of(data)})
    run(pictures, 'update Picture set { note: "new" } where name = "a"')
    assert rows(pictures, "Picture") == {"a": {"name": "a", "note": "new", "pic": text_of(data)}}


@pytest.mark.acceptance("S-061")
def test_a_blob_is_carried_within_one_query(pictures):
    query = (
        'query q($p: String) { insert Picture { name: "a", pic: $p }'
        '  update Picture set { thumb: $p } where name = "a"'
        '  update Picture set { note: "n" } where name = "a" }'
    )
    pictures.mutate(query, {"p": text_of(b"x")})
    assert rows(pictures, "Picture")["a"] == {
        "name": "a",
        "note": "n",
        "pic": text_of(b"x"),
        "thumb": text_of(b"x"),
    }


def test_a_blob_is_replaced_and_cleared(pictures):
    pictures.mutate(INSERT_PICTURE, {"p": text_of(b"one")})
    update = 'query q($p: Blob?) { update Picture set { pic: $p } where name = "a" }'
    pictures.mutate(update, {"p": text_of(b"two")})
    assert rows(pictures, "Picture")["a"]["pic"] == text_of(b"two")
    pictures.mutate(update, {"p": None})
    assert "pic" not in rows(pictures, "Picture")["a"]


def test_a_reference_that_was_loaded_is_carried_as_it_is(pictures, monkeypatch):
    monkeypatch.setenv("OMNIGRAPH_EXTERNAL_BLOBS", "s3://bucket")
    record = {"type": "Picture", "data": {"name": "a", "pic": "s3://bucket/key", "note": "old"}}
    pictures.load(json.dumps(record).encode(), "merge")
    monkeypatch.delenv("OMNIGRAPH_EXTERNAL_BLOBS")
    run(pictures, 'update Picture set { note: "new" } where name = "a"')
    found = rows(pictures, "Picture")["a"]
    assert found == {"name": "a", "note": "new", "pic": "s3://bucket/key"}


@pytest.mark.parametrize("uri", ["s3://bucket/key", "file:///etc/hosts", "picture.png"])
def test_a_blob_outside_the_graph_is_refused(pictures, uri):
    with pytest.raises(ExternalBlobRefused, match="OMNIGRAPH_EXTERNAL_BLOBS allows") as error:
        pictures.mutate(INSERT_PICTURE, {"p": uri})
    assert error.value.property == "pic"
    assert not rows(pictures, "Picture")


def test_a_blob_that_is_no_base64_is_refused(pictures):
    with pytest.raises(AssignmentError, match="invalid base64 blob data"):
        pictures.mutate(INSERT_PICTURE, {"p": "base64:SGk"})


# -- other writers ------------------------------------------------------------------------------


def interrupting(monkeypatch, interruption):
    """Call something once, after a mutation has been prepared and before it is committed."""
    pending = [interruption]
    prepared = []

    def prepare(*args):
        mine = prepare_mutation(*args)
        prepared.append(mine)
        if pending:
            pending.pop()()
        return mine

    monkeypatch.setattr(mutation, "prepare_mutation", prepare)
    return prepared


def test_an_edge_to_a_node_deleted_meanwhile_is_refused(workshop, memory_uri, monkeypatch):
    other = og.open(memory_uri)
    interrupting(monkeypatch, lambda: run(other, 'delete Maker where handle = "ada"'))
    with pytest.raises(MutationError, match="src 'ada' not found in Maker"):
        run(workshop, 'insert Mentors { from: "ada", to: "bo" }')


def test_a_unique_value_taken_meanwhile_is_refused(workshop, memory_uri, monkeypatch):
    other = og.open(memory_uri)
    statement = 'insert Tool {{ code: "{}", label: "x", serial: "S1" }}'
    interrupting(monkeypatch, lambda: run(other, statement.format("aa-1")))
    with pytest.raises(MutationError, match="already belongs to 'aa-1'"):
        run(workshop, statement.format("aa-2"))


def test_an_insert_on_a_moved_branch_is_made_again_with_the_same_id(
    workshop, memory_uri, monkeypatch
):
    other = og.open(memory_uri)
    insert = 'insert Mentors { from: "ada", to: "bo" }'
    prepared = interrupting(monkeypatch, lambda: run(other, insert))
    before = rows(workshop, "Mentors").keys()
    run(workshop, insert)
    written = [p.change.writes[0].rows.column("id").to_pylist() for p in prepared]
    # Ours, the other writer's, and ours again.
    assert len(written) == 3
    assert written[0] == written[2] != written[1]
    assert rows(workshop, "Mentors").keys() - before == {*written[0], *written[1]}


def test_a_schema_that_changed_meanwhile_is_a_conflict(workshop, monkeypatch):
    core = workshop._core
    real = core.snapshot_of
    other = og.init("memory://other-schema", WORKSHOP + "node More { a: I32? }\n").schema.catalog

    def newer(state, _contract=None):
        return replace(real(state), catalog=other)

    monkeypatch.setattr(core, "parts", replace(core.parts, snapshot_of=newer))
    with pytest.raises(ConflictError, match="the schema changed while the write was prepared"):
        run(workshop, 'insert Shed { slug: "e" }')


def test_an_update_of_rows_that_moved_is_made_on_what_they_are_now(
    workshop, memory_uri, monkeypatch
):
    other = og.open(memory_uri)
    update = 'update Maker set {{ age: {} }} where handle = "ada"'
    both = 'update Maker set { age: 1, score: 9.5 } where handle = "ada"'
    interrupting(monkeypatch, lambda: run(other, both))
    assert run(workshop, update.format(2)).affected_nodes == 1
    ada = rows(workshop, "Maker")["ada"]
    assert (ada["age"], ada["score"]) == (2, 9.5)


def test_a_rule_is_not_broken_because_a_handle_knows_an_older_state(workshop, memory_uri):
    other = og.open(memory_uri)
    run(workshop, 'insert Maker { handle: "new" }')
    query = (
        'insert Mentors {{ from: "ada", to: "{}" }}'
        '  update Maker set {{ age: 1 }} where handle = "ada"'
    )
    with pytest.raises(MutationError, match="'nobody' not found"):
        run(og.open(memory_uri), query.format("nobody"))
    assert run(other, query.format("new")).affected_edges == 1
    with pytest.raises(MutationError, match="'nobody' not found"):
        run(workshop, query.format("nobody"))
