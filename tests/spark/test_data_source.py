"""`format("omnigraph")`: reads, writes and streams; most of it without a Spark session."""

from __future__ import annotations

import pickle
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pytest

import omnigraph as og
import pyspark_omnigraph
from omnigraph.errors import ChangeFeedGap, ConstraintError, InputError, UnknownColumn, UnknownType
from omnigraph.spark import tasks
from tests.spark.test_frames import scratch_files

SCHEMA = """
node Person {
    name: String @key
    age: I32?
    big: U64?
    at: DateTime?
    day: Date?
    v: Vector(2)?
    tags: [U32]?
    photo: Blob?
}
edge Knows: Person -> Person { since: Date? }
"""
PEOPLE = [
    {"name": "ann", "age": 3, "big": 2**64 - 1, "at": "2020-01-01T00:00:00.5Z", "day": "2020-01-02",
     "v": [1.0, 2.0], "tags": [7, 2**32 - 1], "photo": "base64:aGk="},
    {"name": "bob"},
]  # fmt: skip


@pytest.fixture
def graph(tmp_path):
    graph = og.init(tmp_path / "graph", SCHEMA)
    known = [{"from": "ann", "to": "bob", "since": "2020-01-01"}]
    graph.load({"Person": PEOPLE, "Knows": known}, "append", engine="inline")
    return graph


def source(graph, type="Person", **options):
    return pyspark_omnigraph.DefaultSource({"graph": graph.uri, "type": type, **options})


def read(found, schema=None):
    """What all tasks of a read return, as rows. Everything travels as it does to Spark."""
    reader = pickle.loads(pickle.dumps(found)).reader(schema or found.schema())
    batches = [
        batch
        for partition in reader.partitions()
        for batch in pickle.loads(pickle.dumps(reader)).read(pickle.loads(pickle.dumps(partition)))
    ]
    return [row for batch in batches for row in batch.to_pylist()]


def names(rows):
    return sorted(row["name"] for row in rows)


@contextmanager
def task(number):
    """What PySpark tells the code of a task."""

    class Context:
        def partitionId(self):
            return number

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pyspark_omnigraph.writing.TaskContext.get", Context)
        yield


def write(graph, partitions, type="Person", overwrite=False, **options):
    """A write whose tasks run here."""
    given = {"graph": graph.uri, "type": type, **options}
    writer = pyspark_omnigraph.DefaultSource(given).writer(None, overwrite)  # type: ignore[arg-type]
    messages: list[Any] = []
    for number, rows in enumerate(partitions):
        with task(number):
            messages.append(pickle.loads(pickle.dumps(writer)).write(iter(rows.to_batches())))
    # Messages come in any order, and a task that failed has sent none.
    writer.commit([None, *reversed(messages)])


# Reading


def test_columns_have_types_that_spark_can_hold(graph):
    types = {field.name: field.dataType.simpleString() for field in source(graph).schema()}
    assert types == {
        "id": "string", "name": "string", "age": "int", "big": "decimal(20,0)", "at": "timestamp",
        "day": "date", "v": "array<float>", "tags": "array<bigint>",
    }  # fmt: skip
    ann, bob = read(source(graph))
    assert (ann["big"], ann["v"], ann["tags"]) == (2**64 - 1, [1.0, 2.0], [7, 2**32 - 1])
    assert ann["at"].isoformat() == "2020-01-01T00:00:00.500000+00:00"
    assert set(bob.values()) == {"bob", None}
    (edge,) = read(source(graph, "Knows"))
    assert (edge["src"], edge["dst"]) == ("ann", "bob")


def test_a_read_has_the_chosen_columns_rows_and_state(graph):
    found = source(graph, columns="name, photo", filter="age >= $low", params='{"low": 2}')
    assert read(found) == [{"name": "ann", "photo": b"hi"}]
    graph.branches.create("draft").insert("Person", [{"name": "cat"}])
    graph.insert("Person", [{"name": "dan"}])
    assert names(read(source(graph))) == ["ann", "bob", "dan"]
    assert names(read(source(graph, branch="draft"))) == ["ann", "bob", "cat"]
    assert names(read(source(graph, at="main~1"))) == ["ann", "bob"]
    empty = og.init(graph.uri + "2", SCHEMA)
    assert read(source(empty)) == []


