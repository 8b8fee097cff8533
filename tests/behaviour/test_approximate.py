"""The nearest of very many vectors through an index: about the right ones, at their true distances."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest

from omnigraph.api.graph import Graph, init
from omnigraph.api.graph import open as open_graph
from omnigraph.commit import background
from omnigraph.maintenance import indexes
from omnigraph.read import ranks
from omnigraph.read import vectors as vectors_module
from omnigraph.read.view import ReadView
from omnigraph.storage import ordered
from omnigraph.storage.filters import Comparison

SCHEMA = """
node Page {
    number: I32 @key
    topic: I32
    title: String @index
    vec: Vector(16)? @index
}
edge Links: Page -> Page
"""
PAGES, TOPICS, DIMENSION, MANY = 4000, 40, 16, 500
LIMIT = 10

NEAREST = """query q($v: Vector(16), $low: I32) {
    match { $p: Page  $p.topic >= $low }
    return { $p.number as number, nearest($p.vec, $v) as distance }
    order { distance } limit 10
}"""
FUSED = """query q($v: Vector(16)) {
    match { $p: Page }
    return { $p.number as number, rrf(nearest($p.vec, $v), bm25($p.title, "seven")) as score }
    order { score } limit 10
}"""


def vectors(numbers: Sequence[int], seed: int) -> np.ndarray:
    """Vectors around the middle of a topic, one topic after the other."""
    middles = np.random.default_rng(0).standard_normal((TOPICS, DIMENSION))
    noise = np.random.default_rng(seed).standard_normal((len(numbers), DIMENSION))
    return np.asarray(middles[np.asarray(numbers) % TOPICS] + 0.4 * noise)


def pages(numbers: Sequence[int], given: Sequence[np.ndarray] | None = None) -> dict[str, pa.Table]:
    """Pages, with their usual vectors or with those that are given."""
    titles = ["seven" if number % 7 == 0 else "other" for number in numbers]
    table = pa.table(
        {
            "number": pa.array(numbers, pa.int32()),
            "topic": pa.array([n % TOPICS for n in numbers], pa.int32()),
            "title": titles,
            "vec": [v.astype(np.float32) for v in given or vectors(numbers, seed=1)],
        }
    )
    return {"Page": table}


@pytest.fixture(scope="module")
def few_are_many():
    """Some hundreds of vectors count as very many."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (indexes, ranks, vectors_module):
            patch.setattr(module, "APPROXIMATE_FROM", MANY)
        patch.setattr(indexes, "LEAST_PROBES", 1)
        yield


@pytest.fixture(scope="module")
def graph(few_are_many, tmp_path_factory) -> Graph:
    made = init(tmp_path_factory.mktemp("approximate") / "graph", SCHEMA)
    made.load(pages(range(PAGES)), "append")
    made.maintenance.ensure_indexes()
    return made


@pytest.fixture
def copy(few_are_many, tmp_path) -> Graph:
    made = init(tmp_path / "graph", SCHEMA)
    made.load(pages(range(PAGES)), "append")
    made.maintenance.ensure_indexes()
    return made


@pytest.fixture
def asked(monkeypatch) -> list[int]:
    """How many rows were asked of an index, call by call."""
    calls: list[int] = []
    real = ordered.nearest_row_ids

    def noting(table, column, query, count, probes):
        calls.append(count)
        return real(table, column, query, count, probes)

    monkeypatch.setattr(vectors_module, "nearest_row_ids", noting)
    return calls


def found(graph: Graph, v, low: int = 0, **options) -> list[tuple[int, float]]:
    rows = graph.query(NEAREST, {"v": list(map(float, v)), "low": low}, **options)
    return [(row["number"], row["distance"]) for row in rows]


def recall(graph: Graph, low: int = 0, **options) -> float:
    """The share of the true answers among those given. All distances must be true."""
    shares = []
    for v in vectors(range(20), seed=9):
        exact = dict(found(graph, v, low, exact=True, **options))
        given = dict(found(graph, v, low, **options))
        assert len(given) == LIMIT
        assert list(given.values()) == sorted(given.values())
        shares.append(len(exact.keys() & given.keys()) / LIMIT)
        for number in exact.keys() & given.keys():
            assert given[number] == exact[number]
    return float(np.mean(shares))


def test_nearly_all_of_the_nearest_are_found_in_some_of_the_partitions(graph, asked):
    [index] = [
        i for i in graph.maintenance.ensure_indexes().tables[0].existing if i.column == "vec"
    ]
    assert index.unindexed_rows == 0
    assert recall(graph) >= 0.95
    assert asked == [LIMIT] * 20


