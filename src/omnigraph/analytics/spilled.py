"""Edges in files, for graphs whose edges do not fit the budget: pairs of numbers that are mapped to memory.

A chunk of edges is in memory at a time; what an algorithm keeps is proportional to the nodes. Tests:
tests/unit/analytics/test_spilled.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from omnigraph.analytics.communities import numbered_by_size
from omnigraph.analytics.network import Ends, Numbers, Values, end_type

if TYPE_CHECKING:
    import numpy.typing as npt

    from omnigraph.analytics.centrality import Check

CHUNK_EDGES: Final = 2_000_000
"""Edges in memory at a time."""

BYTES_PER_SPILLED_NODE: Final = 192
"""Memory for each node: its id, which edges are looked up by, its number and the values of an algorithm."""

BYTES_PER_CHUNKED_EDGE: Final = 160
"""Memory for each edge of a chunk: two ids as texts, and arrays of numbers."""

Chunk = tuple[Ends, Ends, Values | None]
"""Both ends of some edges, and their weights."""


@dataclass(frozen=True, slots=True)
class SpilledNetwork:
    """Edges between `size` nodes in files of a folder. Parallel edges are separate."""

    size: int
    edges: int
    folder: Path
    is_weighted: bool

    @classmethod
    def write(
        cls,
        folder: Path,
        size: int,
        chunks: Iterable[tuple[Numbers, Numbers, npt.NDArray[Any] | None]],
    ) -> SpilledNetwork:
        """Write edges as they come."""
        kind, edges, is_weighted = end_type(size), 0, False
        with (
            (folder / "sources").open("wb") as sources,
            (folder / "targets").open("wb") as targets,
            (folder / "weights").open("wb") as weights,
        ):
            for begin, end, weight in chunks:
                sources.write(begin.astype(kind).data)
                targets.write(end.astype(kind).data)
                if weight is not None:
                    weights.write(weight.astype(np.float64).data)
                    is_weighted = True
                edges += len(begin)
        return cls(size, edges, folder, is_weighted)

    def chunks(self) -> Iterator[Chunk]:
        if not self.edges:  # An empty file cannot be mapped.
            return
        kind = end_type(self.size)
        sources = np.memmap(self.folder / "sources", kind, "r")
        targets = np.memmap(self.folder / "targets", kind, "r")
        weights = None
        if self.is_weighted:
            weights = np.memmap(self.folder / "weights", np.float64, "r")
        for begin in range(0, self.edges, CHUNK_EDGES):
            part = slice(begin, begin + CHUNK_EDGES)
            yield (
                np.asarray(sources[part]),
                np.asarray(targets[part]),
                None if weights is None else np.asarray(weights[part]),
            )


def spilled_degrees(network: SpilledNetwork, directed: bool) -> dict[str, npt.NDArray[Any]]:
    """As `centrality.degrees` and `strengths`."""
    out, into = np.zeros(network.size, np.int64), np.zeros(network.size, np.int64)
    give, take = np.zeros(network.size), np.zeros(network.size)
    for sources, targets, weights in network.chunks():
        np.add.at(out, sources, 1)
        np.add.at(into, targets, 1)
        if weights is not None:
            np.add.at(give, sources, weights)
            np.add.at(take, targets, weights)
    found: dict[str, npt.NDArray[Any]] = {"degree": out + into, "strength": give + take}
    if directed:
        found |= {"in_degree": into, "out_degree": out}
        found |= {"in_strength": take, "out_strength": give}
    return found


def spilled_pagerank(
    network: SpilledNetwork,
    *,
    directed: bool,
    damping: float,
    iterations: int,
    tolerance: float,
    check: Check,
) -> Values:
    """As `centrality.pagerank`."""
    size = network.size
    if not size:
        return np.empty(0)
    sums = np.zeros(size)
    for begin, _, weight in _steps(network, directed):
        np.add.at(sums, begin, weight)
    stuck = np.flatnonzero(sums == 0)
    shares = np.divide(1.0, sums, out=np.zeros(size), where=sums != 0)
    rank = np.full(size, 1.0 / size)
    for _ in range(iterations):
        check(0)
        given = rank * shares
        after = np.zeros(size)
        for begin, end, weight in _steps(network, directed):
            np.add.at(after, end, given[begin] * weight)
        after *= damping
        after += (damping * rank[stuck].sum() + 1.0 - damping) / size
        change = np.abs(after - rank).sum()
        rank = after
        if change < size * tolerance:
            break
    return rank


def _steps(network: SpilledNetwork, directed: bool) -> Iterator[tuple[Ends, Ends, Any]]:
    """The ways that edges can be followed, with their weights; self-loops have one of them."""
    for sources, targets, weights in network.chunks():
        yield sources, targets, 1.0 if weights is None else weights
        if not directed:
            turned = sources != targets
            weight = 1.0 if weights is None else weights[turned]
            yield targets[turned], sources[turned], weight


def spilled_components(network: SpilledNetwork, check: Check) -> Numbers:
    """Connected components without a direction, as `communities.components`.

    Every node points at a smaller one of its component, in the end at the smallest.
    """
    parent = np.arange(network.size, dtype=np.int64)
    changed = True
    while changed:
        changed = False
        for sources, targets, _ in network.chunks():
            check(0)
            left, right = parent[sources], parent[targets]
            apart = left != right
            if apart.any():
                changed = True
                left, right = left[apart], right[apart]
                np.minimum.at(parent, np.maximum(left, right), np.minimum(left, right))
                parent = _shortened(parent)
    return numbered_by_size(parent)


def _shortened(parent: Numbers) -> Numbers:
    """Every node points at a node that points at itself."""
    while True:
        further = parent[parent]
        if np.array_equal(further, parent):
            return parent
        parent = further
