"""Full-text matches, BM25 scores and vector distances, and the best rows by them.

A vector index names rows, never distances: those are always computed from the vectors. What an index cannot
answer well is computed exactly. Tests: tests/behaviour/test_search.py, test_approximate.py.

Reciprocal rank fusion makes one rank from two rankings of the same nodes. It depends on the set of rows, so
it is computed once all of them are known. If only the best rows are wanted, only nodes that can be among them
are sorted. Tests: tests/unit/engine/test_fuse.py."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, replace
from functools import partial
from math import ceil
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import InputError
from omnigraph.language.query.ast import TextFunction
from omnigraph.limits import APPROXIMATE_FROM
from omnigraph.plan.ir import Bm25, Constant, Expr, Nearest, Param, Prop, Rrf, TextMatch
from omnigraph.providers.configured import query_vector
from omnigraph.read.aggregate import leading_rows, sort_keys, sorted_rows
from omnigraph.read.frame import Frame, FusedRanks
from omnigraph.read.nodes import Nodes
from omnigraph.read.positions import Mask, Positions, sorted_distinct
from omnigraph.text.analyse import words_of_query
from omnigraph.text.index import ScoredRows, allowed_edits, any_word, bm25, near_words, phrase

if TYPE_CHECKING:
    from omnigraph.read.expressions import Expressions


Scores = npt.NDArray[np.float64]
"""NaN for rows without a score."""

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


MAX_EDITS: Final = 2

OVERFETCH: Final = 1.5
"""Factor on the rows requested from an index, of which enough should match the other conditions."""

MAX_INDEX_ROWS: Final = 10_000
"""Rows per index search above which comparing all vectors is as fast."""

_Value = TypeVar("_Value", bound=np.generic)


class Ranks:
    """Matches and ranks of one query run; created only for queries that search."""

    def __init__(self, expressions: Expressions, *, exact: bool) -> None:
        """With `exact`, all vectors are compared, however many there are."""
        self._expressions = expressions
        self._exact = exact
        self._text_scores: dict[tuple[str, str, str | None], ScoredRows] = {}
        self._distances: dict[Nearest, tuple[Positions, Scores]] = {}
        """The latest of each: rows are chosen by them, then sorted by them and may return them."""

    def best_rows(self, rank: Bm25 | Nearest, frame: Frame, count: int) -> Positions:
        """At least the `count` best rows by a rank, including ties, unordered."""
        variable = _field(rank).variable
        if isinstance(rank, Nearest):
            return self._nearest(
                rank, self._expressions.nodes(frame, variable), frame.columns[variable], count
            )
        rows, scores = self._scored_rows(rank, frame)
        return rows[leading_rows(-scores, count)]

    def fuse(self, rank: Rrf, frame: Frame, limit: int | None) -> FusedRanks:
        """The fused ranks of all rows of a query."""
        rows, fused = self._fused(rank, frame, limit, None)
        return fill_unranked(rows, fused, frame.length)

    def best_fused(self, rank: Rrf, frame: Frame, limit: int | None) -> Frame:
        """The rows that can be among the best by a fused rank; without a limit, all ranked rows."""
        rows, fused = self._fused(rank, frame, limit, limit)
        return replace(frame.take(rows), fused={rank: fused})

    def _fused(
        self, rank: Rrf, frame: Frame, limit: int | None, best: int | None
    ) -> tuple[Positions, FusedRanks]:
        variable = _field(rank.first).variable
        k = DEFAULT_K if rank.k is None else self._setting(rank.k, "rrf k", 1)
        lists, nodes = self._lists(rank, frame, limit), self._expressions.nodes(frame, variable)
        return fuse(lists, nodes, frame.columns[variable], k, best)

    def _lists(self, rank: Rrf, frame: Frame, limit: int | None) -> tuple[ScoredList, ScoredList]:
        """Both rankings, in parallel if one waits while the other computes."""
        first, second = _field(rank.first).variable, _field(rank.second).variable
        if frame.length < APPROXIMATE_FROM and not any(
            map(self._embeds, (rank.first, rank.second))
        ):
            # Two threads that only compute would slow each other down.
            one = self._list(rank.first, frame, first, limit)
            return one, self._list(rank.second, frame, first, limit)
        # Opened before two threads need them.
        self._expressions.nodes(frame, first)
        self._expressions.nodes(frame, second)
        with ThreadPoolExecutor(max_workers=1) as pool:
            ranking = partial(self._list, rank.second, frame, first, limit)
            other = pool.submit(copy_context().run, ranking)
            return self._list(rank.first, frame, first, limit), other.result()

    def _embeds(self, rank: Bm25 | Nearest) -> bool:
        """Whether a rank needs a text embedded, which may be a network call."""
        if not isinstance(rank, Nearest) or not isinstance(rank.query, Constant | Param):
            return False
        return isinstance(self._expressions.value(rank.query), str)

    def _list(
        self, rank: Bm25 | Nearest, frame: Frame, ranked: str, limit: int | None
    ) -> ScoredList:
        """The rows of one of two rankings of a variable's nodes, with their scores."""
        if isinstance(rank, Bm25):
            return ScoredList(*self._scored_rows(rank, frame), limit=None)
        if limit is not None and rank.field.variable == ranked:
            rows = self._rows_of_nearest(rank, frame, limit)
        else:
            rows = np.arange(frame.length, dtype=np.int64)
        scores = self.scores(rank, frame.take(rows))
        scored = ~np.isnan(scores)
        return ScoredList(rows[scored], -scores[scored], limit=limit)

    def _rows_of_nearest(self, rank: Nearest, frame: Frame, count: int) -> Positions:
        """All rows of the `count` nearest nodes, and possibly of others."""
        nodes = self._expressions.nodes(frame, rank.field.variable)
        distinct, inverse = nodes.distinct(frame.columns[rank.field.variable])
        if len(distinct) <= 4 * count:
            return np.arange(frame.length, dtype=np.int64)
        found = self._nearest(rank, nodes, distinct, count)
        return found if inverse is None else _rows_of(found, inverse, len(distinct))

    def _nearest(self, rank: Nearest, nodes: Nodes, positions: Positions, count: int) -> Positions:
        """Indices into positions: at least the `count` nearest to the query of a rank."""
        query = self._query_vector(rank)
        if query is None or not count:
            return np.empty(0, np.int64)
        name = rank.field.property
        if not self._exact:
            found = nearest_by_index(nodes, name, query, positions, count)
            if found is not None:
                return found
        vectors, at = nodes.vectors(name, positions)
        return vectors.nearest(query, at, count)

    def matches(self, match: TextMatch, frame: Frame) -> Mask:
        """Which rows match a text function."""
        field = _field(match)
        nodes = self._expressions.nodes(frame, field.variable)
        edits = None
        if match.edits is not None:
            edits = self._setting(match.edits, "fuzzy edits", 0, MAX_EDITS)

        def matches(query: str | None, positions: Positions) -> Mask:
            return text_matches(nodes, field.property, match.function, query, edits)[positions]

        return self._by_query(match, frame, matches, np.zeros(frame.length, np.bool_))

    def scores(self, rank: Bm25 | Nearest, frame: Frame) -> Scores:
        """The scores of rows, NaN for rows without one."""
        field = _field(rank)
        nodes, positions = (
            self._expressions.nodes(frame, field.variable),
            frame.columns[field.variable],
        )
        if isinstance(rank, Nearest):
            known = self._distances.get(rank)
            if known is None or known[0] is not positions:
                known = self._distances[rank] = positions, self._distance(rank, nodes, positions)
            return known[1]

        def scores(query: str | None, positions: Positions) -> Scores:
            return self._bm25(nodes, field.property, query).at(positions)

        return self._by_query(rank, frame, scores, np.full(frame.length, np.nan))

    def _by_query(
        self,
        expression: TextMatch | Bm25,
        frame: Frame,
        evaluate: Callable[[str | None, Positions], npt.NDArray[_Value]],
        empty: npt.NDArray[_Value],
    ) -> npt.NDArray[_Value]:
        """Values of rows, one distinct query text at a time; most queries have just one."""
        positions = frame.columns[_field(expression).variable]
        if isinstance(expression.query, Constant | Param):
            return evaluate(self._expressions.value(expression.query), positions)
        encoded = self._expressions.values(expression.query, frame).dictionary_encode()
        codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        for code, query in enumerate(encoded.dictionary.to_pylist()):
            rows = np.flatnonzero(codes == code)
            empty[rows] = evaluate(query, positions[rows])
        return empty

    def _distance(self, rank: Nearest, nodes: Nodes, positions: Positions) -> Scores:
        """The distance of each node to the query of a rank."""
        query = self._query_vector(rank)
        if query is None:
            return np.full(len(positions), np.nan)
        vectors, at = nodes.vectors(rank.field.property, positions)
        return vectors.distances(query, at)

    def _scored_rows(self, rank: Bm25, frame: Frame) -> tuple[Positions, Scores]:
        """The ascending rows whose text matches a query, with their scores."""
        field = _field(rank)
        nodes, positions = (
            self._expressions.nodes(frame, field.variable),
            frame.columns[field.variable],
        )
        if isinstance(rank.query, Constant | Param) and nodes.are_distinct(positions):
            found = self._bm25(nodes, field.property, self._expressions.value(rank.query))
            if nodes.covers_all(positions):
                return found.rows, found.scores
            return found.among(positions)
        scores = self.scores(rank, frame)
        rows = np.flatnonzero(~np.isnan(scores))
        return rows, scores[rows]

    def _bm25(self, nodes: Nodes, field: str, query: str | None) -> ScoredRows:
        """The nodes whose text matches a query, with their scores."""
        key = (nodes.declared.name, field, query)
        if key not in self._text_scores:
            words = [] if query is None else words_of_query(query)
            index = nodes.text_index(field)
            self._text_scores[key] = bm25(index, (word.text for word in words), nodes.visible)
        return self._text_scores[key]

    def _query_vector(self, rank: Nearest) -> npt.NDArray[np.float64] | None:
        assert isinstance(rank.query, Constant | Param)
        assert rank.field.type.dimension is not None
        given: Any = self._expressions.value(rank.query)
        if isinstance(given, str):
            given = query_vector(given, rank.field.type.dimension, rank.model)
        return None if given is None else np.asarray(given, np.float64)

    def _setting(self, expression: Expr, name: str, least: int, most: int | None = None) -> int:
        """A numeric argument; the compiler checked literals, so this checks parameters."""
        assert isinstance(expression, Constant | Param)
        value = self._expressions.value(expression)
        if not isinstance(value, int) or value < least or (most is not None and value > most):
            between = f"at least {least}" if most is None else f"between {least} and {most}"
            raise InputError(f"{name} must be {between}, got {value}")
        return value


