"""Mappings: which type the rows of a source are, where their values come from, and what is refused."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from omnigraph.errors import LoadError, LoadSourceError, SourceUnreadable
from omnigraph.load.recognition import recognise_sources
from tests.unit.load.loading import W, catalog_of, load, rows_of, workshop

KEYED = catalog_of(
    """
node Day { on: Date @key  no: String? }
node Seat { row: I32  number: I32  free: Bool  @key(row, number) }
node Plain { text: String? }
node Level { at: F64 @key }
edge Holds: Day -> Seat
edge Up: Level -> Level
edge Named: Plain -> Plain { note: String? }
edge Paired: Day -> Day { @unique(src, dst) }
"""
)


def mapping(*sources: dict[str, Any]) -> dict[str, Any]:
    return {"version": 1, "sources": list(sources)}


def refused(*sources: dict[str, Any], given: object = None) -> str:
    with pytest.raises(LoadSourceError) as caught:
        load(given, W, mapping=mapping(*sources))
    return str(caught.value)


@pytest.fixture
def people(tmp_path: Path) -> Path:
    path = tmp_path / "people.csv"
    path.write_text("login,years,score\nann,41,1\nbob,29,2\n")
    return path


def test_a_csv_file_named_after_its_type_needs_no_mapping(tmp_path):
    path = tmp_path / "Maker.csv"
    path.write_text('handle,age,skills\nzoe,31,"[""lathe""]"\n')
    (row,) = rows_of(load(path), "node:Maker")
    assert {k: v for k, v in row.items() if v is not None} == {
        "id": "zoe",
        "handle": "zoe",
        "age": 31,
        "skills": ("lathe",),
    }


def test_properties_come_from_columns_constants_or_nowhere(people):
    columns = {"handle": "login", "age": "years", "level": {"value": "novice"}, "score": None}
    source = {"path": str(people), "node": "Maker", "columns": columns}
    rows = rows_of(load(None, mapping=mapping(source)), "node:Maker")
    assert [(r["id"], r["age"], r["level"], r["score"]) for r in rows] == [
        ("ann", 41, "novice", None),
        ("bob", 29, "novice", None),
    ]


def test_paths_are_relative_to_the_mapping_and_may_be_patterns(tmp_path, monkeypatch):
    (tmp_path / "in" / "people").mkdir(parents=True)
    for number in (2, 1):
        rows = pa.table({"login": [f"m{number}"]})
        pq.write_table(rows, tmp_path / "in" / "people" / f"{number}.parquet")
    file = tmp_path / "in" / "mapping.yaml"
    file.write_text(
        "version: 1\nsources:\n- path: people/*.parquet\n  node: Maker\n  columns: {handle: login}\n"
    )
    monkeypatch.chdir(tmp_path)
    for told in (file, "in/mapping.yaml"):
        rows = rows_of(load(None, mapping=told), "node:Maker")
        assert [row["id"] for row in rows] == ["m1", "m2"]


def test_a_mapping_may_be_json(tmp_path, people):
    source = {"path": people.name, "node": "Maker", "columns": {"handle": "login"}}
    (tmp_path / "m.json").write_text(json.dumps(mapping(source), indent="\t"))
    assert load(None, mapping=tmp_path / "m.json").records == 2


def test_what_yaml_would_guess_is_text_here(tmp_path):
    (tmp_path / "days.csv").write_text("on,2020\n1,x\n")
    (tmp_path / "m.yaml").write_text(
        """
version: 1
sources:
  - path: days.csv
    csv: {null: ["1"]}
    node: Day
    columns:
      on: {value: 2021-07-15}
      no: on
