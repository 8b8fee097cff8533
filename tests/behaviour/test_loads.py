"""Loads and what is committed already: rules that span loads, and tables that stay as they were."""

from __future__ import annotations

import gzip
import io
import json
from datetime import date
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from omnigraph.api.graph import Graph, init
from omnigraph.api.graph import open as open_graph
from omnigraph.errors import ConstraintError, LoadError, LoadSourceError, SourceUnreadable
from tests.behaviour.graphs import PERSON, Backstage
from tests.support.workshop import WORKSHOP

SCHEMA = """
node Person {
    name: String @key
    email: String? @unique
    first: String?
    last: String?
    rank: F64?
    @unique(first, last)
    @unique(rank)
}
edge Leads: Person -> Person @card(0..1) { since: I32? }
edge Follows: Person -> Person { since: I32?  @unique(src, dst) }
"""
LEADS, FOLLOWS = "edge:Leads", "edge:Follows"


def person(name: str, **values: Any) -> dict[str, Any]:
    return {"type": "Person", "data": {"name": name, **values}}


def leads(source: str, target: str, **values: Any) -> dict[str, Any]:
    return {"edge": "Leads", "from": source, "to": target, "data": values}


def follows(source: str, target: str, **values: Any) -> dict[str, Any]:
    return {"edge": "Follows", "from": source, "to": target, "data": values}


def lines(*records: dict[str, Any]) -> str:
    return "\n".join(map(json.dumps, records))


@pytest.fixture
def graph(uri: str) -> Graph:
    graph = init(uri, SCHEMA)
    everybody = [person("alice", email="a@x"), person("bob"), person("cara")]
    graph.load(lines(*everybody, leads("alice", "bob", id="e1", since=1)).encode(), "append")
    return graph


def rows(graph: Graph, key: str) -> dict[str, dict[str, Any]]:
    out = io.BytesIO()
    graph.export(out, types=[key])
    records = [json.loads(line) for line in out.getvalue().decode().splitlines()]
    return {
        r["data"]["id"]: {**r["data"], "from": r.get("from"), "to": r.get("to")} for r in records
    }


def heads(graph: Graph) -> dict[str, tuple[int, int]]:
    """The published and the newest stored version of every table."""
    tables = Backstage(graph.uri).tables
    return {
        key: (entry.version, tables.open(entry.location).version)
        for key, entry in graph._snapshot().entries.items()
    }


# -- a load that is refused ------------------------------------------------------------------


@pytest.mark.acceptance("S-053")
@pytest.mark.parametrize(
    ("mode", "records"),
    [
        ("overwrite", [person("zoe"), leads("zoe", "nobody")]),
        ("overwrite", [leads("alice", "bob"), leads("alice", "cara")]),
        ("append", [person("zoe"), leads("alice", "zoe")]),
        ("merge", [leads("bob", "cara"), leads("bob", "alice")]),
    ],
)
def test_a_load_that_breaks_a_rule_of_edges_changes_nothing(graph, mode, records):
    before, version = heads(graph), graph._snapshot().version
    with pytest.raises(LoadError):
        graph.load(lines(*records).encode(), mode)
    assert heads(graph) == before
    assert graph._snapshot().version == version
    graph.load(lines(person("zoe"), leads("bob", "zoe")).encode(), "merge")
    assert len(rows(graph, LEADS)) == 2


# -- merging ---------------------------------------------------------------------------------


@pytest.mark.acceptance("S-054")
def test_an_edge_that_is_moved_and_repeated_counts_once(graph):
    moved = leads("bob", "cara", id="e1", since=2)
    result = graph.load(lines(moved, moved).encode(), "merge")
    assert rows(graph, LEADS) == {"e1": {"id": "e1", "since": 2, "from": "bob", "to": "cara"}}
    assert result.receipt.counts[LEADS].to_json() == {"inserted": 0, "updated": 1, "deleted": 0}
    graph.load(lines(leads("alice", "cara")).encode(), "merge")
    with pytest.raises(LoadError, match="@card violation"):
        graph.load(lines(leads("bob", "alice")).encode(), "merge")


