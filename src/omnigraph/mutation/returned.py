"""What `return` of a change shows: the rows that one statement wrote."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from omnigraph.language.types import PropType
from omnigraph.plan.changes import Returning
from omnigraph.plan.ir import (
    Constant,
    EntityId,
    Param,
    Prop,
    walk,
)

if TYPE_CHECKING:
    import pyarrow as pa


class Returned(Struct, frozen=True):
    """The rows that a statement wrote, as its `return` shows them.

    Statements are counted from 1 in text order, and inside `do` each action counts.
    """

    statement: int
    table: pa.Table
    types: tuple[PropType, ...]

    @property
    def columns(self) -> list[str]:
        return list(self.table.column_names)

    def to_arrow(self) -> pa.Table:
        return self.table

    def to_dicts(self) -> list[dict[str, Any]]:
        """One dict of Python values per row."""
        from omnigraph.read.result import python_rows

        columns = dict(zip(self.columns, self.table.columns, strict=True))
        return list(python_rows(columns)) if columns else [{}] * self.table.num_rows

    def rows_json(self) -> bytes:
        """The rows as a compact JSON array."""
        from omnigraph.read.result import rows_json

        return rows_json(self.table, self.types)

    def to_json(self) -> dict[str, Any]:
        import json

        return {
            "statement": self.statement,
            "columns": self.columns,
            "rows": json.loads(self.rows_json()),
        }

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.to_dicts())


def returned_rows(
    statement: int,
    wanted: Returning,
    rows: pa.Table | None,
    parameters: Mapping[str, object],
    *,
    in_order: bool = False,
) -> Returned:
    """What a statement returns of the rows it wrote; None is no row.

    Rows are sorted by id, unless they are `in_order` already.
    """
    import pyarrow as pa

    from omnigraph.catalog.arrow import arrow_type
    from omnigraph.read.result import public_column, public_type
    from omnigraph.read.row_values import RowValues

    count = 0 if rows is None else rows.num_rows
    if rows is not None and count > 1 and not in_order:
        rows = rows.sort_by("id")
    arrays = []
    for column in wanted.columns:
        expression = column.expression
        kind = public_type(expression.type)
        match expression:
            case _ if rows is None:
                values = pa.nulls(0, kind)
            case EntityId():
                values = rows.column("id")
            case Prop() if expression.type.is_blob:
                kind, values = pa.utf8(), pa.nulls(count, pa.utf8())
            case Prop(_, name, _):
                values = rows.column(name)
            case Constant(value):
                values = pa.array([value] * count, arrow_type(expression.type))
            case Param(name):
                values = pa.array([parameters[name]] * count, arrow_type(expression.type))
            case _:
                read = {p.property for p in walk(expression) if isinstance(p, Prop)} | {"id"}
                found = {name: rows.column(name).combine_chunks() for name in read}
                values = RowValues(found, count, parameters).evaluate(expression)
        if isinstance(values, pa.ChunkedArray):
            values = values.combine_chunks()
        if values.type != kind:
            values = public_column(values.cast(arrow_type(expression.type)), expression.type)
        arrays.append(values)
    table = pa.table(arrays, names=[column.name for column in wanted.columns])
    if wanted.distinct and arrays:
        from omnigraph.read.aggregate import group_rows, key_of

        groups = group_rows([key_of(values) for values in arrays], count)
        if groups.example is not None:
            table = table.take(pa.array(sorted(groups.example.tolist()), pa.int64()))
    return Returned(statement, table, tuple(c.expression.type for c in wanted.columns))
