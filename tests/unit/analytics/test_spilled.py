"""Algorithms on edges in files give what they give in memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from omnigraph.analytics import centrality, communities, spilled
from omnigraph.analytics.spilled import SpilledNetwork
from tests.unit.analytics.test_against_networkx import SEEDS, random_network, unlimited


@pytest.fixture(autouse=True)
def _small_chunks(monkeypatch):
    monkeypatch.setattr(spilled, "CHUNK_EDGES", 7)


def written(network, folder):
    """The same edges, in files, as they come in two parts."""
    middle = len(network.sources) // 2
    parts = [
        (
            network.sources[part].astype(np.int64),
            network.targets[part].astype(np.int64),
            None if network.weights is None else network.weights[part],
        )
        for part in (slice(middle), slice(middle, None))
    ]
    return SpilledNetwork.write(folder, network.size, parts)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_degrees_and_ranks(tmp_path, seed, directed, weighted):
    network = random_network(seed, weighted=weighted)
    files = written(network, tmp_path)
    expected = {**centrality.degrees(network, directed), **centrality.strengths(network, directed)}
    found = spilled.spilled_degrees(files, directed)
    for name, values in expected.items():
        assert found[name].tolist() == values.tolist()
    settings: dict[str, Any] = {"directed": directed, "damping": 0.85, "tolerance": 1e-9}
    settings |= {"iterations": 50, "check": unlimited}
    ranks = centrality.pagerank(network, **settings)
    assert spilled.spilled_pagerank(files, **settings) == pytest.approx(ranks, abs=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_components(tmp_path, seed):
    network = random_network(seed)
    expected = communities.components(network, directed=False)
    found = spilled.spilled_components(written(network, tmp_path), unlimited)
    assert found.tolist() == expected.tolist()
