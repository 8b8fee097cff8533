"""Exports as tasks: the same text as from one process, Parquet files with the same rows."""

from __future__ import annotations

import io
import json
import os
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from omnigraph.api.graph import Graph, init
from omnigraph.cli.main import main
from omnigraph.errors import ExportError, SparkJobFailed, UsageError
from omnigraph.export import run as export_run
from omnigraph.export import spark_export
from omnigraph.spark.choice import AUTO, EXPORT, Work, decide
from omnigraph.spark.tasks import Exchanged, noting_jobs
from tests.behaviour.graphs import Backstage
from tests.spark.in_process import (
    exports_in_this_process,
    patched,
    run_exchange,
    small_exports,
)

SCHEMA = """
node Maker {
    name: String @key  age: I32?  score: F64?  born: Date?  seen: DateTime?
    skills: [String]?  face: Vector(3)?  photo: Blob?
}
node Tool { code: I64 @key }
node Spare { code: I64 @key }
edge Borrows: Maker -> Tool { note: String? }
"""
SIZES = {"one task": (10**9, 10**9), "several tasks": (3_000, 40)}


def maker(n: int) -> str:
    data: dict[str, Any] = {"name": f"maker {n * 37 % 101}é", "age": n, "skills": ["a", None, "ü"]}
    if n % 2:
        data |= {"score": n / 7, "born": "2020-02-01", "seen": "2019-05-01T08:00:00.5Z"}
        data |= {"face": [n, 0.5, -1], "photo": "base64:SGk="}
    return json.dumps({"type": "Maker", "data": data})


def borrows(n: int) -> str:
    ends = {"from": f"maker {n}é", "to": str(n % 7)}
    return json.dumps({"edge": "Borrows", **ends, "data": {"note": 'a "quoted"\nline'}})


@pytest.fixture(scope="module")
def graph(tmp_path_factory) -> Graph:
    """Some hundred rows in several fragments, some of them deleted. Nobody writes to its main."""
    graph = init(str(tmp_path_factory.mktemp("exports") / "graph"), SCHEMA)
    graph.load([{"type": "Tool", "data": {"code": n}} for n in range(7)], "append")
    for start in (0, 51):
        graph.load("\n".join(map(maker, range(start, min(start + 51, 101)))).encode(), "append")
    graph.load("\n".join(map(borrows, range(101))).encode(), "append")
    graph.mutate('query q() { delete Maker where name = "maker 5é" }')
    return graph


def lines(graph: Graph, engine: str = "inline", **options: Any) -> str:
    out = io.BytesIO()
    count = graph.export(out, engine=engine, **options)
    assert count == out.getvalue().decode().count("\n")
    return out.getvalue().decode()


def file_lines(graph: Graph, engine: str, folder: Path) -> str:
    """The lines of an export to a file; its parts are written beside it meanwhile."""
    path = folder / "lines.jsonl"
    count = graph.export(path, engine=engine)
    text = path.read_text()
    path.unlink()
    assert count == text.count("\n")
    return text


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def rows(folder: Path, kind: str) -> pa.Table:
    found = sorted(path for path in folder.iterdir() if path.name.split(".")[0] == kind)
    return pa.concat_tables(pq.read_table(path) for path in found)


def left_in(folder: Path) -> set[str]:
    return {name for name in os.listdir(folder) if name.startswith(".")}


def check_both_forms(graph: Graph, tmp_path: Path) -> None:
    """What tasks write is what one process writes, whatever the number of tasks."""
    expected = lines(graph)
    graph.export(tmp_path / "inline", format="parquet", engine="inline")
    for number, size in enumerate(SIZES.values()):
        with small_exports(*size):
            assert file_lines(graph, "spark", tmp_path) == expected
            count = graph.export(tmp_path / f"spark-{number}", format="parquet", engine="spark")
        assert count == expected.count("\n")
    assert files(tmp_path / "spark-0") == files(tmp_path / "inline")
    assert len(files(tmp_path / "spark-1")) > len(files(tmp_path / "inline"))
    for kind in ("Maker", "Tool", "Spare", "Borrows"):
        assert rows(tmp_path / "spark-1", kind).equals(rows(tmp_path / "inline", kind))
    copy = init(str(tmp_path / "copy"), SCHEMA)
    copy.load(tmp_path / "spark-1", "overwrite")
    assert lines(copy) == expected
    assert left_in(tmp_path) == set()


