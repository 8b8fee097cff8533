"""Refills whose vectors are asked for by tasks: the same vectors, every text asked for once."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path
from typing import Any

import pytest

from omnigraph.api.graph import Graph, init
from omnigraph.cli.main import main
from omnigraph.embedding import embed
from omnigraph.embedding.kept import KeptVectors
from omnigraph.errors import (
    EmbeddingFailed,
    EmbeddingNotConfigured,
    SparkExecutorUnfit,
    SparkJobFailed,
    UsageError,
)
from omnigraph.providers import clients
from omnigraph.spark.tasks import Exchanged, noting_jobs
from tests.behaviour.notes import MOCK
from tests.spark import in_process
from tests.spark.in_process import embedding_in_this_process, patched, run_exchange
from tests.unit.providers.speaking import Refuse, serving

PAGES = """
node Page { slug: String @key  head: String?  body: String?
            head_vec: Vector(4)? @embed(head)  body_vec: Vector(3)? @embed(body) }
node Note { slug: String @key  text: String?  vec: Vector(4)? @embed(text) }
"""


def record(kind: str, **data: Any) -> str:
    return json.dumps({"type": kind, "data": data})


def library(uri: str) -> Graph:
    """Pages and notes in several fragments, which share some texts. No vector is computed."""
    graph = init(uri, PAGES)
    for start in (0, 12, 24):
        rows = [
            record("Page", slug=f"{n}", head=f"head {n % 5}", body=f"body {n}" if n % 4 else None)
            for n in range(start, start + 12)
        ]
        graph.load("\n".join(rows).encode(), "append")
    notes = [record("Note", slug=f"{n}", text=f"head {n}") for n in range(7)]
    graph.load("\n".join(notes).encode(), "append")
    return graph


TEXTS = {4: {f"head {n}" for n in range(7)}, 3: {f"body {n}" for n in range(36) if n % 4}}
"""All texts, by the length of their vectors."""


def exported(graph: Graph) -> str:
    out = io.BytesIO()
    graph.export(out, engine="inline")
    return out.getvalue().decode()


@pytest.fixture
def graph(tmp_path) -> Graph:
    return library(str(tmp_path / "graph"))


@pytest.fixture
def expected(tmp_path) -> Graph:
    """The same graph, for the other engine."""
    return library(str(tmp_path / "expected"))


@pytest.fixture
def server(graph, expected, monkeypatch):
    """A provider that is there once the graphs are."""
    with serving() as running:
        monkeypatch.setenv("OMNIGRAPH_EMBED_PROVIDER", "openai-compatible")
        monkeypatch.setenv("OMNIGRAPH_EMBED_BASE_URL", running.url)
        monkeypatch.setenv("OMNIGRAPH_EMBED_MODEL", "local")
        monkeypatch.setenv("OMNIGRAPH_EMBED_RETRY_ATTEMPTS", "1")
        yield running


def asked(server: Any) -> list[tuple[int, str]]:
    return [(body["dimensions"], t) for _, _, body in server.requests for t in body["input"]]


def counted(result: Any) -> list[tuple[str, int, int]]:
    return [(p.property, p.embedded, p.states.ready) for p in result.properties]


def test_tasks_give_the_vectors_of_one_process_and_ask_once_for_each_text(graph, expected, server):
    inline = expected.embed(engine="inline")
    server.requests.clear()
    with embedding_in_this_process():
        result = graph.embed(engine="spark")
    assert sorted(asked(server)) == sorted((n, t) for n, texts in TEXTS.items() for t in texts)
    assert len(server.requests) > 3
    assert counted(result) == counted(inline)
    assert exported(graph) == exported(expected)
    assert graph.embed(engine="inline").receipt.graph_commit_id is None


def test_only_what_is_due_is_asked_for(graph, server):
    with embedding_in_this_process():
        graph.embed(engine="spark", types=["Page"], properties=["body_vec"])
        assert {dimension for dimension, _ in asked(server)} == {3}
        server.requests.clear()
        assert graph.embed(engine="spark", properties=["body_vec"]).receipt.graph_commit_id is None
    assert server.requests == []


def test_an_attempt_that_does_not_count_changes_nothing(graph, monkeypatch):
    def twice(*arguments):
        run_exchange(*arguments)
        done = run_exchange(*arguments)
        return Exchanged(done.answers, done.reduced)

    monkeypatch.setenv(MOCK, "1")
    with embedding_in_this_process(twice):
        assert counted(graph.embed(engine="spark")) == [
            ("vec", 7, 7), ("body_vec", 27, 27), ("head_vec", 36, 36),
        ]  # fmt: skip


def test_what_was_answered_before_an_outage_is_committed(graph, server):
    server.script = [None, Refuse(503), None]
    with embedding_in_this_process():
        result = graph.embed(engine="spark", types=["Page"], properties=["body_vec"])
    (found,) = result.properties
    assert 0 < found.embedded < 27
    assert found.states.pending == 27 - found.embedded
    (warning,) = result.receipt.warnings
    assert (warning.code, warning.count) == ("embedding_pending", found.states.pending)
    assert "told to refuse" in warning.message


def test_a_provider_that_never_answers_is_quoted_and_nothing_is_committed(graph, server):
    head = graph.head().id
    server.script = [Refuse(503)] * 100
    with embedding_in_this_process(), pytest.raises(EmbeddingFailed, match="told to refuse"):
        graph.embed(engine="spark")
    assert graph.head().id == head


def scratch(graph: Graph) -> list[str]:
    folder = Path(graph.uri, "__scratch")
    return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []


def killed_after(buckets: int) -> Any:
    """A run whose process dies when tasks have embedded some buckets."""

    def run(spark, job, count, kernel, all_buckets, reduce):
        done = iter(range(buckets))

        def until_killed(bucket, contents):
            if next(done, None) is None:
                raise SparkJobFailed(job, "killed")
            return reduce(bucket, contents)

        with patched((in_process, "travelled", lambda value: value)):
            run_exchange(spark, job, count, kernel, all_buckets, until_killed)
        raise SparkJobFailed(job, "killed")

    return run


def test_a_killed_job_continues_where_it_was(graph, expected, server):
    expected.embed(engine="inline")
    server.requests.clear()
    with embedding_in_this_process(killed_after(3)), pytest.raises(SparkJobFailed, match="killed"):
        graph.embed(engine="spark")
    before = asked(server)
    kept = scratch(graph)
    assert before
    assert kept
    server.requests.clear()
    with embedding_in_this_process():
        graph.embed(engine="spark")
    after = asked(server)
    assert after
    assert set(before).isdisjoint(after)
    assert sorted([*before, *after]) == sorted((n, t) for n, texts in TEXTS.items() for t in texts)
    assert exported(graph) == exported(expected)
    assert scratch(graph) == []


def test_a_job_that_asks_for_something_else_does_not_continue_it(graph, server, monkeypatch):
    with embedding_in_this_process(killed_after(9)), pytest.raises(SparkJobFailed):
        graph.embed(engine="spark", types=["Note"])
    kept, before = scratch(graph), asked(server)
    server.requests.clear()
    monkeypatch.setenv("OMNIGRAPH_EMBED_MODEL", "other")
    with embedding_in_this_process():
        graph.embed(engine="spark", types=["Note"])
    assert sorted(asked(server)) == sorted((4, f"head {n}") for n in range(7))
    assert before
    assert scratch(graph) == kept, "they are those of another model, and for cleanup"


def test_what_an_outage_has_left_is_asked_for_again_and_nothing_else(graph, server):
    server.script = [None, None, Refuse(503)]
    with embedding_in_this_process(killed_after(4)), pytest.raises(SparkJobFailed):
        graph.embed(engine="spark", types=["Page"], properties=["body_vec"])
    refused = set(server.requests[2][2]["input"])
    server.requests.clear()
    with embedding_in_this_process():
        (found,) = graph.embed(engine="spark", types=["Page"], properties=["body_vec"]).properties
    assert found.states.ready == 27
    assert {text for _, text in asked(server)} == refused


def test_tasks_share_the_pause_that_a_provider_asks_for(graph, server, monkeypatch):
    monkeypatch.setenv("OMNIGRAPH_EMBED_RETRY_ATTEMPTS", "2")
    waited: list[float] = []
    monkeypatch.setattr("omnigraph.embedding.kept.time.sleep", waited.append)
    server.script = [Refuse(429, headers={"Retry-After": "30"})]
    root = graph._core.tables.root
    first, second = (KeptVectors(root, "job1", began) for began in ("01A", "01A"))
    with first.sharing_pauses():
        clients.Calls({}, clients.CallSettings(attempts=2)).post(
            f"{server.url}/embeddings", {"input": ["a"], "dimensions": 4, "model": "local"}
        )
    with second.sharing_pauses():
        clients.Calls({}, clients.CallSettings()).post(
            f"{server.url}/embeddings", {"input": ["b"], "dimensions": 4, "model": "local"}
        )
    pauses = [seconds for seconds in waited if seconds > 1]
    assert len(pauses) == 2, "of the task that was refused, and of the next one"
    assert all(20 < seconds <= 30 for seconds in pauses)
    first.remove()
    assert scratch(graph) == []


def test_executors_with_another_model_are_refused(graph, server, monkeypatch):
    def elsewhere(*arguments):
        monkeypatch.setenv("OMNIGRAPH_EMBED_MODEL", "other")
        return run_exchange(*arguments)

    head = graph.head().id
    with (
        embedding_in_this_process(elsewhere),
        pytest.raises(SparkExecutorUnfit, match=r"model is .*other there and .*local here"),
    ):
        graph.embed(engine="spark")
    assert graph.head().id == head


def test_without_a_provider_the_setting_is_named_and_spark_is_not_started(graph, monkeypatch):
    for name in [name for name in os.environ if "EMBED" in name or name.endswith("API_KEY")]:
        monkeypatch.delenv(name)
    with pytest.raises(EmbeddingNotConfigured, match="GEMINI_API_KEY"):
        graph.embed(engine="spark")


@pytest.mark.usefixtures("free_choice")
def test_many_texts_are_for_spark(graph, monkeypatch):
    used: list[object] = []
    monkeypatch.setenv(MOCK, "1")
    monkeypatch.setattr("omnigraph.spark.session.is_running", lambda: False)
    with embedding_in_this_process(), patched((embed, "session_of", used.append)):
        graph.embed(engine="auto", types=["Note"])
        assert used == []
        monkeypatch.setattr("omnigraph.embedding.embed.SPARK_TEXT_BYTES", 100)
        graph.embed(engine="auto")
        assert len(used) == 1
        graph.embed(engine="auto")
    assert len(used) == 1


def test_the_command_takes_an_engine_and_tells_its_stages(graph, monkeypatch, capsys):
    monkeypatch.setenv(MOCK, "1")
    with embedding_in_this_process():
        assert main(["embed", graph.uri, "--engine", "spark", "--json"]) == 0
    shown = capsys.readouterr()
    stages = [json.loads(line)["stage"] for line in shown.err.splitlines()]
    assert stages == ["ask the provider", "embed node:Note", "embed node:Page"]
    assert json.loads(shown.out)["properties"][0]["embedded"] == 7
    assert main(["embed", graph.uri, "--engine", "inline", "--master", "local[2]"]) == 2
    assert main(["embed", "--input", "a", "--output", "b", "--spec", "c", "--engine", "spark"]) == 2


def test_a_graph_in_memory_is_not_for_tasks(monkeypatch):
    monkeypatch.setenv(MOCK, "1")
    graph = library("memory://embedding-on-spark")
    with pytest.raises(UsageError, match="tasks cannot read an in-memory graph"):
        graph.embed(engine="spark")


@pytest.mark.slow
def test_tasks_of_spark_give_the_vectors_of_one_process(spark, graph, expected, monkeypatch):
    monkeypatch.setenv(MOCK, "1")
    expected.embed(engine="inline")
    with noting_jobs() as jobs:
        graph.embed(engine="spark")
    assert [job.name for job in jobs] == ["embed"]
    assert exported(graph) == exported(expected)
