"""Expression values for the rows of a binding table, and comparisons of them.

Values compare by value whatever their types: NaN equals itself and is greater than every number, -0.0
equals 0.0, and a null on either side makes a comparison false. Predicates pushed down to columns follow the
same rules.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.model import NodeType
from omnigraph.plan.ir import (
    BlockValue,
    Bm25,
    Case,
    Compute,
    Constant,
    EntityId,
    Expr,
    Filter,
    Logical,
    MakeList,
    MakeObject,
    Nearest,
    Null,
    NullTest,
    Param,
    Prop,
    Rrf,
    SystemField,
    TextMatch,
    variables_of,
)
from omnigraph.plan.ir import Comparison as Compared
from omnigraph.plan.ir import Not as Negated
from omnigraph.read.aggregate import GroupKey, key_of
from omnigraph.read.edge_rows import MEMBER_BITS
from omnigraph.read.frame import Frame, FusedRanks
from omnigraph.read.functions import is_true, repeated
from omnigraph.read.nodes import Nodes
from omnigraph.read.positions import Mask, Positions
from omnigraph.read.pushdown import stored_predicate
from omnigraph.read.source import GraphSource
from omnigraph.storage.filters import And
from omnigraph.storage.filters import Filter as StoredFilter


class BlockReader(Protocol):
    """Computes the values of blocks."""

    def values(self, block: BlockValue, frame: Frame) -> pa.Array: ...


if TYPE_CHECKING:
    from omnigraph.read.ranks import Ranks, Scores

COMPUTED: Final = (Compared, Logical, Negated, NullTest, Compute, Case, MakeList, Null)


class Expressions:
    """Evaluates the expressions of one query run."""

    def __init__(self, source: GraphSource, parameters: Mapping[str, Any]) -> None:
        self._source = source
        self._parameters = parameters
        self.blocks: BlockReader | None = None
        """What computes the values of blocks; the executor sets it."""

    @cached_property
    def ranks(self) -> Ranks:
        from omnigraph.read.ranks import Ranks

        return Ranks(self, exact=self._source.exact)

    def values(self, expression: Expr, frame: Frame, *, lenient: bool = False) -> pa.Array:
        """One value per row. An integer that leaves 64 bits is an error, or `lenient`ly null."""
        if frame.given and expression in frame.given:
            return frame.given[expression]
        if isinstance(expression, COMPUTED):
            from omnigraph.read.compute import Computation

            return Computation(self, frame).result(expression, lenient=lenient)
        match expression:
            case MakeObject():
                return self._objects(expression, frame)
            case Prop():
                if expression.type.is_blob:
                    return pa.nulls(frame.length, pa.utf8())
                return self._entity_values(expression.variable, expression.property, frame)
            case EntityId():
                return self._entity_values(expression.variable, "id", frame)
            case SystemField():
                if expression.field == "type":
                    return self._type_names(expression.variable, frame)
                return self._entity_values(expression.variable, expression.field, frame)
            case BlockValue():
                assert self.blocks is not None, "blocks are read inside an execution"
                return self.blocks.values(expression, frame)
            case Constant() | Param():
                return repeated(self.value(expression), expression.type, frame.length)
            case TextMatch():
                return pa.array(self._text_matches(expression, frame))
            case Bm25() | Nearest():
                return _nan_to_null(self._scores(expression, frame))
            case Rrf():
                return _nan_to_null(frame.fused[expression].scores)
            case _:
                raise AssertionError(f"{type(expression).__name__} has no value for a single row")

    def read_together(self, expressions: Iterable[Expr], frame: Frame) -> Frame:
        """The frame, after the properties that expressions show were read, those of a variable at once."""
        shown: dict[str, dict[str, Prop]] = {}
        for expression in expressions:
            if isinstance(expression, Prop) and not expression.type.is_blob:
                shown.setdefault(expression.variable, {})[expression.property] = expression
        given = dict(frame.given)
        for variable, props in shown.items():
            kind = frame.types[variable]
            if len(props) < 2 or not (isinstance(kind, str | tuple) and kind):
                continue
            if variable in frame.columns and frame.unbound(variable) is None:
                nodes = self._source.entities(kind)
                found = nodes.read_together(props, frame.columns[variable])
                given |= {props[name]: values for name, values in found.items()}
        return replace(frame, given=given) if len(given) > len(frame.given) else frame

    # -- text and ranks of variables that may be unbound ------------------------------------

    def bound_rows(self, expression: Expr, frame: Frame) -> Mask | None:
        """The rows that bind all variables of an expression; None if all rows do."""
        masks = [frame.unbound(name) for name in variables_of(expression)]
        unbound = [mask for mask in masks if mask is not None]
        return ~np.logical_or.reduce(unbound) if unbound else None

    def _text_matches(self, match: TextMatch, frame: Frame) -> Mask:
        bound = self.bound_rows(match, frame)
        if bound is None:
            return self.ranks.matches(match, frame)
        found = np.zeros(frame.length, np.bool_)
        found[bound] = self.ranks.matches(match, frame.where(bound))
        return found

    def _scores(self, rank: Bm25 | Nearest, frame: Frame) -> Scores:
        bound = self.bound_rows(rank, frame)
        if bound is None:
            return self.ranks.scores(rank, frame)
        found = np.full(frame.length, np.nan)
        found[bound] = self.ranks.scores(rank, frame.where(bound))
        return found

    def fused(self, rank: Rrf, frame: Frame, limit: int | None) -> FusedRanks:
        """Two rankings fused; rows that leave a ranked variable unbound are in neither."""
        bound = self.bound_rows(rank, frame)
        if bound is None:
            return self.ranks.fuse(rank, frame, limit)
        from omnigraph.read.ranks import fill_unranked

        found = self.ranks.fuse(rank, frame.where(bound), limit)
        return fill_unranked(np.flatnonzero(bound), found, frame.length)

    # -- nodes and edges --------------------------------------------------------------------

    def _entity_values(self, variable: str, name: str, frame: Frame) -> pa.Array:
        """A property or stored field of a variable, or a part of a path; null where it is unbound."""
        kind, positions = frame.types[variable], frame.columns[variable]
        if not isinstance(kind, str | tuple):
            return kind.values(name, positions)
        if not kind:
            return pa.nulls(frame.length, pa.utf8())
        unbound = frame.unbound(variable)
        if unbound is None:
            return self._source.entities(kind).values(name, positions)
        found = self._source.entities(kind).values(name, positions[~unbound])
        return found.take(pa.array(np.cumsum(~unbound) - 1, mask=unbound))

    def _type_names(self, variable: str, frame: Frame) -> pa.Array:
        """The declared type of each node or edge of a variable."""
        kind = frame.types[variable]
        names: list[str | None] = [None]
        if isinstance(kind, str):
            names = [kind]
        elif isinstance(kind, tuple) and kind:
            names = list(kind)
        numbers = frame.columns[variable] >> MEMBER_BITS if len(names) > 1 else None
        numbers = np.zeros(frame.length, np.int64) if numbers is None else np.maximum(numbers, 0)
        mask = frame.unbound(variable)
        return pa.array(names, pa.utf8()).take(pa.array(numbers, mask=mask))

    def _objects(self, expression: MakeObject, frame: Frame) -> pa.Array:
        """One object per row; null where its variable is unbound."""
        values = [self.values(value, frame) for _, value in expression.fields]
        names = [name for name, _ in expression.fields]
        flat = [v.combine_chunks() if isinstance(v, pa.ChunkedArray) else v for v in values]
        absent = frame.columns[expression.variable] < 0
        mask = pa.array(absent) if absent.any() else None
        return pa.StructArray.from_arrays(flat, names=names, mask=mask)

    def select(
        self, nodes: Nodes, conditions: tuple[Filter, ...], positions: Positions | None = None
    ) -> Positions:
        """The nodes, of all or of some, that match conditions on one variable."""
        pushed, others = self._split(conditions)
        if pushed is not None:
            positions = nodes.select(pushed, positions)
        elif positions is None:
            positions = nodes.all()
        for condition in others:
            positions = positions[self._matches_one(nodes, condition, positions)]
        return positions

    def matches(self, nodes: Nodes, conditions: tuple[Filter, ...], positions: Positions) -> Mask:
        """Which of the nodes, which may repeat, match conditions on one variable."""
        if nodes.is_whole and len(positions) > nodes.size:
            mask = np.zeros(nodes.size, np.bool_)
            mask[self.select(nodes, conditions)] = True
            return mask[positions]
        pushed, others = self._split(conditions)
        if pushed is None:
            met = np.ones(len(positions), np.bool_)
        else:
            met = nodes.matches(pushed, positions)
        for condition in others:
            met &= self._matches_one(nodes, condition, positions)
        return met

    def holds(self, condition: Filter, frame: Frame) -> Mask:
        """For which rows a comparison is true."""
        pushed = self.pushdown(condition)
        if pushed is not None:
            variable = next(iter(condition.variables))
            if frame.unbound(variable) is None:
                return self.nodes(frame, variable).matches(pushed, frame.columns[variable])
        return is_true(self.values(condition.condition, frame, lenient=True))

    def named_node(self, expression: Expr, frame: Frame) -> str | None:
        """The variable that an expression identifies: equal values always come from one node."""
        if not isinstance(expression, EntityId | Prop) or expression.variable in frame.optional:
            return None
        nodes = self.nodes(frame, expression.variable)
        if isinstance(expression, EntityId):
            return expression.variable if isinstance(nodes.kind, str) else None
        key = nodes.declared.key if isinstance(nodes.declared, NodeType) else None
        return expression.variable if key == (expression.property,) else None

    def node_count(self, variable: str, frame: Frame) -> int:
        """The number of positions of a variable's type."""
        return self.nodes(frame, variable).size

    def group_key(self, expression: Expr, frame: Frame) -> GroupKey:
        """Equal values of an expression as equal codes."""
        if isinstance(expression, Prop) and expression.variable not in frame.optional:
            nodes = self.nodes(frame, expression.variable)
            positions = frame.columns[expression.variable]
            codes = nodes.codes(expression.property)
            if codes is not None and codes.dictionary is not None:
                numbers = codes.codes[positions].astype(np.int64) + 1
                return GroupKey(numbers, len(codes.dictionary) + 1)
            if nodes.is_whole and nodes.size < frame.length:
                key = key_of(nodes.dense(expression.property))
                return GroupKey(key.codes[positions], key.size)
        return key_of(self.values(expression, frame))

    def presence(self, expression: Expr, frame: Frame) -> pa.Array:
        """True where a property has a value, or a variable is bound, and null elsewhere."""
        if isinstance(expression, EntityId):
            unbound = frame.unbound(expression.variable)
            return pa.array(np.ones(frame.length, np.bool_), mask=unbound)
        assert isinstance(expression, Prop)
        values = self._entity_values(expression.variable, expression.property, frame)
        return pc.if_else(values.is_valid(), True, pa.scalar(None, pa.bool_()))

    def value(self, expression: Constant | Param) -> Any:
        if isinstance(expression, Constant):
            return expression.value
        return self._parameters[expression.name]

    def _split(
        self, conditions: tuple[Filter, ...]
    ) -> tuple[StoredFilter | None, tuple[Filter, ...]]:
        """Conditions that can be pushed down, as one predicate, and the others."""
        found = [(condition, self.pushdown(condition)) for condition in conditions]
        pushed = tuple(predicate for _, predicate in found if predicate is not None)
        others = tuple(condition for condition, predicate in found if predicate is None)
        return (pushed[0] if len(pushed) == 1 else And(pushed) if pushed else None), others

    def _matches_one(self, nodes: Nodes, condition: Filter, positions: Positions) -> Mask:
        variable = next(iter(condition.variables))
        frame = Frame(len(positions), {variable: positions}, {variable: nodes.kind})
        return self.holds(condition, frame)

    def pushdown(self, condition: Filter) -> StoredFilter | None:
        """A condition on the properties of one variable as a predicate on them, if it can be one."""
        if len(condition.variables) != 1:
            return None
        return stored_predicate(condition.condition, self.value)

    def nodes(self, frame: Frame, variable: str) -> Nodes:
        """The nodes of a variable's type."""
        kind = frame.types[variable]
        assert isinstance(kind, str | tuple), "a path has no rows"
        return self._source.entities(kind)


def _nan_to_null(scores: Scores) -> pa.Array:
    return pa.array(scores, mask=np.isnan(scores))