def test_every_task_reads_the_commit_that_was_planned(graph, monkeypatch):
    monkeypatch.setattr(tasks, "LOAD_RANGE_ROWS", 1)
    graph.insert("Person", [{"name": "cat"}])
    found = source(graph)
    reader = found.reader(found.schema())
    planned = reader.partitions()
    assert len(planned) == 2
    graph.mutate('query q() { delete Person where name = "ann" }')
    rows = [row for part in planned for batch in reader.read(part) for row in batch.to_pylist()]
    assert names(rows) == ["ann", "bob", "cat"]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"type": "Persn"}, UnknownType, "did you mean `Person`"),
        ({"columns": "nam"}, UnknownColumn, "`name`"),
        ({"colums": "name"}, InputError, "did you mean `columns`"),
        ({"load_mode": "append"}, InputError, "no option 'load_mode' for reading"),
        ({"branch": "main", "at": "main"}, InputError, "not both"),
        ({"changes": "yes"}, InputError, "must be true or false"),
        ({"since": "latest"}, InputError, "set the option changes"),
        ({"changes": "true", "filter": "age = 1"}, InputError, "leave out at and filter"),
        ({"params": "[]"}, InputError, "JSON object"),
        ({"graph": "memory://x"}, InputError, "in-memory graph"),
        ({"type": ""}, InputError, "needs the option 'type'"),
    ],
)
def test_wrong_options_are_named(graph, options, error, message):
    found = pyspark_omnigraph.DefaultSource({"graph": graph.uri, "type": "Person"} | options)
    with pytest.raises(error, match=message):
        found.schema()


# Writing


def test_partitions_are_one_commit_with_all_checks(graph):
    before = graph.head().number
    write(
        graph,
        [
            pa.table({"name": ["cat"], "age": [1]}),
            pa.table({"name": ["ann", "dan"], "age": [9, 2]}),
        ],
        load_mode="merge",
        load_id="x",
        message="from Spark",
        actor="ada",
    )
    head = graph.head()
    assert (head.number, head.message, head.actor, head.load_id) == (
        before + 1, "from Spark", "ada", "x",
    )  # fmt: skip
    assert names(graph.scan("Person").read_all().to_pylist()) == ["ann", "bob", "cat", "dan"]
    write(graph, [pa.table({"name": ["eve"]})], load_mode="merge", load_id="x")
    assert graph.head() == head
    with pytest.raises(ConstraintError, match="ann"):
        write(graph, [pa.table({"name": ["ann"]})])
    with pytest.raises(ConstraintError, match="did you mean `age`"):
        write(graph, [pa.table({"name": ["flo"], "agee": [1]})])
    write(graph, [pa.table({"name": pa.array([], pa.utf8())})])
    assert graph.head() == head
    assert scratch_files(graph) == []


def test_edges_are_written_as_they_are_read(graph):
    copy = og.init(graph.uri + "2", SCHEMA)
    write(copy, [pa.Table.from_pylist([{"name": name} for name in ("ann", "bob")])])
    rows = pa.Table.from_pylist(read(source(graph, "Knows")))
    write(copy, [rows], "Knows")
    assert read(source(copy, "Knows")) == read(source(graph, "Knows"))
    write(copy, [rows.slice(0, 0)], "Knows", overwrite=True)
    assert copy.at("main").counts["Knows"] == 0
    with pytest.raises(InputError, match="contradict each other"):
        write(copy, [], overwrite=True, load_mode="merge")


