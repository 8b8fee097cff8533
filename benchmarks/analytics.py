"""Graph algorithms beside scipy, networkx and GraphX on the same graph.

Every node has the same number of edges to nodes drawn at random, some of them far more often than others.
scipy gets arrays that are in memory already, so it shows what the kernels cost without the graph around
them; ours begins with a graph that was just opened (cold) and that was read before (warm), and returns ids.
PageRank takes 20 iterations everywhere. All answers are compared.

networkx takes minutes for a million edges and runs up to `--networkx-edges`; GraphX needs Spark and runs with
`--graphx`. Goal: warm at most twice as long as scipy.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import numpy.typing as npt
import pyarrow as pa

import benchmarks.support.quiet  # noqa: F401
from benchmarks.support.timing import readable
from omnigraph.api.graph import Graph, init
from omnigraph.api.graph import open as open_graph

ITERATIONS = 20
RANK = {"iterations": ITERATIONS, "tolerance": 0.0}
Numbers = npt.NDArray[np.int64]
Answer = npt.NDArray[Any]


def make_edges(nodes: int, edges: int) -> tuple[Numbers, Numbers]:
    random = np.random.default_rng(1)
    sources = np.repeat(np.arange(nodes, dtype=np.int64), edges // nodes)
    targets = (nodes * random.random(len(sources)) ** 2).astype(np.int64)
    return sources, targets


def make_graph(folder: Path, nodes: int, ends: tuple[Numbers, Numbers]) -> None:
    graph = init(folder / "graph", "node N { n: I64 @key }\nedge E: N -> N")
    # Ids of edges are made from their keys, so both are texts.
    sources, targets = (pa.array(end).cast(pa.utf8()) for end in ends)
    rows = {"N": pa.table({"n": np.arange(nodes)}), "E": pa.table({"from": sources, "to": targets})}
    graph.load(rows, "append", engine="inline")
    graph.close()


def timed(call: Callable[[], Answer]) -> tuple[float, Answer]:
    started = time.perf_counter()
    found = call()
    return time.perf_counter() - started, found


# -- those that are compared --------------------------------------------------------------------


def ours(graph: Graph, name: str, column: str) -> Answer:
    given = RANK if name == "pagerank" else {}
    found = graph.analyze(name, given).to_arrow()
    order = np.argsort(found["id"].cast(pa.int64()).to_numpy())
    return np.asarray(found[column].to_numpy()[order])


def scipy_pagerank(nodes: int, ends: tuple[Numbers, Numbers]) -> Answer:
    from scipy.sparse import coo_array

    sources, targets = ends
    shares = 1.0 / np.bincount(sources, minlength=nodes)
    incoming = coo_array((np.ones(len(sources)), (targets, sources)), shape=(nodes, nodes)).tocsr()
    rank = np.full(nodes, 1.0 / nodes)
    for _ in range(ITERATIONS):
        rank = 0.85 * (incoming @ (rank * shares)) + 0.15 / nodes
    return np.asarray(rank)


def scipy_components(nodes: int, ends: tuple[Numbers, Numbers]) -> Answer:
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    matrix = coo_array((np.ones(len(ends[0])), ends), shape=(nodes, nodes)).tocsr()
    return np.asarray(connected_components(matrix, connection="weak")[1])


def networkx_answers(nodes: int, ends: tuple[Numbers, Numbers]) -> dict[str, Callable[[], Answer]]:
    sources, targets = (end.tolist() for end in ends)
    multi = nx.MultiDiGraph()
    multi.add_nodes_from(range(nodes))
    multi.add_edges_from(zip(sources, targets, strict=True))
    plain = nx.Graph(multi)
    plain.remove_edges_from(list(nx.selfloop_edges(plain)))

    def in_order(values: dict[int, Any]) -> Answer:
        return np.array([values[node] for node in range(nodes)])

    def components() -> Answer:
        found = enumerate(nx.connected_components(plain))
        return in_order({node: number for number, part in found for node in part})

    return {
        # It raises unless it converges, which takes a little more than our iterations.
        "pagerank": lambda: in_order(nx.pagerank(multi, max_iter=200, tol=1e-9)),
        "components": components,
        "triangles": lambda: in_order(nx.triangles(plain)),
        "k_core": lambda: in_order(nx.core_number(plain)),
    }


def graphx_answers(
    folder: Path, nodes: int, ends: tuple[Numbers, Numbers]
) -> dict[str, Callable[[], Answer]]:
    """GraphX is called in Java, which has no Python side; edges and answers are text files."""
    from omnigraph.spark.session import open_session

    edges = folder / "edges.txt"
    np.savetxt(edges, np.stack(ends, axis=1), fmt="%d")
    spark: Any = open_session("local[*]")
    java, context = spark.sparkContext._jvm, spark.sparkContext._jsc.sc()
    graphx = java.org.apache.spark.graphx
    level = java.org.apache.spark.storage.StorageLevel.MEMORY_ONLY()
    graph = graphx.GraphLoader.edgeListFile(context, str(edges), False, 4, level, level)
    graph.edges().count()
    integers = java.scala.reflect.ClassTag.Int()

    def answer(name: str, found: Any) -> Answer:
        out = folder / name
        found.vertices().saveAsTextFile(str(out))
        texts = "".join(part.read_text() for part in sorted(out.glob("part-*")))
        pairs = np.array([line.strip("()").split(",") for line in texts.splitlines()], np.float64)
        values = np.zeros(nodes)
        values[pairs[:, 0].astype(np.int64)] = pairs[:, 1]
        return values

    def pagerank() -> Answer:
        # The ranks of GraphX make the number of nodes together.
        ranked = graphx.lib.PageRank.run(graph, ITERATIONS, 0.15, integers, integers)
        return answer("pagerank", ranked) / nodes

    def components() -> Answer:
        found = graphx.lib.ConnectedComponents.run(graph, integers, integers)
        return answer("components", found)

    return {"pagerank": pagerank, "components": components}


# -- comparing ----------------------------------------------------------------------------------


def same(name: str, expected: Answer, found: Answer) -> bool:
    if name == "pagerank":
        return bool(np.allclose(expected, found, rtol=1e-2, atol=1e-9))
    if name == "components":  # Under whatever numbers.
        pairs = np.unique(np.stack([expected, found]), axis=1)
        return bool(len(np.unique(pairs[0])) == len(np.unique(pairs[1])) == pairs.shape[1])
    return bool(np.array_equal(expected, found))


COLUMNS = {
    "pagerank": "score",
    "components": "component",
    "triangles": "triangles",
    "k_core": "core",
}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=_Plain)
    options.add_argument("--nodes", type=int, default=10_000)
    options.add_argument("--edges", type=int, default=50_000)
    options.add_argument("--networkx-edges", type=int, default=100_000)
    options.add_argument("--graphx", action="store_true")
    chosen = options.parse_args()
    nodes = chosen.nodes
    ends = make_edges(nodes, chosen.edges)
    print(f"{nodes:,} nodes, {len(ends[0]):,} edges")
    peers: dict[str, dict[str, Callable[[], Answer]]] = {
        "scipy": {
            "pagerank": lambda: scipy_pagerank(nodes, ends),
            "components": lambda: scipy_components(nodes, ends),
        }
    }
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_graph(folder, nodes, ends)
        if len(ends[0]) <= chosen.networkx_edges:
            peers["networkx"] = networkx_answers(nodes, ends)
        if chosen.graphx:
            peers["GraphX"] = graphx_answers(folder, nodes, ends)
        head = ["", "cold", "warm", *peers]
        print("".join(f"{word:>14}" for word in head))
        for algorithm, column in COLUMNS.items():
            with open_graph(folder / "graph", read_only=True) as graph:
                cold, _ = timed(lambda: ours(graph, algorithm, column))  # noqa: B023 - called here
                warm, expected = timed(lambda: ours(graph, algorithm, column))  # noqa: B023
            cells = [readable(cold), readable(warm)]
            for peer, answers in peers.items():
                if algorithm not in answers:
                    cells.append("")
                    continue
                seconds, found = timed(answers[algorithm])
                assert same(algorithm, expected, found), f"{peer}: {algorithm}"
                cells.append(readable(seconds))
            print("".join(f"{word:>14}" for word in (algorithm, *cells)), flush=True)


class _Plain(argparse.RawDescriptionHelpFormatter):
    pass


if __name__ == "__main__":
    main()
