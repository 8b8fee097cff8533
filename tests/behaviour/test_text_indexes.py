"""Searches that begin with a stored index answer as those that read every text."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from pathlib import Path

import pytest

from omnigraph.api.graph import Graph, init
from omnigraph.api.graph import open as open_graph
from omnigraph.commit import background
from omnigraph.read.text_indexes import TextIndexStore
from omnigraph.read.view import ReadView
from omnigraph.storage.filters import Comparison
from omnigraph.text import index
from omnigraph.text.index import build_index

SCHEMA = "node Note { slug: String @key  body: String? @index  rank: I32 }"
WORDS = ("copper", "kettle", "garden", "hose", "wire", "repairs", "of", "Übung", "notes")

QUERY = """query q() {
    match { $n: Note }
    return {
        $n.slug as slug,
        search($n.body, "kettle notes") as any,
        match_text($n.body, "copper kettle") as phrase,
        fuzzy($n.body, "gardon") as near,
        bm25($n.body, "copper hose repair") as score
    }
}"""

Answers = dict[str, Mapping[str, object]]


class Writer:
    """Writes notes by chance."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.chance = random.Random(3)

    def body(self) -> str | None:
        if self.chance.random() < 0.1:
            return None
        return " ".join(self.chance.choices(WORDS, k=self.chance.randint(0, 8)))

    def write(self, *numbers: int, branch: str = "main") -> None:
        rows = [{"slug": f"n{n}", "body": self.body(), "rank": n} for n in numbers]
        lines = [json.dumps({"type": "Note", "data": row}) for row in rows]
        self.graph.load("\n".join(lines).encode(), "merge", branch=branch)

    def delete(self, number: int, branch: str = "main") -> None:
        query = "query d($s: String) { delete Note where slug = $s }"
        self.graph.mutate(query, {"s": f"n{number}"}, branch=branch)


@pytest.fixture
def writer(uri) -> Writer:
    made = Writer(init(uri, SCHEMA))
    made.write(*range(200))
    made.graph.maintenance.ensure_indexes()
    return made


@pytest.fixture
def built(monkeypatch) -> list[int]:
    """How many texts were read for an index of all, each time one was made."""
    sizes: list[int] = []

    def noting(texts):
        sizes.append(len(texts))
        return build_index(texts)

    monkeypatch.setattr(index, "build_index", noting)
    return sizes


def answers(graph: Graph, **options) -> Answers:
    return {row["slug"]: row for row in graph.query(QUERY, **options)}


def check(graph: Graph, built: list[int], **options) -> None:
    """A new handle answers from the stored index what it would answer without one."""
    built.clear()
    given = answers(open_graph(graph.uri), **options)
    assert built == []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TextIndexStore, "read", lambda *_: None)
        read = answers(open_graph(graph.uri), **options)
    assert built != []
    assert given.keys() == read.keys()
    for slug, row in read.items():
        # Scores are sums over words in no particular order.
        score = given[slug]["score"]
        assert (score or 0.0) == pytest.approx(row["score"] or 0.0, rel=1e-12)
        assert given[slug] == {**row, "score": score}


def test_a_new_process_reads_no_texts(writer, built):
    check(writer.graph, built)


def test_rows_that_were_written_since(writer, built):
    writer.write(3, 7, 200, 201)
    writer.delete(11)
    check(writer.graph, built)
    writer.write(11, 3)
    check(writer.graph, built)


def test_a_compaction_and_what_is_written_after_it(writer, built, monkeypatch):
    writer.delete(5)
    with monkeypatch.context() as patch:
        patch.setattr(background, "MAX_SMALL_FRAGMENTS", 0)
        writer.write(*range(200, 230))
        writer.graph.maintenance.wait()
    check(writer.graph, built)
    [state] = [
        s
        for s in writer.graph.maintenance.ensure_indexes().tables[0].existing
        if s.column == "body"
    ]
    assert state.unindexed_rows == 0
    writer.write(1)
    check(writer.graph, built)


def test_earlier_states_with_an_index_made_later(writer, built):
    first = writer.graph.head().id
    writer.write(3, 200)
    writer.delete(4)
    second = writer.graph.head().id
    TextIndexStore(writer.graph._core.objects).write(
        writer.graph._snapshot().open(writer.graph._core.tables, "node:Note"), "body"
    )
    check(writer.graph, built)
    check(writer.graph, built, at=first)
    check(writer.graph, built, at=second)


def test_a_branch_uses_what_main_has(writer, built):
    writer.graph.branches.create("feature")
    check(writer.graph, built, branch="feature")
    writer.write(3, 300, branch="feature")
    writer.delete(4, branch="feature")
    writer.write(3, 300)
    check(writer.graph, built, branch="feature")
    check(writer.graph, built)


def test_rows_a_reader_does_not_see_count_for_nothing(writer, built):
    check(writer.graph, built, view=ReadView(rows={"Note": Comparison("rank", "<", 50)}))


def test_many_small_changes_and_extensions(writer, built):
    texts = TextIndexStore(writer.graph._core.objects)
    for round in range(12):
        numbers = writer.chance.sample(range(260), 8)
        writer.write(*numbers)
        table = writer.graph._snapshot().open(writer.graph._core.tables, "node:Note")
        texts.extend(table, "body")
        assert texts.unindexed_rows(table, "body") == 0
        if round % 4 == 3:
            check(writer.graph, built)


@pytest.mark.parametrize("content", [b"", b"no index", None], ids=["empty", "other", "missing"])
def test_a_damaged_index_is_ignored(local_uri, content, caplog):
    writer = Writer(init(local_uri, SCHEMA))
    writer.write(*range(20))
    expected = answers(writer.graph)
    writer.graph.maintenance.ensure_indexes()
    for file in Path(local_uri).rglob("_text/body/*.arrow"):
        file.unlink() if content is None else file.write_bytes(content)
    assert answers(open_graph(local_uri)) == expected
    assert "ignoring the stored index" in caplog.text
    for file in Path(local_uri).rglob("_text/body/index.json"):
        file.write_text('{"format": 99}')
    assert answers(open_graph(local_uri)) == expected


def test_only_one_index_of_a_column_is_kept(local_uri):
    writer = Writer(init(local_uri, SCHEMA))
    writer.write(*range(20))
    writer.graph.maintenance.ensure_indexes()
    writer.write(*range(30))
    TextIndexStore(writer.graph._core.objects).extend(
        writer.graph._snapshot().open(writer.graph._core.tables, "node:Note"), "body"
    )
    assert len(list(Path(local_uri).rglob("_text/body/*.arrow"))) == 1
