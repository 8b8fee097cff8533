"""Text matches, scores of texts and distances of vectors, and the rows that come first by them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from omnigraph.engine.read.approximate import nearest_through_index
from omnigraph.engine.read.frame import Frame, Fused
from omnigraph.engine.read.fuse import DEFAULT_K, Arm, Arms, fuse, spread
from omnigraph.engine.read.nodes import Nodes
from omnigraph.engine.read.numbering import Mask, Positions
from omnigraph.engine.read.ordering import leading_rows
from omnigraph.engine.read.search import (
    MOST_EDITS,
    Scores,
    by_query,
    query_numbers,
    text_matches,
    text_scores,
)
from omnigraph.errors import InputError
from omnigraph.limits import APPROXIMATE_FROM
from omnigraph.plan.ir import Bm25, Constant, Expr, Nearest, Param, Prop, Rrf, TextMatch
from omnigraph.text.matching import ScoredRows

if TYPE_CHECKING:
    from omnigraph.engine.read.expressions import Expressions


class Ranks:
    """Matches and ranks of one query run. A query that searches nothing has no need of them."""

    def __init__(self, expressions: Expressions, *, exact: bool) -> None:
        """With `exact` the nearest vectors are those of all, however many there are."""
        self._expressions = expressions
        self._exact = exact
        self._text_scores: dict[tuple[str, str, str | None], ScoredRows] = {}
        self._distances: dict[Nearest, tuple[Positions, Scores]] = {}
        """The latest of each: what rows are chosen by, they are then ordered by and may show."""

    def best_rows(self, rank: Bm25 | Nearest, frame: Frame, count: int) -> Positions:
        """At least the wanted number of rows that come first by a rank, with all ties, in no order."""
        variable = _field(rank).variable
        if isinstance(rank, Nearest):
            return self._nearest(
                rank, self._expressions.nodes(frame, variable), frame.columns[variable], count
            )
        rows, scores = self._scored_rows(rank, frame)
        return rows[leading_rows(-scores, count)]

    def fuse(self, rank: Rrf, frame: Frame, limit: int | None) -> Fused:
        """The fused rank of all rows of a query: it depends on which rows there are."""
        rows, fused = self._fused(rank, frame, limit, None)
        return spread(rows, fused, frame.length)

    def best_fused(self, rank: Rrf, frame: Frame, limit: int | None) -> Frame:
        """The rows that may come first by a fused rank, with it; all that have one without a limit."""
        rows, fused = self._fused(rank, frame, limit, limit)
        return replace(frame.take(rows), fused={rank: fused})

    def _fused(
        self, rank: Rrf, frame: Frame, limit: int | None, best: int | None
    ) -> tuple[Positions, Fused]:
        variable = _field(rank.first).variable
        k = DEFAULT_K if rank.k is None else self._setting(rank.k, "rrf k", 1)
        arms, nodes = self._arms(rank, frame, limit), self._expressions.nodes(frame, variable)
        return fuse(arms, nodes, frame.columns[variable], k, best)

    def _arms(self, rank: Rrf, frame: Frame, limit: int | None) -> Arms:
        """Both rankings, at the same time if one waits while the other computes."""
        first, second = _field(rank.first).variable, _field(rank.second).variable
        if frame.length < APPROXIMATE_FROM and not any(
            map(self._embeds, (rank.first, rank.second))
        ):
            # Two that only compute would get in each other's way.
            one = self._arm(rank.first, frame, first, limit)
            return one, self._arm(rank.second, frame, first, limit)
        # Opened before there are two who would open them.
        self._expressions.nodes(frame, first)
        self._expressions.nodes(frame, second)
        with ThreadPoolExecutor(max_workers=1) as beside:
            other = beside.submit(self._arm, rank.second, frame, first, limit)
            return self._arm(rank.first, frame, first, limit), other.result()

    def _embeds(self, rank: Bm25 | Nearest) -> bool:
        """Whether a text has to be embedded for a rank, which may take a call over the network."""
        if not isinstance(rank, Nearest) or not isinstance(rank.query, Constant | Param):
            return False
        return isinstance(self._expressions.value(rank.query), str)

    def _arm(self, rank: Bm25 | Nearest, frame: Frame, ranked: str, limit: int | None) -> Arm:
        """The rows that one of two rankings of a variable's nodes ranks, with their scores."""
        if isinstance(rank, Bm25):
            return Arm(*self._scored_rows(rank, frame), most=None)
        if limit is not None and rank.field.variable == ranked:
            rows = self._rows_of_nearest(rank, frame, limit)
        else:
            rows = np.arange(frame.length, dtype=np.int64)
        scores = self.scores(rank, frame.take(rows))
        scored = ~np.isnan(scores)
        return Arm(rows[scored], -scores[scored], most=limit)

    def _rows_of_nearest(self, rank: Nearest, frame: Frame, count: int) -> Positions:
        """All rows of the wanted number of nodes nearest to what a rank asks for, and maybe of others."""
        nodes = self._expressions.nodes(frame, rank.field.variable)
        distinct, place = nodes.distinct(frame.columns[rank.field.variable])
        if len(distinct) <= 4 * count:
            return np.arange(frame.length, dtype=np.int64)
        found = self._nearest(rank, nodes, distinct, count)
        if place is None:
            return found
        among = np.zeros(len(distinct), np.bool_)
        among[found] = True
        return np.flatnonzero(among[place])

    def _nearest(self, rank: Nearest, nodes: Nodes, positions: Positions, count: int) -> Positions:
        """Indices into positions: at least the wanted number of those nearest to what a rank asks for."""
        query = self._query_vector(rank)
        if query is None or not count:
            return np.empty(0, np.int64)
        name = rank.field.property
        if not self._exact:
            found = nearest_through_index(nodes, name, query, positions, count)
            if found is not None:
                return found
        vectors, places = nodes.vectors(name, positions)
        return vectors.nearest(query, places, count)

    def matches(self, match: TextMatch, frame: Frame) -> Mask:
        field = _field(match)
        nodes = self._expressions.nodes(frame, field.variable)
        edits = None
        if match.edits is not None:
            edits = self._setting(match.edits, "fuzzy edits", 0, MOST_EDITS)

        def matches(query: str | None, positions: Positions) -> Mask:
            return text_matches(nodes, field.property, match.function, query, edits)[positions]

        positions = frame.columns[field.variable]
        if isinstance(match.query, Constant | Param):
            return matches(self._expressions.value(match.query), positions)
        queries = self._expressions.values(match.query, frame)
        return by_query(queries, positions, matches, np.zeros(frame.length, np.bool_))

    def scores(self, rank: Bm25 | Nearest, frame: Frame) -> Scores:
        """A score per row, NaN for rows without one."""
        field = _field(rank)
        nodes, positions = (
            self._expressions.nodes(frame, field.variable),
            frame.columns[field.variable],
        )
        if isinstance(rank, Nearest):
            known = self._distances.get(rank)
            if known is None or known[0] is not positions:
                known = self._distances[rank] = positions, self._computed(rank, nodes, positions)
            return known[1]

        def scores(query: str | None, positions: Positions) -> Scores:
            return self._answers(nodes, field.property, query).at(positions)

        if isinstance(rank.query, Constant | Param):
            return scores(self._expressions.value(rank.query), positions)
        queries = self._expressions.values(rank.query, frame)
        return by_query(queries, positions, scores, np.full(frame.length, np.nan))

    def _computed(self, rank: Nearest, nodes: Nodes, positions: Positions) -> Scores:
        """The distance of each node to what a rank asks for."""
        query = self._query_vector(rank)
        if query is None:
            return np.full(len(positions), np.nan)
        vectors, places = nodes.vectors(rank.field.property, positions)
        return vectors.distances(query, places)

    def _scored_rows(self, rank: Bm25, frame: Frame) -> tuple[Positions, Scores]:
        """The rows whose text answers a query, in order, and how well."""
        field = _field(rank)
        nodes, positions = (
            self._expressions.nodes(frame, field.variable),
            frame.columns[field.variable],
        )
        if isinstance(rank.query, Constant | Param) and nodes.are_distinct(positions):
            found = self._answers(nodes, field.property, self._expressions.value(rank.query))
            if nodes.is_everything(positions):
                return found.rows, found.scores
            return found.among(positions)
        scores = self.scores(rank, frame)
        rows = np.flatnonzero(~np.isnan(scores))
        return rows, scores[rows]

    def _answers(self, nodes: Nodes, field: str, query: str | None) -> ScoredRows:
        """All nodes whose text answers a query."""
        key = (nodes.declared.name, field, query)
        if key not in self._text_scores:
            self._text_scores[key] = text_scores(nodes, field, query)
        return self._text_scores[key]

    def _query_vector(self, rank: Nearest) -> npt.NDArray[np.float64] | None:
        assert isinstance(rank.query, Constant | Param)
        assert rank.field.type.dimension is not None
        return query_numbers(
            self._expressions.value(rank.query), rank.field.type.dimension, rank.model
        )

    def _setting(self, expression: Expr, name: str, least: int, most: int | None = None) -> int:
        """A number that a function is told; a literal was checked before, a parameter is now."""
        assert isinstance(expression, Constant | Param)
        value = self._expressions.value(expression)
        if not isinstance(value, int) or value < least or (most is not None and value > most):
            between = f"at least {least}" if most is None else f"between {least} and {most}"
            raise InputError(f"{name} must be {between}, got {value}")
        return value


def _field(expression: TextMatch | Bm25 | Nearest) -> Prop:
    assert isinstance(expression.field, Prop)
    return expression.field
