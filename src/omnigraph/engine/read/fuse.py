"""Reciprocal rank fusion: one rank made of two rankings of the same nodes.

It depends on which rows there are, so it is computed once, when all of them are known. When only some
best rows are asked for, only the nodes that can be among them are put in order.
Tests: tests/unit/engine/test_fuse.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.read.frame import Fused
from omnigraph.engine.read.nodes import Nodes
from omnigraph.engine.read.numbering import Positions, distinct_sorted
from omnigraph.engine.read.ordering import leading_rows, sort_keys, sorted_rows

Scores: TypeAlias = npt.NDArray[np.float64]

DEFAULT_K: Final = 60
"""Smooths fused ranks: without it the first of one ranking would always win."""

_FEW: Final = 32
"""Nodes among equals up to which those before each are counted, and not all of them sorted."""

_UNRANKED: Final = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class Arm:
    """One of the rankings: rows in order, the scores of all of them, the higher the better.

    Only the first `most` rows count; None for all.
    """

    rows: Positions
    scores: Scores
    most: int | None


Arms: TypeAlias = tuple[Arm, Arm]


def fuse(
    arms: Arms, nodes: Nodes, positions: Positions, k: int, best: int | None
) -> tuple[Positions, Fused]:
    """The rows that are in a ranking, ascending, with their fused rank.

    `positions` are the nodes that are ranked, one per row. With `best`, only rows that may be among so
    many that come first.
    """
    distinct, place = nodes.distinct(positions)
    rankings = [_Ranking.of(arm, nodes, distinct, place) for arm in arms]
    depth = _depth(rankings, k, best)
    firsts = [ranking.first(depth) for ranking in rankings]
    ranked = distinct_sorted(np.concatenate(firsts))
    ranks = [r.ranks(first, ranked) for r, first in zip(rankings, firsts, strict=True)]
    total = np.zeros(len(ranked))
    for rank in ranks:
        known = np.flatnonzero(rank != _UNRANKED)
        total[known] += 1.0 / (k + rank[known])
    fused = Fused(total, ranks[0], ranks[1])
    if place is None:
        return ranked, fused
    numbers = np.full(len(distinct), -1, np.int64)
    numbers[ranked] = np.arange(len(ranked))
    rows = np.flatnonzero(numbers[place] >= 0)
    return rows, fused.take(numbers[place[rows]])


def spread(rows: Positions, fused: Fused, length: int) -> Fused:
    """The fused ranks of all rows, from those of the rows that have one."""
    scores = np.full(length, np.nan)
    ranks = [np.full(length, _UNRANKED, np.int64) for _ in range(2)]
    scores[rows], ranks[0][rows], ranks[1][rows] = fused.scores, fused.first, fused.second
    return Fused(scores, ranks[0], ranks[1])


def _depth(rankings: list[_Ranking], k: int, best: int | None) -> int | None:
    """How far down the rankings there may be one of the best nodes.

    The first so many of one ranking have at least 1 / (k + best). A node that is not among them and in
    no other ranking has less, and a node of both has at most twice what the better of its ranks gives.
    """
    if best is None:
        return None
    is_in_one = any(ranking.most is not None and ranking.most <= best for ranking in rankings)
    return best if is_in_one else k + 2 * best


class _Ranking:
    """A ranking of distinct nodes: by score, then by id."""

    def __init__(
        self, nodes: Nodes, distinct: Positions, ranked: Positions, scores: Scores, most: int | None
    ) -> None:
        """The scores are those of the nodes whose places among the distinct ones are `ranked`."""
        self.most = most
        self._nodes = nodes
        self._distinct = distinct
        self._ranked = ranked
        self._scores = scores

    @classmethod
    def of(cls, arm: Arm, nodes: Nodes, distinct: Positions, place: Positions | None) -> _Ranking:
        """The ranking of nodes by the best of their rows."""
        if place is None:
            return cls(nodes, distinct, arm.rows, arm.scores, arm.most)
        best = np.full(len(distinct), -np.inf)
        np.maximum.at(best, place[arm.rows], arm.scores)
        ranked = np.flatnonzero(best > -np.inf)
        return cls(nodes, distinct, ranked, best[ranked], arm.most)

    def first(self, depth: int | None) -> Positions:
        """The nodes that come first, so many of those that count, in their order."""
        limits = [limit for limit in (depth, self.most) if limit is not None]
        count = min(limits, default=len(self._ranked))
        if count >= len(self._ranked):
            chosen = np.arange(len(self._ranked), dtype=np.int64)
        else:
            chosen = self._leading(count)
        return self._ranked[chosen[self._order(chosen)]]

    def ranks(self, first: Positions, wanted: Positions) -> npt.NDArray[np.int64]:
        """The rank of each wanted node, in order themselves, when the first ones are known."""
        ranks = np.full(len(wanted), _UNRANKED, np.int64)
        ranks[np.searchsorted(wanted, first)] = np.arange(1, len(first) + 1)
        if len(first) == len(self._ranked) or len(first) == self.most:
            return ranks
        place = np.minimum(np.searchsorted(self._ranked, wanted), len(self._ranked) - 1)
        further = np.flatnonzero((self._ranked[place] == wanted) & (ranks == _UNRANKED))
        ranks[further] = self._counted(place[further])
        return ranks

    def _leading(self, count: int) -> Positions:
        """Which nodes come first, so many, in no order."""
        leading = leading_rows(-self._scores, count)
        if len(leading) == count:
            return leading
        scores = self._scores[leading]
        last = scores == scores.min(initial=np.inf)
        surely, equal = leading[~last], leading[last]
        chosen = pc.bottom_k_unstable(self._ids(equal), k=count - len(surely)).to_numpy()
        return np.concatenate([surely, equal[chosen]])

    def _order(self, chosen: Positions) -> Positions:
        """The order of some nodes. Ids are looked at for equal scores only."""
        order = np.argsort(-self._scores[chosen])
        scores = self._scores[chosen[order]]
        group = np.cumsum(np.append(False, scores[1:] != scores[:-1])) if len(scores) else order
        equals = np.flatnonzero(np.bincount(group)[group] > 1) if len(scores) else order
        if len(equals):
            ids = sort_keys(self._ids(chosen[order[equals]]), descending=False)
            order[equals] = order[equals][sorted_rows([group[equals], *ids])]
        return order

    def _counted(self, chosen: Positions) -> npt.NDArray[np.int64]:
        """The ranks of some nodes, by counting those before them."""
        ascending = np.sort(self._scores)
        scores = self._scores[chosen]
        above = np.searchsorted(ascending, scores, side="right")
        ranks = len(ascending) - above + 1
        alike = above - np.searchsorted(ascending, scores) > 1
        for score in np.unique(scores[alike]):
            mine, equals = np.flatnonzero(scores == score), np.flatnonzero(self._scores == score)
            ranks[mine] += self._before(equals, np.searchsorted(equals, chosen[mine]))
        return ranks

    def _before(self, equals: Positions, wanted: Positions) -> Positions:
        """How many of some equals come before each wanted one of them, by their ids."""
        ids = self._ids(equals)
        if len(wanted) <= _FEW:
            found = (pc.sum(pc.less(ids, ids[place])).as_py() for place in wanted.tolist())
            return np.fromiter(found, np.int64, len(wanted))
        places = np.empty(len(equals), np.int64)
        places[sorted_rows(sort_keys(ids, descending=False))] = np.arange(len(equals))
        return places[wanted]

    def _ids(self, chosen: Positions) -> pa.Array:
        return self._nodes.ids(self._distinct[self._ranked[chosen]])