def _field(expression: TextMatch | Bm25 | Nearest) -> Prop:
    assert isinstance(expression.field, Prop)
    return expression.field


def text_matches(
    nodes: Nodes, field: str, function: TextFunction, query: str | None, edits: int | None
) -> Mask:
    """Which nodes have a text that matches a query."""
    index = nodes.text_index(field)
    words = [] if query is None else words_of_query(query)
    match function:
        case TextFunction.SEARCH:
            return any_word(index, (word.text for word in words))
        case TextFunction.MATCH_TEXT:
            return phrase(index, words)
        case TextFunction.FUZZY:
            near: set[str] = set()
            for text in {word.text for word in words}:
                allowed = allowed_edits(text) if edits is None else edits
                near.update(near_words(index, text, allowed))
            return any_word(index, near)


def nearest_by_index(
    nodes: Nodes, name: str, query: npt.NDArray[np.float64], positions: Positions, count: int
) -> Positions | None:
    """Indices into positions: about the `count` nearest and possibly others; None to compare all."""
    if len(positions) < APPROXIMATE_FROM or not np.any(query):
        return None
    index = nodes.vector_index(name)
    if index is None:
        return None
    wanted, requested = None, count
    if not nodes.covers_all(positions):
        wanted = np.zeros(nodes.size, np.bool_)
        wanted[positions] = True
        candidates = int(np.count_nonzero(wanted))
        if candidates < APPROXIMATE_FROM:
            return None
        requested = ceil(OVERFETCH * count * nodes.size / candidates)
    while requested <= MAX_INDEX_ROWS:
        # An updated row may be indexed under its old vector as well.
        named = index.row_ids(query, requested)
        if named is None:
            return None
        found = np.unique(nodes.numbering.positions(named))
        if wanted is not None:
            found = found[wanted[found]]
        if len(found) >= count:
            return found if wanted is None else _rows_of(found, positions, nodes.size)
        if len(named) < requested:
            return None
        requested *= 4
    return None


def _rows_of(found: Positions, positions: Positions, size: int) -> Positions:
    """Indices of the positions, which may repeat, that are among those found."""
    among = np.zeros(size, np.bool_)
    among[found] = True
    return np.flatnonzero(among[positions])
