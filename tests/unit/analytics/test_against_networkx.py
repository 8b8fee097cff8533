"""Every algorithm on random small graphs, compared with networkx or with a plain implementation."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pytest

from omnigraph.analytics import centrality, communities
from omnigraph.analytics.network import Network

SEEDS = range(12)


def unlimited(nbytes: int) -> None:
    """A budget without limits."""


def random_network(seed, *, weighted=False):
    """A graph with self-loops, parallel edges, nodes without edges, and sometimes without any edge."""
    random = np.random.default_rng(seed)
    size = int(random.integers(1, 40))
    edges = int(random.choice([0, size // 2, 2 * size, 5 * size]))
    sources, targets = random.integers(0, size, (2, edges)).astype(np.int32)
    loops = random.random(edges) < 0.1
    targets[loops] = sources[loops]
    weights = random.integers(1, 5, edges).astype(np.float64) if weighted else None
    return Network(size, sources, targets, weights=weights)


def counted(network):
    """The same graph with parallel edges as one entry that is counted."""
    pairs, counts = np.unique(
        np.stack([network.sources, network.targets]), axis=1, return_counts=True
    )
    return Network(network.size, pairs[0], pairs[1], counts=counts.astype(np.int64))


def as_networkx(network, *, directed):
    graph = nx.MultiDiGraph() if directed else nx.MultiGraph()
    graph.add_nodes_from(range(network.size))
    weights = np.ones(len(network.sources)) if network.weights is None else network.weights
    ends = zip(network.sources.tolist(), network.targets.tolist(), weights.tolist(), strict=True)
    graph.add_weighted_edges_from(ends)
    return graph


def simple(network, *, directed):
    """Without self-loops and parallel edges."""
    graph = (nx.DiGraph if directed else nx.Graph)(as_networkx(network, directed=directed))
    graph.remove_edges_from(list(nx.selfloop_edges(graph)))
    return graph


def in_order(values, size):
    return [values[node] for node in range(size)]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("directed", [True, False])
def test_degrees_and_strengths(seed, directed):
    network = random_network(seed, weighted=True)
    graph = as_networkx(network, directed=directed)
    found = centrality.degrees(network, directed) | centrality.strengths(network, directed)
    expected = {"degree": graph.degree(), "strength": graph.degree(weight="weight")}
    if directed:
        expected["in_degree"], expected["out_degree"] = graph.in_degree(), graph.out_degree()
        expected["in_strength"] = graph.in_degree(weight="weight")
        expected["out_strength"] = graph.out_degree(weight="weight")
    assert {name: values.tolist() for name, values in found.items()} == {
        name: in_order(dict(values), network.size) for name, values in expected.items()
    }
    plain = centrality.degrees(counted(network), directed)
    assert plain["degree"].tolist() == found["degree"].tolist()


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_pagerank(seed, directed, weighted):
    network = random_network(seed, weighted=weighted)
    settings: dict[str, Any] = {
        "directed": directed,
        "damping": 0.85,
        "iterations": 200,
        "tolerance": 1e-12,
    }
    found = centrality.pagerank(network, **settings, check=unlimited)
    graph = as_networkx(network, directed=directed)
    expected = nx.pagerank(graph, alpha=0.85, max_iter=300, tol=1e-12)
    assert found == pytest.approx(in_order(expected, network.size), abs=1e-9)
    assert found.sum() == pytest.approx(1.0)
    if not weighted:
        again = centrality.pagerank(counted(network), **settings, check=unlimited)
        assert again == pytest.approx(found, abs=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_components(seed):
    network = random_network(seed)
    graph = as_networkx(network, directed=True)
    for directed, parts in (
        (True, nx.strongly_connected_components(graph)),
        (False, nx.weakly_connected_components(graph)),
    ):
        found = communities.components(network, directed=directed)
        ordered = sorted(parts, key=lambda part: (-len(part), min(part)))
        expected = {node: number for number, part in enumerate(ordered) for node in part}
        assert found.tolist() == in_order(expected, network.size)


@pytest.mark.parametrize("seed", SEEDS)
def test_triangles_and_clustering(seed, monkeypatch):
    network = random_network(seed)
    monkeypatch.setattr(communities, "MAX_PATHS", 7)
    found, share = communities.triangles(network, unlimited)
    graph = simple(network, directed=False)
    assert found.tolist() == in_order(nx.triangles(graph), network.size)
    assert share == pytest.approx(in_order(nx.clustering(graph), network.size))


@pytest.mark.parametrize("seed", SEEDS)
def test_core_numbers(seed):
    network = random_network(seed)
    found = communities.core_numbers(network, unlimited)
    expected = nx.core_number(simple(network, directed=False))
    assert found.tolist() == in_order(expected, network.size)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("normalized", [True, False])
def test_exact_betweenness(seed, directed, normalized):
    network = random_network(seed)
    settings: dict[str, Any] = {
        "directed": directed,
        "normalized": normalized,
        "seed": 0,
        "check": unlimited,
    }
    found = centrality.betweenness(network, samples=10_000, **settings)
    expected = nx.betweenness_centrality(simple(network, directed=directed), normalized=normalized)
    assert found == pytest.approx(in_order(expected, network.size))


def test_sampled_betweenness_is_repeatable_and_on_average_right():
    network = random_network(5)
    settings: dict[str, Any] = {"directed": False, "normalized": True, "check": unlimited}
    exact = centrality.betweenness(network, samples=10_000, seed=0, **settings)
    sampled = [
        centrality.betweenness(network, samples=5, seed=seed, **settings) for seed in range(400)
    ]
    again = centrality.betweenness(network, samples=5, seed=3, **settings)
    assert again.tolist() == sampled[3].tolist()
    assert np.mean(sampled, axis=0) == pytest.approx(exact, abs=0.01)
    assert sampled[0].tolist() != sampled[1].tolist()


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("directed", [True, False])
def test_hop_sizes(seed, directed, monkeypatch):
    network = random_network(seed)
    monkeypatch.setattr(centrality, "MAX_REACHED", 16)
    found = centrality.hop_sizes(network, directed=directed, hops=3, check=unlimited)
    graph = simple(network, directed=directed)
    for distance, sizes in enumerate(found, 1):
        expected = [
            sum(far == distance for far in nx.single_source_shortest_path_length(graph, n).values())
            for n in range(network.size)
        ]
        assert sizes.tolist() == expected


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("directed", [True, False])
def test_every_node_has_a_label_that_is_most_frequent_around_it(seed, directed):
    network = random_network(seed, weighted=seed % 2 == 0)
    settings: dict[str, Any] = {"directed": directed, "iterations": 1000, "check": unlimited}
    found = communities.label_propagation(network, seed=7, **settings)
    again = communities.label_propagation(network, seed=7, **settings)
    assert again.tolist() == found.tolist()
    matrix = network.matrix(directed=directed, loops=False).toarray()
    for node, around in enumerate(matrix):
        if around.any():
            support = np.bincount(found, weights=around)
            assert support[found[node]] == support.max()
    sizes = np.bincount(found)
    assert (np.diff(sizes) <= 0).all()


def test_two_cliques_with_a_bridge_are_two_communities():
    graph = nx.barbell_graph(10, 0)
    sources, targets = np.array(list(graph.edges)).T
    network = Network(20, sources, targets)
    found = communities.label_propagation(
        network, directed=False, iterations=100, seed=0, check=unlimited
    )
    assert found.tolist() == [0] * 10 + [1] * 10


@pytest.mark.parametrize("size", [0, 1, 2])
def test_tiny_graphs(size):
    none = np.empty(0, np.int32)
    network = Network(size, none, none)
    zeros = [0] * size
    settings: dict[str, Any] = {"directed": True, "check": unlimited}
    ranks = centrality.pagerank(network, damping=0.85, iterations=5, tolerance=0.0, **settings)
    assert ranks.tolist() == [1 / size] * size if size else ranks.tolist() == []
    paths = centrality.betweenness(network, samples=9, seed=0, normalized=True, **settings)
    assert paths.tolist() == zeros
    assert centrality.hop_sizes(network, hops=1, **settings)[0].tolist() == zeros
    assert communities.core_numbers(network, unlimited).tolist() == zeros
    assert communities.triangles(network, unlimited)[0].tolist() == zeros
    assert communities.components(network, directed=True).tolist() == list(range(size))
    labels = communities.label_propagation(network, iterations=3, seed=0, **settings)
    assert labels.tolist() == list(range(size))