@pytest.mark.acceptance("S-055")
def test_overlapping_merges_are_upserts_again_and_again(graph):
    for number in range(6):
        names = [f"p{number}", f"p{number + 1}", "alice"]
        graph.load(
            lines(*(person(name, rank=number * 10 + n) for n, name in enumerate(names))).encode(),
            "merge",
        )
    found = rows(graph, PERSON)
    assert {name: row["rank"] for name, row in found.items()} == {
        "alice": 52.0,
        "bob": None,
        "cara": None,
        **{f"p{n}": n * 10.0 for n in range(6)},
        "p6": 51.0,
    }
    assert found["alice"]["email"] is None


@pytest.mark.acceptance("S-056")
@pytest.mark.parametrize("mode", ["append", "merge", "overwrite"])
def test_a_key_twice_in_one_load_is_named(graph, mode):
    with pytest.raises(LoadError, match=r"@unique violation on Person\.name: value 'dup'"):
        graph.load(lines(person("dup"), person("dup", email="d@x")).encode(), mode)
    assert "dup" not in rows(graph, PERSON)


# -- uniqueness ------------------------------------------------------------------------------


@pytest.mark.acceptance("S-057")
@pytest.mark.parametrize("loads", [1, 2])
def test_tuples_are_compared_value_by_value(graph, loads):
    one, two = person("d", first="x|y", last="z"), person("e", first="x", last="y|z")
    for text in [lines(one, two)] if loads == 1 else [lines(one), lines(two)]:
        graph.load(text.encode(), "append")
    assert {"d", "e"} <= set(rows(graph, PERSON))
    with pytest.raises(LoadError, match=r"@unique violation on Person\.\(first, last\)"):
        graph.load(lines(person("f", first="x", last="y|z")).encode(), "append")


@pytest.mark.parametrize("mode", ["append", "merge"])
def test_a_value_that_is_taken_is_refused_and_one_that_is_freed_is_not(graph, mode):
    with pytest.raises(LoadError, match=r"@unique violation on Person\.email") as caught:
        graph.load(lines(person("dan", email="a@x")).encode(), mode)
    assert "already belongs to" in str(caught.value)
    assert isinstance(caught.value, ConstraintError)
    graph.load(lines(person("alice", email="new@x"), person("dan", email="a@x")).encode(), "merge")
    assert rows(graph, PERSON)["dan"]["email"] == "a@x"


@pytest.mark.parametrize(("taken", "given"), [(0.0, -0.0), (-0.0, 0.0), (-0.0, 0), (1.5, 1.5)])
def test_numbers_that_are_equal_are_one_value_however_they_are_written(graph, taken, given):
    graph.load(lines(person("bob", rank=taken)).encode(), "merge")
    with pytest.raises(LoadError, match=r"@unique violation on Person\.rank"):
        graph.load(lines(person("cara", rank=given)).encode(), "merge")


# -- the identity of edges -------------------------------------------------------------------


@pytest.mark.acceptance("S-153")
def test_an_edge_that_its_ends_identify_is_one_edge(graph):
    graph.load(lines(follows("alice", "bob", since=1)).encode(), "merge")
    graph.load(lines(follows("alice", "bob", since=2)).encode(), "merge")
    derived = '["alice","bob"]'
    expected = {derived: {"id": derived, "since": 2, "from": "alice", "to": "bob"}}
    assert rows(graph, FOLLOWS) == expected
    twice = lines(follows("bob", "cara"), follows("bob", "cara", since=3))
    for mode in ("append", "merge", "overwrite"):
        with pytest.raises(LoadError, match="@unique violation"):
            graph.load(twice.encode(), mode)
    with pytest.raises(LoadError, match="already exists"):
        graph.load(lines(follows("alice", "bob")).encode(), "append")
    assert rows(graph, FOLLOWS) == expected
    result = graph.load(lines(follows("cara", "bob", id="mine")).encode(), "merge")
    assert [warning.code for warning in result.receipt.warnings] == ["explicit_edge_id_ignored"]
    assert set(rows(graph, FOLLOWS)) == {derived, '["cara","bob"]'}
    inserted = graph.mutate(
        'query q($s: I32) { insert Follows { from: "alice", to: "bob", since: $s } }', {"s": 7}
    )
    assert (inserted.affected_edges, inserted.receipt.counts[FOLLOWS].updated) == (1, 1)
    assert rows(graph, FOLLOWS)[derived]["since"] == 7