"""
    )
    (row,) = rows_of(load(None, KEYED, mapping=tmp_path / "m.yaml"), "node:Day")
    assert (row["id"], row["no"]) == ("18823", None)


def test_ends_are_found_by_the_key_of_their_node(tmp_path):
    (tmp_path / "loans.csv").write_text(
        'maker_id;tool_code;loan_id;remark\nada;sa-1;l1;"a;b"\nbo;dr-2;l2;NULL\n'
    )
    source = {
        "path": str(tmp_path / "loans.csv"),
        "format": "csv",
        "csv": {"delimiter": ";", "null": ["", "NULL"]},
        "edge": "Borrows",
        "from": "maker_id",
        "to": {"code": "tool_code"},
        "id": "loan_id",
        "columns": {"note": "remark"},
    }
    rows = rows_of(load(None, committed=workshop(), mapping=mapping(source)), "edge:Borrows")
    assert [(r["id"], r["src"], r["dst"], r["note"]) for r in rows] == [
        ("l1", "ada", "sa-1", "a;b"),
        ("l2", "bo", "dr-2", None),
    ]


def seats(rows: pa.Table, **options: Any) -> list[dict[str, Any]]:
    """The edges that rows of a frame become, with the nodes they need."""
    days = pa.table({"on": pa.array([datetime.date(2021, 7, 15)])})
    places = pa.table({"row": [1, 1], "number": [2, 3], "free": [True, False]})
    source = {
        "name": "held",
        "edge": "Holds",
        "from": {"on": "day"},
        "to": {"row": "r", "number": "n"},
    }
    given = {"Day": days, "Seat": places, "held": rows}
    return rows_of(load(given, KEYED, mapping=mapping(source), **options), "edge:Holds")


def test_key_values_of_ends_are_converted_like_properties():
    for day in (["2021-07-15"], [18823], [datetime.datetime(2021, 7, 15, 12)]):
        (row,) = seats(pa.table({"day": day, "r": [1], "n": [3]}))
        assert (row["src"], row["dst"]) == ("18823", '["3","1"]')


def test_key_values_that_do_not_fit_name_the_end():
    rows = pa.table({"day": ["2021-07-15", "soon", None], "r": [1, 1, 1], "n": [2, 2**40, 2]})
    with pytest.raises(LoadError) as caught:
        seats(rows)
    assert [(e.record, e.code, e.message, e.property) for e in caught.value.load_errors] == [
        (2, "bad_value", "'from': property 'on': invalid Date literal 'soon'", "from"),
        (2, "bad_value", "'to': property 'number': value out of range for I32", "to"),
        (3, "missing_endpoint", "edge missing 'from'", None),
    ]


def test_a_key_that_is_no_number_is_no_end():
    rows = pa.table({"a": [1.5, float("nan")], "b": [1.5, 1.5]})
    source = {"name": "up", "edge": "Up", "from": {"at": "a"}, "to": {"at": "b"}}
    given = {"Level": pa.table({"at": [1.5]}), "up": rows}
    with pytest.raises(LoadError, match="record 2: 'from': property 'at': NaN is not a finite"):
        load(given, KEYED, mapping=mapping(source))


def test_ids_come_from_the_column_that_is_named_or_called_so():
    nodes = {"Plain": pa.table({"id": ["x"], "text": ["t"]})}
    edges = pa.table({"from": ["x"], "to": ["x"], "code": ["e1"], "id": ["e2"]})
    for told, expected in (({"id": "code"}, "e1"), ({}, "e2")):
        source = {"name": "e", "edge": "named", **told}
        result = load({**nodes, "e": edges}, KEYED, mapping=mapping(source))
        assert [row["id"] for row in rows_of(result, "edge:Named")] == [expected]


def test_frames_of_every_library_are_mapped_by_their_names():
    makers = pd.DataFrame({"login": ["x", "y"], "age": pd.array([3, None], "Int64")})
    mentors = pl.DataFrame({"from": ["x"], "to": ["y"], "since": [datetime.date(2020, 1, 1)]})
    source = {"name": "makers", "node": "Maker", "columns": {"handle": "login"}}
    result = load({"makers": makers, "Mentors": mentors}, mapping=mapping(source))
    assert [(r["id"], r["age"]) for r in rows_of(result, "node:Maker")] == [("x", 3), ("y", None)]
    assert [(r["src"], r["since"]) for r in rows_of(result, "edge:Mentors")] == [("x", 18262)]


def test_sources_of_the_mapping_come_first_and_no_file_is_loaded_twice(tmp_path, people):
    sheds = tmp_path / "sheds.jsonl"
    sheds.write_text('{"type": "Shed", "data": {"slug": "s"}}')
    source = {"path": str(people), "node": "Maker", "columns": {"handle": "login"}}
    result = load([sheds, people], mapping=mapping(source))
    assert {key: loaded.rows_loaded for key, loaded in result.types.items()} == {
        "node:Maker": 2,
        "node:Shed": 1,
    }
    found = recognise_sources([sheds, people], W, mapping=mapping(source))
    assert [source.name for source in found] == [str(people), str(sheds)]


# -- JSON -----------------------------------------------------------------------------------------


def objects(tmp_path: Path, text: str, source: dict[str, Any], **options: Any) -> Any:
    path = tmp_path / "objects.json"
    path.write_text(text)
    return load(None, mapping=mapping({"path": str(path), **source}), **options)


def test_an_edge_that_lacks_a_part_of_its_identity_has_the_id_it_is_given():
    catalog = catalog_of(
        "node N { k: String @key }\nedge E: N -> N { w: I32?  @unique(src, dst, w) }"
    )
    edges = pa.table({"from": ["a", "a"], "to": ["a", "a"], "w": [1, None], "id": ["x", "y"]})
    result = load({"N": pa.table({"k": ["a"]}), "E": edges}, catalog)
    assert [row["id"] for row in rows_of(result, "edge:E")] == ['["a","a","1"]', "y"]
    assert [warning.code for warning in result.warnings] == ["explicit_edge_id_ignored"]


def test_plain_json_objects_are_rows_of_one_type(tmp_path):
    text = '{"login": "x", "age": 3, "other": [{}]}\n{"login": "y", "joined": "2021-07-15"}\n'
    source = {"node": "Maker", "columns": {"handle": "login", "level": {"value": "master"}}}
    rows = rows_of(objects(tmp_path, text, source), "node:Maker")
    assert [(r["id"], r["age"], r["joined"], r["level"]) for r in rows] == [
        ("x", 3, None, "master"),
        ("y", None, 18823, "master"),
    ]


@pytest.mark.parametrize("between", ["\n", " ", "\n\n"])
def test_plain_objects_are_laid_out_as_records_may_be(tmp_path, between):
    text = between.join(json.dumps({"handle": h, "joined": 18823}, indent=1) for h in "ab")
    rows = rows_of(objects(tmp_path, text, {"node": "Maker"}), "node:Maker")
    assert [(r["id"], r["joined"]) for r in rows] == [("a", 18823), ("b", 18823)]


def test_bad_plain_objects_are_reported_and_set_aside(tmp_path):
    text = '{"handle": "a"}\n{"handle": "b", "age": "x"}\n[1]\n{"handle" x}\n{"age": 1}\n'
    with pytest.raises(LoadError) as caught:
        objects(tmp_path, text, {"node": "Maker"})
    assert [(e.record, e.line, e.code) for e in caught.value.load_errors] == [
        (2, 2, "bad_value"),
        (3, 3, "bad_record"),
        (4, 4, "invalid_json"),
        (5, 5, "bad_key"),
    ]
    result = objects(tmp_path, text, {"node": "Maker"}, quarantine=True)
    assert [row["id"] for row in rows_of(result, "node:Maker")] == ["a"]
    assert [bad.raw for bad in result.quarantined][:2] == ['{"handle": "b", "age": "x"}', "[1]"]


@pytest.mark.parametrize("odd", ["", '{"who": "ada", "tool": 3}'])
def test_plain_objects_of_edges_have_their_ends_by_key(tmp_path, odd):
    text = '{"who": "ada", "tool": "sa-1", "id": "e1"}\n{"who": "bo", "tool": "dr-2"}\n' + odd
    source = {"edge": "Borrows", "from": "who", "to": {"code": "tool"}}
    result = objects(tmp_path, text, source, committed=workshop(), quarantine=True)
    rows = rows_of(result, "edge:Borrows")
    assert [(r["src"], r["dst"]) for r in rows] == [("ada", "sa-1"), ("bo", "dr-2")]
    assert rows[0]["id"] == "e1"
    found = [(f.property, f.message) for bad in result.quarantined for f in bad.problems]
    assert found == ([("to", "'to': property 'code' expects String, got number")] if odd else [])


def test_a_json_source_without_a_type_holds_records(tmp_path):
    text = '{"type": "Shed", "data": {"slug": "s"}}'
    assert objects(tmp_path, text, {"format": "json"}).types.keys() == {"node:Shed"}


# -- refusals -------------------------------------------------------------------------------------


def test_a_column_that_is_not_there_is_refused_before_a_record_is_read(people):
    people.write_text("login,years\n\xff,no number\n")
    source = {"path": str(people), "node": "Maker", "columns": {"handle": "login", "age": "yeers"}}
    assert refused(source) == (f"{people}: source has no column 'yeers'; did you mean `years`?")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"colums": {}}, "<mapping>: source 1: unknown key 'colums'; did you mean `columns`?"),
        ({"node": "Makr"}, "unknown node type 'Makr'; did you mean `Maker`?"),
        ({"node": 3}, "'node' must be a text"),
        ({"edge": "Borrows"}, "'node' and 'edge' exclude each other"),
        ({"name": "x"}, "'path' and 'name' exclude each other"),
        ({"from": "x"}, "only an edge has 'from' and 'to'"),
        ({"id": "login"}, "ids of Maker are derived; leave 'id' out"),
        ({"columns": {"nmae": "login"}}, "Maker has no property 'nmae'"),
        ({"columns": {"handle": None}}, "source has no column 'handle'"),
        ({"columns": {"handle": 3}}, "'handle' must be a column, null, or an object with 'value'"),
        ({"columns": {"handle": "login", "age": {"value": "x"}}}, "expects I32, got string"),
        ({"columns": []}, "'columns' must be an object"),
        ({"format": "xml"}, "'format' must be one of json, csv, parquet"),
        ({"format": "json", "csv": {}}, "'csv' does not go with the format 'json'"),
        ({"csv": {"delimiter": ";;"}}, "'delimiter' must be one ASCII character"),
        ({"csv": {"null": "x"}}, "'null' must be a list of texts"),
        ({"csv": {"header": 1}}, "'header' must be true or false"),
        ({"csv": {"sep": 1}}, "unknown key 'sep'"),
    ],
)
def test_a_source_that_makes_no_sense_is_refused(people, change, message):
    source = {"path": str(people), "node": "Maker", "columns": {"handle": "login"}}
    assert message in refused(source | change)


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ([], "a mapping must be an object"),
        ({"version": 2, "sources": [{}]}, "'version' must be 1"),
        ({"version": 1}, "'sources' must be a list with at least one source"),
        ({"version": 1, "sources": [{"node": "Maker"}]}, "needs one of 'path', 'table' and 'name'"),
        ({"version": 1, "sources": [{"table": "t"}]}, "source 1: needs 'node' or 'edge'"),
        ({"version": 1, "sources": [{"name": "x"}]}, "source 1: needs 'node' or 'edge'"),
        ({"version": 1, "sources": [{"path": "x.json", "id": "a"}]}, "'id' needs 'node' or 'edge'"),
    ],
)
def test_a_document_that_makes_no_sense_is_refused(tmp_path, document, message):
    (tmp_path / "m.yaml").write_text(json.dumps(document))
    with pytest.raises(LoadSourceError, match=message):
        load(None, mapping=tmp_path / "m.yaml")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("version: [", "line 1, column 11: expected the node content"),
        ("version: 1\nversion: 1", "line 2, column 1: key 'version' stands twice"),
        ("? [a]\n: 1", "line 1, column 3: a key must be text"),
        ("!!python/object:os.system {}", "could not determine a constructor"),
    ],
)
def test_a_text_that_is_no_document_says_where(tmp_path, text, message):
    (tmp_path / "m.yaml").write_text(text)
    with pytest.raises(LoadSourceError, match=message):
        load(None, mapping=tmp_path / "m.yaml")


def test_a_mapping_that_cannot_be_read_is_refused(tmp_path):
    with pytest.raises(SourceUnreadable, match="no such file"):
        load(None, mapping=tmp_path / "none.yaml")
    (tmp_path / "m.yaml").write_bytes(b"\xff")
    with pytest.raises(SourceUnreadable, match="is not UTF-8 text"):
        load(None, mapping=tmp_path / "m.yaml")


def test_a_frame_that_is_named_and_not_given_is_missed():
    message = "x: the mapping names it, but no frame is given"
    assert refused({"name": "x", "node": "Maker"}, given={"y": pa.table({})}) == message


def test_ends_by_key_need_the_whole_key_and_a_key():
    table = pa.table({"a": [1], "to": ["x"]})
    for edge, end, message in (
        ("Holds", {"day": "a"}, r"'from' must name the key properties of Day \(on\)"),
        ("Named", {"text": "a"}, r"'from' must name the key properties of Plain \(none\)"),
    ):
        source = {"name": "e", "edge": edge, "from": end}
        with pytest.raises(LoadSourceError, match=message):
            load({"e": table}, KEYED, mapping=mapping(source))


def test_nothing_to_load_is_said():
    with pytest.raises(LoadSourceError, match="nothing to load"):
        load(None)