@pytest.mark.parametrize("copies", [20, PAGES])
def test_vectors_that_are_there_many_times_are_found(few_are_many, tmp_path, copies):
    graph = init(tmp_path / "graph", SCHEMA)
    distinct = vectors(range(PAGES // copies), seed=1)
    graph.load(pages(range(PAGES), list(np.repeat(distinct, copies, axis=0))), "append")
    graph.maintenance.ensure_indexes()
    shares = []
    for v in vectors(range(40), seed=9):
        furthest = max(distance for _, distance in found(graph, v, exact=True))
        shares.append(sum(distance <= furthest for _, distance in found(graph, v)) / LIMIT)
    assert np.mean(shares) >= 0.95


def test_exact_compares_all_vectors(graph, asked):
    v = vectors([3], seed=5)[0]
    given = found(graph, v, exact=True)
    assert asked == []
    everything = vectors(range(PAGES), seed=1).astype(np.float32).astype(np.float64)
    cosine = everything @ v / np.linalg.norm(everything, axis=1) / np.linalg.norm(v)
    nearest_first = np.argsort(1 - cosine, kind="stable")[:LIMIT]
    assert [number for number, _ in given] == nearest_first.tolist()
    assert [d for _, d in given] == pytest.approx((1 - cosine)[nearest_first].tolist())


def test_conditions_come_first_and_few_candidates_are_compared_one_by_one(graph, asked):
    assert recall(graph, low=TOPICS // 2) >= 0.95
    assert len(asked) >= 20
    asked.clear()
    assert recall(graph, low=TOPICS - 2) == 1.0
    assert asked == []


def test_a_condition_that_leaves_none_of_the_nearest(graph):
    """The nearest pages are all of a topic that is not asked for."""
    v = vectors([0], seed=3)[0]
    given = found(graph, v, low=1)
    assert len(given) == LIMIT
    assert all(number % TOPICS >= 1 for number, _ in given)
    exact = found(graph, v, low=1, exact=True)
    assert len(dict(given).keys() & dict(exact).keys()) >= 8


def test_a_reader_gets_the_nearest_of_what_it_sees(graph):
    view = ReadView(rows={"Page": Comparison("topic", ">=", TOPICS // 2)})
    assert recall(graph, view=view) >= 0.95
    for number, _ in found(graph, vectors([0], seed=3)[0], view=view):
        assert number % TOPICS >= TOPICS // 2


def test_nearest_in_a_fused_rank(graph, asked):
    for v in vectors(range(8), seed=9):
        parameters = {"v": v.tolist()}
        exact = {row["number"]: row["score"] for row in graph.query(FUSED, parameters, exact=True)}
        given = {row["number"]: row["score"] for row in graph.query(FUSED, parameters)}
        assert len(given.keys() & exact.keys()) >= 9
    assert asked == [LIMIT] * 8


def test_rows_that_came_later_are_found_before_and_after_a_compaction(copy, asked, monkeypatch):
    v = vectors([5], seed=11)[0]
    copy.load(pages([PAGES, PAGES + 1], [v, -v]), "append")
    copy.mutate("query d($n: I32) { delete Page where number = $n }", {"n": 5})
    copy.load(pages([6], [v]), "merge")

    def check(graph: Graph) -> None:
        asked.clear()
        given = dict(found(graph, v))
        assert {PAGES, 6} <= given.keys()
        assert 5 not in given
        assert dict(found(graph, -v))[PAGES + 1] == pytest.approx(0.0, abs=1e-6)
        assert asked == [LIMIT] * 2
        assert recall(graph) >= 0.95

    check(copy)
    check(open_graph(copy.uri))
    monkeypatch.setattr(background, "MAX_SMALL_FRAGMENTS", 0)
    monkeypatch.setattr(background, "INDEX_LAG_ROWS", 0)
    copy.load(pages([PAGES + 2]), "append")
    copy.maintenance.wait()
    assert copy.log(reverse=True)[-1].operation == "optimize"
    check(copy)
    check(open_graph(copy.uri))


def test_an_index_that_lacks_many_rows_is_not_asked(copy, asked):
    copy.load(pages(range(PAGES, PAGES + 600)), "append")
    assert recall(copy) == 1.0
    assert asked == []


def test_the_nearest_of_rows_that_were_joined(copy):
    edges = pa.table({"from": ["0"] * PAGES, "to": [str(n) for n in range(PAGES)]})
    copy.load({"Links": edges}, "append")
    v = vectors([7], seed=2)[0]
    query = NEAREST.replace("$p: Page  ", "$o: Page { number: 0 }  $o links $p  ")
    parameters = {"v": v.tolist(), "low": 0}
    given = [row["number"] for row in copy.query(query, parameters)]
    exact = [row["number"] for row in copy.query(query, parameters, exact=True)]
    assert len(set(given) & set(exact)) >= 9


def test_a_question_without_direction_has_no_answer(graph):
    assert found(graph, [0.0] * DIMENSION) == []
