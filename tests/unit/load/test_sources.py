"""What a load reads, recognised from what it is given."""

from __future__ import annotations

import gzip
import io
import json
import os
import pickle

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from omnigraph.errors import LoadError, LoadSourceError, SourceUnreadable
from omnigraph.load.recognition import recognise_sources
from omnigraph.load.sources import CsvSource, FrameSource, JsonSource, ParquetSource
from tests.unit.load.loading import W, catalog_of, load, rows_of

SHED = '{"type":"Shed","data":{"slug":"%s"}}'


class Stream:
    """A data frame of some other library: it offers an Arrow stream and nothing else."""

    def __init__(self, table):
        self.table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize("given", [b"", b"  ", SHED.encode(), b"[1]", b"a\nb", b"anything"])
def test_bytes_are_a_source_by_themselves(given):
    (source,) = recognise_sources(given, W)
    assert isinstance(source, JsonSource)
    assert source.name == "<data>"


@pytest.mark.parametrize("given", [SHED, f"  {SHED}", "a\nb", f"{SHED}\n{SHED}\n"])
def test_text_that_is_given_as_a_path_is_told_from_a_missing_file(given):
    with pytest.raises(LoadSourceError, match="a string is a path; pass JSON text as bytes"):
        recognise_sources(given, W)


@pytest.mark.parametrize(
    ("given", "reason"),
    [("", "is not a path"), ("  ", "does not exist"), ("[1]", "matches no file")],
)
def test_a_string_is_always_a_path(given, reason):
    with pytest.raises(SourceUnreadable, match=reason):
        load_path(given)


def load_path(path: str) -> None:
    """Load what a string names; `load` takes strings for records."""
    load([path])


def test_a_string_that_names_a_file_is_that_file_however_it_is_spelt(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "{a}.jsonl").write_text(SHED % "x")
    assert [row["id"] for row in rows_of(load(["{a}.jsonl"]), "node:Shed")] == ["x"]


@pytest.mark.parametrize("name", ["a.jsonl", "a.ndjson", "a.json", "a.txt", "a"])
def test_a_file_of_any_other_name_is_a_json_stream(tmp_path, name):
    (tmp_path / name).write_text(SHED % "x")
    (source,) = recognise_sources(tmp_path / name, W)
    assert isinstance(source, JsonSource)


@pytest.mark.parametrize("kind", ["bytes", "text", "file", "gzip"])
def test_a_stream_is_one_text_whose_records_are_numbered_through(tmp_path, kind):
    records = [json.dumps(json.loads(SHED % name), indent=1) for name in "abc"]
    text = "\n".join([*records, "null", SHED % "d", "null"])
    path = tmp_path / "seed"
    path.write_bytes(gzip.compress(text.encode()) if kind == "gzip" else text.encode())
    streams = {"bytes": io.BytesIO(text.encode()), "text": io.StringIO(text)}
    with streams.get(kind) or path.open("rb") as stream, pytest.raises(LoadError) as caught:
        load(stream, W)
    assert [problem.record for problem in caught.value.load_errors] == [4, 6]
    assert caught.value.records == 6


def test_a_pipe_is_read_once_and_kept():
    reader, writer = os.pipe()
    os.write(writer, b'{"type":"Shed","data":{"slug":"east"}}')
    os.close(writer)
    try:
        (source,) = recognise_sources(f"/dev/fd/{reader}", W)
    finally:
        os.close(reader)
    assert isinstance(source, JsonSource)
    for _ in range(2):
        with source.open() as stream:
            assert stream.read() == b'{"type":"Shed","data":{"slug":"east"}}'


def test_several_paths_are_one_load_in_the_order_given(tmp_path):
    for name in ("b", "a", "c"):
        (tmp_path / f"{name}.jsonl").write_text(SHED % name)
    result = load([tmp_path / "c.jsonl", str(tmp_path / "[ab].jsonl")])
    assert [row["id"] for row in rows_of(result, "node:Shed")] == ["c", "a", "b"]


def test_records_are_numbered_in_each_source():
    with pytest.raises(LoadError) as caught:
        load([(SHED % "x").encode(), (SHED % "y").encode() + b'{"type":"Ghost"}', b"{"])
    assert [(e.source, e.record) for e in caught.value.load_errors] == [
        ("<data>", 2),
        ("<data>", 1),
    ]


