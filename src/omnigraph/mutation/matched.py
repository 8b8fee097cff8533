"""The changes of a match statement: its rows, the values for them, and one batch per action."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec.structs import replace

from omnigraph.catalog.constraints import key_assigned
from omnigraph.catalog.model import EdgeType, EntityType, NodeType
from omnigraph.errors import DifferentValues
from omnigraph.language.schema.ast import ENDPOINTS
from omnigraph.mutation.checks import refuse_any
from omnigraph.mutation.values import stored_column
from omnigraph.mutation.working import Found
from omnigraph.mutation.writes import BEFORE_NODE_DELETE, RowWriter
from omnigraph.plan.changes import (
    Action,
    Assign,
    DeleteMatched,
    InsertEdge,
    InsertNode,
    MatchChange,
    Returning,
    UpdateMatched,
    Upsert,
)
from omnigraph.plan.ir import (
    ID_TYPE,
    ROW,
    Case,
    Comparison,
    Compute,
    EntityId,
    Expr,
    Logical,
    MakeList,
    Not,
    NullTest,
    Param,
    Prop,
    SystemField,
    walk,
)
from omnigraph.read.aggregate import group_rows, key_of
from omnigraph.read.positions import Positions
from omnigraph.read.row_values import RowValues
from omnigraph.read.view import ReadView
from omnigraph.rows.keys import derived_ids

_MADE = "$"
"""What the column with the ids that an insert made is called before the name of its variable."""


class MatchedRows:
    """The rows of a match: a column for each thing that the actions read of them."""

    def __init__(
        self, statement: MatchChange, rows: pa.Table, parameters: Mapping[str, Any]
    ) -> None:
        self.count: int = rows.num_rows
        self._made = frozenset(statement.made)
        self._names = {column.expression: column.name for column in statement.match.columns}
        self._columns = {name: rows.column(name).combine_chunks() for name in rows.column_names}
        self._parameters = parameters

    def column(self, expression: Expr) -> pa.Array:
        """What the match itself gave."""
        return self._columns[self._names[expression]]

    def bind(self, variable: str | None, ids: pa.Array) -> None:
        """Make the id that an insert wrote for each row known to the actions that follow."""
        if variable is not None:
            self._columns[_MADE + variable] = ids

    def values(self, expression: Expr) -> pa.Array:
        """One value per row for an expression about the match."""
        return self.all.evaluate(self.lowered(expression))

    @property
    def all(self) -> RowValues:
        return RowValues(self._columns, self.count, self._parameters)

    def lowered(self, expression: Expr) -> Expr:
        """The same expression about the columns of these rows."""
        name = self._names.get(expression)
        if name is not None:
            return Prop(ROW, name, expression.type)
        match expression:
            case Param(name) if name in self._made:
                return Prop(ROW, _MADE + name, ID_TYPE)
            case Comparison(left, operator, right, kind):
                return Comparison(self.lowered(left), operator, self.lowered(right), kind)
            case NullTest(operand, negated, kind):
                return NullTest(self.lowered(operand), negated, kind)
            case Not(operand, kind):
                return Not(self.lowered(operand), kind)
            case Logical(junction, operands, kind):
                return Logical(junction, self._all(operands), kind)
            case Compute(function, arguments, kind):
                return Compute(function, self._all(arguments), kind)
            case Case(branches, otherwise, kind):
                lowered = tuple((self.lowered(when), self.lowered(then)) for when, then in branches)
                last = None if otherwise is None else self.lowered(otherwise)
                return Case(lowered, last, kind)
            case MakeList(items, kind):
                return MakeList(self._all(items), kind)
            case _:
                return expression

    def _all(self, expressions: Sequence[Expr]) -> tuple[Expr, ...]:
        return tuple(self.lowered(expression) for expression in expressions)

    def lowered_assignments(self, assignments: Sequence[Assign]) -> list[Assign]:
        return [replace(assign, value=self.lowered(assign.value)) for assign in assignments]

    def lowered_returning(self, returning: Returning) -> Returning:
        """`return` about the written rows, beside which are the columns of `shown`."""
        columns = tuple(
            replace(column, expression=self.lowered(column.expression))
            for column in returning.columns
        )
        return replace(returning, columns=columns)

    def shown(self, returning: Returning | None) -> dict[str, pa.Array]:
        """The columns that `return` reads beside those of the written row."""
        if returning is None:
            return {}
        parts = (
            part
            for column in self.lowered_returning(returning).columns
            for part in walk(column.expression)
        )
        names = {part.property for part in parts if isinstance(part, Prop)}
        return {name: self._columns[name] for name in sorted(names & self._columns.keys())}


@dataclass(frozen=True, slots=True)
class Entities:
    """Matched rows by the entity they are about: its number per row, and its first row."""

    codes: Positions
    first: Positions

    @classmethod
    def of(cls, ids: pa.Array) -> Entities:
        """Rows of one id are about one entity; rows without an id each about another."""
        encoded = ids.dictionary_encode()
        codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
        absent = np.flatnonzero(codes < 0)
        codes[absent] = len(encoded.dictionary) + np.arange(len(absent))
        first = np.full(len(encoded.dictionary) + len(absent), -1, np.int64)
        first[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)
        # By the first row instead of by the order of the dictionary.
        order = np.argsort(first, kind="stable")
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order))
        return cls(rank[codes], first[order])

    def require_equal(self, shown: str, columns: Mapping[str, pa.Array], ids: pa.Array) -> None:
        """Raises `DifferentValues` if two rows of one entity differ in a column."""
        if len(self.first) == len(self.codes):
            return
        for name, values in columns.items():
            codes = _codes(values)
            differs = codes != codes[self.first[self.codes]]
            if differs.any():
                row = int(np.argmax(differs))
                raise DifferentValues(shown, ids[row].as_py(), name)


def _codes(values: pa.Array) -> Positions:
    """Equal values as equal numbers. Lists are compared item by item."""
    kind = values.type
    if pa.types.is_list(kind) or pa.types.is_fixed_size_list(kind) or pa.types.is_large_list(kind):
        lengths = pc.fill_null(pc.list_value_length(values), -1)
        keys = [key_of(lengths)]
        longest = pc.max(lengths).as_py() or 0
        for item in range(longest):
            reached = pc.if_else(pc.greater(lengths, item), values, pa.scalar(None, kind))
            keys.append(key_of(_item(reached, item)))
        return _grouped(keys, len(values))
    if pa.types.is_struct(kind):
        keys = [key_of(values.is_null()), *(key_of(_plain(part)) for part in values.flatten())]
        return _grouped(keys, len(values))
    return key_of(values).codes


def _item(lists: pa.Array, number: int) -> pa.Array:
    """One item of each list, null where the list is null."""
    found = pa.nulls(len(lists), lists.type.value_type)
    there = lists.is_valid()
    if pc.any(there).as_py():
        items = pc.list_element(lists.filter(there), number)
        found = pc.replace_with_mask(found, there, items)
    return found


def _plain(values: pa.Array) -> pa.Array:
    return values.cast(pa.binary()) if pa.types.is_large_binary(values.type) else values


def _grouped(keys: list[Any], length: int) -> Positions:
    groups = group_rows(keys, length)
    return np.arange(length, dtype=np.int64) if groups.codes is None else groups.codes


class MatchWriter(RowWriter):
    """Makes the changes of match statements."""

    def _act(self, action: Action, matched: MatchedRows, view: ReadView) -> None:
        match action:
            case InsertNode():
                self._insert_matched(self._catalog.nodes[action.node_type], action, matched, {})
            case InsertEdge():
                ends = {"src": action.source, "dst": action.target}
                self._insert_matched(self._catalog.edges[action.edge_type], action, matched, ends)
            case Upsert():
                self._insert_matched(self._catalog.entity(action.table_key), action, matched, {})
            case UpdateMatched():
                self._update_matched(action, matched)
            case DeleteMatched():
                self._delete_matched(action, matched, view)

    # -- insert and upsert ------------------------------------------------------------------

    def _insert_matched(
        self,
        declared: EntityType,
        action: InsertNode | InsertEdge | Upsert,
        matched: MatchedRows,
        ends: Mapping[str, Expr],
    ) -> None:
        table = self._image[declared]
        lowered = matched.lowered_assignments(action.assignments)
        assigned = self._assigned(lowered, matched.all, matched.count)
        for end, value in ends.items():
            assigned[end] = stored_column(matched.values(value), end, ID_TYPE)
        rows = np.arange(matched.count, dtype=np.int64)
        if isinstance(declared, EdgeType):
            given = pc.and_(*(assigned[end].is_valid() for end in ENDPOINTS))
            rows = np.flatnonzero(given.to_numpy(zero_copy_only=False))
        made = np.full(matched.count, -1, np.int64)
        if not len(rows):
            matched.bind(action.variable, pa.nulls(matched.count, pa.utf8()))
            return
        taken = pa.array(rows)
        assigned = {name: values.take(taken) for name, values in assigned.items()}
        shown = {name: v.take(taken) for name, v in matched.shown(action.returning).items()}
        absent = self._absent(table, len(rows))
        columns = {n: assigned.get(n, absent[n]) for n in declared.columns if n != "id"}
        ids = derived_ids(declared, columns)
        entities = Entities.of(pa.nulls(len(rows), pa.utf8()) if ids is None else ids)
        if ids is not None:
            entities.require_equal(declared.name, {**assigned, **shown}, ids)
        first = pa.array(entities.first)
        columns = {name: values.take(first) for name, values in columns.items()}
        if isinstance(action, Upsert):
            assert ids is not None, "a type without key or identity is not upserted"
            self._upsert_rows(declared, columns, list(assigned), ids.take(first))
        else:
            self._insert(table, columns, len(first))
        assert self._written is not None, "rows were written"
        made[rows] = entities.codes
        written = self._written.column("id").combine_chunks()
        matched.bind(action.variable, written.take(pa.array(made, mask=made < 0)))
        self._written = _beside(self._written, {n: v.take(first) for n, v in shown.items()})
        if isinstance(declared, EdgeType):
            self._edges += len(first)
            self._sources[declared.name] |= dict.fromkeys(columns["src"].unique().to_pylist())
        else:
            self._nodes += len(first)

    def _upsert_rows(
        self,
        declared: EntityType,
        columns: dict[str, pa.Array],
        assigned: Sequence[str],
        ids: pa.Array,
    ) -> None:
        """Change the rows that are there, insert the others; written are both, in this order."""
        table = self._image[declared]
        others = [name for name in table.schema.names if name != "id"]
        present = table.with_ids(ids.drop_null(), others)
        place = pc.index_in(ids, value_set=present.column("id").combine_chunks(), skip_nulls=True)
        is_there = place.is_valid()
        written: list[pa.Table] = []
        if present.num_rows:
            old = present.take(place.drop_null())
            kept = {name: old.column(name).combine_chunks() for name in old.column_names}
            new = {name: columns[name].filter(is_there) for name in assigned}
            self._change(table, kept | new, new)
            assert self._written is not None, "rows were written"
            written.append(self._written)
        absent = pc.invert(is_there)
        missing = {name: values.filter(absent) for name, values in columns.items()}
        if present.num_rows < len(ids):
            self._insert(table, missing, len(ids) - present.num_rows)
            assert self._written is not None, "rows were written"
            written.append(self._written)
        order = np.argsort(
            np.concatenate(
                [np.flatnonzero(mask.to_numpy(zero_copy_only=False)) for mask in (is_there, absent)]
            )
        )
        self._written = pa.concat_tables(written).take(pa.array(order))

    # -- update and delete ------------------------------------------------------------------

    def _of_target(
        self, matched: MatchedRows, variable: str, keys: Sequence[str]
    ) -> list[tuple[EntityType, Positions]]:
        """The rows about each type that a variable has, without those that leave it unbound."""
        ids = matched.column(EntityId(variable))
        bound = ids.is_valid().to_numpy(zero_copy_only=False)
        types = [self._catalog.entity(key) for key in keys]
        if len(types) == 1:
            return [(types[0], np.flatnonzero(bound))]
        names = matched.column(SystemField(variable, "type", ID_TYPE))
        found = []
        for kind in types:
            is_kind = pc.fill_null(pc.equal(names, kind.name), False)
            found.append((kind, np.flatnonzero(bound & is_kind.to_numpy(zero_copy_only=False))))
        return found

    def _update_matched(self, action: UpdateMatched, matched: MatchedRows) -> None:
        lowered = matched.lowered_assignments(action.assignments)
        given = self._assigned(lowered, matched.all, matched.count)
        shown = matched.shown(action.returning)
        ids = matched.column(EntityId(action.variable))
        written: list[pa.Table] = []
        for declared, rows in self._of_target(matched, action.variable, action.table_keys):
            if isinstance(declared, NodeType):
                keys = [name for name in given if name in (declared.key or ())]
                refuse_any(key_assigned(declared, name) for name in keys[:1])
            taken = pa.array(rows)
            mine = ids.take(taken)
            entities = Entities.of(mine)
            first = pa.array(entities.first)
            columns = {n: values.take(taken) for n, values in (given | shown).items()}
            entities.require_equal(declared.name, columns, mine)
            table = self._image[declared]
            kept = [name for name in table.schema.names if name not in given and name != "id"]
            old = table.with_ids(mine.take(first), kept).sort_by("id")
            if not old.num_rows:
                continue
            # An earlier action may have deleted an entity: what is gone stays so.
            found = old.column("id").combine_chunks()
            place = first.take(pc.index_in(found, value_set=mine.take(first)))
            values = {name: columns[name].take(place) for name in given}
            previous = {name: old.column(name).combine_chunks() for name in old.column_names}
            self._change(table, previous | values, values)
            assert self._written is not None, "rows were written"
            extra = {name: columns[name].take(place) for name in shown}
            written.append(_beside(_typed(self._written, declared), extra))
            if isinstance(declared, EdgeType):
                self._edges += old.num_rows
            else:
                self._nodes += old.num_rows
        self._written = _joined(written, action.returning)

    def _delete_matched(self, action: DeleteMatched, matched: MatchedRows, view: ReadView) -> None:
        shown = matched.shown(action.returning)
        found: dict[str, tuple[EntityType, list[Positions], list[pa.Array]]] = {}
        for variable, keys in action.targets:
            ids = matched.column(EntityId(variable))
            for declared, rows in self._of_target(matched, variable, keys):
                _, all_rows, all_ids = found.setdefault(declared.name, (declared, [], []))
                all_rows.append(rows)
                all_ids.append(ids.take(pa.array(rows)))
        gone: list[tuple[EntityType, Found]] = []
        written: list[pa.Table] = []
        for declared, all_rows, all_ids in found.values():
            rows = pa.array(np.concatenate(all_rows))
            mine = pa.concat_arrays(all_ids)
            entities = Entities.of(mine)
            first = pa.array(entities.first)
            columns = {name: values.take(rows) for name, values in shown.items()}
            entities.require_equal(declared.name, columns, mine)
            table = self._image[declared]
            names = [] if action.returning is None else [n for n in table.schema.names if n != "id"]
            there = table.found(mine.take(first), names)
            gone.append((declared, there))
            if action.returning is not None and there.count:
                before = there.rows()
                value_set = mine.take(first)
                place = first.take(
                    pc.index_in(before.column("id").combine_chunks(), value_set=value_set)
                )
                extra = {name: columns[name].take(place) for name in shown}
                written.append(_beside(_typed(before, declared), extra))
        # Edges first: those that go with a node are not counted twice.
        for declared, there in gone:
            if isinstance(declared, EdgeType):
                self._image[declared].remove(there)
                self._edges += there.count
        for declared, there in gone:
            if isinstance(declared, NodeType) and there.count:
                BEFORE_NODE_DELETE.hit(type=declared.name)
                self._remove_nodes(declared, there, view)
        self._written = _joined(written, action.returning)


def _beside(rows: pa.Table, columns: Mapping[str, pa.Array]) -> pa.Table:
    for name, values in columns.items():
        rows = rows.append_column(name, values)
    return rows


def _typed(rows: pa.Table, declared: EntityType) -> pa.Table:
    return rows.append_column("@type", pa.array([declared.name] * rows.num_rows, pa.utf8()))


def _joined(written: list[pa.Table], returning: Returning | None) -> pa.Table | None:
    """The written rows of all types, with the columns that `return` reads."""
    if not written or returning is None:
        return None
    parts = [part for column in returning.columns for part in walk(column.expression)]
    names = {part.property for part in parts if isinstance(part, Prop) and part.variable == ROW}
    kept = [
        name for name in written[0].column_names if name in names or name == "id" or name[0] in "#$"
    ]
    return pa.concat_tables([rows.select(kept) for rows in written])