# -- overwriting -----------------------------------------------------------------------------


@pytest.mark.acceptance("S-059")
def test_an_overwrite_with_no_rows_empties_the_table(graph):
    none = pa.table({"from": pa.array([], pa.utf8()), "to": pa.array([], pa.utf8())})
    result = graph.load({"Leads": none}, "overwrite")
    assert result.receipt.counts[LEADS].to_json() == {"inserted": 0, "updated": 0, "deleted": 1}
    assert rows(graph, LEADS) == {}
    assert len(rows(graph, PERSON)) == 3
    entry = graph._snapshot().entry(LEADS)
    assert entry.row_count == 0
    backstage = Backstage(graph.uri)
    assert backstage.tables.open(entry.location).dataset.has_stable_row_ids
    graph.load(
        lines(leads("cara", "bob", id="e1"), leads("bob", "cara", id="e2")).encode(), "append"
    )
    stored = backstage.tables.open(entry.location).read(["id"], with_row_ids=True)
    first = dict(zip(*stored.to_pydict().values(), strict=True))
    graph.load(lines(leads("cara", "alice", id="e1")).encode(), "merge")
    stored = backstage.tables.open(entry.location).read(["id"], with_row_ids=True)
    assert dict(zip(*stored.to_pydict().values(), strict=True)) == first


def test_only_an_overwrite_empties_a_type_and_bad_rows_never_do(graph, tmp_path):
    before = rows(graph, LEADS)
    none = pa.table({"from": pa.array([], pa.utf8()), "to": pa.array([], pa.utf8())})
    for mode in ("append", "merge"):
        graph.load({"Leads": none}, mode)
    bad = pa.table({"from": pa.array([None], pa.utf8()), "to": ["bob"]})
    with pytest.raises(LoadError):
        graph.load({"Leads": bad}, "overwrite")
    people = pa.table({"name": ["alice", "bob"]})
    graph.load({"Person": people, "Leads": bad}, "overwrite", quarantine=tmp_path / "bad")
    assert rows(graph, LEADS) == before
    nobody = pa.table({"name": pa.array([], pa.utf8())})
    with pytest.raises(LoadError, match="src 'alice' not found in Person"):
        graph.load(
            {"Person": nobody, "Leads": pa.table({"from": ["alice"], "to": ["bob"]})}, "overwrite"
        )


# -- sources ---------------------------------------------------------------------------------

MAKERS = (
    '{"type": "Maker", "data": {"handle": "ada"}}\n{"type": "Maker", "data": {"handle": "bo"}}\n'
)


@pytest.fixture
def workshop(memory_uri: str) -> Graph:
    return init(memory_uri, WORKSHOP)


@pytest.mark.acceptance("L-274")
@pytest.mark.parametrize("name", ["seed.jsonl.gz", "seed"])
def test_a_packed_file_loads_like_a_plain_one(tmp_path, workshop, name):
    (tmp_path / name).write_bytes(gzip.compress(MAKERS.encode()))
    (tmp_path / "plain.jsonl").write_text(MAKERS)
    packed = workshop.branches.create("packed").load(str(tmp_path / name), "append")
    plain = workshop.load(tmp_path / "plain.jsonl", "append")
    assert packed.rows_loaded == plain.rows_loaded
    assert rows(workshop, "node:Maker") == rows(open_branch(workshop, "packed"), "node:Maker")


