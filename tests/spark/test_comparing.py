"""Diffs and merges as tasks: what one process says, one task and several tasks say as well."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any
from unittest.mock import patch

import pytest

from omnigraph.api.graph import Graph, init
from omnigraph.api.graph import open as open_graph
from omnigraph.cli.main import main
from omnigraph.commit import background
from omnigraph.errors import ExternalBlobRefused, MergeConflicts, StorageError, UsageError
from omnigraph.limits import SPARK_COMPARED_ROWS
from omnigraph.merge import plan, table_merge
from omnigraph.merge import rows as merge_rows
from omnigraph.read.view import ReadView
from omnigraph.spark.choice import AUTO, INLINE, chosen_engine, compares_on_spark
from omnigraph.spark.tasks import noting_jobs
from tests.spark.graphs import data_files, exported
from tests.spark.in_process import comparisons_in_this_process, small_parts
from tests.support.faults import Fail, FailStorage, InjectedFault, armed

SCHEMA = """
node Person {
    name: String @key  age: I32?  email: String? @unique
    tags: [String]?  face: Vector(2)?  photo: Blob?
}
edge Knows: Person -> Person @card(0..3) { since: Date?  @unique(src, dst) }
"""
PEOPLE = 60
ONE, SEVERAL = 10**6, 9


def person(name: str, **data: Any) -> str:
    return json.dumps({"type": "Person", "data": {"name": name, **data}})


def knows(source: str, target: str, **data: Any) -> str:
    return json.dumps({"edge": "Knows", "from": source, "to": target, "data": data})


def everybody(seed: int, count: int = PEOPLE) -> list[str]:
    dice = random.Random(seed)
    return [
        person(
            f"p{n}",
            age=dice.randrange(90),
            tags=["x"] * dice.randrange(3),
            face=[n, dice.randrange(5)],
            photo="base64:SGk=" if n % 7 == 0 else None,
        )
        for n in range(count)
    ]


@pytest.fixture(scope="module")
def graph(tmp_path_factory) -> Graph:
    """`feature` has changed, added and removed people and edges. Nobody writes to main or to it."""
    graph = init(str(tmp_path_factory.mktemp("comparing") / "graph"), SCHEMA)
    edges = [knows(f"p{n}", f"p{n * 7 % PEOPLE}") for n in range(PEOPLE)]
    graph.load("\n".join([*everybody(1), *edges]).encode(), "append", engine="inline")
    graph.branches.create("feature")
    changed = [record for n, record in enumerate(everybody(2)) if n % 3]
    newcomers = [person(f"n{n}", email=f"n{n}@x") for n in range(20)]
    more = [knows(f"n{n}", f"p{n + 1}", since="2020-01-01") for n in range(20)]
    graph.load(
        "\n".join([*changed, *newcomers, *more]).encode(),
        "merge",
        branch="feature",
        engine="inline",
    )
    for name in ("p3", "p9"):
        graph.mutate(f'query q() {{ delete Person where name = "{name}" }}', branch="feature")
    return graph


made = iter(range(1000))


@pytest.fixture
def target(graph: Graph) -> Callable[..., str]:
    """Makes a branch as main is, with some records of its own."""

    def branch(*records: str) -> str:
        name = f"t{next(made)}"
        graph.branches.create(name)
        if records:
            graph.load("\n".join(records).encode(), "merge", branch=name, engine="inline")
        return name

    return branch


def ways() -> Iterator[tuple[str, AbstractContextManager[None]]]:
    """An engine, and where its tasks run: not at all, as one, and as several."""
    yield "inline", nullcontext()
    for rows in (ONE, SEVERAL):
        yield "spark", comparisons_in_this_process(rows)


def said_of_diff(graph: Graph, before: str, after: str, **wanted: Any) -> Any:
    found = graph.diff(before, after, **wanted)
    values = [found.values(t.declared.name).to_pylist() for t in found.changes.tables]
    return found.to_arrow().to_pylist(), found.to_json(rows=True), values


def said_of_merge(graph: Graph, source: str, into: str, **options: Any) -> Any:
    """All that can be seen of a merge."""
    try:
        done = graph.merge(source, into, **options)
    except MergeConflicts as error:
        return [c.to_json() for c in error.conflicts], error.total, exported(graph, into)
    counts = {key: count.to_json() for key, count in done.receipt.counts.items()}
    told = [c.to_json() for c in done.conflicts]
    warnings = [(w.code, w.count) for w in done.receipt.warnings]
    return done.outcome, counts, told, warnings, exported(graph, into)


def test_any_number_of_tasks_finds_the_same_changes(graph):
    found = []
    for engine, tasks in ways():
        with tasks:
            found.append(said_of_diff(graph, "main", "feature", engine=engine))
            found.append(said_of_diff(graph, "feature", "main", engine=engine))
    assert found[0::2] == [found[0]] * 3
    assert found[1::2] == [found[1]] * 3
    assert len(found[0][0]) > 70


def test_views_and_filters_hold_in_tasks_too(graph):
    view = ReadView(
        rows={"Person": "age % 100 > $least or length(name) > 99"},
        params={"least": 40},
        hidden_properties=frozenset({("Person", "photo")}),
    )
    found = []
    for engine, tasks in ways():
        with tasks:
            found.append(
                [
                    said_of_diff(graph, "main", "feature", engine=engine, view=view),
                    said_of_diff(graph, "main", "feature", engine=engine, ops=["update"]),
                ]
            )
    assert found == [found[0]] * 3
    assert {change["op"] for change in found[0][1][0]} == {"update"}


CLEAN = [person("m1", age=1), person("p0", age=7)]
CONTESTED = [*CLEAN, person("p1", age=91), person("p4", age=92), person("n5", age=93)]


@pytest.mark.parametrize(
    ("records", "options"),
    [
        pytest.param([], {}, marks=pytest.mark.slow, id="a branch without rows of its own"),
        pytest.param(CLEAN, {}, id="rows of its own"),
        pytest.param(CONTESTED, {}, id="conflicts"),
        pytest.param(CONTESTED, {"strategy": "theirs"}, marks=pytest.mark.slow, id="theirs"),
        pytest.param(
            CONTESTED, {"granularity": "property"}, marks=pytest.mark.slow, id="properties"
        ),
        pytest.param(
            CONTESTED,
            {
                "strategy": {"Person": "ours"},
                "resolutions": [
                    {"table_key": "node:Person", "row_id": "p1", "take": "base"},
                    {"table_key": "node:Person", "row_id": "p2", "take": "ours"},
                ],
            },
            marks=pytest.mark.slow,
            id="resolutions",
        ),
        pytest.param(CONTESTED, {"dry_run": True}, marks=pytest.mark.slow, id="dry run"),
        pytest.param([person("m1", email="n3@x")], {}, id="a rule that both break"),
    ],
)
def test_any_number_of_tasks_merges_to_the_same(graph, target, records, options):
    found = []
    for engine, tasks in ways():
        into = target(*records)
        with tasks:
            found.append(said_of_merge(graph, "feature", into, engine=engine, **options))
    assert found == [found[0]] * 3


@pytest.mark.slow
def test_main_takes_what_tasks_have_merged_and_takes_it_back(tmp_path):
    graph = init(str(tmp_path / "graph"), SCHEMA)
    graph.load("\n".join(everybody(1)).encode(), "append", engine="inline")
    before = exported(graph)
    branch = graph.branches.create("feature")
    branch.load("\n".join(everybody(2)[:40]).encode(), "merge", engine="inline")
    branch.mutate('query q() { delete Person where name = "p50" }')
    wanted = exported(graph, "feature")
    with comparisons_in_this_process(SEVERAL):
        done = graph.merge("feature", engine="spark")
        assert exported(graph) == wanted
        counts = done.receipt.counts["node:Person"].to_json()
        assert counts == {"inserted": 0, "updated": 40, "deleted": 1}
        graph.revert(graph.head().id, engine="spark")
    assert exported(graph) == before
    assert graph.merge("feature").outcome.value == "already_up_to_date"


@pytest.mark.slow
def test_branches_that_merged_crosswise_merge_in_tasks_too(graph, target):
    found = []
    for engine, tasks in ways():
        one, other = target(person("p1", age=91)), target(person("p2", age=92))
        graph.branches.create(f"{one}-before", one)
        graph.merge(other, one)
        graph.merge(f"{one}-before", other)
        for branch, age in ((one, 93), (other, 94)):
            graph.load(person(f"p{age}", age=age).encode(), "merge", branch=branch, engine="inline")
        with tasks:
            found.append(said_of_merge(graph, one, other, engine=engine))
    assert [said[0].value for said in found] == ["merged"] * 3
    assert found == [found[0]] * 3


def test_very_many_conflicts_are_counted_and_the_first_are_reported(graph, target):
    records = [person(f"p{n}", age=100 + n) for n in range(40)]
    found = []
    for engine, tasks in ways():
        into = target(*records)
        limits = (
            patch.object(module, "MAX_REPORTED_CONFLICTS", 3)
            for module in (plan, merge_rows, table_merge)
        )
        one, two, three = limits
        with tasks, one, two, three, pytest.raises(MergeConflicts) as refused:
            graph.merge("feature", into, engine=engine)
        found.append(([c.row_id for c in refused.value.conflicts], refused.value.total))
    assert found == [(["p1", "p10", "p11"], 28)] * 3


def test_a_merge_that_is_refused_leaves_no_files(graph, target):
    into = target(*CONTESTED)
    before = data_files(graph.uri)
    with comparisons_in_this_process(SEVERAL), pytest.raises(MergeConflicts):
        graph.merge("feature", into, engine="spark")
    assert data_files(graph.uri) == before


def test_a_task_that_fails_makes_the_merge_fail_and_leaves_no_files(graph, target):
    into = target(*CLEAN)
    before, head = data_files(graph.uri), graph.head(into).id
    with (
        comparisons_in_this_process(SEVERAL),
        armed("merge.task_pre_write", FailStorage(), first=3),
        pytest.raises(StorageError, match="injected"),
    ):
        graph.merge("feature", into, engine="spark")
    assert (data_files(graph.uri), graph.head(into).id) == (before, head)


def test_a_merge_whose_task_died_is_made_by_the_next_attempt(graph, target):
    into, again = target(*CLEAN), target(*CLEAN)
    head = graph.head(into).id
    with comparisons_in_this_process(SEVERAL):
        with armed("merge.task_post_write", Fail(), first=2), pytest.raises(InjectedFault):
            graph.merge("feature", into, engine="spark")
        assert graph.head(into).id == head
        merged = said_of_merge(graph, "feature", into, engine="spark")
    assert merged == said_of_merge(graph, "feature", again, engine="inline")


@pytest.mark.parametrize("compacts", [False, True], ids=["as written", "compacted at once"])
def test_a_target_that_moves_meanwhile_is_merged_by_tasks_as_it_is_then(graph, target, compacts):
    into = target(*CLEAN)
    merge_on_spark, planned = table_merge.merge_on_spark, []

    def slowly(*given: Any, **options: Any) -> Any:
        found = merge_on_spark(*given, **options)
        planned.append(found)
        if len(planned) == 1:
            graph.load(person("late", age=1).encode(), "merge", branch=into, engine="inline")
        return found

    with (
        comparisons_in_this_process(SEVERAL),
        patch.object(plan, "merge_on_spark", slowly),
        patch.object(background, "MAX_SMALL_FRAGMENTS", 1 if compacts else 64),
    ):
        commit = graph.merge("feature", into, engine="spark").receipt.graph_commit_id
        graph.maintenance.wait()
    again = target(*CLEAN)
    graph.load(person("late", age=1).encode(), "merge", branch=again, engine="inline")
    graph.merge("feature", again, engine="inline")
    assert len(planned) == 2
    assert exported(graph, into) == exported(graph, again)
    assert (graph.head(into).id != commit) == compacts
    assert len(graph.diff(commit, into)) == 0
    merged = open_graph(graph.uri).at(commit)._snapshot
    named = {
        file
        for key in ("node:Person", "edge:Knows")
        for file in merged.open(graph._core.tables, key).files()
    }
    stored = {path.rpartition("/")[2] for path in data_files(graph.uri)}
    written = {
        file
        for plan in planned
        for rows in plan
        if rows.written is not None
        for part in rows.written.parts
        for text in part.fragments
        for file in [json.loads(text)["files"][0]["path"]]
    }
    assert written & stored == written & named != set()


@pytest.mark.slow
def test_a_blob_kept_elsewhere_is_refused_by_tasks_too(tmp_path, monkeypatch):
    picture = tmp_path / "owl.png"
    picture.write_bytes(b"an owl")
    monkeypatch.setenv("OMNIGRAPH_EXTERNAL_BLOBS", str(tmp_path))
    graph = init(str(tmp_path / "graph"), SCHEMA)
    graph.branches.create("feature")
    graph.load(
        person("a", photo=picture.as_uri()).encode(), "append", branch="feature", engine="inline"
    )
    monkeypatch.delenv("OMNIGRAPH_EXTERNAL_BLOBS")
    with comparisons_in_this_process(ONE):
        with pytest.raises(ExternalBlobRefused):
            graph.merge("feature", engine="spark")
        monkeypatch.setenv("OMNIGRAPH_EXTERNAL_BLOBS", str(tmp_path))
        graph.merge("feature", engine="spark")
    assert graph.blobs.read("Person", "a", "photo") == b"an owl"


def test_the_commands_have_both_engines(graph, target, capsys):
    told: list[Any] = []
    with comparisons_in_this_process(SEVERAL):
        for engine in ("inline", "spark"):
            asked = ["--uri", graph.uri, "--engine", engine, "--json"]
            assert main(["diff", "main", "feature", "--stat", *asked]) == 0
            assert main(["merge", "feature", "--into", target(), "--dry-run", *asked]) == 0
            shown = capsys.readouterr()
            stages = [json.loads(line) for line in shown.err.splitlines()]
            told.append([(stage["stage"], stage["rows"]) for stage in stages])
            told.append([re.sub(r"t[0-9]+", "t", line) for line in shown.out.splitlines()])
    assert told[:2] == told[2:]
    assert [stage for stage, _ in told[0]] == [
        "find rows", "compare rows", "find rows", "merge rows", "check rules"
    ]  # fmt: skip


def test_much_that_may_differ_is_compared_on_spark_and_little_here():
    assert not compares_on_spark(AUTO, SPARK_COMPARED_ROWS - 1, shared=True)
    assert compares_on_spark(AUTO, SPARK_COMPARED_ROWS, shared=True)
    assert not compares_on_spark(AUTO, SPARK_COMPARED_ROWS, shared=False)
    assert not compares_on_spark(INLINE, SPARK_COMPARED_ROWS, shared=True)
    assert compares_on_spark(chosen_engine("spark"), 0, shared=True)
    with pytest.raises(UsageError, match="in-memory graph"):
        compares_on_spark(chosen_engine("spark"), 0, shared=False)


def test_tasks_of_spark_compare_and_merge_the_same(spark, graph, target):
    with noting_jobs() as jobs, small_parts(30):
        by_spark = said_of_diff(graph, "main", "feature", engine=spark)
        merged = said_of_merge(graph, "feature", target(*CLEAN), engine=spark)
    assert by_spark == said_of_diff(graph, "main", "feature", engine="inline")
    assert merged == said_of_merge(graph, "feature", target(*CLEAN), engine="inline")
    assert [job.name for job in jobs] == ["compare rows", "merge rows"]
    assert all(job.tasks > 2 for job in jobs)
