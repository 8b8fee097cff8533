"""Data frames and tables of Spark as sources: staged by tasks, loaded like any other table."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from omnigraph.api.graph import Graph, init
from omnigraph.errors import ConstraintError, LoadError, LoadSourceError, UsageError
from omnigraph.spark.tasks import noting_jobs
from omnigraph.storage.files import FOLDER, Scratch
from omnigraph.storage.uris import normalise_root
from omnigraph.versioning.ids import derived_ulid, new_ulid
from tests.spark.graphs import SCHEMA, comparable, exported
from tests.spark.in_process import SparkLike, frames_in_this_process, run_on_frame
from tests.support.faults import Fail, InjectedFault, armed

PEOPLE: dict[str, Any] = {
    "version": 1,
    "sources": [
        {"name": "people", "node": "Person", "columns": {"name": "login", "email": None}},
        {"name": "known", "edge": "Knows", "from": {"name": "a"}, "to": {"name": "b"}},
    ],
}

ONLY_PEOPLE = {"version": 1, "sources": PEOPLE["sources"][:1]}


def people(count: int, first: int = 0) -> pa.Table:
    numbers = range(first, first + count)
    ages = [n % 90 if n % 5 else None for n in numbers]
    return pa.table({"age": ages, "login": [f"p{n}" for n in numbers], "shoe": list(numbers)})


def known(count: int) -> pa.Table:
    ends = {"a": [f"p{n}" for n in range(count)], "b": [f"p{n * 7 % count}" for n in range(count)]}
    return pa.table({**ends, "since": [date(2020, 2, 1)] * count})


def scratch_files(graph: Graph) -> list[str]:
    folder = Path(graph.uri) / FOLDER
    return sorted(file.name for file in folder.iterdir()) if folder.exists() else []


def new(tmp_path: Path, name: str) -> Graph:
    return init(str(tmp_path / name), SCHEMA)


@pytest.mark.parametrize(
    ("mode", "step"), [("append", 10**9), ("append", 500), ("merge", 500), ("overwrite", 500)]
)
def test_partitions_are_loaded_like_one_table(tmp_path, mode, step):
    expected = new(tmp_path, "inline")
    given = {"people": people(60), "known": known(60)}
    receipt = expected.load(given, mode, mapping=PEOPLE, load_id="x", engine="inline")
    graph = new(tmp_path, "spark")
    parts = {
        "people": SparkLike(people(25), people(0), people(35, 25)),
        "known": SparkLike(known(60).slice(0, 31), known(60).slice(31)),
    }
    with frames_in_this_process(step):
        result = graph.load(parts, mode, mapping=PEOPLE, load_id="x", engine="spark")
    assert comparable(result) == comparable(receipt)
    assert exported(graph) == exported(expected)
    assert scratch_files(graph) == []


@pytest.mark.parametrize("mode", ["append", "merge", "patch", "overwrite"])
@pytest.mark.parametrize("partitions", [0, 1, 3])
def test_a_frame_without_rows_is_loaded_in_every_mode(tmp_path, mode, partitions):
    expected, graph = new(tmp_path, "inline"), new(tmp_path, "spark")
    for one in (expected, graph):
        one.load({"Person": pa.table({"name": ["a"], "age": [1]})}, "append", engine="inline")
    nothing = pa.table({"name": pa.array([], pa.utf8()), "age": pa.array([], pa.int64())})
    receipt = expected.load({"Person": nothing}, mode, load_id="x", engine="inline")
    frame = SparkLike(*[nothing] * partitions, names=nothing.column_names)
    with frames_in_this_process(10**9):
        result = graph.load({"Person": frame}, mode, load_id="x", engine="spark")
        assert comparable(result) == comparable(receipt)
        with_bad = graph.load({"Person": frame}, mode, quarantine=tmp_path / "bad", engine="spark")
    assert (with_bad.quarantined, with_bad.engine) == (0, "spark")
    assert exported(graph) == exported(expected)
    assert scratch_files(graph) == []


def test_unknown_properties_and_equal_problems_are_told_as_in_one_process(tmp_path):
    bad = [json.dumps({"type": "Person", "data": {"name": f"p{n}", "age": "x"}}) for n in range(90)]
    odd = [json.dumps({"type": "Person", "data": {"name": f"p{n}", "agee": n}}) for n in range(90)]
    texts: dict[str, list[str]] = {}
    for engine in ("inline", "spark"):
        graph = new(tmp_path, engine)
        with frames_in_this_process(500):
            for lines in (bad, odd):
                data = "\n".join(lines).encode()
                with pytest.raises(ConstraintError) as caught:
                    graph.load(data, "append", strict=True, engine=engine, max_errors=7)
                texts.setdefault(engine, []).append(str(caught.value))
        assert exported(graph) == ""
    assert texts["inline"] == texts["spark"]
    assert "records 1, 2, 3, 4, 5 and 85 more: property 'age'" in texts["spark"][0]
    assert "did you mean `age`? (90 records: <data> record 1," in texts["spark"][1]


def test_numbers_that_are_not_finite_are_refused_with_their_record(tmp_path):
    graph = init(str(tmp_path / "graph"), "node Spot { name: String @key  x: F64?  v: Vector(2)? }")
    vectors = pa.array([[1.0, 2.0], [1.0, float("inf")]])
    spots = pa.table({"name": ["a", "b"], "x": [float("nan"), 1.0], "v": vectors})
    good = pa.table({"name": ["c"], "x": [1.0], "v": [[1.0, 2.0]]})
    with frames_in_this_process(10**9), pytest.raises(LoadError) as caught:
        graph.load({"Spot": SparkLike(good, spots)}, "append", engine="spark")
    assert [(e.record, e.property) for e in caught.value.load_errors] == [(2, "x"), (3, "v")]


@pytest.mark.usefixtures("free_choice")
def test_frames_and_files_are_one_load(tmp_path):
    graph = new(tmp_path, "graph")
    with frames_in_this_process(10**9):
        given = {"node:Person": SparkLike(people(3).rename_columns(["age", "name", "shoe"]))}
        result = graph.load({**given, "City": pa.table({"name": ["Ulm"]})}, "append", engine="auto")
    assert result.engine == "spark"
    assert result.rows_loaded == {"node:City": 1, "node:Person": 3}


def test_an_attempt_that_does_not_count_leaves_nothing(tmp_path):
    def twice(frame, job, kernel):
        run_on_frame(frame, job, kernel)
        return run_on_frame(frame, job, kernel)

    graph = new(tmp_path, "graph")
    with frames_in_this_process(10**9, twice):
        given = {"people": SparkLike(people(4), people(4, 4)), "known": SparkLike(known(8))}
        result = graph.load(given, "append", mapping=PEOPLE, engine="spark")
    assert result.rows_loaded == {"edge:Knows": 8, "node:Person": 8}
    assert scratch_files(graph) == []


def test_bad_rows_have_the_numbers_of_the_whole_frame(tmp_path):
    bad = people(10, 10).set_column(0, "age", pa.array([1] * 9 + [2**40]))
    graph, whole = new(tmp_path, "graph"), pa.concat_tables([people(10), bad])
    texts, kept = [], []
    for engine, frame in (("inline", whole), ("spark", SparkLike(people(10), bad))):
        options: dict[str, Any] = {"mapping": {**PEOPLE, "sources": PEOPLE["sources"][:1]}}
        with frames_in_this_process(300):
            with pytest.raises(LoadError) as caught:
                graph.load({"people": frame}, "append", engine=engine, **options)
            texts.append(str(caught.value))
            options |= {"quarantine": tmp_path / engine, "load_id": engine}
            copy = new(tmp_path, f"copy-{engine}")
            copy.load({"people": frame}, "append", engine=engine, **options)
            kept.append((tmp_path / engine / engine / "bad.jsonl").read_text())
    assert texts[0] == texts[1]
    assert "people record 20" in texts[0]
    assert kept[0] == kept[1]
    assert json.loads(json.loads(kept[0])["raw"])["shoe"] == 19
    assert scratch_files(graph) == []


@pytest.mark.parametrize(
    ("frame", "problem"),
    [
        (people(3), "source has no column 'login'; did you mean"),
        (pa.table({"x": [1]}), "source has no column 'login'"),
    ],
)
def test_a_mapping_that_does_not_fit_is_refused_before_rows_are_read(tmp_path, frame, problem):
    frame = frame.rename_columns([name.replace("login", "logn") for name in frame.column_names])
    mapping = {"version": 1, "sources": PEOPLE["sources"][:1]}
    graph, given = new(tmp_path, "graph"), {"people": SparkLike(frame)}
    with frames_in_this_process(10**9, None), pytest.raises(LoadSourceError, match=problem):
        graph.load(given, "append", mapping=mapping, engine="spark")


def test_a_frame_of_a_remote_session_is_refused(tmp_path):
    class Remote(SparkLike):
        pass

    Remote.__module__ = "pyspark.sql.connect.dataframe"
    with pytest.raises(LoadSourceError, match="is a data frame of Spark Connect"):
        new(tmp_path, "graph").load({"Person": Remote(people(1))}, "append", engine="spark")


def test_one_process_does_not_read_frames_of_spark(tmp_path):
    given = {"Person": SparkLike(people(1).rename_columns(["age", "name", "shoe"]))}
    with pytest.raises(UsageError, match="do not pass engine='inline'"):
        new(tmp_path, "graph").load(given, "append", engine="inline")
    with pytest.raises(UsageError, match="cannot read an in-memory graph"):
        init("memory://frames", SCHEMA).load(given, "append", engine="spark")
    table = {"version": 1, "sources": [{"table": "people", "node": "Person"}]}
    with pytest.raises(UsageError, match="do not pass engine='inline'"):
        new(tmp_path, "other").load(None, "append", mapping=table, engine="inline")


def test_a_table_has_no_format(tmp_path):
    source = {"table": "people", "node": "Person", "format": "csv"}
    with pytest.raises(LoadSourceError, match="a table has no format"):
        new(tmp_path, "graph").load(None, "append", mapping={"version": 1, "sources": [source]})


def test_a_load_that_fails_removes_its_scratch_files(tmp_path):
    graph = new(tmp_path, "graph")
    given = {"people": SparkLike(people(4)), "known": SparkLike(known(4))}
    with (
        frames_in_this_process(10**9),
        armed("load.frames_staged", Fail()),
        pytest.raises(InjectedFault),
    ):
        graph.load(given, "append", mapping=PEOPLE, engine="spark")
    assert scratch_files(graph) == []
    assert exported(graph) == ""


def test_scratch_files_of_a_killed_load_are_listed_and_removed_when_they_are_old(tmp_path):
    graph = new(tmp_path, "graph")
    root, day = normalise_root(graph.uri), timedelta(days=1)
    old = datetime.now(UTC) - day - timedelta(minutes=1)
    left = Scratch(root, derived_ulid(int(old.timestamp() * 1e6), "old")).write(b"rows")
    Scratch(root, new_ulid()).write(b"rows of a load at work")
    name = f"{FOLDER}/{Path(left).name}"
    assert graph.maintenance.status().scratch == (name,)
    [advice] = graph.maintenance.status().advice
    assert str(advice) == "graph.maintenance.cleanup(…): scratch files of killed loads (1)"
    assert advice.as_command() == "`omnigraph cleanup`: scratch files of killed loads (1)"
    assert graph.maintenance.cleanup(keep_versions=5, dry_run=True).orphans == (name,)
    assert len(scratch_files(graph)) == 2
    assert graph.maintenance.cleanup(keep_versions=5).orphans == (name,)
    assert len(scratch_files(graph)) == 1
    assert graph.maintenance.cleanup(keep_versions=5).orphans == ()


# With Spark


def test_a_data_frame_and_a_table_of_spark_are_loaded(spark, tmp_path):
    graph, expected = new(tmp_path, "graph"), new(tmp_path, "expected")
    whole = {"people": people(30), "known": known(30)}
    expected.load(whole, "append", mapping=PEOPLE, load_id="x", engine="inline")
    frame = spark.createDataFrame(people(30)).repartitionByRange(2, "shoe")
    frame.createOrReplaceTempView("people")
    mapped, edges = PEOPLE["sources"]
    table = {"table": "people", "node": "Person", "columns": mapped["columns"]}
    mapping = {"version": 1, "sources": [table, edges]}
    with noting_jobs() as jobs:
        given = {"known": spark.createDataFrame(known(30))}
        result = graph.load(given, "append", mapping=mapping, load_id="x", engine=spark)
    assert result.rows_loaded == {"edge:Knows": 30, "node:Person": 30}
    assert [job.name for job in jobs] == ["read 'people'", "read 'known'", "load"]
    assert exported(graph) == exported(expected)
    assert scratch_files(graph) == []
    mapping["sources"] = [{"table": "nothere", "node": "Person"}]
    with pytest.raises(LoadSourceError, match="nothere: cannot be read by Spark"):
        graph.load(None, "merge", mapping=mapping, engine=spark)


def test_a_frame_of_spark_without_rows_is_loaded_in_every_mode(spark, tmp_path):
    graph = new(tmp_path, "graph")
    rows = spark.createDataFrame(people(3))
    frames = [
        spark.createDataFrame([], "login string, age long"),
        rows.where("login = 'nobody'").repartition(3),
    ]
    for mode in ("append", "merge", "patch", "overwrite"):
        for frame in frames:
            result = graph.load({"people": frame}, mode, mapping=ONLY_PEOPLE, engine="spark")
            assert (sum(result.rows_loaded.values()), result.engine) == (0, "spark")
    # Partitions without rows beside those with some.
    spread = rows.coalesce(1).repartition(3, "login")
    graph.load({"people": spread}, "merge", mapping=ONLY_PEOPLE, engine="spark")
    assert len(exported(graph).splitlines()) == 3


@pytest.mark.slow
def test_every_type_of_spark_becomes_what_arrow_would_give(spark, tmp_path):
    schema = """
    node T {
        k: I64 @key  s: String?  d: F64?  f: F32?  u: U64?  b: Bool?  day: Date?  at: DateTime?
        list: [I32]?  v: Vector(2)?  blob: Blob?
    }
    """
    moment = datetime(2021, 7, 15, 8, 30, tzinfo=UTC)
    rows = pa.table(
        {
            "k": pa.array([1, 2], pa.int32()),
            "s": ["a", None],
            "d": [0.5, None],
            "f": pa.array([0.25, None], pa.float32()),
            "u": pa.array([Decimal(2**64 - 1), None], pa.decimal128(20, 0)),
            "b": [True, None],
            "day": [date(1999, 1, 1), None],
            "at": pa.array([moment, None], pa.timestamp("us", "UTC")),
            "list": pa.array([[1, None], None], pa.list_(pa.int64())),
            "v": pa.array([[1.0, 2.0], None], pa.list_(pa.float32())),
            "blob": pa.array([b"Hi", None], pa.binary()),
        }
    )
    texts = []
    for engine, frame in (("inline", rows), ("spark", spark.createDataFrame(rows))):
        graph = init(str(tmp_path / engine), schema)
        graph.load({"T": frame}, "append", engine=engine)
        texts.append(exported(graph))
    assert texts[0] == texts[1]


@pytest.mark.slow
def test_a_frame_that_never_gives_the_same_rows_twice_is_loaded_as_it_was_read(spark, tmp_path):
    graph = new(tmp_path, "graph")
    columns = ["uuid() as name", "if(id = 7, 1L << 40, id) as age"]
    frame = spark.range(0, 40, 1, 4).selectExpr(*columns)
    result = graph.load({"Person": frame}, "append", quarantine=tmp_path / "bad", engine="spark")
    assert (result.rows_loaded, result.quarantined) == ({"node:Person": 39}, 1)
    assert len(exported(graph).splitlines()) == 39