def test_a_write_that_is_too_large_names_the_call_for_it(graph, monkeypatch):
    monkeypatch.setattr("pyspark_omnigraph.writing.DATA_SOURCE_BYTES", 40)
    small = pa.table({"name": ["a" * 20]})
    message = r"omnigraph\.spark\.write\(df, graph, 'Person', 'append'\)"
    with pytest.raises(InputError, match=message):
        write(graph, [small, pa.table({"name": ["b" * 20]})])
    with pytest.raises(InputError, match=message):
        write(graph, [pa.table({"name": ["c" * 60]})])
    assert graph.at("main").counts["Person"] == 2


def test_a_batch_of_a_stream_is_written_once(graph):
    options = {"graph": graph.uri, "type": "Person"}
    with pytest.raises(InputError, match="needs the option load_id"):
        pyspark_omnigraph.DefaultSource(options).streamWriter(None, False)  # type: ignore[arg-type]
    found = pyspark_omnigraph.DefaultSource(options | {"load_id": "s"})
    for batch, name in ((0, "cat"), (0, "cat"), (1, "dan")):
        # The process that commits has a writer of its own.
        writing, committing = (found.streamWriter(None, False) for _ in range(2))  # type: ignore[arg-type]
        with task(0):
            message = writing.write(iter(pa.table({"name": [name]}).to_batches()))
        committing.commit([message], batch)
    assert names(graph.scan("Person").read_all().to_pylist()) == ["ann", "bob", "cat", "dan"]
    assert graph.head().load_id == "s-1"
    assert scratch_files(graph) == []


# Changes


def stream(graph, **options):
    found = source(graph, changes="true", **options)
    return found.streamReader(found.schema())


def delivered(reader, start, end):
    """What a batch of a stream has, and the partitions it is read in."""
    parts = reader.partitions(start, end)
    batches = [batch for part in parts for batch in reader.read(part)]
    rows = [row for batch in batches for row in batch.to_pylist()]
    return [(row["_number"], row["_op"], row["name"], row["age"]) for row in rows], len(parts)


def test_a_stream_that_starts_again_misses_and_repeats_nothing(graph):
    reader = stream(graph)
    start = reader.initialOffset()
    first = reader.latestOffset(start, None)
    assert delivered(reader, start, first) == (
        [(2, "insert", "ann", 3), (2, "insert", "bob", None)],
        2,
    )
    draft = graph.branches.create("draft")
    draft.upsert("Person", [{"name": "bob", "age": 4}, {"name": "cat"}])
    draft.mutate('query q() { delete Person where name = "ann" }')
    graph.insert("Person", [{"name": "dan"}])
    graph.merge("draft")
    graph.insert("Knows", [{"from": "bob", "to": "cat"}])
    again = stream(graph)
    last = again.latestOffset(first, None)
    rows, parts = delivered(again, first, last)
    assert rows == [
        (3, "insert", "dan", None),
        (4, "delete", "ann", 3),
        (4, "update", "bob", 4),
        (4, "insert", "cat", None),
    ]
    assert parts == 3
    assert delivered(again, last, last) == ([], 0)
    assert [row["_op"] for row in read(source(graph, changes="true", since="main~2"))] == [
        "delete", "update", "insert",
    ]  # fmt: skip
    assert read(source(graph, changes="true", since="latest")) == []
    assert read(source(graph, changes="true", since=graph.cursor())) == []


def test_a_stream_of_what_is_there_ends_at_its_start(graph):
    reader = stream(graph)
    reader.prepareForTriggerAvailableNow()
    graph.insert("Person", [{"name": "late"}])
    end = reader.latestOffset(reader.initialOffset(), None)
    rows, _ = delivered(reader, reader.initialOffset(), end)
    assert [name for _, _, name, _ in rows] == ["ann", "bob"]


def test_many_commits_are_shared_by_a_few_tasks(graph, monkeypatch):
    monkeypatch.setattr("pyspark_omnigraph.changes._MAX_PARTITIONS", 3)
    for number in range(7):
        graph.insert("Person", [{"name": f"p{number}"}])
    reader = stream(graph)
    rows, parts = delivered(reader, {"cursor": ""}, {"cursor": graph.cursor()})
    assert (len(rows), parts) == (9, 3)
    assert [row[0] for row in rows] == sorted(row[0] for row in rows)


