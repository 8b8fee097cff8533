"""Loads as Spark tasks: the graph, receipts and errors of a load in one process."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from omnigraph.api.graph import init
from omnigraph.errors import LoadError, LoadSourceError, SourceUnreadable, UsageError
from omnigraph.load.splits import placed
from omnigraph.spark.tasks import noting_jobs
from tests.spark.graphs import SCHEMA, comparable, data_files, edge, exported, person, town

SMALL = "omnigraph.load.spark_load.LOAD_RANGE_BYTES"


@pytest.fixture
def graphs(tmp_path, spark):
    """Two empty graphs, one for each engine."""
    return {engine: init(str(tmp_path / engine), SCHEMA) for engine in ("inline", "spark")}


@pytest.fixture
def seed(tmp_path):
    path = tmp_path / "seed.jsonl"
    path.write_text(town(300))
    return path


def load_both(graphs, source, mode):
    """The receipts of both engines. Equal load ids give equal ids to edges."""
    return {
        engine: graph.load(source, mode, engine=engine, load_id=mode)
        for engine, graph in graphs.items()
    }


def refusals(graphs, source, mode, **options):
    found = {}
    for engine, graph in graphs.items():
        with pytest.raises(LoadError) as caught:
            graph.load(source, mode, engine=engine, load_id="bad", **options)
        found[engine] = caught.value
    return found["inline"], found["spark"]


@pytest.mark.parametrize("step", [10**9, 40_000])
@pytest.mark.acceptance("L-276")
def test_every_mode_leaves_the_graph_of_a_load_in_one_process(graphs, seed, monkeypatch, step):
    monkeypatch.setattr(SMALL, step)
    for mode in ("append", "merge", "overwrite"):
        with noting_jobs() as jobs:
            results = load_both(graphs, seed, mode)
        assert results["spark"].engine == "spark"
        assert comparable(results["spark"]) == comparable(results["inline"])
        assert exported(graphs["spark"]) == exported(graphs["inline"])
        assert [job.tasks for job in jobs if job.name == "load"] == [1 if step == 10**9 else 2]


def test_rows_that_are_replaced_keep_their_identity(graphs, seed, monkeypatch):
    monkeypatch.setattr(SMALL, 40_000)
    graph = graphs["spark"]
    graph.load(seed, "append", engine="spark")

    def row_ids():
        table = graph._snapshot().open(graph._core.tables, "node:Person")
        rows = table.read(["id"], with_row_ids=True)
        return dict(zip(*(c.to_pylist() for c in rows.columns), strict=True))

    before = row_ids()
    graph.load(seed, "merge", engine="spark")
    assert row_ids() == before


@pytest.mark.slow
def test_a_branch_without_tables_of_its_own_gets_them(graphs, seed, monkeypatch):
    monkeypatch.setattr(SMALL, 40_000)
    for engine, graph in graphs.items():
        graph.load(seed, "append", engine=engine, load_id="first")
        graph.branches.create("draft")
        graph.load(seed, "merge", branch="draft", engine=engine, load_id="second")
    assert exported(graphs["spark"], "draft") == exported(graphs["inline"], "draft")
    assert exported(graphs["spark"]) == exported(graphs["inline"])


@pytest.mark.slow
def test_blobs_follow_their_rows_to_a_branch(tmp_path, spark):
    graph = init(str(tmp_path / "g"), "node Doc { slug: String @key  body: Blob? }")
    graph.branches.create("draft")
    big = "QUJD" * 60_000
    text = "\n".join(
        json.dumps({"type": "Doc", "data": {"slug": f"d{n}", "body": f"base64:{content}"}})
        for n, content in enumerate(["SGk=", big])
    )
    graph.load(text.encode(), "append", branch="draft", engine="spark")
    first, second = (json.loads(line) for line in exported(graph, "draft").splitlines())
    assert first["data"]["body"] == "base64:SGk="
    assert second["data"]["body"] == f"base64:{big}"


@pytest.mark.slow
def test_bad_records_in_any_split_are_reported_alike(graphs, tmp_path, monkeypatch):
    monkeypatch.setattr(SMALL, 10_000)
    records = town(100).splitlines()
    records[20] = "{oops}"
    records[150] = '{"type":"Ghost"}'
    records[-1] = person("late", age="old")
    path = tmp_path / "bad.jsonl"
    path.write_text("\n".join(records))
    inline, spark = refusals(graphs, path, "append")
    assert spark.load_errors == inline.load_errors
    assert str(spark) == str(inline)
    assert data_files(graphs["spark"].uri) == set()
    inline, spark = refusals(graphs, path, "append", max_errors=2)
    assert (str(spark), spark.load_errors_total) == (str(inline), 3)


@pytest.mark.parametrize(
    "more",
    [
        [person("p0")],
        [person("new", email="p1@example.org")],
        [edge("Knows", "p0", "nobody"), edge("Knows", "nobody", "p0")],
        [edge("LivesIn", "p0", "Ulm")],
    ],
    ids=["key twice", "unique value twice", "missing ends", "too many edges"],
)
@pytest.mark.slow
def test_what_is_wrong_with_records_together_is_reported_alike(graphs, more, monkeypatch):
    monkeypatch.setattr(SMALL, 10_000)
    inline, spark = refusals(graphs, (town(100) + "\n".join(more)).encode(), "append")
    assert spark.load_errors == inline.load_errors
    assert str(spark) == str(inline)
    assert data_files(graphs["spark"].uri) == set()


@pytest.mark.slow
def test_rows_that_clash_with_committed_ones_are_reported_alike(graphs, seed):
    load_both(graphs, seed, "merge")
    for mode, text in (
        ("append", person("p5")),
        ("merge", person("q", email="p5@example.org")),
        ("append", edge("LivesIn", "p5", "Bonn")),
        ("overwrite", person("p5") + "\n" + edge("Knows", "p5", "p6")),
    ):
        inline, spark = refusals(graphs, text.encode(), mode)
        assert spark.load_errors == inline.load_errors
        assert exported(graphs["spark"]) == exported(graphs["inline"])


@pytest.mark.slow
def test_quarantine_sets_the_same_records_aside(graphs, tmp_path, monkeypatch):
    monkeypatch.setattr(SMALL, 10_000)
    records = town(100).splitlines()
    records[30] = person("p0", age="old")
    records[90] = "{oops}"
    records += [person("p7"), edge("Knows", "p1", "nobody"), edge("LivesIn", "p1", "Bonn")]
    kept = {}
    for engine, graph in graphs.items():
        folder = tmp_path / f"bad-{engine}"
        result = graph.load(
            "\n".join(records).encode(), "append", engine=engine, load_id="q", quarantine=folder
        )
        texts = [(folder / "q" / name).read_text() for name in ("bad.jsonl", "report.json")]
        kept[engine] = texts, comparable(result), exported(graph)
    assert kept["spark"] == kept["inline"]
    assert kept["spark"][1]["quarantined"] > 5


@pytest.mark.slow
def test_edges_with_one_explicit_id_collapse_to_the_last(graphs, monkeypatch):
    monkeypatch.setattr(SMALL, 10_000)
    more = [edge("Knows", "p1", "p2", id="k1"), edge("Knows", "p3", "p4", id="k1")]
    text = town(100) + "\n".join([more[0], *([edge("Knows", "p5", "p6")] * 100), more[1]])
    results = load_both(graphs, text.encode(), "merge")
    assert comparable(results["spark"]) == comparable(results["inline"])
    assert exported(graphs["spark"]) == exported(graphs["inline"])


@pytest.mark.slow
def test_several_records_in_a_line_keep_their_numbers(graphs, monkeypatch):
    monkeypatch.setattr(SMALL, 6_000)
    records = town(60).splitlines()
    records[3] = records[3] + person("twin")
    records[-1] = '{"type":"Ghost"}'
    inline, spark = refusals(graphs, "\n".join(records).encode(), "append")
    assert spark.load_errors == inline.load_errors
    assert spark.load_errors[0].record == len(records) + 1
    results = load_both(graphs, "\n".join(records[:-1]).encode(), "append")
    assert comparable(results["spark"]) == comparable(results["inline"])
    assert exported(graphs["spark"]) == exported(graphs["inline"])


@pytest.mark.slow
def test_compressed_cut_pretty_and_parquet_sources_load_alike(graphs, tmp_path, monkeypatch):
    monkeypatch.setattr(SMALL, 6_000)
    packed = tmp_path / "seed.gz"
    packed.write_bytes(gzip.compress(town(50).encode()))
    pretty = tmp_path / "more.json"
    people = [json.loads(person(f"r{n}")) for n in range(50)]
    pretty.write_text("\n".join(json.dumps(record, indent=2) for record in people))
    rows = pa.table({"from": [f"p{n}" for n in range(50)], "to": ["p0"] * 50})
    pq.write_table(rows, tmp_path / "Knows.parquet", row_group_size=10)
    lines = tmp_path / "lines.jsonl"
    lines.write_text("".join(person(f"s{n}") + "\n" for n in range(200)))
    sources = [packed, lines, pretty, tmp_path / "Knows.parquet"]
    with noting_jobs() as jobs:
        results = load_both(graphs, sources, "append")
    assert [job.name for job in jobs] == ["count records", "load"]
    assert comparable(results["spark"]) == comparable(results["inline"])
    assert exported(graphs["spark"]) == exported(graphs["inline"])


@pytest.mark.slow
def test_a_load_id_is_loaded_once_whatever_the_engine(graphs, seed):
    graph = graphs["spark"]
    first = graph.load(seed, "append", engine="spark", load_id="job-1")
    again = graph.load(seed, "append", engine="inline", load_id="job-1")
    assert again.replayed
    assert again.receipt == replace(first.receipt, replayed=True)
    assert graph.load(seed, "append", engine="spark", load_id="job-1").replayed


@pytest.mark.slow
def test_a_file_that_is_not_there_is_named_and_the_next_load_works(graphs, seed, tmp_path):
    graph = graphs["spark"]
    with pytest.raises(SourceUnreadable, match="does not exist"):
        graph.load(tmp_path / "gone.jsonl", "append", engine="spark")
    graph.load(seed, "append", engine="spark")


@pytest.mark.slow
def test_a_malformed_record_near_the_end_of_a_large_file_is_named(graphs, seed, tmp_path):
    path, graph = tmp_path / "large.jsonl", graphs["spark"]
    with path.open("w") as file:
        file.writelines(f'{{"type":"City","data":{{"name":"{n}"}}}}\n' for n in range(1_999_998))
        file.write('{"type":"City","data":{"name":\n{"type":"City","data":{"name":"last"}}\n')
    with pytest.raises(LoadError, match="record 1999999") as caught:
        graph.load(path, "append", engine="spark")
    assert caught.value.load_errors_total == 1
    assert data_files(graph.uri) == set()
    graph.load(seed, "append", engine="spark")


@pytest.mark.slow
def test_a_file_that_vanishes_or_changes_meanwhile_leaves_nothing(graphs, seed, monkeypatch):
    monkeypatch.setattr(SMALL, 10_000)
    graph, content = graphs["spark"], seed.read_text()
    for damage, error in (
        (seed.unlink, SourceUnreadable),
        (lambda: seed.write_text(""), LoadSourceError),
    ):
        seed.write_text(content)

        def after_counting(*args, damage=damage):
            damage()
            return placed(*args)

        with monkeypatch.context() as patch:
            patch.setattr("omnigraph.load.spark_load.placed", after_counting)
            with pytest.raises(error):
                graph.load(seed, "append", engine="spark")
        assert data_files(graph.uri) == set()
    seed.write_text(content)
    graph.load(seed, "append", engine="spark")


@pytest.mark.slow
@pytest.mark.usefixtures("free_choice")
def test_a_graph_in_memory_is_loaded_by_its_own_process(spark):
    graph = init("memory://alone", SCHEMA)
    with pytest.raises(UsageError, match="in-memory graph"):
        graph.load(town(10).encode(), "append", engine="spark")
    assert graph.load(town(10).encode(), "append", engine="auto").engine == "inline"


@pytest.mark.slow
@pytest.mark.usefixtures("free_choice")
def test_auto_takes_a_session_that_is_there_or_handed_in(graphs, seed, spark, monkeypatch):
    graph = graphs["spark"]
    assert graph.load(seed, "append", engine="auto").engine == "inline", "it is little"
    monkeypatch.setattr("omnigraph.spark.choice.UNWEIGHED_BYTES", 0)
    monkeypatch.setattr("omnigraph.spark.choice.SPARK_WARM_SECONDS", -1.0)
    monkeypatch.setattr("omnigraph.spark.choice.SPARK_IDLE_SECONDS", -1.0)
    taken = graph.load(seed, "merge", engine="auto")
    assert taken.engine == "spark"
    assert "on Spark (2 cores, running)" in taken.engine_reason
    assert graph.load(seed, "merge", engine=spark).engine == "spark"
    assert spark.range(3).count() == 3
