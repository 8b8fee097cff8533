"""The graph an algorithm runs on: nodes as numbers from 0, edges as pairs of numbers.

Nodes are numbered type by type, in row-id order, so the same snapshot always gives the same numbers. Tests:
tests/unit/analytics.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from omnigraph.extras import ANALYTICS, is_installed

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Numbers = npt.NDArray[np.int64]
Ends = npt.NDArray[np.int32] | npt.NDArray[np.int64]
Values = npt.NDArray[np.float64]

BYTES_PER_NODE = 64
BYTES_PER_EDGE = 48
"""Memory of an algorithm beside its results: a pair of numbers, a weight, and the sorted copies of both."""


def require_scipy() -> None:
    """Raises `MissingExtra` if the library behind the kernels is not installed."""
    if not is_installed("scipy"):
        raise ANALYTICS.missing("analyze")


def end_type(size: int) -> type[np.int32] | type[np.int64]:
    """The narrowest integers for the numbers of so many nodes."""
    return np.int32 if size < 2**31 - 1 else np.int64


@dataclass(frozen=True, slots=True)
class Network:
    """Edges between `size` nodes. Parallel edges are separate entries, or one that is counted.

    `weights` are those of the caller; without any, every edge weighs as much as it counts.
    """

    size: int
    sources: Ends
    targets: Ends
    counts: Numbers | None = None
    weights: Values | None = None

    def matrix(self, *, directed: bool, loops: bool = True) -> csr_array[Any]:
        """The weights as a matrix from source to target; those of parallel edges are added up.

        Without a direction it is symmetric, and a self-loop counts once.
        """
        values: Values
        if self.weights is not None:
            values = self.weights
        elif self.counts is not None:
            values = self.counts.astype(np.float64)
        else:
            values = np.ones(len(self.sources), np.float64)
        sources, targets = self.sources, self.targets
        loop = sources == targets
        if not loops and loop.any():
            sources, targets, values = sources[~loop], targets[~loop], values[~loop]
            loop = np.zeros(len(sources), np.bool_)
        if not directed:
            turned = ~loop
            sources, targets, values = (
                np.concatenate([sources, targets[turned]]),
                np.concatenate([targets, sources[turned]]),
                np.concatenate([values, values[turned]]),
            )
        return _matrix(values, sources, targets, self.size)

    def neighbours(self, *, directed: bool) -> Neighbours:
        """Who is next to whom, without self-loops and parallel edges."""
        plain = Network(self.size, self.sources, self.targets)
        found = plain.matrix(directed=directed, loops=False)
        return Neighbours(found.indptr.astype(np.int64), found.indices)


def _matrix(values: Values, sources: Ends, targets: Ends, size: int) -> csr_array[Any]:
    from scipy.sparse import coo_array

    found = coo_array((values, (sources, targets)), shape=(size, size)).tocsr()
    found.sum_duplicates()
    return found


@dataclass(frozen=True, slots=True)
class Neighbours:
    """Neighbours in compressed sparse rows: those of node n are `targets[starts[n]:starts[n + 1]]`."""

    starts: Numbers
    targets: Ends

    @property
    def size(self) -> int:
        return len(self.starts) - 1

    @property
    def degrees(self) -> Numbers:
        return np.diff(self.starts)

    def degrees_of(self, nodes: Numbers) -> Numbers:
        return self.starts[nodes + 1] - self.starts[nodes]