def test_a_column_that_a_commit_did_not_have_yet_is_null(graph):
    graph.schema.apply(graph.schema.source.replace("age: I32?", "age: I32?\n    size: I32?"))
    graph.insert("Person", [{"name": "cat", "size": 5}])
    rows = read(source(graph, changes="true", columns="name,size"))
    assert [(row["name"], row["size"]) for row in rows] == [
        ("ann", None),
        ("bob", None),
        ("cat", 5),
    ]


def test_a_stream_without_changes_and_an_offset_of_another_history_are_refused(graph):
    found = source(graph)
    with pytest.raises(InputError, match="set the option changes to true"):
        found.streamReader(found.schema())
    foreign = og.init(graph.uri + "2", SCHEMA)
    foreign.insert("Person", [{"name": "x"}])
    reader = stream(graph)
    with pytest.raises(ChangeFeedGap):
        delivered(reader, {"cursor": foreign.cursor()}, {"cursor": graph.cursor()})
    graph.insert("Person", [{"name": "cat"}])
    with pytest.raises(ChangeFeedGap):
        delivered(reader, {"cursor": ""}, {"cursor": foreign.cursor()})


# With Spark


def test_spark_finds_the_format_and_reads_and_writes(spark, graph):
    people = og.spark.nodes(graph, "Person", columns=["name", "age"], session=spark)
    (
        people.where("age = 3")
        .selectExpr("'cat' as name", "age")
        .write.format("omnigraph")
        .options(graph=graph.uri, type="Person", load_mode="merge", load_id="w")
        .mode("append")
        .save()
    )
    assert graph.head().load_id == "w"
    assert graph.get("Person", "cat")["age"] == 3


@pytest.mark.slow
def test_views_the_full_pipeline_and_streams_that_start_again(spark, graph, tmp_path):
    people = og.spark.nodes(graph, "Person", columns=["age"], session=spark)
    assert people.columns == ["id", "age"]
    assert [people.where("age = 3").count(), people.count()] == [1, 2]
    og.spark.edges(graph, "Knows", session=spark).createOrReplaceTempView("knows")
    assert spark.sql("select src, dst from knows").collect() == [("ann", "bob")]
    assert spark.sql("select 1 from knows a join knows b on a.dst = b.dst").count() == 1
    more = spark.createDataFrame([("eve", "ann")], ["src", "dst"])
    with pytest.raises(ConstraintError, match="eve"):
        og.spark.write(more, graph, "Knows")
    copy = og.init(tmp_path / "copy", SCHEMA)

    def follow():
        changes = spark.readStream.format("omnigraph")
        changes = changes.options(graph=graph.uri, type="Person", changes="true").load()
        (
            changes.select("name", "age")
            .writeStream.format("omnigraph")
            .options(graph=copy.uri, type="Person", load_id="follow")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
            .awaitTermination()
        )

    follow()
    assert copy.at("main").counts["Person"] == 2
    draft = graph.branches.create("draft")
    draft.insert("Person", [{"name": "flo"}])
    graph.merge("draft")
    follow()
    follow()
    assert copy.at("main").counts["Person"] == 3


@pytest.mark.slow
def test_pushed_filters_still_leak_between_plans(spark):
    """When this fails, PySpark keeps them apart, and `TypeReader` can implement `pushFilters`."""
    from pyspark.sql.datasource import DataSource, DataSourceReader, EqualTo

    class Reader(DataSourceReader):
        only = None

        def pushFilters(self, filters):
            for one in filters:
                if isinstance(one, EqualTo):
                    self.only = one.value
                else:
                    yield one

        def read(self, partition):
            yield from ((n,) for n in range(4) if self.only in (None, n))

    class Leaking(DataSource):
        @classmethod
        def name(cls):
            return "leaking"

        def schema(self):
            return "n int"

        def reader(self, schema):
            return Reader()

    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    spark.dataSource.register(Leaking)
    frame = spark.read.format("leaking").load()
    assert [frame.where("n = 1").count(), frame.count()] == [1, 1]
