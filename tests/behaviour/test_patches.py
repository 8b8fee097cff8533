"""Loads in mode patch: absent properties keep their values, nulls clear them, new rows are inserted."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from omnigraph.api.graph import Graph, init
from omnigraph.api.graph import open as open_graph
from omnigraph.commit import writer as committing
from omnigraph.commit.tables import stage_early
from omnigraph.errors import LoadError
from tests.spark.in_process import SparkLike, frames_in_this_process

SCHEMA = """
node Person {
    name: String @key
    born: I32
    email: String? @unique
    type: String?
    tags: [String]?
    photo: Blob?
    seen: DateTime?
}
node Memo { text: String?  stars: I32? }
edge Knows: Person -> Person { since: I32?  note: String? }
edge Likes: Person -> Person { since: I32?  note: String?  @unique(src, dst) }
edge Rates: Person -> Person { kind: String?  note: String?  @unique(src, dst, kind) }
"""
ADA: dict[str, Any] = {
    "name": "ada", "born": 1815, "email": "a@x", "type": "poet", "tags": ["x"],
    "photo": "base64:SGk=", "seen": "2020-01-01T00:00:00",
}  # fmt: skip


def person(name: str, **values: Any) -> dict[str, Any]:
    return {"type": "Person", "data": {"name": name, **values}}


def edge(type: str, source: str, target: str, **values: Any) -> dict[str, Any]:
    return {"edge": type, "from": source, "to": target, "data": values}


def lines(*records: dict[str, Any]) -> bytes:
    return "\n".join(map(json.dumps, records)).encode()


def rows(graph: Graph, kind: str, branch: str = "main") -> dict[str, dict[str, Any]]:
    out = io.BytesIO()
    graph.export(out, branch=branch, types=[kind])
    records = [json.loads(line) for line in out.getvalue().decode().splitlines()]
    return {r["data"].pop("id"): r["data"] for r in records}


@pytest.fixture(params=["inline", "spark"])
def engine(request) -> Iterator[str]:
    """Loads in one process, and by the kernels of tasks on splits of a few records."""
    with nullcontext() if request.param == "inline" else frames_in_this_process(120):
        yield request.param


@pytest.fixture
def graph(tmp_path) -> Graph:
    graph = init(str(tmp_path / "g"), SCHEMA)
    people = [person(**ADA), person("bob", born=1900, email="b@x")]
    edges = [
        edge("Knows", "ada", "bob", id="k1", since=1, note="n"),
        edge("Likes", "ada", "bob", since=2, note="m"),
    ]
    memo = {"type": "Memo", "data": {"id": "m1", "text": "hello", "stars": 3}}
    graph.load(lines(*people, memo, *edges), "append")
    return graph


def test_one_fact_at_a_time(graph, engine):
    result = graph.load(lines(person("ada", email="new@x")), "patch", engine=engine)
    assert rows(graph, "Person")["ada"] == {**ADA, "email": "new@x"}
    assert result.receipt.counts["node:Person"].to_json() == {
        "inserted": 0, "updated": 1, "deleted": 0,
    }  # fmt: skip
    assert (result.mode, result.rows_loaded) == ("patch", {"node:Person": 1})
    # Merge mode, for comparison, leaves nothing of the row.
    graph.load(lines(person("bob", born=1900)), "merge", engine=engine)
    assert rows(graph, "Person")["bob"]["email"] is None


def test_a_null_clears(graph, engine):
    cleared = person("ada", email=None, tags=None, photo=None, seen=None, type=None)
    graph.load(lines(cleared), "patch", engine=engine)
    found = rows(graph, "Person")["ada"]
    assert {k for k, v in found.items() if v is not None} == {"name", "born"}
    with pytest.raises(LoadError, match="non-nullable property 'born' has null value"):
        graph.load(lines(person("ada", born=None)), "patch", engine=engine)


def test_a_new_row_needs_what_its_type_requires(graph, engine):
    with pytest.raises(LoadError) as refused:
        graph.load(lines(person("ada", email="y"), person("cy", email="z")), "patch", engine=engine)
    (problem,) = refused.value.load_errors
    assert (problem.record, problem.code, problem.property) == (2, "missing_value", "born")
    result = graph.load(lines(person("cy", born=1)), "patch", engine=engine)
    assert result.receipt.counts["node:Person"].inserted == 1
    assert rows(graph, "Person")["cy"]["email"] is None


@pytest.mark.parametrize("apart", [0, 40])
def test_of_several_records_the_later_one_is_applied_to_the_earlier(graph, engine, apart):
    between = [person(f"p{n}", born=n) for n in range(apart)]
    graph.load(
        lines(
            person("ada", email="one@x", tags=["a"]),
            person("new", type="first"),
            *between,
            person("ada", tags=None, type=None),
            person("new", born=7),
            person("ada", type="again"),
        ),
        "patch",
        engine=engine,
    )
    found = rows(graph, "Person")
    assert found["ada"] == {**ADA, "email": "one@x", "tags": None, "type": "again"}
    assert (found["new"]["born"], found["new"]["type"]) == (7, "first")
    assert len(found) == 3 + apart


def test_edges_and_nodes_without_a_key_are_found_by_their_ids(graph, engine):
    graph.load(
        lines(
            edge("Knows", "ada", "bob", id="k1", since=5),
            edge("Likes", "ada", "bob", note=None),
            edge("Likes", "bob", "ada", note="back"),
            {"type": "Memo", "data": {"id": "m1", "stars": 4}},
            {"type": "Memo", "data": {"text": "other"}},
        ),
        "patch",
        engine=engine,
    )
    assert rows(graph, "Knows")["k1"] == {"since": 5, "note": "n"}
    likes = {(row["since"], row["note"]) for row in rows(graph, "Likes").values()}
    assert likes == {(2, None), (None, "back")}
    memos = rows(graph, "Memo")
    assert memos.pop("m1") == {"text": "hello", "stars": 4}
    assert [memo["text"] for memo in memos.values()] == ["other"]


def test_an_edge_with_a_part_of_its_identity_left_out_keeps_its_id_only_if_it_still_fits(
    graph, engine
):
    graph.load(lines(edge("Rates", "ada", "bob", kind="x", note="n")), "append")
    (id,) = rows(graph, "Rates")
    graph.load(lines(edge("Rates", "ada", "bob", id=id, note="m")), "patch", engine=engine)
    assert rows(graph, "Rates") == {id: {"kind": "x", "note": "m"}}
    with pytest.raises(LoadError, match="is not that of its Rates"):
        graph.load(lines(edge("Rates", "bob", "ada", id=id)), "patch", engine=engine)


def test_whole_rows_are_validated(graph, engine):
    with pytest.raises(LoadError, match="value 'b@x' already belongs to 'bob'"):
        graph.load(lines(person("ada", email="b@x")), "patch", engine=engine)
    # The value that stays counts, too.
    with pytest.raises(LoadError, match="value 'a@x'"):
        graph.load(lines(person("ada", type="t"), person("cy", born=3, email="a@x")), "patch", engine=engine)  # fmt: skip
    # Two rows may exchange a value with a third party gone.
    graph.load(lines(person("ada", email=None), person("bob", email="a@x")), "patch", engine=engine)
    with pytest.raises(LoadError, match="dst 'nobody' not found"):
        graph.load(lines(edge("Knows", "ada", "nobody", id="k1")), "patch", engine=engine)


def test_columns_that_are_absent_stay_and_null_cells_clear(graph, engine, tmp_path):
    before = rows(graph, "Person")["ada"]
    (tmp_path / "Person.csv").write_text("name,email\nada,\n")
    graph.load(tmp_path / "Person.csv", "patch", engine=engine)
    assert rows(graph, "Person")["ada"] == {**before, "email": None}
    table = pa.table({"name": ["ada"], "type": pa.array([None], pa.utf8())})
    pq.write_table(table, tmp_path / "Person.parquet")
    graph.load(tmp_path / "Person.parquet", "patch", engine=engine)
    frame = pd.DataFrame({"name": ["ada"], "born": [1816]})
    graph.load({"Person": frame}, "patch", engine=engine)
    if engine == "spark":
        graph.load(
            {"Person": SparkLike(pa.table({"name": ["ada"], "born": [1816]}))},
            "patch",
            engine=engine,
        )
    assert rows(graph, "Person")["ada"] == {**before, "email": None, "type": None, "born": 1816}


def test_a_mapping_says_what_is_loaded(graph, engine, tmp_path):
    (tmp_path / "in.jsonl").write_text(
        '{"who": "ada", "mail": null, "about": {"mail": 1}}\n'
        '{"who": "bob", "about": {"mail": null}}\n'
        '{"who": "bob", "\\u006dail": "esc@x"}\n'
    )
    mapping = {
        "version": 1,
        "sources": [
            {
                "path": str(tmp_path / "in.jsonl"),
                "node": "Person",
                "columns": {"name": "who", "email": "mail", "born": None, "type": {"value": "t"}},
            }
        ],
    }
    graph.load(None, "patch", mapping=mapping, engine=engine)
    found = rows(graph, "Person")
    assert found["ada"] == {**ADA, "email": None, "type": "t"}
    assert (found["bob"]["email"], found["bob"]["born"]) == ("esc@x", 1900)


@pytest.mark.parametrize(
    "record",
    [
        '{"type":"Person","data":{"name":"ada"}}',
        '{"type":"Person","note":{"email":null},"data":{"name":"ada","more":{"email":null}}}',
        '{"email":null,"type":"Person","data":{"name":"ada","about":"\\"email\\": null"}}',
        '{"type":"Person","data":{"name":"ada","tags":["x"],"photo":"base64:SGk="}}',
    ],
)
def test_what_looks_like_a_key_and_is_none_clears_nothing(graph, engine, record):
    graph.load(record.encode(), "patch", engine=engine)
    assert rows(graph, "Person")["ada"] == ADA


@pytest.mark.parametrize(
    "record",
    [
        '{"type":"Person","data":{"name":"ada","email":null}}',
        '{"type":"Person","data":{"name":"ada","\\u0065mail":null}}',
        '{"type":"Person","data":{"name":"ada","email"\t : null,"zzz":{"a":1}}}',
    ],
)
def test_a_null_clears_however_its_key_is_written(graph, engine, record):
    graph.load(record.encode(), "patch", engine=engine)
    assert rows(graph, "Person")["ada"] == {**ADA, "email": None}


def test_bad_records_are_set_aside_and_the_others_applied(graph, engine, tmp_path):
    records = lines(
        person("ada", type="one"),
        person("ada", email="b@x"),
        person("cy", email="c@x"),
        person("dee", born=2),
    )
    result = graph.load(records, "patch", quarantine=tmp_path / "bad", engine=engine)
    found = rows(graph, "Person")
    assert result.quarantined == 2
    assert (found["ada"]["type"], found["ada"]["email"]) == ("one", "a@x")
    assert ("dee" in found, "cy" in found) == (True, False)
    assert result.rows_loaded == {"node:Person": 2}


def test_what_another_writer_changes_between_check_and_lock_stays(graph, engine, monkeypatch):
    other = open_graph(graph.uri)
    came: list[bool] = []

    def stage(*arguments: Any) -> Any:
        if not came:
            came.append(True)
            other.load(lines(person("ada", tags=["theirs"])), "patch")
        return stage_early(*arguments)

    monkeypatch.setattr(committing, "stage_early", stage)
    graph.load(lines(person("ada", type="ours")), "patch", engine=engine)
    assert came
    assert rows(graph, "Person")["ada"] == {**ADA, "tags": ["theirs"], "type": "ours"}


def test_on_a_branch_main_stays_as_it_was(graph, engine):
    graph.branches.create("draft")
    graph.load(lines(person("ada", type="t")), "patch", branch="draft", engine=engine)
    assert rows(graph, "Person", "draft")["ada"] == {**ADA, "type": "t"}
    assert rows(graph, "Person")["ada"] == ADA


def test_a_repeated_load_changes_nothing(graph, engine):
    first = graph.load(lines(person("ada", type="t")), "patch", load_id="once", engine=engine)
    again = graph.load(lines(person("ada", type="u")), "patch", load_id="once", engine=engine)
    assert again.replayed
    assert again.receipt.graph_commit_id == first.receipt.graph_commit_id
    assert rows(graph, "Person")["ada"]["type"] == "t"


@pytest.mark.parametrize("mode", ["append", "merge", "overwrite", "patch"])
def test_edges_that_every_load_adds_again_are_pointed_out(graph, engine, mode):
    records = lines(
        edge("Knows", "ada", "bob"), edge("Knows", "bob", "ada"), edge("Likes", "bob", "bob")
    )
    result = graph.load(records, mode, engine=engine)
    found = [w for w in result.receipt.warnings if w.code == "edge_without_identity"]
    if mode in ("append", "overwrite"):
        assert found == []
    else:
        (warning,) = found
        assert (warning.message[:13], warning.count) == ("2 Knows edges", 2)


NOTES = """
node Note { slug: String @key  body: String?  vec: Vector(4)? @embed(body)  stars: I32? }
"""


def test_vectors_follow_their_texts(tmp_path, engine, monkeypatch):
    monkeypatch.setenv("OMNIGRAPH_EMBED_PROVIDER", "mock")
    graph = init(str(tmp_path / "notes"), NOTES)

    def patch(**data: Any) -> Any:
        result = graph.load(lines({"type": "Note", "data": data}), "patch", engine=engine)
        return result, rows(graph, "Note")[data["slug"]]

    _, first = patch(slug="a", body="a text")
    assert first["vec"] is not None
    _, starred = patch(slug="a", stars=5)
    assert (starred["vec"], starred["stars"]) == (first["vec"], 5)
    _, changed = patch(slug="a", body="another text")
    assert changed["vec"] not in (None, first["vec"])
    given = [1.0, 0.0, 0.0, 0.0]
    _, own = patch(slug="a", vec=given)
    assert (own["vec"], own["body"]) == (given, "another text")
    _, kept = patch(slug="a", stars=6)
    assert kept["vec"] == given
    _, computed = patch(slug="a", vec=None)
    assert computed["vec"] == changed["vec"]
    _, gone = patch(slug="a", body=None)
    assert (gone["vec"], gone["stars"]) == (None, 6)