def test_a_string_is_a_path_and_text_in_its_place_is_refused_in_words(tmp_path, workshop):
    for text in (MAKERS, MAKERS.splitlines()[0], MAKERS * 100, f"  {MAKERS}"):
        with pytest.raises(LoadSourceError, match="a string is a path; pass JSON text as bytes"):
            workshop.load(text, "append")
    for name in ("nobody.jsonl", "x" * 5000, f"{'x' * 5000}*"):
        with pytest.raises(SourceUnreadable):
            workshop.load(str(tmp_path / name), "append")
    assert workshop._snapshot().version == 1
    path = tmp_path / "{odd}.jsonl"
    path.write_text(MAKERS)
    workshop.load(str(path), "append")
    assert workshop._snapshot().version == 2


@pytest.mark.acceptance("L-280")
def test_a_parquet_value_out_of_range_loads_nothing(tmp_path, workshop):
    path = tmp_path / "Maker.parquet"
    ages = pa.array([31, 3_000_000_000], pa.int64())
    pq.write_table(pa.table({"handle": ["a", "b"], "age": ages}), path)
    with pytest.raises(LoadError, match="record 2: property 'age': value out of range for I32"):
        workshop.load(path, "append")
    assert workshop._snapshot().version == 1
    pq.write_table(pa.table({"handle": ["a", "b"], "age": pa.array([31, 32], pa.int64())}), path)
    workshop.load(path, "append")
    assert {row["age"] for row in rows(workshop, "node:Maker").values()} == {31, 32}


@pytest.mark.acceptance("L-277")
def test_a_csv_file_is_loaded_by_its_header(tmp_path, workshop):
    path = tmp_path / "Maker.csv"
    path.write_text('handle,age,skills\nzoe,31,"[""lathe""]"\n')
    workshop.load(path, "append")
    (zoe,) = rows(workshop, "node:Maker").values()
    assert {name: value for name, value in zoe.items() if value is not None} == {
        "id": "zoe",
        "handle": "zoe",
        "age": 31,
        "skills": ["lathe"],
    }


@pytest.mark.acceptance("L-278")
def test_a_mapped_csv_file_finds_the_ends_of_its_edges_by_key(tmp_path, workshop):
    workshop.load(Path("tests/cases/workshop.jsonl"), "append")
    (tmp_path / "loans.csv").write_text(
        "maker_id;tool_code;loan_id;remark\nada;sa-1;l1;for a day\nbo;dr-2;l2;NULL\n"
    )
    (tmp_path / "mapping.yaml").write_text(
        """
version: 1
sources:
  - path: loans.csv
    csv: {delimiter: ";", null: ["", "NULL"]}
    edge: Borrows
    from: maker_id
    to: {code: tool_code}
    id: loan_id
    columns: {note: remark}
"""
    )
    result = workshop.load(None, mapping=tmp_path / "mapping.yaml", mode="append")
    assert result.rows_loaded == {"edge:Borrows": 2}
    loans = rows(workshop, "edge:Borrows")
    assert [(loans[id]["from"], loans[id]["to"], loans[id]["note"]) for id in ("l1", "l2")] == [
        ("ada", "sa-1", "for a day"),
        ("bo", "dr-2", None),
    ]


@pytest.mark.acceptance("L-279")
def test_a_mapping_that_names_a_missing_column_loads_nothing(tmp_path, workshop):
    (tmp_path / "Maker.csv").write_text("handle,age\nada,no number\n")
    source = {"path": str(tmp_path / "Maker.csv"), "node": "Maker", "columns": {"score": "x"}}
    with pytest.raises(LoadSourceError, match="source has no column 'x'"):
        workshop.load(None, "append", mapping={"version": 1, "sources": [source]})
    assert workshop._snapshot().version == 1


