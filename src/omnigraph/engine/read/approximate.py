"""The nearest of very many vectors, through an index that looks into some partitions only.

It names rows, never distances: those are computed from the vectors, like everywhere else. Whatever
it cannot answer well is left to the exact way.
Tests: tests/behaviour/test_approximate.py.
"""

from __future__ import annotations

from math import ceil
from typing import Final

import numpy as np
import numpy.typing as npt

from omnigraph.engine.read.nodes import Nodes
from omnigraph.engine.read.numbering import Positions
from omnigraph.limits import APPROXIMATE_FROM

_MARGIN: Final = 1.5
"""So many times the rows are asked for of which, on average, enough meet the other conditions."""

_MOST_ASKED: Final = 10_000
"""Rows of one question to an index, beyond which comparing all vectors is as quick."""


def nearest_through_index(
    nodes: Nodes, name: str, query: npt.NDArray[np.float64], positions: Positions, count: int
) -> Positions | None:
    """Indices into positions: about the `count` nearest, and maybe others; None for the exact way."""
    if len(positions) < APPROXIMATE_FROM or not np.any(query):
        return None
    index = nodes.vector_index(name)
    if index is None:
        return None
    wanted, asked = None, count
    if not nodes.is_everything(positions):
        wanted = np.zeros(nodes.size, np.bool_)
        wanted[positions] = True
        candidates = int(np.count_nonzero(wanted))
        if candidates < APPROXIMATE_FROM:
            return None
        asked = ceil(_MARGIN * count * nodes.size / candidates)
    while asked <= _MOST_ASKED:
        # A row that was changed may still be known by its old vector as well.
        named = index.row_ids(query, asked)
        if named is None:
            return None
        found = np.unique(nodes.numbering.positions(named))
        if wanted is not None:
            found = found[wanted[found]]
        if len(found) >= count:
            return found if wanted is None else _rows_of(found, positions, nodes.size)
        if len(named) < asked:
            return None
        asked *= 4
    return None


def _rows_of(found: Positions, positions: Positions, size: int) -> Positions:
    """Where in positions, some of them repeated, the found ones are."""
    among = np.zeros(size, np.bool_)
    among[found] = True
    return np.flatnonzero(among[positions])