def test_any_number_of_tasks_exports_the_same(graph, tmp_path):
    with exports_in_this_process():
        check_both_forms(graph, tmp_path)


def test_tasks_of_spark_export_the_same(spark, graph):
    with noting_jobs() as jobs, small_exports(8_000, 60):
        assert lines(graph, "spark", types=["Maker"]) == lines(graph, types=["Maker"])
    assert [(job.name, job.tasks) for job in jobs] == [("export", 2)]


@pytest.mark.slow
def test_tasks_of_spark_export_both_forms_alike(spark, graph, tmp_path):
    check_both_forms(graph, tmp_path)


def test_types_commits_and_branches_are_chosen_on_spark_too(graph):
    head = graph._snapshot().commit_id
    other = graph.branches.create("other")
    other.mutate("query q() { insert Tool { code: 99 } }")
    with exports_in_this_process():
        for choice in (
            {"types": ["Tool"]},
            {"types": ["edge:Borrows"], "at": head},
            {"types": ["Tool"], "branch": "other"},
            {"types": ["Spare"]},
        ):
            assert lines(graph, "spark", **choice) == lines(graph, **choice)


def test_attempts_that_do_not_count_leave_nothing(graph, tmp_path):
    """As with speculation: every task runs twice, and either of its answers is taken."""

    def twice(spark, job, count, kernel, buckets, reduce):
        first = run_exchange(spark, job, count, kernel, buckets, reduce)
        second = run_exchange(spark, job, count, kernel, buckets, reduce)
        pairs = zip(first.reduced, second.reduced, strict=True)
        taken = [pair[number % 2] for number, pair in enumerate(pairs)]
        return Exchanged(first.answers, taken)

    with exports_in_this_process(twice), small_exports(*SIZES["several tasks"]):
        assert file_lines(graph, "spark", tmp_path) == lines(graph)
        assert graph.export(tmp_path / "out", format="parquet", engine="spark") == lines(
            graph
        ).count("\n")
    assert all(name.endswith(".parquet") for name in files(tmp_path / "out"))
    assert left_in(tmp_path) == set()


def test_a_part_that_is_missing_or_doubled_is_found_out(graph):
    for change in (lambda found: found[1:], lambda found: [found[0], *found]):

        def damaged(*arguments, change=change):
            done = run_exchange(*arguments)
            return Exchanged(done.answers, change(done.reduced))

        with exports_in_this_process(damaged), pytest.raises(SparkJobFailed, match="add up"):
            lines(graph, "spark")


def test_the_first_number_without_a_text_is_named_by_both_engines(tmp_path):
    """No load takes such a number; a graph may have it from a time when some did."""
    graph = init(str(tmp_path / "graph"), "node N { key: I64 @key  x: F64? }")
    numbers = [float("inf") if n > 40 else 1.0 for n in range(300)]
    rows = {"id": [str(n) for n in range(300)], "key": range(300), "x": numbers}
    Backstage(graph.uri).add_rows(graph, "node:N", rows)
    problems = []
    for engine in ("inline", "spark"):
        with ExitStack() as stack:
            stack.enter_context(exports_in_this_process())
            stack.enter_context(small_exports(500, 10**9))
            stack.enter_context(pytest.raises(ExportError))
            try:
                lines(graph, engine)
            except ExportError as error:
                problems.append(str(error))
                raise
    assert problems[0] == problems[1]
    assert "N.x of '100'" in problems[0]


