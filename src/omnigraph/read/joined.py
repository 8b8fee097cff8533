"""Neighbours over several edge types and directions together, without a merged index."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from omnigraph.read.adjacency import Adjacency, Counts, Spans, pair_keys
from omnigraph.read.lookup import LookupEdges
from omnigraph.read.positions import Mask, Positions, sorted_distinct


@dataclass(frozen=True, slots=True)
class JoinedNeighbours:
    """The neighbours that any part has; a node that several parts have is found several times."""

    parts: tuple[Adjacency | LookupEdges, ...]

    def spans(self, sources: Positions) -> Spans:
        """No beginnings, and how many neighbours each source has at most."""
        total: Counts = np.zeros(len(sources), np.int64)
        for part in self.parts:
            total = total + part.spans(sources)[1]
        return total, total

    def neighbours(
        self, sources: Positions, spans: Spans | None = None
    ) -> tuple[Positions, Positions]:
        """The neighbours of each source: the index of the source, and the neighbour."""
        found = [part.neighbours(sources) for part in self.parts]
        if not found:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        rows, nodes = zip(*found, strict=True)
        return np.concatenate(rows), np.concatenate(nodes)

    def has(self, sources: Positions, targets: Positions) -> Mask:
        """Whether each target is a neighbour of its source."""
        found = (part.has(sources, targets) for part in self.parts)
        return functools.reduce(np.logical_or, found, np.zeros(len(sources), np.bool_))


Neighbours: TypeAlias = Adjacency | LookupEdges | JoinedNeighbours


def distinct_pairs(rows: Positions, nodes: Positions) -> tuple[Positions, Positions]:
    """Each pair of a row and a node once, in order."""
    keys = sorted_distinct(pair_keys(rows, nodes))
    return keys >> 32, keys & 0xFFFFFFFF
