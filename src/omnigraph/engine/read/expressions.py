"""Values of expressions for the rows of a binding table, and conditions on them."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.arrow import arrow_type
from omnigraph.engine.read.approximate import nearest_through_index
from omnigraph.engine.read.compare import compare
from omnigraph.engine.read.frame import Frame, Fused
from omnigraph.engine.read.fuse import DEFAULT_K, Arm, Arms, fuse, spread
from omnigraph.engine.read.grouping import Key, key_of
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
from omnigraph.engine.read.source import GraphSource
from omnigraph.engine.read.vectors import numbers_of
from omnigraph.errors import InputError
from omnigraph.language.query.ast import Operator
from omnigraph.limits import APPROXIMATE_FROM
from omnigraph.plan.ir import (
    Aggregated,
    Bm25,
    Constant,
    EntityId,
    Expr,
    Filter,
    Nearest,
    Param,
    Prop,
    Rrf,
    TextMatch,
    variables_of,
)
from omnigraph.rows.build import build_column
from omnigraph.storage.filters import And, Comparison, In
from omnigraph.storage.filters import Filter as StoredFilter
from omnigraph.text.matching import ScoredRows

_FLIPPED = {
    Operator.EQ: Operator.EQ,
    Operator.NE: Operator.NE,
    Operator.LT: Operator.GT,
    Operator.LE: Operator.GE,
    Operator.GT: Operator.LT,
    Operator.GE: Operator.LE,
}


class Expressions:
    """Evaluates expressions of one query run."""

    def __init__(self, source: GraphSource, parameters: Mapping[str, Any]) -> None:
        self._source = source
        self._parameters = parameters
        self._text_scores: dict[tuple[str, str, str | None], ScoredRows] = {}
        self._distances: dict[Nearest, tuple[Positions, Scores]] = {}
        """The latest of each: what rows are chosen by, they are then ordered by and may show."""

    def values(self, expression: Expr, frame: Frame) -> pa.Array:
        """One value per row."""
        match expression:
            case Prop():
                nodes = self._nodes(frame, expression.variable)
                if expression.type.is_blob:
                    return pa.nulls(frame.length, pa.utf8())
                return nodes.values(expression.property, frame.columns[expression.variable])
            case EntityId():
                nodes = self._nodes(frame, expression.variable)
                return nodes.ids(frame.columns[expression.variable])
            case Constant() | Param():
                return self._repeated(expression, frame.length)
            case TextMatch():
                return pa.array(self._matches(expression, frame))
            case Bm25() | Nearest():
                return _scored(self._scores(expression, frame))
            case Rrf():
                return _scored(frame.fused[expression].scores)
            case Aggregated():
                raise AssertionError("an aggregate has no value for a single row")

    def best_rows(self, rank: Bm25 | Nearest, frame: Frame, count: int) -> Positions:
        """The rows that come first by a rank, so many and all their equals at least, in no order."""
        variable = _field(rank).variable
        if isinstance(rank, Nearest):
            return self._nearest(rank, self._nodes(frame, variable), frame.columns[variable], count)
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
        arms, nodes = self._arms(rank, frame, limit), self._nodes(frame, variable)
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
        self._nodes(frame, first)
        self._nodes(frame, second)
        with ThreadPoolExecutor(max_workers=1) as beside:
            other = beside.submit(self._arm, rank.second, frame, first, limit)
            return self._arm(rank.first, frame, first, limit), other.result()

    def _embeds(self, rank: Bm25 | Nearest) -> bool:
        """Whether a text has to be embedded for a rank, which may take a call over the network."""
        if not isinstance(rank, Nearest) or not isinstance(rank.query, Constant | Param):
            return False
        return isinstance(self.value(rank.query), str)

    def _arm(self, rank: Bm25 | Nearest, frame: Frame, ranked: str, limit: int | None) -> Arm:
        """The rows that one of two rankings of a variable's nodes ranks, with their scores."""
        if isinstance(rank, Bm25):
            return Arm(*self._scored_rows(rank, frame), most=None)
        if limit is not None and rank.field.variable == ranked:
            rows = self._rows_of_nearest(rank, frame, limit)
        else:
            rows = np.arange(frame.length, dtype=np.int64)
        scores = self._scores(rank, frame.take(rows))
        scored = ~np.isnan(scores)
        return Arm(rows[scored], -scores[scored], most=limit)

    def _rows_of_nearest(self, rank: Nearest, frame: Frame, count: int) -> Positions:
        """All rows of so many nodes that are nearest to what a rank asks for, and maybe of others."""
        nodes = self._nodes(frame, rank.field.variable)
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
        """Indices into positions: those nearest to what a rank asks for, so many at least."""
        query = self._query_vector(rank)
        if query is None or not count:
            return np.empty(0, np.int64)
        name = rank.field.property
        if not self._source.exact:
            found = nearest_through_index(nodes, name, query, positions, count)
            if found is not None:
                return found
        vectors, places = nodes.vectors(name, positions)
        return vectors.nearest(query, places, count)

    def select(
        self, nodes: Nodes, conditions: tuple[Filter, ...], positions: Positions | None = None
    ) -> Positions:
        """The nodes, of all or of some, that meet conditions on one variable."""
        plain, others = self._split(conditions)
        if plain is not None:
            positions = nodes.select(plain, positions)
        elif positions is None:
            positions = nodes.all()
        for condition in others:
            positions = positions[self._met_by(nodes, condition, positions)]
        return positions

    def meets(self, nodes: Nodes, conditions: tuple[Filter, ...], positions: Positions) -> Mask:
        """Which of the nodes, some of them repeated, meet conditions on one variable."""
        if nodes.is_whole and len(positions) > nodes.size:
            mask = np.zeros(nodes.size, np.bool_)
            mask[self.select(nodes, conditions)] = True
            return mask[positions]
        plain, others = self._split(conditions)
        met = np.ones(len(positions), np.bool_) if plain is None else nodes.meets(plain, positions)
        for condition in others:
            met &= self._met_by(nodes, condition, positions)
        return met

    def holds(self, condition: Filter, frame: Frame) -> Mask:
        """For which rows a comparison is true."""
        plain = self.plain(condition)
        if plain is not None:
            variable = next(iter(_variables(condition)))
            return self._nodes(frame, variable).meets(plain, frame.columns[variable])
        left = self.values(condition.left, frame)
        right = self.values(condition.right, frame)
        if pa.types.is_fixed_size_list(left.type):
            return _same_vectors(left, right)
        return compare(left, condition.operator, right)

    def named_node(self, expression: Expr, frame: Frame) -> str | None:
        """The variable whose node an expression tells: equal values always come from one node."""
        if isinstance(expression, EntityId):
            return expression.variable
        if isinstance(expression, Prop):
            nodes = self._nodes(frame, expression.variable)
            return expression.variable if nodes.declared.key == (expression.property,) else None
        return None

    def node_count(self, variable: str, frame: Frame) -> int:
        """The number of positions nodes of a variable's type have."""
        return self._nodes(frame, variable).size

    def group_key(self, expression: Expr, frame: Frame) -> Key:
        """Equal values of an expression as equal numbers."""
        if isinstance(expression, Prop):
            nodes = self._nodes(frame, expression.variable)
            positions = frame.columns[expression.variable]
            codes = nodes.codes(expression.property)
            if codes is not None and codes.texts is not None:
                return Key(codes.numbers[positions].astype(np.int64) + 1, len(codes.texts) + 1)
            if nodes.is_whole and nodes.size < frame.length:
                key = key_of(nodes.dense(expression.property))
                return Key(key.codes[positions], key.size)
        return key_of(self.values(expression, frame))

    def presence(self, expression: Expr, frame: Frame) -> pa.Array:
        """True where a property has a value and null where it has none, whatever its type."""
        assert isinstance(expression, Prop)
        nodes = self._nodes(frame, expression.variable)
        values = nodes.values(expression.property, frame.columns[expression.variable])
        return pc.if_else(values.is_valid(), True, pa.scalar(None, pa.bool_()))

    def value(self, expression: Constant | Param) -> Any:
        if isinstance(expression, Constant):
            return expression.value
        return self._parameters[expression.name]

    def _matches(self, match: TextMatch, frame: Frame) -> Mask:
        field = _field(match)
        nodes = self._nodes(frame, field.variable)
        edits = None
        if match.edits is not None:
            edits = self._setting(match.edits, "fuzzy edits", 0, MOST_EDITS)

        def matches(query: str | None, positions: Positions) -> Mask:
            return text_matches(nodes, field.property, match.function, query, edits)[positions]

        positions = frame.columns[field.variable]
        if isinstance(match.query, Constant | Param):
            return matches(self.value(match.query), positions)
        queries = self.values(match.query, frame)
        return by_query(queries, positions, matches, np.zeros(frame.length, np.bool_))

    def _scores(self, rank: Bm25 | Nearest, frame: Frame) -> Scores:
        """A score per row, NaN for rows without one."""
        field = _field(rank)
        nodes, positions = self._nodes(frame, field.variable), frame.columns[field.variable]
        if isinstance(rank, Nearest):
            known = self._distances.get(rank)
            if known is None or known[0] is not positions:
                known = self._distances[rank] = positions, self._computed(rank, nodes, positions)
            return known[1]

        def scores(query: str | None, positions: Positions) -> Scores:
            return self._answers(nodes, field.property, query).at(positions)

        if isinstance(rank.query, Constant | Param):
            return scores(self.value(rank.query), positions)
        queries = self.values(rank.query, frame)
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
        nodes, positions = self._nodes(frame, field.variable), frame.columns[field.variable]
        if isinstance(rank.query, Constant | Param) and nodes.are_distinct(positions):
            found = self._answers(nodes, field.property, self.value(rank.query))
            if nodes.is_everything(positions):
                return found.rows, found.scores
            return found.among(positions)
        scores = self._scores(rank, frame)
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
        return query_numbers(self.value(rank.query), rank.field.type.dimension, rank.model)

    def _setting(self, expression: Expr, name: str, least: int, most: int | None = None) -> int:
        """A number that a function is told; a literal was checked before, a parameter is now."""
        assert isinstance(expression, Constant | Param)
        value = self.value(expression)
        if not isinstance(value, int) or value < least or (most is not None and value > most):
            between = f"at least {least}" if most is None else f"between {least} and {most}"
            raise InputError(f"{name} must be {between}, got {value}")
        return value

    def _split(
        self, conditions: tuple[Filter, ...]
    ) -> tuple[StoredFilter | None, tuple[Filter, ...]]:
        """Conditions that are predicates on columns, as one, and the others."""
        found = [(condition, self.plain(condition)) for condition in conditions]
        plain = tuple(predicate for _, predicate in found if predicate is not None)
        others = tuple(condition for condition, predicate in found if predicate is None)
        return (plain[0] if len(plain) == 1 else And(plain) if plain else None), others

    def _met_by(self, nodes: Nodes, condition: Filter, positions: Positions) -> Mask:
        variable = next(iter(_variables(condition)))
        frame = Frame(len(positions), {variable: positions}, {variable: nodes.declared.name})
        return self.holds(condition, frame)

    def plain(self, condition: Filter) -> StoredFilter | None:
        """A comparison of a property with a constant, as the columns' own predicates say it."""
        left, right, operator = condition.left, condition.right, condition.operator
        if left.type.is_vector or right.type.is_vector:
            return None
        if operator is Operator.CONTAINS and isinstance(left, Constant | Param) and left.type.list:
            return self._one_of(left, right)
        if isinstance(right, Prop | EntityId) and isinstance(left, Constant | Param):
            if operator not in _FLIPPED:
                return None
            left, right, operator = right, left, _FLIPPED[operator]
        if not isinstance(left, Prop | EntityId) or not isinstance(right, Constant | Param):
            return None
        name = left.property if isinstance(left, Prop) else "id"
        return Comparison(name, operator.value, self.value(right))

    def _one_of(self, items: Constant | Param, needle: Expr) -> StoredFilter | None:
        """A list of constants that contains a property: the property is one of them."""
        if not isinstance(needle, Prop | EntityId):
            return None
        name = needle.property if isinstance(needle, Prop) else "id"
        found = self.value(items)
        if found is None:
            return Comparison(name, "=", None)
        return In(name, tuple(item for item in found if item is not None))

    def _nodes(self, frame: Frame, variable: str) -> Nodes:
        return self._source.nodes(frame.types[variable])

    def _repeated(self, expression: Constant | Param, length: int) -> pa.Array:
        value = self.value(expression)
        if value is None:
            return pa.nulls(length, arrow_type(expression.type))
        if isinstance(value, tuple):
            is_float = expression.type.scalar.is_float
            value = [float(v) if is_float and v is not None else v for v in value]
        one = build_column([value], expression.type)
        return one.take(pa.array(np.zeros(length, np.int64)))


def _field(expression: TextMatch | Bm25 | Nearest) -> Prop:
    assert isinstance(expression.field, Prop)
    return expression.field


def _scored(scores: Scores) -> pa.Array:
    return pa.array(scores, mask=np.isnan(scores))


def _same_vectors(left: pa.Array, right: pa.Array) -> Mask:
    """Vectors that are equal number by number; a missing one equals nothing."""
    if not len(left):
        return np.zeros(0, np.bool_)
    known = pc.and_(left.is_valid(), right.is_valid())
    mine, given = (numbers_of(values) for values in (left, right))
    same = (mine == given) | (np.isnan(mine) & np.isnan(given))
    return np.asarray(same.all(axis=1) & known.to_numpy(zero_copy_only=False), np.bool_)


def _variables(condition: Filter) -> frozenset[str]:
    return variables_of(condition.left) | variables_of(condition.right)
