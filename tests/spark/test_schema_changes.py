"""Changes of the schema as tasks: the same tables as from one process, in one commit."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from omnigraph.api.graph import Graph, init
from omnigraph.api.graph import open as open_graph
from omnigraph.cli.main import main
from omnigraph.errors import EmbeddingNotConfigured, SparkJobFailed, UsageError
from omnigraph.spark.choice import AUTO, rewrites_on_spark
from tests.spark.in_process import rewrites_in_this_process

SCHEMA = """
node Maker {
    name: String @key
    bio: String
    age: I32?
}
edge Knows: Maker -> Maker
"""
FILLED = SCHEMA.replace("age: I32?", 'age: I32?\n    home: String @backfill("here")')
EMBEDDED = SCHEMA.replace("age: I32?", 'age: I32?\n    sense: Vector(4) @embed("bio")')
DROPPED = SCHEMA.replace("    age: I32?\n", "")
CHANGES = {
    "backfill": (FILLED, False),
    "vectors": (EMBEDDED, False),
    "hard drop": (DROPPED, True),
}


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph with rows in four fragments, one of which has lost a row."""
    folder = tmp_path_factory.mktemp("makers") / "graph"
    graph = init(folder, SCHEMA)
    for part in range(4):
        graph.load("\n".join(row(10 * part + n) for n in range(10)).encode(), "append")
    graph.load(b'{"edge":"Knows","from":"m3","to":"m5"}', "append")
    graph.mutate('query q() { delete Maker where name = "m17" }')
    return folder


@pytest.fixture
def make(original: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Graph]:
    """Copies of that graph."""
    monkeypatch.setenv("OMNIGRAPH_EMBEDDINGS_MOCK", "1")
    return lambda name: open_graph(shutil.copytree(original, tmp_path / name))


def row(n: int) -> str:
    data = {"name": f"m{n}", "bio": f"the {n}th of them", "age": n}
    return json.dumps({"type": "Maker", "data": data})


def seen(graph: Graph) -> dict[str, Any]:
    """Everything that must not depend on where the work was done."""
    out = io.BytesIO()
    graph.export(out)
    table = graph._snapshot().open(graph._core.tables, "node:Maker")
    return {
        "rows": out.getvalue().decode(),
        "identities": table.read(["id"], with_row_ids=True).sort_by("id").to_pylist(),
        "fragments": [fragment.rows for fragment in table.fragments()],
        "columns": table.schema.names,
        "commits": [commit.operation for commit in graph.log(reverse=True)],
    }


@pytest.mark.parametrize("rows", [1, 25], ids=["a task each", "two tasks"])
@pytest.mark.parametrize("change", CHANGES)
def test_tasks_make_the_tables_one_process_makes(make, change, rows):
    schema, loses = CHANGES[change]
    here, tasks = make("here"), make("tasks")
    here.schema.apply(schema, allow_data_loss=loses, engine="inline")
    with rewrites_in_this_process(rows):
        result = tasks.schema.apply(schema, allow_data_loss=loses, engine="spark")
    assert result.applied
    assert seen(tasks) == seen(here)
    tasks.mutate('query q() { delete Maker where name = "m3" }')


def test_an_error_of_a_task_is_raised_here_and_nothing_has_changed(make, monkeypatch):
    graph = make("graph")
    for name in ("OMNIGRAPH_EMBEDDINGS_MOCK", "GEMINI_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    before = seen(graph)
    with rewrites_in_this_process(1), pytest.raises(EmbeddingNotConfigured):
        graph.schema.apply(EMBEDDED, engine="spark")
    assert seen(graph) == before
    assert graph.schema.apply(FILLED).applied


def test_a_job_that_fails_changes_nothing(make):
    def fails(*_arguments: object) -> list[object]:
        raise SparkJobFailed("fill", "gone")

    graph = make("graph")
    before = seen(graph)
    with rewrites_in_this_process(1, fails), pytest.raises(SparkJobFailed):
        graph.schema.apply(FILLED, engine="spark")
    assert seen(graph) == before
    assert graph.schema.apply(FILLED).applied


def test_small_tables_are_rewritten_here_unless_told_otherwise(make):
    assert not rewrites_on_spark(AUTO, 19_999_999, shared=True)
    assert rewrites_on_spark(AUTO, 20_000_000, shared=True)
    graph = init("memory://schema-changes", SCHEMA)
    graph.load(row(1).encode(), "merge")
    with pytest.raises(UsageError, match="in-memory graph"):
        graph.schema.apply(FILLED, engine="spark")


@pytest.mark.slow
def test_a_schema_is_applied_on_spark_from_the_shell(spark, make, tmp_path, capsys):
    here, tasks = make("here"), make("tasks")
    (tmp_path / "next.pg").write_text(FILLED)
    for graph, engine in ((here, "inline"), (tasks, "spark")):
        words = ["schema", "apply", graph.uri, "--schema", str(tmp_path / "next.pg")]
        assert main([*words, "--engine", engine, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["applied"]
    assert seen(tasks) == seen(here)
    tasks.schema.apply(DROPPED, allow_data_loss=True, engine=spark)
    here.schema.apply(DROPPED, allow_data_loss=True)
    assert seen(tasks) == seen(here)
