"""What is promised about loads and exports, on a graph, in one process and as Spark tasks alike."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from omnigraph.api.graph import Graph, init
from omnigraph.errors import (
    BranchNotFound,
    DanglingEdges,
    ExportError,
    LoadError,
    LoadIdReused,
    LoadSourceError,
)
from omnigraph.spark.tasks import noting_jobs
from tests.spark.graphs import exported
from tests.support.workshop import WORKSHOP, WORKSHOP_ROWS

FOLLOWS = "edge Follows: Maker -> Maker { since: Date?  @unique(src, dst) }"
PAGES = "node Page { slug: String @key  title: String @index  vec: Vector(3)? @index }"
NOTES = "node Note { slug: String @key  body: String?  vec: Vector(4)? @embed(body) }"


@dataclass(frozen=True)
class Bench:
    """A graph and the engine that loads into it."""

    graph: Graph
    engine: str
    folder: Path

    def load(self, source: Any, mode: str = "append", **options: Any) -> Any:
        """Load files, frames, or the text of records."""
        source = source.encode() if isinstance(source, str) else source
        with noting_jobs() as jobs:
            result = self.graph.load(source, mode, engine=self.engine, **options)
        assert result.replayed or bool(jobs) == (result.engine == "spark")
        return result

    def refused(self, source: Any, mode: str = "append", **options: Any) -> LoadError:
        """The error of a load that must fail and leave everything as it was."""
        before = exported(self.graph)
        with pytest.raises(LoadError) as caught:
            self.load(source, mode, **options)
        assert exported(self.graph) == before
        return caught.value

    def export(self, **options: Any) -> str:
        out = io.BytesIO()
        with noting_jobs() as jobs:
            self.graph.export(out, engine=self.engine, **options)
        assert bool(jobs) == (self.engine == "spark")
        return out.getvalue().decode()

    def rows(self, kind: str) -> list[dict[str, Any]]:
        """The exported records of one type."""
        records = map(json.loads, exported(self.graph).splitlines())
        return [r for r in records if kind in (r.get("type"), r.get("edge"))]

    def data(self, kind: str) -> list[dict[str, Any]]:
        return [record["data"] for record in self.rows(kind)]


@pytest.fixture(params=["inline", pytest.param("spark", marks=pytest.mark.slow)])
def bench_on(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., Bench]:
    if request.param == "spark":
        request.getfixturevalue("spark")

    def made(schema: str, seed: str | None = None) -> Bench:
        graph = init(str(tmp_path / "graph"), schema)
        if seed is not None:
            graph.load(seed.encode(), "append", engine="inline")
        return Bench(graph, request.param, tmp_path)

    return made


@pytest.fixture
def workshop(bench_on: Callable[..., Bench]) -> Bench:
    return bench_on(WORKSHOP, WORKSHOP_ROWS)


def maker(**data: Any) -> str:
    return json.dumps({"type": "Maker", "data": data})


def tool(code: str = "ha-1", label: str = "hammer", **data: Any) -> str:
    return json.dumps({"type": "Tool", "data": {"code": code, "label": label, **data}})


def edge(name: str, source: str, target: str, **data: Any) -> str:
    return json.dumps({"edge": name, "from": source, "to": target, "data": data})


# Records


@pytest.mark.acceptance("L-241")
def test_records_may_spread_over_lines_or_share_one(workshop):
    first, second = (json.dumps(json.loads(maker(handle=h)), indent=2) for h in "xy")
    result = workshop.load(f"{first}\n{second} {edge('Mentors', 'x', 'y')}", "append")
    assert result.rows_loaded == {"edge:Mentors": 1, "node:Maker": 2}


@pytest.mark.parametrize(
    ("text", "fragment"),
    [
        pytest.param(
            "\n".join([maker(handle="x"), maker(handle="y"), '{"type":"Ghost","data":{}}']),
            "record 3: unknown node type 'Ghost'",
            marks=pytest.mark.acceptance("L-242"),
        ),
        pytest.param(
            maker(handle="x") + "\n" + maker(handle="y")[:-4],
            "invalid JSON at record 2",
            marks=pytest.mark.acceptance("L-243"),
        ),
        pytest.param(
            '{"data":{}}',
            "record 1: expected 'type' or 'edge' field",
            marks=pytest.mark.acceptance("L-244"),
        ),
        pytest.param(
            '{"edge":"Borrows","to":"sa-1"}',
            "record 1: edge missing 'from'",
            marks=pytest.mark.acceptance("L-246"),
        ),
        pytest.param(
            edge("Borrows", "ada", "none"),
            "record 1: edge Borrows: dst 'none' not found in Tool",
            marks=pytest.mark.acceptance("L-247"),
        ),
        pytest.param(
            maker(handle="ada"),
            "id 'ada' already exists in Maker",
            marks=pytest.mark.acceptance("L-250"),
        ),
        pytest.param(
            edge("StoredIn", "ch-3", "north") + edge("StoredIn", "ch-3", "south"),
            "@card violation",
            marks=pytest.mark.acceptance("L-254"),
        ),
        pytest.param(
            maker(handle="x", joined="15/07/2021"),
            "invalid Date literal",
            marks=pytest.mark.acceptance("L-257"),
        ),
        pytest.param(
            '{"type":"Tool","data":{"code":"ha-1"}}',
            "non-nullable property 'label'",
            marks=pytest.mark.acceptance("L-259"),
        ),
        pytest.param(
            maker(age=3),
            "missing @key property 'handle'",
            marks=pytest.mark.acceptance("L-260"),
        ),
        pytest.param(
            maker(id="x", handle="ada"),
            "does not match @key property",
            marks=pytest.mark.acceptance("L-261"),
        ),
        pytest.param(
            maker(handle="x", age="41"),
            "property 'age' expects I32, got string",
            marks=pytest.mark.acceptance("L-264"),
        ),
        pytest.param(
            maker(handle="x", skills=["lathe", 3]),
            "element 2 of 'skills' expects String",
            marks=pytest.mark.acceptance("L-291"),
        ),
    ],
)
def test_a_record_that_does_not_fit_is_refused(workshop, text, fragment):
    assert fragment in str(workshop.refused(text))


@pytest.mark.acceptance("L-258", "L-292")
def test_a_vector_that_does_not_fit_is_refused(bench_on):
    bench = bench_on(PAGES)
    page = '{"type":"Page","data":{"slug":"x","title":"t","vec":%s}}'
    error = bench.refused((page % "[1,2]") + "\n" + (page % '[1,"x",0]'))
    first, second = error.load_errors
    assert "expects 3 dimensions, got 2" in first.message
    assert "'vec'" in second.message


@pytest.mark.acceptance("L-293")
def test_reading_resumes_after_malformed_text(workshop):
    error = workshop.refused("\n".join([maker(handle="x"), "{oops}", '{"type":"Ghost"}']))
    assert [(e.record, e.code) for e in error.load_errors] == [
        (2, "invalid_json"),
        (3, "unknown_type"),
    ]


@pytest.mark.acceptance("L-245")
def test_an_edge_name_may_be_written_in_lower_case(workshop):
    result = workshop.load('{"edge":"borrows","from":"ada","to":"sa-1"}', "append")
    assert result.rows_loaded == {"edge:Borrows": 1}


# Modes


@pytest.mark.acceptance("L-248")
@pytest.mark.parametrize("mode", ["append", "merge", "overwrite"])
def test_the_same_key_twice_in_one_load_is_refused(workshop, mode):
    error = workshop.refused(maker(handle="dup") + maker(handle="dup"), mode)
    assert "@unique violation on Maker.handle" in str(error)


@pytest.mark.acceptance("L-249")
def test_merge_replaces_a_row_entirely(workshop):
    others = [row for row in workshop.data("Maker") if row["handle"] != "ada"]
    workshop.load(maker(handle="ada", age=42), "merge")
    (ada,) = (row for row in workshop.data("Maker") if row["handle"] == "ada")
    given = {name: value for name, value in ada.items() if value is not None}
    assert given == {"id": "ada", "handle": "ada", "age": 42}
    assert [row for row in workshop.data("Maker") if row["handle"] != "ada"] == others


@pytest.mark.acceptance("L-251")
def test_overwrite_concerns_the_given_types_only(workshop):
    before = {kind: workshop.rows(kind) for kind in ("Maker", "Tool", "StoredIn", "Borrows")}
    with pytest.raises(DanglingEdges, match="StoredIn: 2 edges"):
        workshop.load('{"type":"Shed","data":{"slug":"west"}}', "overwrite")
    sheds = '{"type":"Shed","data":{"slug":"west"}}\n{"type":"Shed","data":{"slug":"north"}}'
    workshop.load(sheds, "overwrite")
    assert sorted(row["slug"] for row in workshop.data("Shed")) == ["north", "west"]
    assert {kind: workshop.rows(kind) for kind in before} == before


@pytest.mark.acceptance("L-252")
def test_plain_edges_get_new_ids_every_time(workshop):
    records = [r for r in WORKSHOP_ROWS.splitlines() if "Borrows" in r]
    workshop.load("\n".join(records), "merge")
    assert len(workshop.rows("Borrows")) == 8


@pytest.mark.acceptance("L-253")
def test_merging_an_edge_with_an_id_twice_leaves_one(workshop):
    for _ in range(2):
        workshop.load(edge("Borrows", "ada", "sa-1", id="b1"), "merge")
    ids = [row["id"] for row in workshop.data("Borrows")]
    assert ids.count("b1") == 1


@pytest.mark.acceptance("L-269")
def test_a_missing_branch_is_not_created(workshop):
    with pytest.raises(BranchNotFound):
        workshop.load(maker(handle="x"), "append", branch="x")
    assert list(workshop.graph.branches) == ["main"]


@pytest.mark.acceptance("L-275")
def test_a_load_id_is_used_once(workshop):
    first = workshop.load(maker(handle="x"), "append", load_id="job-1")
    again = workshop.load(maker(handle="x"), "append", load_id="job-1")
    assert (first.replayed, again.replayed) == (False, True)
    assert again.receipt == replace(first.receipt, replayed=True)
    with pytest.raises(LoadIdReused, match="load id 'job-1' was already used"):
        workshop.load(maker(handle="x"), "merge", load_id="job-1")


# Values


@pytest.mark.acceptance("L-255", "L-256")
def test_times_may_be_numbers(workshop):
    workshop.load(
        maker(handle="x", joined=18823)
        + '{"type":"Shed","data":{"slug":"y","openedAt":1556697600000}}',
        "append",
    )
    (x,) = (row for row in workshop.data("Maker") if row["handle"] == "x")
    (y,) = (row for row in workshop.data("Shed") if row["slug"] == "y")
    assert (x["joined"], y["openedAt"]) == (18823, "2019-05-01T08:00:00")


@pytest.mark.acceptance("L-262")
def test_a_node_without_key_keeps_its_id_or_gets_one(bench_on):
    bench = bench_on("node Loose { text: String? }")
    bench.load('{"type":"Loose","data":{"id":"n1"}}{"type":"Loose"}', "append")
    made, given = sorted(row["id"] for row in bench.data("Loose"))
    assert (given, len(made)) == ("n1", 26)


@pytest.mark.acceptance("L-263")
def test_an_unknown_property_is_ignored_with_a_warning(workshop):
    result = workshop.load(
        "\n".join([maker(handle="x", shoe=44), maker(handle="y", shoe=None)]), "append"
    )
    (warning,) = result.receipt.warnings
    assert (warning.code, warning.count) == ("unknown_property", 2)


@pytest.mark.acceptance("L-265")
def test_a_blob_in_base64_is_null_in_queries_and_exported_as_it_came(bench_on):
    bench = bench_on("node Doc { slug: String @key  body: Blob? }")
    bench.load('{"type":"Doc","data":{"slug":"d","body":"base64:SGk="}}', "append")
    assert bench.data("Doc")[0]["body"] == "base64:SGk="
    rows = bench.graph.query("query q() { match { $d: Doc } return { $d.body } }")
    assert [list(row.values()) for row in rows.to_dicts()] == [[None]]


@pytest.mark.acceptance("L-290")
def test_a_date_can_be_a_key(bench_on):
    bench = bench_on("node Day { on: Date @key }\nedge Next: Day -> Day")
    text = '{"type":"Day","data":{"on":"2021-07-15"}}{"edge":"Next","from":"18823","to":"18823"}'
    bench.load(text, "append")
    before = exported(bench.graph)
    bench.load(before, "overwrite")
    assert exported(bench.graph) == before
    assert bench.rows("Next")[0]["from"] == "18823"


# Edges with identity


@pytest.mark.acceptance("L-283", "L-285")
def test_an_identified_edge_is_upserted_by_merge_and_refused_by_append(bench_on):
    bench = bench_on(WORKSHOP + FOLLOWS, WORKSHOP_ROWS)
    bench.load(edge("Follows", "ada", "bo"), "merge")
    result = bench.load(edge("Follows", "ada", "bo", id="x1"), "merge")
    assert [row["id"] for row in bench.data("Follows")] == ['["ada","bo"]']
    assert [w.code for w in result.receipt.warnings] == ["explicit_edge_id_ignored"]
    assert "already exists" in str(bench.refused(edge("Follows", "ada", "bo")))


@pytest.mark.acceptance("L-284")
def test_the_same_identified_edge_twice_in_one_load_is_refused(bench_on):
    bench = bench_on(WORKSHOP + FOLLOWS, WORKSHOP_ROWS)
    assert "@unique violation" in str(bench.refused(edge("Follows", "ada", "bo") * 2, "merge"))


@pytest.mark.acceptance("L-286")
def test_a_unique_value_of_another_committed_row_is_refused(bench_on):
    bench = bench_on(WORKSHOP, tool(serial="s-9"))
    error = bench.refused(tool("ax-1", "axe", serial="s-9"), "merge")
    assert "@unique violation on Tool.serial" in str(error)
    assert "already belongs to 'ha-1'" in str(error)


# Errors


def ten_records() -> str:
    """Records 3, 7 and 9 are bad, each in its own way."""
    records = [maker(handle=f"m{n}") for n in range(1, 11)]
    records[2] = '{"type":"Ghost","data":{}}'
    records[6] = maker(handle="m7", age="old")
    records[8] = "{oops}"
    return "\n".join(records)


@pytest.mark.acceptance("L-270", "L-272")
def test_every_bad_record_is_listed_or_set_aside(workshop):
    error = workshop.refused(ten_records())
    assert [(e.record, e.code) for e in error.load_errors] == [
        (3, "unknown_type"),
        (7, "bad_value"),
        (9, "invalid_json"),
    ]
    result = workshop.load(ten_records(), "append", load_id="q", quarantine=workshop.folder / "bad")
    assert (result.rows_loaded, result.quarantined) == ({"node:Maker": 7}, 3)
    kept = (workshop.folder / "bad" / "q" / "bad.jsonl").read_text().splitlines()
    assert [json.loads(line)["raw"] for line in kept] == [
        '{"type":"Ghost","data":{}}',
        maker(handle="m7", age="old"),
        "{oops}",
    ]


@pytest.mark.acceptance("L-271")
def test_the_list_of_errors_is_capped(workshop):
    text = "\n".join(json.dumps({"type": f"Ghost{n}"}) for n in range(150))
    error = workshop.refused(text)
    assert len(error.load_errors) == 100
    assert str(error).endswith("\n  … and 50 more")
    error = workshop.refused(text, max_errors=10)
    assert (len(error.load_errors), error.load_errors_total) == (10, 150)


@pytest.mark.acceptance("L-273")
def test_an_edge_to_a_quarantined_node_follows_it(workshop):
    text = "\n".join([maker(handle="x"), maker(handle="y", age="old"), edge("Mentors", "x", "y")])
    result = workshop.load(text, "append", load_id="q", quarantine=workshop.folder / "bad")
    assert (result.rows_loaded, result.quarantined) == ({"node:Maker": 1}, 2)
    kept = (workshop.folder / "bad" / "q" / "bad.jsonl").read_text().splitlines()
    assert json.loads(kept[1])["errors"][0]["code"] == "endpoint_not_found"


# Sources


@pytest.mark.acceptance("L-267", "L-274", "L-276")
def test_compressed_records_load_alike_and_export_reloads(bench_on):
    bench = bench_on(WORKSHOP)
    for name in ("seed.jsonl.gz", "seed"):
        path = bench.folder / name
        path.write_bytes(gzip.compress(WORKSHOP_ROWS.encode()))
        bench.load(path, "overwrite", load_id=name)
        assert len(exported(bench.graph).splitlines()) == len(WORKSHOP_ROWS.splitlines())
    before = exported(bench.graph)
    bench.load(before, "overwrite")
    assert exported(bench.graph) == before


@pytest.mark.acceptance("L-266", "L-267", "L-268")
def test_an_export_begins_with_edges_and_loads_into_an_equal_graph(workshop):
    lines = workshop.export().splitlines(keepends=True)
    assert lines[0].startswith('{"edge":"Borrows"')
    assert '"joined":18293' in next(line for line in lines if '"handle":"ada"' in line)
    (north,) = (line for line in lines if '"id":"north"' in line)
    assert '"openedAt":"2019-05-01T08:00:00"' in north
    copy = init(str(workshop.folder / "copy"), WORKSHOP)
    copy.load("".join(lines).encode(), "overwrite", engine="inline")
    assert Bench(copy, workshop.engine, workshop.folder).export() == "".join(lines)
    with pytest.raises(ExportError, match="unknown export type 'Nope'"):
        workshop.graph.export(io.BytesIO(), types=["Nope"], engine=workshop.engine)


@pytest.mark.acceptance("L-277", "L-278")
def test_csv_and_its_mapping(workshop):
    makers, loans = workshop.folder / "Maker.csv", workshop.folder / "loans.csv"
    makers.write_text('handle,age,skills\nzoe,31,"[""lathe""]"\n')
    loans.write_text("maker_id;tool_code;remark\nada;sa-1;mine\n")
    mapping = {
        "version": 1,
        "sources": [
            {
                "path": str(loans),
                "format": "csv",
                "csv": {"delimiter": ";"},
                "edge": "Borrows",
                "from": "maker_id",
                "to": {"code": "tool_code"},
                "columns": {"note": "remark"},
            }
        ],
    }
    workshop.load(makers, "append")
    workshop.load(None, "append", mapping=mapping)
    (zoe,) = (row for row in workshop.data("Maker") if row["handle"] == "zoe")
    assert (zoe["age"], zoe["skills"]) == (31, ["lathe"])
    assert [r["to"] for r in workshop.rows("Borrows") if r["data"].get("note") == "mine"] == [
        "sa-1"
    ]


@pytest.mark.acceptance("L-279", "L-282")
def test_a_table_without_its_columns_or_type_is_refused(workshop):
    mapping = {"version": 1, "sources": [{"name": "m", "node": "Maker", "columns": {"age": "x"}}]}
    with pytest.raises(LoadSourceError, match="source has no column 'x'"):
        workshop.load({"m": pa.table({"handle": ["z"]})}, "append", mapping=mapping)
    path = workshop.folder / "data.parquet"
    pq.write_table(pa.table({"handle": ["z"]}), path)
    with pytest.raises(LoadSourceError, match="needs a mapping"):
        workshop.load(path, "append")


@pytest.mark.acceptance("L-280")
def test_a_parquet_value_out_of_range_is_refused(workshop):
    path = workshop.folder / "Maker.parquet"
    pq.write_table(pa.table({"handle": ["y", "z"], "age": pa.array([1, 3000000000])}), path)
    (problem,) = workshop.refused(path).load_errors
    assert (problem.record, "value out of range for I32" in problem.message) == (2, True)


@pytest.mark.acceptance("L-281")
def test_data_frames_of_two_libraries_are_one_commit(workshop):
    commits = len(workshop.graph.log(reverse=True))
    people = pd.DataFrame({"handle": ["yo", "zoe"]})
    mentors = pl.DataFrame({"from": ["yo"], "to": ["zoe"]})
    result = workshop.load({"Maker": people, "Mentors": mentors}, "append")
    assert result.rows_loaded == {"edge:Mentors": 1, "node:Maker": 2}
    assert len(workshop.graph.log(reverse=True)) == commits + 1


# Embeddings


def note(slug: str, **data: Any) -> str:
    return json.dumps({"type": "Note", "data": {"slug": slug, **data}})


def test_vectors_are_given_computed_or_absent(bench_on, monkeypatch):
    monkeypatch.setenv("OMNIGRAPH_EMBEDDINGS_MOCK", "1")
    bench = bench_on(NOTES)
    text = "\n".join(
        [note("a", body="alpha"), note("b", body="beta", vec=[1.0, 0.0, 0.0, 0.0]), note("c")]
    )
    bench.load(text, "merge")
    rows = {row["slug"]: row.get("vec") for row in bench.data("Note")}
    assert rows["a"] is not None
    assert rows["b"] == [1.0, 0.0, 0.0, 0.0]
    assert rows["c"] is None
    bench.load(text, "merge")
    assert {row["slug"]: row.get("vec") for row in bench.data("Note")} == rows


def test_without_a_provider_vectors_are_pending(bench_on, monkeypatch):
    monkeypatch.delenv("OMNIGRAPH_EMBEDDINGS_MOCK", raising=False)
    monkeypatch.delenv("GEMINI_API_KEY", raising=False)
    bench = bench_on(NOTES)
    result = bench.load(note("a", body="alpha") + note("b"), "append")
    (warning,) = result.receipt.warnings
    assert (warning.code, warning.count) == ("embedding_pending", 1)