def test_a_place_that_tasks_do_not_see_is_named_and_nothing_is_made(graph, tmp_path):
    def elsewhere(spark, job, count, kernel, buckets, reduce):
        """Tasks of a machine that does not have the folder."""
        (folder,) = tmp_path.glob(".omnigraph-export.*")
        folder.rmdir()
        return run_exchange(spark, job, count, kernel, buckets, reduce)

    with exports_in_this_process(elsewhere):
        with pytest.raises(ExportError, match="does not exist for Spark tasks"):
            graph.export(tmp_path / "out", format="parquet", engine="spark")
        with pytest.raises(ExportError, match="does not exist for Spark tasks"):
            file_lines(graph, "spark", tmp_path)
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "lines.jsonl").exists()
    assert left_in(tmp_path) == set()


def test_a_full_disk_is_told_and_nothing_is_made(graph, tmp_path):
    full = OSError(28, "No space left on device")
    with (
        exports_in_this_process(),
        patch.object(spark_export, "write_parquet", side_effect=full),
        pytest.raises(ExportError, match="cannot be written: No space left on device"),
    ):
        graph.export(tmp_path / "out", format="parquet", engine="spark")
    assert not (tmp_path / "out").exists()
    assert left_in(tmp_path) == set()


@pytest.mark.parametrize(("share", "expected"), [(0.0, True), (0.25, False)])
@pytest.mark.usefixtures("free_choice")
def test_large_graphs_are_exported_by_spark(graph, monkeypatch, share, expected):
    used: list[object] = []
    monkeypatch.setattr("omnigraph.spark.session.running_session", lambda: None)
    monkeypatch.setattr("omnigraph.spark.choice.UNWEIGHED_BYTES", 0)
    monkeypatch.setattr("omnigraph.spark.choice.SPARK_MEMORY_SHARE", share)
    with exports_in_this_process(), patched((export_run, "session_of", used.append)):
        assert lines(graph, "auto") == lines(graph)
    assert (len(used) == 1) == expected


def test_a_graph_in_memory_is_not_for_tasks(tmp_path):
    graph = init("memory://export-on-spark", "node N { key: I64 @key }")
    graph.load(b'{"type":"N","data":{"key":1}}', "append")
    with pytest.raises(UsageError, match="tasks cannot read an in-memory graph"):
        lines(graph, "spark")
    assert not decide(AUTO, lambda: Work(10**12), EXPORT, shared=False).on_spark


def test_the_command_has_both_engines(graph, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    texts = {}
    with exports_in_this_process(), small_exports(*SIZES["several tasks"]):
        for engine in ("inline", "spark"):
            assert main(["export", graph.uri, "--engine", engine, "--out", f"{engine}.jsonl"]) == 0
            texts[engine] = (tmp_path / f"{engine}.jsonl").read_bytes()
            assert main(["export", graph.uri, "--engine", engine, "--out", "/dev/null"]) == 0
    assert texts["spark"] == texts["inline"]
    assert "exported 207 nodes and edges to spark.jsonl" in capsys.readouterr().err
    assert main(["export", graph.uri, "--engine", "inline", "--master", "local[2]"]) == 2


def test_progress_tells_the_stages_of_an_export_on_spark(graph):
    told: list[tuple[str, int]] = []

    class Progress:
        def stage(self, name, rows=None):
            told.append((name, rows))

        def advance(self, rows):
            pass

    with exports_in_this_process():
        bulk_types = ["edge:Borrows", "node:Tool"]
        graph.export(io.BytesIO(), types=bulk_types, engine="spark", progress=Progress())
    borrowed = lines(graph, types=["edge:Borrows"]).count("\n")
    assert told == [
        ("sort", borrowed + 7),
        ("export edge:Borrows", borrowed),
        ("export node:Tool", 7),
    ]