@pytest.mark.acceptance("L-282")
def test_a_parquet_file_that_names_no_type_needs_a_mapping(tmp_path, workshop):
    pq.write_table(pa.table({"handle": ["ada"]}), tmp_path / "data.parquet")
    with pytest.raises(LoadSourceError, match="needs a mapping"):
        workshop.load(tmp_path / "data.parquet", "append")
    source = {"path": str(tmp_path / "*.parquet"), "node": "Maker"}
    workshop.load(None, mapping={"version": 1, "sources": [source]}, mode="append")
    assert rows(workshop, "node:Maker").keys() == {"ada"}


@pytest.mark.acceptance("L-281")
def test_frames_of_pandas_and_polars_are_one_commit(workshop):
    makers = pd.DataFrame({"handle": ["x", "y"], "age": pd.array([31, None], "Int32")})
    mentors = pl.DataFrame({"from": ["x"], "to": ["y"], "since": [date(2021, 7, 15)]})
    result = workshop.load({"Maker": makers, "Mentors": mentors}, mode="append")
    assert result.rows_loaded == {"edge:Mentors": 1, "node:Maker": 2}
    assert result.receipt.manifest_version == workshop._snapshot().version == 2
    assert {row["age"] for row in rows(workshop, "node:Maker").values()} == {31, None}
    assert {row["since"] for row in rows(workshop, "edge:Mentors").values()} == {18823}


def test_any_object_that_hands_out_an_arrow_stream_is_a_frame(workshop):
    makers = pa.table({"handle": ["x", "y"]})
    mentors = StreamOnly(pa.table({"from": ["x"], "to": ["y"]}))
    result = workshop.load({"Maker": makers, "Mentors": mentors}, mode="append")
    assert result.rows_loaded == {"edge:Mentors": 1, "node:Maker": 2}
    assert result.receipt.manifest_version == workshop._snapshot().version == 2


def test_an_overwrite_by_a_handle_that_knows_an_older_state_is_validated_against_the_newest(
    graph, uri
):
    other = open_graph(uri)
    graph.load(lines(person("dora")).encode(), "append")
    other.load(lines(leads("alice", "dora", id="e2")).encode(), "overwrite")
    assert rows(graph, LEADS).keys() == {"e2"}
    late = open_graph(uri)
    graph.load(lines(person("eve"), leads("bob", "eve", id="e3")).encode(), "append")
    late.load(lines(leads("alice", "eve", id="e4")).encode(), "overwrite")
    assert rows(graph, LEADS).keys() == {"e4"}


class StreamOnly:
    """A data frame as far as anybody may know one: it hands out an Arrow stream."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


def open_branch(graph: Graph, name: str) -> Graph:
    return graph.checkout(name)


class Told:
    """Remembers what it is told about progress."""

    def __init__(self) -> None:
        self.stages: list[list[Any]] = []

    def stage(self, name: str, rows: int | None = None) -> None:
        self.stages.append([name, rows, 0])

    def advance(self, rows: int) -> None:
        self.stages[-1][2] += rows


def test_loads_and_exports_tell_their_stages_and_rows(tmp_path, workshop, monkeypatch):
    told = Told()
    workshop.load(MAKERS.encode(), "append", progress=told)
    assert told.stages == [["read", None, 2], ["check", 2, 2], ["write", 2, 2]]
    monkeypatch.setattr("omnigraph.commit.tables.INDEX_MIN_ROWS", 2)
    told = Told()
    workshop.load(
        MAKERS.replace("ada", "eda").replace("bo", "po").encode(), "append", progress=told
    )
    assert told.stages[2:] == [["write", 2, 2], ["index", 4, 4]]
    told = Told()
    workshop.export(io.BytesIO(), types=["Maker"], progress=told)
    workshop.export(tmp_path / "out", format="parquet", types=["Maker", "Tool"], progress=told)
    assert told.stages == [
        ["export node:Maker", 4, 4],
        ["export node:Maker", 4, 4],
        ["export node:Tool", 0, 0],
    ]
