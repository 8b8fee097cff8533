"""Ids that rows derive from their values, and tuples that several rows share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.constraints import group_scalar, identity_group
from omnigraph.catalog.identity import canonical_text
from omnigraph.catalog.model import EntityType
from omnigraph.language.types import Scalar
from omnigraph.rows.json_text import json_escaped

# -- derived ids -------------------------------------------------------------------------------


def derived_ids(declared: EntityType, columns: Mapping[str, pa.Array]) -> pa.Array | None:
    """The id each row gets from its key or tuple, null where a member is null.

    None when rows of the type get no id from their values. Floats must be finite.
    """
    group = identity_group(declared)
    if group is None:
        return None
    texts = [key_texts(columns[name], group_scalar(declared, name)) for name in group]
    if len(texts) == 1:
        return texts[0]
    return _json_arrays(texts)


def key_texts(column: pa.Array, scalar: Scalar) -> pa.Array:
    """The canonical text of each key value."""
    if scalar is Scalar.STRING:
        return column
    if scalar is Scalar.DATE:
        column = column.view(pa.int32())
    elif scalar is Scalar.DATETIME:
        column = column.view(pa.int64())
    elif scalar.is_float:
        return _float_texts(column, scalar)
    return pc.cast(column, pa.utf8())


def _float_texts(column: pa.Array, scalar: Scalar) -> pa.Array:
    # The shortest text is found one value at a time; float keys are rare and repeat themselves.
    encoded = column.dictionary_encode()
    texts = [canonical_text(v, scalar) for v in encoded.dictionary.to_pylist()]
    return pa.array(texts, pa.utf8()).take(encoded.indices)


def _json_arrays(texts: Sequence[pa.Array]) -> pa.Array:
    parts: list[object] = ['["', json_escaped(texts[0])]
    for text in texts[1:]:
        parts += ['","', json_escaped(text)]
    return pc.binary_join_element_wise(*parts, '"]', "")


# -- unique tuples -----------------------------------------------------------------------------


RowNumbers = npt.NDArray[np.int64]


def comparable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The column with one form per value; NaN, which equals nothing, becomes null."""
    kind = column.type
    if not pa.types.is_floating(kind):
        return column
    # Adding zero turns the negative zero into the positive one.
    column = pc.add(column, pa.scalar(0.0, kind))
    return pc.if_else(pc.is_nan(column), pa.scalar(None, kind), column)


def tuples_of(rows: pa.Table, columns: Sequence[str]) -> tuple[pa.Table, RowNumbers]:
    """The complete tuples of a table and the rows they stand in; a null exempts its row.

    The columns of the result are numbered, so that they cannot clash with property names.
    """
    named = {str(i): comparable(rows.column(c)) for i, c in enumerate(columns)}
    tuples = pa.table(named)
    numbers = np.arange(rows.num_rows, dtype=np.int64)
    if any(c.null_count for c in tuples.columns):
        complete = pc.is_valid(tuples.column(0))
        for column in tuples.columns[1:]:
            complete = pc.and_(complete, pc.is_valid(column))
        tuples = tuples.filter(complete)
        numbers = numbers[complete.to_numpy()]
    return tuples, numbers


def distinct_tuples(rows: pa.Table, columns: Sequence[str]) -> pa.Table:
    """Every complete tuple once, under the names of its columns."""
    tuples, _ = tuples_of(rows, columns)
    distinct = tuples.group_by(tuples.column_names, use_threads=False).aggregate([])
    return distinct.rename_columns(list(columns))


def shared_tuples(tuples: pa.Table, numbers: RowNumbers) -> list[RowNumbers]:
    """The rows of every tuple that occurs more than once, in order of first occurrence."""
    if tuples.num_columns == 1 and len(pc.unique(tuples.column(0))) == tuples.num_rows:
        return []
    names = tuples.column_names
    row_numbers = pa.array(np.arange(tuples.num_rows, dtype=np.int64))
    numbered = tuples.append_column("number", row_numbers).group_by(names, use_threads=False)
    counts = numbered.aggregate([("number", "count")])["number_count"]
    if len(counts) == tuples.num_rows:
        return []
    found = numbered.aggregate([("number", "list")])["number_list"]
    repeated = found.filter(pc.greater(counts, 1)).to_pylist()
    return sorted((numbers[np.sort(rows)] for rows in repeated), key=lambda rows: int(rows[0]))


def tuple_values(rows: pa.Table, columns: Sequence[str], row: int) -> tuple[Any, ...]:
    """The values of a tuple in one row, dates as numbers; None where a value is missing."""
    return tuple(_value(comparable(rows.column(c).slice(row, 1))) for c in columns)


def _value(cell: pa.ChunkedArray) -> Any:
    # Python's dates end at the year 9999 and have no time of day.
    if pa.types.is_date(cell.type):
        number = pa.int32() if pa.types.is_date32(cell.type) else pa.int64()
        return cell.combine_chunks().view(number)[0].as_py()
    return cell[0].as_py()