def test_a_duplicate_in_two_sources_names_both(tmp_path):
    for name in ("a", "b"):
        (tmp_path / f"{name}.jsonl").write_text(SHED % "x")
    with pytest.raises(LoadError) as caught:
        load([tmp_path / "a.jsonl", tmp_path / "b.jsonl"])
    (problem,) = caught.value.load_errors
    here, there = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    assert problem.message.endswith(f"appears in {here} record 1 and {there} record 1")
    assert problem.source == str(there)


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("Maker.parquet", "node:Maker"),
        ("node:Maker.parquet", "node:Maker"),
        ("edge:Mentors.parquet", "edge:Mentors"),
        ("mentors.parquet", "edge:Mentors"),
    ],
)
def test_a_parquet_file_is_named_after_its_type(tmp_path, name, key):
    pq.write_table(pa.table({"handle": ["x"], "from": ["x"], "to": ["x"]}), tmp_path / name)
    (source,) = recognise_sources(tmp_path / name, W)
    assert isinstance(source, ParquetSource)
    assert source.plan.declared.table_key == key


def test_a_node_type_comes_before_an_edge_type_of_the_same_name():
    catalog = catalog_of("node Tie { k: String @key }\nedge Tie: Tie -> Tie")
    table = pa.table({"k": ["x"], "from": ["x"], "to": ["x"]})
    for name, key in (("Tie", "node:Tie"), ("edge:Tie", "edge:Tie")):
        (source,) = recognise_sources({name: table}, catalog)
        assert isinstance(source, FrameSource)
        assert source.plan.declared.table_key == key


def test_a_folder_of_parquet_parts_is_named_after_its_type(tmp_path):
    folder = tmp_path / "Maker.parquet"
    folder.mkdir()
    for number in (1, 0):
        pq.write_table(pa.table({"handle": [f"m{number}"]}), folder / f"part-{number}.parquet")
    result = load(folder)
    assert [row["id"] for row in rows_of(result, "node:Maker")] == ["m0", "m1"]


def test_a_folder_holds_files_of_every_kind_and_marks_that_are_none(tmp_path):
    (tmp_path / "1.jsonl").write_text(SHED % "x")
    (tmp_path / "Maker.csv").write_text("handle\nada\n")
    pq.write_table(pa.table({"code": ["sa-1"], "label": ["saw"]}), tmp_path / "Tool.parquet")
    for name in ("_SUCCESS", ".part.jsonl", "notes.txt"):
        (tmp_path / name).write_text("no data")
    result = load(tmp_path)
    assert {key: loaded.rows_loaded for key, loaded in result.types.items()} == {
        "node:Maker": 1,
        "node:Shed": 1,
        "node:Tool": 1,
    }


def test_the_format_can_be_told(tmp_path):
    (tmp_path / "Maker.parquet").write_text('{"type":"Maker","data":{"handle":"x"}}')
    assert load(tmp_path / "Maker.parquet", format="json").records == 1
    pq.write_table(pa.table({"handle": ["x"]}), tmp_path / "Maker")
    assert load(tmp_path / "Maker", format="parquet").records == 1
    (tmp_path / "Maker").write_text("handle\nx\n")
    assert load(tmp_path / "Maker", format="csv").records == 1


def test_tables_of_every_library_are_read():
    table = pa.table({"handle": ["x"], "age": [3]})
    for given in (table, Stream(table), ds.dataset(table), table.to_reader()):
        (row,) = rows_of(load({"Maker": given}), "node:Maker")
        assert (row["id"], row["age"]) == ("x", 3)


def test_a_table_without_rows_breaks_no_rule():
    catalog = catalog_of("node Odd { words: [String]  @unique(words) }")
    result = load(
        {"Odd": pa.table({"words": pa.array([], pa.list_(pa.utf8()))})}, catalog, "overwrite"
    )
    assert result.types["node:Odd"].rows_loaded == 0


