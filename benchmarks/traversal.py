"""Following edges on a graph of ten million: how far, from how many nodes, and what it costs to begin.

One to four hops from one node and from a thousand, negation over more and more rows, building what is
followed, a write in between, and two threads at once. DuckDB and LadybugDB answer the same questions in
the same run, and all answers must be equal. Goals: negation grows with its rows and no faster; after a
write of one edge the next question of two hops costs at most 20 ms more; questions of more than 10 ms
run from two threads are 1.6 times as quick as one after the other.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.table import Table

from benchmarks.support.at_once import gain
from benchmarks.support.timing import readable, settle
from omnigraph.api.graph import Graph, init
from omnigraph.api.graph import open as open_graph
from omnigraph.plan.ir import Direction
from omnigraph.read.budget import QueryBudget
from omnigraph.read.cache import ByteCache
from omnigraph.read.source import GraphSource
from omnigraph.read.view import ReadView

SCHEMA = """
node Person { number: I64 @key  batch: I32 }
edge Knows: Person -> Person
"""
DEGREE = 10
BATCH = 1000
"""So many persons share a batch number, for questions from many nodes."""

HOPS = (1, 2, 3, 4)
NEGATED = (1_000, 10_000, 100_000, 1_000_000)
SLOW = 2.0
"""A question that takes longer than this many seconds is not asked often."""

BUDGET = QueryBudget(max_rows=10**9, max_bytes=2**40)


@dataclass(frozen=True, slots=True)
class Question:
    name: str
    gq: str
    sql: str
    cypher: str
    parameters: dict[str, Any]


def hops_from_one(hops: int, number: int) -> Question:
    return Question(
        f"{hops} from one node",
        f"""query ask($n: I64) {{
            match {{ $a: Person {{ number: $n }}  $a knows{{1,{hops}}} $b }}
            return {{ count($b) as nodes }}
        }}""",
        f"""WITH RECURSIVE reached(node, depth) AS (
            SELECT $n, 0 UNION
            SELECT k.target, depth + 1 FROM reached r JOIN Knows k ON k.source = r.node
            WHERE depth < {hops}
        ) SELECT count(DISTINCT node) FROM reached WHERE node <> $n""",
        f"""MATCH (a:Person)-[:Knows* SHORTEST 1..{hops}]->(b:Person)
            WHERE a.number = $n AND b.number <> $n RETURN count(*)""",
        {"n": number},
    )


def hops_from_many(hops: int) -> Question:
    return Question(
        f"{hops} from {BATCH:,} nodes",
        f"""query ask($batch: I32) {{
            match {{ $a: Person {{ batch: $batch }}  $a knows{{1,{hops}}} $b }}
            return {{ count($b) as nodes }}
        }}""",
        f"""WITH RECURSIVE reached(start, node, depth) AS (
            SELECT number, number, 0 FROM Person WHERE batch = $batch UNION
            SELECT start, k.target, depth + 1 FROM reached r JOIN Knows k ON k.source = r.node
            WHERE depth < {hops}
        ) SELECT count(*) FROM (SELECT DISTINCT start, node FROM reached WHERE node <> start)""",
        f"""MATCH (a:Person)-[:Knows* SHORTEST 1..{hops}]->(b:Person)
            WHERE a.batch = $batch AND a.number <> b.number RETURN count(*)""",
        {"batch": 0},
    )


def without_acquaintances(rows: int) -> Question:
    return Question(
        f"not {{ }} over {rows:,} rows",
        """query ask($rows: I64) {
            match { $a: Person  $a.number < $rows  not { $a knows $b  $b.batch = 0 } }
            return { count($a) as persons }
        }""",
        """SELECT count(*) FROM Person a WHERE a.number < $rows AND NOT EXISTS (
            SELECT 1 FROM Knows k JOIN Person b ON b.number = k.target
            WHERE k.source = a.number AND b.batch = 0)""",
        """MATCH (a:Person) WHERE a.number < $rows AND NOT EXISTS {
            MATCH (a)-[:Knows]->(b:Person) WHERE b.batch = 0 } RETURN count(*)""",
        {"rows": rows},
    )


@dataclass(frozen=True, slots=True)
class Data:
    persons: pa.Table
    knows: pa.Table

    @classmethod
    def of(cls, edges: int) -> Data:
        chance = np.random.default_rng(5)
        persons = max(BATCH, edges // DEGREE)
        batches = max(1, persons // BATCH)
        numbers = np.arange(persons)
        table = pa.table({"number": numbers, "batch": pa.array(numbers % batches, pa.int32())})
        sources = chance.integers(0, persons, edges)
        targets = (sources + chance.integers(1, persons, edges)) % persons
        return cls(table, pa.table({"from": sources, "to": targets}))


def seconds(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def typical(call: Callable[[], object], runs: int) -> float:
    """The median of several runs, of fewer when they take long."""
    settle(call)
    taken = [seconds(call)]
    while len(taken) < runs and sum(taken) < SLOW:
        taken.append(seconds(call))
    return statistics.median(taken)


class Peers:
    """DuckDB and LadybugDB with the same rows."""

    def __init__(self, folder: Path, data: Data) -> None:
        import duckdb
        import ladybug

        self._duck = duckdb.connect(str(folder / "duck.db"))
        self._duck.register("persons", data.persons)
        self._duck.register("edges", data.knows.rename_columns(["source", "target"]))
        self._duck.execute("CREATE TABLE Person AS SELECT * FROM persons")
        self._duck.execute("CREATE TABLE Knows AS SELECT * FROM edges ORDER BY source")
        self._ladybug = ladybug.Connection(ladybug.Database(str(folder / "ladybug.db")))
        self._cypher("CREATE NODE TABLE Person(number INT64, batch INT32, PRIMARY KEY(number))", {})
        self._cypher("CREATE REL TABLE Knows(FROM Person TO Person)", {})
        self._cypher("COPY Person FROM $rows", {"rows": data.persons})
        self._cypher("COPY Knows FROM $rows", {"rows": data.knows})

    def ask(self, question: Question) -> dict[str, Callable[[], Any]]:
        return {
            "DuckDB": lambda: self._duck.execute(question.sql, question.parameters).fetchall()[0][
                0
            ],
            "LadybugDB": lambda: self._cypher(question.cypher, question.parameters)[0][0],
        }

    def _cypher(self, text: str, parameters: dict[str, Any]) -> list[Any]:
        found: Any = self._ladybug.execute(text, parameters)
        return list(found.get_all())


def ours(graph: Graph, question: Question) -> int:
    result = graph.query(question.gq, question.parameters, budget=BUDGET)
    return int(result.to_arrow().column(0)[0].as_py())


def compare(
    console: Console, title: str, graph: Graph, peers: Peers, questions: list[Question], runs: int
) -> list[float]:
    table = Table("question", "answer", "OmniGraph", "DuckDB", "LadybugDB", "ratio", title=title)
    taken = []
    for question in questions:
        answer = ours(graph, question)
        mine = typical(lambda q=question: ours(graph, q), runs)  # type: ignore[misc]
        times = {}
        for name, ask in peers.ask(question).items():
            if (found := ask()) != answer:
                raise SystemExit(f"{question.name}: OmniGraph says {answer}, {name} says {found}")
            times[name] = typical(ask, runs)
        taken.append(mine)
        table.add_row(
            question.name,
            f"{answer:,}",
            readable(mine),
            *(readable(times[name]) for name in ("DuckDB", "LadybugDB")),
            f"{min(times.values()) / mine:.1f}x",
        )
    console.print(table)
    return taken


def building(console: Console, graph: Graph) -> None:
    """What the first question pays for: numbering the nodes and compressing the edges."""
    source = GraphSource(graph._snapshot(), graph._core.tables, ByteCache(2**40), ReadView.ALL)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    nodes = seconds(lambda: source.nodes("Person"))
    edges = seconds(lambda: source.adjacency("Knows", Direction.OUT))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    kept = source.adjacency("Knows", Direction.OUT).nbytes
    console.print(
        f"numbering {readable(nodes)}; compressing edges {readable(edges)}, {kept / 2**20:,.0f} MiB kept,"
        f" peak {max(peak, 0) / 2**10:,.0f} MiB more"
    )


def after_a_write(console: Console, graph: Graph, question: Question, runs: int) -> None:
    plain, later = [], []
    add = "query add($a: String, $b: String) { insert Knows { from: $a, to: $b } }"
    for number in range(runs):
        plain.append(seconds(lambda: ours(graph, question)))
        graph.mutate(add, {"a": str(number), "b": str(number + 2)})
        later.append(seconds(lambda: ours(graph, question)))
    more = statistics.median(later) - statistics.median(plain)
    console.print(f"{question.name}: {readable(more)} more after a write of one edge (goal 20 ms)")


def warm(folder: Path, question: Question) -> Callable[[], int]:
    """The question to a graph that is in memory, for whoever asks it often."""
    graph = open_graph(folder / "graph")
    return partial(ours, graph, question)


def two_threads(console: Console, folder: Path, question: Question, runs: int) -> None:
    found = gain(partial(warm, folder, question), runs)
    console.print(
        f"{question.name}, {readable(found.alone)} each: two threads are {found.threads:.2f}x as quick,"
        f" two processes {found.processes:.2f}x"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--edges", type=int, default=10_000_000)
    parser.add_argument("--runs", type=int, default=9)
    options = parser.parse_args()
    os.environ.setdefault("OMNIGRAPH_DURABILITY", "none")
    console = Console(width=120)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data = Data.of(options.edges)
        graph = init(folder / "graph", SCHEMA)
        console.print(f"loaded in {readable(seconds(lambda: load(graph, data)))}")
        many = [hops_from_many(hops) for hops in HOPS]
        console.print(
            "two threads are to be 1.6x as quick above 10 ms; two processes share nothing"
        )
        for question in many[1:]:
            two_threads(console, folder, question, options.runs)
        peers = Peers(folder, data)
        graph = open_graph(folder / "graph")
        building(console, graph)
        ours(graph, without_acquaintances(data.persons.num_rows))  # From here on all is in memory.
        one = [hops_from_one(hops, 7) for hops in HOPS]
        compare(console, "hops", graph, peers, [*one, *many], options.runs)
        sizes = [rows for rows in NEGATED if rows <= data.persons.num_rows]
        negated = [without_acquaintances(rows) for rows in sizes]
        taken = compare(console, "negation", graph, peers, negated, options.runs)
        growth = [f"{b / a:.1f}x" for a, b in pairwise(taken)]
        console.print(f"each tenfold of rows takes {', '.join(growth)} (linear is 10x)")
        for question in (one[1], many[1]):
            after_a_write(console, graph, question, options.runs)


def load(graph: Graph, data: Data) -> None:
    graph.load({"Person": data.persons}, mode="append")
    ends = {name: data.knows[name].cast(pa.string()) for name in ("from", "to")}
    graph.load({"Knows": pa.table(ends)}, mode="append")


if __name__ == "__main__":
    main()
