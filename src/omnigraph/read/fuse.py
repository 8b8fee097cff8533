"""Reciprocal rank fusion: one rank from two rankings of the same nodes.

It depends on the set of rows, so it is computed once all of them are known. If only the best rows are
wanted, only nodes that can be among them are sorted. Tests: tests/unit/engine/test_fuse.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.read.aggregate import leading_rows, sort_keys, sorted_rows
from omnigraph.read.frame import FusedRanks
from omnigraph.read.nodes import Nodes
from omnigraph.read.positions import Positions, sorted_distinct

Scores: TypeAlias = npt.NDArray[np.float64]

DEFAULT_K: Final = 60
"""Smooths fused ranks: without it the first row of one ranking would always win."""

MAX_COUNTED_TIES: Final = 32
"""Tied nodes up to which the ids before each are counted instead of sorting all ties."""

_UNRANKED: Final = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class ScoredList:
    """One input of a fusion: ascending rows and their scores, higher is better.

    Only the best `limit` rows count; None for all.
    """

    rows: Positions
    scores: Scores
    limit: int | None


def fuse(
    lists: tuple[ScoredList, ScoredList],
    nodes: Nodes,
    positions: Positions,
    k: int,
    best: int | None,
) -> tuple[Positions, FusedRanks]:
    """The ascending rows that are in a ranking, with their fused ranks.

    `positions` are the ranked nodes, one per row. With `best`, only rows that can be among that many
    best ones.
    """
    distinct, inverse = nodes.distinct(positions)
    rankings = [_Ranking.of(scored, nodes, distinct, inverse) for scored in lists]
    depth = _depth(rankings, k, best)
    firsts = [ranking.first(depth) for ranking in rankings]
    ranked = sorted_distinct(np.concatenate(firsts))
    ranks = [r.ranks(first, ranked) for r, first in zip(rankings, firsts, strict=True)]
    total = np.zeros(len(ranked))
    for rank in ranks:
        known = np.flatnonzero(rank != _UNRANKED)
        total[known] += 1.0 / (k + rank[known])
    fused = FusedRanks(total, ranks[0], ranks[1])
    if inverse is None:
        return ranked, fused
    numbers = np.full(len(distinct), -1, np.int64)
    numbers[ranked] = np.arange(len(ranked))
    rows = np.flatnonzero(numbers[inverse] >= 0)
    return rows, fused.take(numbers[inverse[rows]])


def fill_unranked(rows: Positions, fused: FusedRanks, length: int) -> FusedRanks:
    """The fused ranks of all `length` rows, from those of the ranked `rows`."""
    scores = np.full(length, np.nan)
    ranks = [np.full(length, _UNRANKED, np.int64) for _ in range(2)]
    scores[rows], ranks[0][rows], ranks[1][rows] = fused.scores, fused.first, fused.second
    return FusedRanks(scores, ranks[0], ranks[1])


def _depth(rankings: list[_Ranking], k: int, best: int | None) -> int | None:
    """The rank down to which a node can be among the best.

    The first `best` nodes of a ranking score at least 1 / (k + best). A node below them that is in no other
    ranking scores less, and a node of both scores at most twice what its better rank gives.
    """
    if best is None:
        return None
    is_in_one = any(ranking.limit is not None and ranking.limit <= best for ranking in rankings)
    return best if is_in_one else k + 2 * best


class _Ranking:
    """A ranking of distinct nodes: by score, then by id."""

    def __init__(
        self,
        nodes: Nodes,
        distinct: Positions,
        ranked: Positions,
        scores: Scores,
        limit: int | None,
    ) -> None:
        """`ranked` are the indices of the scored nodes among the distinct ones."""
        self.limit = limit
        self._nodes = nodes
        self._distinct = distinct
        self._ranked = ranked
        self._scores = scores

    @classmethod
    def of(
        cls, scored: ScoredList, nodes: Nodes, distinct: Positions, inverse: Positions | None
    ) -> _Ranking:
        """The ranking of nodes by their best row."""
        if inverse is None:
            return cls(nodes, distinct, scored.rows, scored.scores, scored.limit)
        best = np.full(len(distinct), -np.inf)
        np.maximum.at(best, inverse[scored.rows], scored.scores)
        ranked = np.flatnonzero(best > -np.inf)
        return cls(nodes, distinct, ranked, best[ranked], scored.limit)

    def first(self, depth: int | None) -> Positions:
        """The first nodes in rank order, down to a depth or the limit."""
        limits = [limit for limit in (depth, self.limit) if limit is not None]
        count = min(limits, default=len(self._ranked))
        if count >= len(self._ranked):
            chosen = np.arange(len(self._ranked), dtype=np.int64)
        else:
            chosen = self._leading(count)
        return self._ranked[chosen[self._order(chosen)]]

    def ranks(self, first: Positions, wanted: Positions) -> npt.NDArray[np.int64]:
        """The ranks of ascending nodes; `first` are the leading nodes in rank order."""
        ranks = np.full(len(wanted), _UNRANKED, np.int64)
        ranks[np.searchsorted(wanted, first)] = np.arange(1, len(first) + 1)
        if len(first) == len(self._ranked) or len(first) == self.limit:
            return ranks
        at = np.minimum(np.searchsorted(self._ranked, wanted), len(self._ranked) - 1)
        further = np.flatnonzero((self._ranked[at] == wanted) & (ranks == _UNRANKED))
        ranks[further] = self._count_ranks(at[further])
        return ranks

    def _leading(self, count: int) -> Positions:
        """The first `count` nodes, unordered."""
        leading = leading_rows(-self._scores, count)
        if len(leading) == count:
            return leading
        scores = self._scores[leading]
        last = scores == scores.min(initial=np.inf)
        surely, equal = leading[~last], leading[last]
        chosen = pc.bottom_k_unstable(self._ids(equal), k=count - len(surely)).to_numpy()
        return np.concatenate([surely, equal[chosen]])

    def _order(self, chosen: Positions) -> Positions:
        """The rank order of some nodes. Ids are compared for equal scores only."""
        order = np.argsort(-self._scores[chosen])
        scores = self._scores[chosen[order]]
        group = np.cumsum(np.append(False, scores[1:] != scores[:-1])) if len(scores) else order
        equals = np.flatnonzero(np.bincount(group)[group] > 1) if len(scores) else order
        if len(equals):
            ids = sort_keys(self._ids(chosen[order[equals]]), descending=False)
            order[equals] = order[equals][sorted_rows([group[equals], *ids])]
        return order

    def _count_ranks(self, chosen: Positions) -> npt.NDArray[np.int64]:
        """The ranks of some nodes, by counting the nodes before them."""
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
        """How many ties precede each wanted one of them by id."""
        ids = self._ids(equals)
        if len(wanted) <= MAX_COUNTED_TIES:
            found = (pc.sum(pc.less(ids, ids[tie])).as_py() for tie in wanted.tolist())
            return np.fromiter(found, np.int64, len(wanted))
        before = np.empty(len(equals), np.int64)
        before[sorted_rows(sort_keys(ids, descending=False))] = np.arange(len(equals))
        return before[wanted]

    def _ids(self, chosen: Positions) -> pa.Array:
        return self._nodes.ids(self._distinct[self._ranked[chosen]])