MODES = ("append", "merge", "patch", "overwrite")
NO_ROWS = pa.table({"slug": pa.array([], pa.utf8())})


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "frame",
    [
        NO_ROWS,
        NO_ROWS.to_pandas(),
        pl.from_arrow(NO_ROWS),
        ds.dataset(NO_ROWS),
        pd.DataFrame({"slug": []}),
        pd.DataFrame(),
        pl.DataFrame(),
        pa.table({}),
        ds.dataset(pa.table({})),
    ],
)
def test_a_frame_without_rows_loads_nothing(mode, frame):
    result = load({"Shed": frame}, W, mode)
    assert (result.records, result.quarantined) == (0, ())
    emptied_types = {"node:Shed": 0} if mode == "overwrite" else {}
    assert {key: loaded.rows_loaded for key, loaded in result.types.items()} == emptied_types
    edges = load({"Mentors": pa.table({}), "Shed": frame}, W, mode, quarantine=True)
    assert edges.records == 0


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("Shed.csv", b""),
        ("Shed.csv", b"\n"),
        ("Shed.csv", b"slug,openedAt\n"),
        ("Shed.csv", b"slug,openedAt"),
        ("Shed.csv.gz", gzip.compress(b"slug\n", mtime=0)),
        ("seed.jsonl", b""),
        ("seed.jsonl", b"\xef\xbb\xbf\n"),
        ("seed.jsonl", gzip.compress(b"", mtime=0)),
    ],
)
def test_a_file_without_records_loads_nothing(tmp_path, mode, name, content):
    path = tmp_path / name
    path.write_bytes(content)
    result = load(path, W, mode)
    assert (result.records, result.quarantined) == (0, ())
    emptied_types = {"node:Shed": 0} if mode == "overwrite" and name.startswith("Shed") else {}
    assert {key: loaded.rows_loaded for key, loaded in result.types.items()} == emptied_types


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("given", [{}, [], b"", " "])
def test_no_source_at_all_loads_nothing(mode, given):
    assert load(given, W, mode).records == 0


def test_columns_without_a_property_are_ignored_without_a_warning():
    result = load({"Maker": pa.table({"handle": ["x"], "junk": [1], "id": ["other"]})})
    assert [row["id"] for row in rows_of(result, "node:Maker")] == ["x"]
    assert result.warnings == ()


def test_an_id_column_names_rows_that_have_no_id_of_their_own():
    result = load({"Maker": pa.table({"handle": ["x"]}), "Mentors": edges(id=["e1"])})
    assert [row["id"] for row in rows_of(result, "edge:Mentors")] == ["e1"]


def edges(**columns):
    return pa.table({"from": ["x"], "to": ["x"], **columns})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"Maker": pa.table({"age": [1]})}, "Maker: source has no column 'handle'"),
        ({"Mentors": pa.table({"from": ["x"]})}, "Mentors: source has no column 'to'"),
        ({"Nobody": pa.table({"a": [1]})}, "Nobody: needs a mapping: no type is named 'Nobody'"),
        ({"Maker": [1, 2]}, "Maker: row 1 is not a dict but int"),
        ({"Maker": 7}, "Maker: is not a table: int offers no Arrow stream"),
        (pa.table({"a": [1]}), "needs a mapping"),
    ],
)
def test_a_table_that_cannot_be_used_is_refused_before_it_is_read(given, message):
    with pytest.raises(LoadSourceError) as caught:
        load(given)
    assert message in str(caught.value)


def test_files_that_cannot_be_read_are_refused(tmp_path):
    with pytest.raises(SourceUnreadable, match="does not exist"):
        load(tmp_path / "none.jsonl")
    with pytest.raises(SourceUnreadable, match="matches no file"):
        load(tmp_path / "*.jsonl")
    with pytest.raises(SourceUnreadable, match="folder without files to load"):
        load(tmp_path)
    (tmp_path / "Maker.parquet").write_bytes(b"PAR1 broken")
    with pytest.raises(LoadSourceError, match="no readable Parquet file"):
        load(tmp_path / "Maker.parquet")


@pytest.mark.parametrize("kept", [20, 200])
def test_damaged_gzip_names_its_source(tmp_path, kept):
    path = tmp_path / "seed.jsonl"
    text = "\n".join(SHED % n for n in range(200)).encode()
    path.write_bytes(gzip.compress(text)[:kept])
    with pytest.raises(LoadSourceError, match=r"seed\.jsonl: damaged gzip data"):
        load(path)


def test_sources_can_be_sent_to_another_process(tmp_path):
    pq.write_table(pa.table({"handle": ["x"]}), tmp_path / "Maker.parquet")
    (tmp_path / "Shed.csv").write_text("slug\nx\n")
    (tmp_path / "sheds.json").write_text('{"slug": "z"}')
    given = [(SHED % "x").encode(), *map(tmp_path.joinpath, ("Maker.parquet", "Shed.csv"))]
    mapping = {"version": 1, "sources": [{"path": f"{tmp_path}/sheds.json", "node": "Shed"}]}
    found = [
        *recognise_sources(given, W, None, mapping),
        *recognise_sources({"Maker": pa.table({"handle": ["y"]})}, W),
    ]
    sources = pickle.loads(pickle.dumps(found))
    assert [type(s) for s in sources] == [
        JsonSource,
        JsonSource,
        ParquetSource,
        CsvSource,
        FrameSource,
    ]
    assert [s.plan is None for s in sources] == [False, True, False, False, False]
