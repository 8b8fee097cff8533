"""Sources of every kind, read by several tasks: the graph and receipt of a load in one process."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from omnigraph.api.graph import init
from omnigraph.load import spark_frames, spark_load
from omnigraph.spark.tasks import noting_jobs
from omnigraph.storage.files import FOLDER
from tests.spark.graphs import SCHEMA, comparable, exported, person
from tests.spark.in_process import patched, tasks_in_this_process

COUNT = 400
STEP = 4000
"""Bytes that one task reads here."""

NAMES = [f"p{n}" for n in range(COUNT)]
EMAILS = [f'"p{n}",\n@"example' if n % 3 else None for n in range(COUNT)]


def csv_text(first: int, end: int) -> str:
    """People whose emails have quotes, delimiters and line ends."""
    cells = ('"{}"'.format((EMAILS[n] or "").replace('"', '""')) for n in range(first, end))
    lines = (f"p{n},{cell}\n" for n, cell in zip(range(first, end), cells, strict=True))
    return "name,email\n" + "".join(lines).replace(',""\n', ",\n")


def table() -> pa.Table:
    emails = pa.array(EMAILS).dictionary_encode()
    half = COUNT // 2
    return pa.table(
        {
            "name": NAMES,
            "email": pa.chunked_array(
                [emails.slice(0, half), pa.array(EMAILS[half:]).dictionary_encode()]
            ),
        }
    )


def csv_file(folder: Path) -> Any:
    (folder / "Person.csv").write_text(csv_text(0, COUNT))
    return folder / "Person.csv"


def gzip_files(folder: Path) -> Any:
    for part in range(4):
        text = csv_text(part * 100, part * 100 + 100)
        (folder / f"Person.{part}.csv.gz").write_bytes(gzip.compress(text.encode()))
    return folder


def dataset(folder: Path) -> Any:
    pq.write_table(table(), folder / "people.parquet")
    return {"Person": ds.dataset(folder / "people.parquet")}


KINDS = {
    "csv": csv_file,
    "gzip": gzip_files,
    "arrow": lambda _: {"Person": table()},
    "dataset": dataset,
    "pandas": lambda _: {"Person": pd.DataFrame({"name": NAMES, "email": EMAILS})},
    "polars": lambda _: {"Person": pl.DataFrame({"name": NAMES, "email": EMAILS})},
    "text": lambda _: "\n".join(map(person, NAMES)).encode(),
}


@contextmanager
def many_tasks() -> Iterator[None]:
    with patched(
        (spark_load, "LOAD_RANGE_BYTES", STEP),
        (spark_frames, "LOAD_RANGE_BYTES", STEP),
        (spark_frames, "LOAD_RANGE_ROWS", 100),
    ):
        yield


def assert_loaded_alike(tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "input"
    folder.mkdir()
    source = KINDS[kind](folder)
    graphs = {engine: init(str(tmp_path / engine), SCHEMA) for engine in ("inline", "spark")}
    results = {
        engine: graph.load(source, "append", engine=engine, load_id="x")
        for engine, graph in graphs.items()
    }
    assert comparable(results["spark"]) == comparable(results["inline"])
    assert exported(graphs["spark"]) == exported(graphs["inline"])
    assert len(exported(graphs["spark"]).splitlines()) == COUNT
    scratch = tmp_path / "spark" / FOLDER
    assert not scratch.exists() or not list(scratch.iterdir())


@pytest.mark.parametrize("kind", KINDS)
def test_a_source_in_parts_is_loaded_like_the_whole(tmp_path, kind):
    with tasks_in_this_process(STEP), many_tasks():
        assert_loaded_alike(tmp_path, kind)


@pytest.mark.parametrize("kind", ["csv", "gzip"])
def test_tasks_of_spark_load_the_parts_of_a_source(spark, tmp_path, kind):
    with noting_jobs() as jobs, many_tasks():
        assert_loaded_alike(tmp_path, kind)
    (tasks,) = (job.tasks for job in jobs if job.name == "load")
    assert tasks >= 2


def test_numbers_and_lines_of_records_are_those_of_the_whole_csv_file(tmp_path):
    path = tmp_path / "Person.csv"
    path.write_text(csv_text(0, COUNT) + 'p400,"x",too many\n')
    mapping = {"version": 1, "sources": [{"path": str(path), "node": "Person"}]}
    found = []
    for engine in ("inline", "spark"):
        graph = init(str(tmp_path / engine), SCHEMA)
        with tasks_in_this_process(STEP):
            result = graph.load(
                None, "append", mapping=mapping, engine=engine, load_id="x", quarantine=tmp_path
            )
        assert result.quarantined == 1
        found.append((tmp_path / "x" / "bad.jsonl").read_text())
    assert found[0] == found[1]
    assert '"record": 401' in found[0]


def test_empty_tables_and_files_are_loaded_in_every_mode(tmp_path):
    (tmp_path / "Person.csv").write_text("name,email\n")
    (tmp_path / "nothing").mkdir()
    empty = tmp_path / "nothing" / "City.csv"
    empty.write_text("")
    sources: list[Any] = [
        {"Person": table().slice(0, 0)},
        {"Person": pd.DataFrame({"name": []})},
        {"Person": pl.DataFrame({"name": []})},
        {"Person": ds.dataset(table().slice(0, 0))},
        tmp_path / "Person.csv",
        empty,
        b"",
    ]
    for mode in ("append", "merge", "patch", "overwrite"):
        for engine in ("inline", "spark"):
            graph = init(str(tmp_path / f"{mode}-{engine}"), SCHEMA)
            graph.load(person("p1").encode(), "append", engine="inline")
            for source in sources:
                with tasks_in_this_process(STEP), many_tasks():
                    result = graph.load(source, mode, engine=engine)
                assert sum(result.rows_loaded.values()) == 0


# -- times -----------------------------------------------------------------------------------------

TIMES = "node T { k: I64 @key  at: DateTime?  day: Date? }"


def test_moments_of_spark_are_those_of_any_time_zone(spark, tmp_path):
    """`timestamp` is a moment wherever it is shown; `timestamp_ntz` has no zone and is read as UTC."""
    tokyo = timezone(timedelta(hours=9))
    moment = datetime(2021, 7, 15, 0, 30, tzinfo=tokyo)
    own = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        frame = spark.sql(
            "select * from values"
            " (1L, timestamp'2021-07-15 00:30:00', date'2021-07-15'),"
            " (2L, timestamp'2021-07-14 15:30:00 UTC', date'2021-07-14'),"
            " (3L, timestamp'1969-12-31 23:59:59.999 America/New_York', date'1969-12-31'),"
            " (4L, null, null) as t(k, at, day)"
        )
        local = spark.sql("select 5L as k, timestamp_ntz'2021-07-15 00:30:00' as at")
        graph = init(str(tmp_path / "spark"), TIMES)
        graph.load({"T": frame}, "append", engine="spark")
        graph.load({"T": local}, "append", engine="spark")
    finally:
        spark.conf.set("spark.sql.session.timeZone", own)
    expected = init(str(tmp_path / "inline"), TIMES)
    late = datetime(1970, 1, 1, 4, 59, 59, 999_000, UTC)
    naive = datetime(2021, 7, 15, 0, 30, tzinfo=UTC)
    rows = {
        "k": [1, 2, 3, 4, 5],
        "at": pa.array([moment, moment, late, None, naive], pa.timestamp("us", "Asia/Tokyo")),
        "day": [date(2021, 7, 15), date(2021, 7, 14), date(1969, 12, 31), None, None],
    }
    expected.load({"T": pa.table(rows)}, "append", engine="inline")
    assert exported(graph) == exported(expected)


@pytest.mark.slow
def test_a_table_behind_jdbc_is_a_spark_data_frame(spark, tmp_path):
    url = f"jdbc:derby:{tmp_path / 'derby'};create=true"
    driver = {"driver": "org.apache.derby.jdbc.EmbeddedDriver"}
    pairs = pa.table({"a": NAMES[:20], "b": NAMES[20:40]})
    kinds = {"createTableColumnTypes": "a varchar(9), b varchar(9)"}
    spark.createDataFrame(pairs).write.options(**kinds).jdbc(url, "pairs", "overwrite", driver)
    bounds = {"predicates": ["\"a\" < 'p15'", "\"a\" >= 'p15'"], "properties": driver}
    graph = init(str(tmp_path / "graph"), SCHEMA)
    graph.load("\n".join(map(person, NAMES)).encode(), "append", engine="inline")
    mapping = {"sources": [{"name": "pairs", "edge": "Knows", "from": "a", "to": "b"}]}
    frame = spark.read.jdbc(url, "pairs", **bounds)
    result = graph.load({"pairs": frame}, "append", mapping={"version": 1, **mapping}, engine=spark)
    assert result.rows_loaded == {"edge:Knows": 20}
    assert '"from":"p0","to":"p20"' in exported(graph)
