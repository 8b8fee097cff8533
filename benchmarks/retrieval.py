"""Searching a million texts and vectors: the nearest, the best words, and both fused.

Each question is asked without a condition, with one that half of the rows meet, and with one that a
hundredth meets. All answers are compared with exact ones of our own; of texts that score alike, others
may be given. LanceDB, with indexes on the same rows, answers the same questions in the same run. Goal:
the ten best of a fused rank in less than 50 ms.

The vectors lie around centres, as embeddings of texts do, and questions are as far from them as the
vectors are; words are as unevenly common as in real texts. `benchmarks/recall.py` has other vectors.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from rich.console import Console
from rich.table import Table

import benchmarks.support.quiet  # noqa: F401
from benchmarks.support.timing import readable
from omnigraph.api.graph import Graph, init
from omnigraph.api.graph import open as open_graph

DIMENSION = 128
WORDS_EACH = 10
VOCABULARY = 50_000
CENTRES = 2_000
SPREAD = 0.6
BEST = 10

SCHEMA = f"""
node Doc {{
    number: I64 @key
    share: I32
    body: String @index
    vec: Vector({DIMENSION}) @index
}}
"""

RANKS = {
    "nearest": "nearest($d.vec, $v)",
    "bm25": "bm25($d.body, $q)",
    "rrf": "rrf(nearest($d.vec, $v), bm25($d.body, $q))",
}
FILTERS = {"all rows": 100, "half of them": 50, "a hundredth": 1}
"""Rows whose `share` is below this number, of a hundred, may be answers."""

Vectors = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Question:
    vector: list[float]
    words: str


@dataclass(frozen=True, slots=True)
class Data:
    docs: pa.Table
    questions: tuple[Question, ...]

    @classmethod
    def of(cls, rows: int, questions: int) -> Data:
        chance = np.random.default_rng(7)
        centres = chance.standard_normal((CENTRES, DIMENSION), np.float32)
        docs = pa.table(
            {
                "number": np.arange(rows),
                "share": pa.array(chance.integers(0, 100, rows), pa.int32()),
                "body": pa.array(_texts(chance, rows)),
                "vec": _column(_around(chance, centres, rows)),
            }
        )
        asked = _around(chance, centres, questions)
        words = (" ".join(_words(chance, 3)) for _ in range(questions))
        return cls(docs, tuple(Question(v.tolist(), w) for v, w in zip(asked, words, strict=True)))


def _around(chance: np.random.Generator, centres: Vectors, count: int) -> Vectors:
    chosen = centres[chance.integers(0, len(centres), count)]
    return chosen + SPREAD * chance.standard_normal(chosen.shape, np.float32)


def _column(vectors: Vectors) -> pa.Array:
    return pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), DIMENSION)


def _ranks_of_words(chance: np.random.Generator, count: int) -> npt.NDArray[np.int64]:
    """A few words are very common, and most are rare."""
    return np.minimum(chance.zipf(1.15, count), VOCABULARY) - 1


def _words(chance: np.random.Generator, count: int) -> list[str]:
    return [f"w{number:05}" for number in _ranks_of_words(chance, count) + 20]


def _texts(chance: np.random.Generator, rows: int) -> Iterator[str]:
    vocabulary = np.array([f"w{number:05}" for number in range(VOCABULARY)])
    for start in range(0, rows, 100_000):
        size = min(100_000, rows - start)
        numbers = _ranks_of_words(chance, size * WORDS_EACH).reshape(size, WORDS_EACH)
        yield from map(" ".join, vocabulary[numbers].tolist())


# -- who answers --------------------------------------------------------------------------------


class Ours:
    name = "OmniGraph"

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    def ask(self, rank: str, below: int, question: Question, *, exact: bool = False) -> list[int]:
        given = {"v": question.vector, "q": question.words, "below": below}
        declared = [f"$v: Vector({DIMENSION})"] if "$v" in RANKS[rank] else []
        declared += ["$q: String"] if "$q" in RANKS[rank] else []
        condition = ""
        if below < 100:
            declared.append("$below: I32")
            condition = "$d.share < $below"
        query = f"""query ask({", ".join(declared)}) {{
            match {{ $d: Doc {condition} }}
            return {{ $d.number as number }}
            order {{ {RANKS[rank]} }} limit {BEST}
        }}"""
        names = [part[1:].partition(":")[0] for part in declared]
        found = self._graph.query(query, {n: given[n] for n in names}, exact=exact)
        return [int(row["number"]) for row in found]


class LanceDb:
    name = "LanceDB"

    def __init__(self, folder: Path, docs: pa.Table, console: Console) -> None:
        import lancedb
        from lancedb.index import FTS, BTree, IvfFlat
        from lancedb.rerankers import RRFReranker

        self._fuse: Any = RRFReranker()
        started = time.perf_counter()
        self._table: Any = lancedb.connect(folder).create_table("docs", docs)
        loaded = time.perf_counter()
        partitions = int(docs.num_rows**0.5)
        self._index("vec", IvfFlat(distance_type="cosine", num_partitions=partitions))
        vectors = time.perf_counter()
        self._index("body", FTS(with_position=True))
        self._index("share", BTree())
        texts = time.perf_counter()
        console.print(
            f"LanceDB: loaded in {readable(loaded - started)}, vectors indexed in"
            f" {readable(vectors - loaded)}, texts in {readable(texts - vectors)}"
        )

    def _index(self, column: str, config: object) -> None:
        self._table.create_index(column, config=config)

    def ask(self, rank: str, below: int, question: Question) -> list[int]:
        if rank == "nearest":
            search = self._table.search(question.vector, vector_column_name="vec")
            search = search.distance_type("cosine").nprobes(16)
        elif rank == "bm25":
            search = self._table.search(question.words, query_type="fts", fts_columns="body")
        else:
            search = self._table.search(
                query_type="hybrid", vector_column_name="vec", fts_columns="body"
            )
            search = search.vector(question.vector).text(question.words).nprobes(16)
            search = search.distance_type("cosine").rerank(self._fuse)
        if below < 100:
            search = search.where(f"share < {below}", prefilter=True)
        found = search.select(["number"]).limit(BEST).to_arrow()
        return [int(number) for number in found.column("number").to_pylist()[:BEST]]


# -- asking -------------------------------------------------------------------------------------


def seconds(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def times(ask: Callable[[Question], object], questions: Sequence[Question]) -> list[float]:
    """Seconds of each question, when what they all need has been read."""
    for question in questions[:3]:
        ask(question)
    return [seconds(lambda q=question: ask(q)) for question in questions]  # type: ignore[misc]


def share_found(found: Sequence[list[int]], exact: Sequence[list[int]]) -> float:
    pairs = zip(found, exact, strict=True)
    return statistics.mean(len(set(f) & set(e)) / len(e) if e else 1.0 for f, e in pairs)


def compare(
    console: Console, ours: Ours, theirs: LanceDb, questions: Sequence[Question]
) -> dict[str, float]:
    table = Table(
        "question", "rows", "OmniGraph p50", "p99", "found", "LanceDB p50", "p99", "found"
    )
    typical: dict[str, float] = {}
    for rank in RANKS:
        for name, below in FILTERS.items():
            exact = [ours.ask(rank, below, question, exact=True) for question in questions]
            cells = []
            for who in (ours, theirs):

                def ask(question: Question, who: Ours | LanceDb = who) -> list[int]:
                    return who.ask(rank, below, question)  # noqa: B023

                taken = times(ask, questions)
                found = share_found([ask(question) for question in questions], exact)
                p99 = float(np.quantile(taken, 0.99))
                cells += [readable(statistics.median(taken)), readable(p99), f"{found:.3f}"]
                if who is ours:
                    typical[f"{rank}, {name}"] = statistics.median(taken)
            table.add_row(rank, name, *cells)
    console.print(table)
    return typical


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--questions", type=int, default=50)
    options = parser.parse_args()
    os.environ.setdefault("OMNIGRAPH_DURABILITY", "none")
    console = Console(width=120)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data = Data.of(options.rows, options.questions)
        graph = init(folder / "graph", SCHEMA)
        console.print(
            f"loaded in {readable(seconds(lambda: graph.load({'Doc': data.docs}, 'append')))}"
        )
        index(console, graph)
        for rank in RANKS:
            console.print(f"first {rank} of a new handle: {readable(first(folder, rank, data))}")
        theirs = LanceDb(folder / "lancedb", data.docs, console)
        ours = Ours(open_graph(folder / "graph"))
        typical = compare(console, ours, theirs, data.questions)
        fused = max(seconds for cell, seconds in typical.items() if cell.startswith("rrf"))
        console.print(f"the ten best of a fused rank: at most {readable(fused)} (goal 50 ms)")


def first(folder: Path, rank: str, data: Data) -> float:
    """What the first question costs when nothing has been read."""
    ours = Ours(open_graph(folder / "graph"))
    return seconds(lambda: ours.ask(rank, 100, data.questions[0]))


class Stages:
    """When each stage of a long call began."""

    def __init__(self) -> None:
        self.begun: list[tuple[str, float]] = []

    def stage(self, name: str, rows: int | None = None) -> None:
        self.begun.append((name, time.perf_counter()))

    def advance(self, rows: int) -> None:
        pass


def index(console: Console, graph: Graph) -> None:
    """Make all indexes, and say how long each took."""
    stages = Stages()
    graph.maintenance.ensure_indexes(progress=stages)
    ends = [at for _, at in stages.begun[1:]] + [time.perf_counter()]
    for (name, start), end in zip(stages.begun, ends, strict=True):
        console.print(f"indexed {name} in {readable(end - start)}")


if __name__ == "__main__":
    main()
