"""Rows of tables to typed rows, as a plan says. A record is a row.

A whole column is converted at once where its cells look as they should. A cell that does not is marked
and converted by itself, with the rules and messages of `omnigraph.load.row_plan`. CSV has numbers in
decimals, and lists as JSON or split at a separator.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds

from omnigraph.language.types import PropType, Scalar
from omnigraph.load.columns import TIME_UNITS, Converted, convert_column, plain
from omnigraph.load.json_table import (
    JsonMismatch,
    SeveralRecords,
    json_shape,
    only_chunk,
    parse_objects,
)
from omnigraph.load.json_text import MalformedText, read_value
from omnigraph.load.records import (
    GIVEN,
    Mask,
    MisfitValue,
    Numbers,
    ParsedRecords,
    TypedRows,
    given_column,
)
from omnigraph.load.row_plan import Day, KeyColumns, Moment, RowPlan, convert_value
from omnigraph.rows.columns import Misfit, StoredValue, build_column, row_type
from omnigraph.rows.keys import derived_ids

_STORED_ENDPOINTS: Final = {"from": "src", "to": "dst"}


class Cells(Protocol):
    """How the cells of a source become values: a column at a time, and exactly, one by one."""

    def column(self, column: pa.Array, wanted: PropType) -> Converted: ...

    def value(self, cell: pa.Scalar, name: str, wanted: PropType) -> StoredValue:
        """The value of a cell that its column was in doubt about. Raises `Misfit`."""
        ...


@dataclass(frozen=True, slots=True)
class TypedCells:
    """Cells with a type of their own: those of a table, or those of JSON, which are less strict."""

    typed: bool = True

    def column(self, column: pa.Array, wanted: PropType) -> Converted:
        return convert_column(column, wanted)

    def value(self, cell: pa.Scalar, name: str, wanted: PropType) -> StoredValue:
        return convert_value(python_value(cell), name, wanted, typed=self.typed)


def read_table(plan: RowPlan, batch: pa.RecordBatch, *, patches: bool = False) -> ParsedRecords:
    """The rows of a batch of a table of one type."""
    positions = np.arange(batch.num_rows, dtype=np.int64)
    given: dict[str, Mask] | None = {} if patches else None
    return ParsedRecords(
        batch.num_rows, rows=[read_cells(plan, batch, positions, TypedCells(), given)]
    )


def read_cells(
    plan: RowPlan,
    batch: pa.RecordBatch,
    positions: Numbers,
    cells: Cells,
    given_keys: Mapping[str, Mask] | None = None,
) -> TypedRows:
    """The rows of a batch whose columns are those of the source.

    A patch says which rows have the key of a property, where not all of them do.
    """
    given = dict(zip(batch.schema.names, batch.columns, strict=True))
    reader = _Reader(given, batch.num_rows, cells, [])
    columns: dict[str, pa.Array] = {}
    for endpoint, source in plan.endpoints.items():
        if isinstance(source, KeyColumns):
            columns[_STORED_ENDPOINTS[endpoint]] = reader.endpoint_by_key(endpoint, source)
        else:
            columns[_STORED_ENDPOINTS[endpoint]] = reader.texts(source)
    for name, prop in plan.declared.properties.items():
        if name in plan.columns:
            columns[name] = reader.values(plan.columns[name], name, prop.type)
        elif name in plan.constants:
            columns[name] = reader.repeated(plan.constants[name], prop.type)
        else:
            columns[name] = pa.nulls(batch.num_rows, row_type(prop.type))
    if given_keys is not None:
        none = np.zeros(batch.num_rows, np.bool_)
        loaded = plan.columns.keys() | plan.constants.keys()
        absent = dict.fromkeys(plan.declared.properties.keys() - loaded, none)
        columns[GIVEN] = given_column(plan.declared, batch.num_rows, {**given_keys, **absent})
    ids = pa.nulls(batch.num_rows, pa.utf8()) if plan.id is None else reader.texts(plan.id)
    return TypedRows(plan.declared, positions, columns, ids, tuple(reader.misfits))


@dataclass(frozen=True, slots=True)
class _Reader:
    """Columns of one batch by name; cells that do not fit are collected."""

    given: Mapping[str, pa.Array]
    count: int
    cells: Cells
    misfits: list[MisfitValue]

    def values(self, source: str, name: str, wanted: PropType) -> pa.Array:
        column, misfits = self._converted(source, name, wanted)
        self.misfits.extend(MisfitValue(row, name, text) for row, text in misfits)
        return column

    def repeated(self, value: StoredValue, wanted: PropType) -> pa.Array:
        return build_column([value], wanted).take(pa.array(np.zeros(self.count, np.int64)))

    def texts(self, source: str) -> pa.Array:
        """A column of ids; a value that is not text counts as absent."""
        column = plain(self.given[source])
        return column if kinds.is_string(column.type) else pa.nulls(self.count, pa.utf8())

    def endpoint_by_key(self, endpoint: str, source: KeyColumns) -> pa.Array:
        """The ids of the nodes with the given keys, null where a part of one is missing."""
        columns = {}
        for name, column_name in source.columns.items():
            wanted = source.node.properties[name].type
            column, misfits = self._converted(column_name, name, wanted)
            columns[name] = column
            self.misfits.extend(
                MisfitValue(row, endpoint, f"'{endpoint}': {problem}") for row, problem in misfits
            )
        ids = derived_ids(source.node, columns)
        assert ids is not None, "key columns are planned for node types with a key"
        return ids

    def _converted(
        self, source: str, name: str, wanted: PropType
    ) -> tuple[pa.Array, list[tuple[int, str]]]:
        """A column of values, and what is wrong with those that were left null."""
        column, bad = self.cells.column(self.given[source], wanted)
        if bad is None:
            return column, []
        rows = np.flatnonzero(bad).tolist()
        values: list[StoredValue] = []
        misfits: list[tuple[int, str]] = []
        for row in rows:
            value: StoredValue = None
            try:
                value = self.cells.value(self.given[source][row], name, wanted)
            except Misfit as misfit:
                misfits.append((row, str(misfit)))
            values.append(value)
        return _with(column, rows, build_column(values, wanted)), misfits


def _with(column: pa.Array, rows: Sequence[int], values: pa.Array) -> pa.Array:
    """The column with other values in some rows."""
    taken = np.arange(len(column))
    taken[np.asarray(rows)] = np.arange(len(column), len(column) + len(rows))
    return pa.concat_arrays([column, values]).take(pa.array(taken))


def python_value(cell: pa.Scalar) -> Any:
    """A cell as the Python value that single conversion understands."""
    if not cell.is_valid:
        return None
    kind = cell.type
    if kinds.is_date32(kind):
        return Day(cell.value)
    if kinds.is_date64(kind):
        return Moment(cell.value)
    if kinds.is_timestamp(kind):
        times, divided = TIME_UNITS[kind.unit]
        return Moment(cell.value * times // divided)
    if isinstance(cell, pa.ListScalar):
        return [python_value(item) for item in cell.values]
    if isinstance(cell, pa.ExtensionScalar):
        return python_value(cell.value)
    return cell.as_py()


_MAX_INTEGER_DIGITS: Final = 400
_INTEGER: Final = re.compile(r"[+-]?[0-9]+")
_DECIMAL: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_TRUTH: Final = {"true": True, "1": True, "false": False, "0": False}
# As many digits as every number of that length has room for; longer texts are looked at singly.
_PLAIN_SIGNED: Final = r"\A-?[0-9]{1,18}\z"
_PLAIN_UNSIGNED: Final = r"\A[0-9]{1,19}\z"
_PLAIN_FLOAT: Final = r"\A-?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?\z"


@dataclass(frozen=True, slots=True)
class TextCells:
    """Cells of text; a list that is not a JSON array is split at the separator, if there is one."""

    list_separator: str | None = None

    def column(self, column: pa.Array, wanted: PropType) -> Converted:
        if column.null_count == len(column):
            return pa.nulls(len(column), row_type(wanted)), None
        if wanted.list or wanted.is_vector:
            return self._lists(column, wanted)
        return _converted(*_scalars(column, wanted.scalar), wanted)

    def value(self, cell: pa.Scalar, name: str, wanted: PropType) -> StoredValue:
        """The value of a text. Raises `Misfit`."""
        return convert_value(self._read(cell.as_py(), wanted), name, wanted, typed=False)

    def _read(self, text: str | None, wanted: PropType) -> object:
        if text is None:
            return None
        if not (wanted.list or wanted.is_vector):
            return _read_scalar(text, wanted.scalar)
        if text.startswith("["):
            try:
                value, end = read_value(text)
            except MalformedText:
                return text
            return text if text[end:].strip() else value
        if self.list_separator is None:
            return text
        scalar = Scalar.F32 if wanted.is_vector else wanted.scalar
        items = text.split(self.list_separator) if text else []
        return [_read_scalar(item, scalar) for item in items]

    def _lists(self, column: pa.Array, wanted: PropType) -> Converted:
        arrays = pc.starts_with(column, "[")
        if pc.all(arrays).as_py():
            return _json_lists(column, wanted)
        if self.list_separator is None or pc.any(arrays).as_py():
            return _all_doubtful(column, wanted)
        return _split_lists(column, wanted, self.list_separator)


def _read_scalar(text: str, scalar: Scalar) -> object:
    """The value a text spells for the type; the text itself if it spells none."""
    if scalar is Scalar.BOOL:
        return _TRUTH.get(text.lower(), text)
    if scalar.is_integer or scalar.is_float:
        if _INTEGER.fullmatch(text):
            # Python does not convert thousands of digits to an integer; no type has room for them.
            return int(text) if len(text) < _MAX_INTEGER_DIGITS else Decimal(text)
        if _DECIMAL.fullmatch(text):
            return float(text)
    return text


def _all_doubtful(column: pa.Array, wanted: PropType) -> Converted:
    """Nothing converted, everything that is there marked."""
    return pa.nulls(len(column), row_type(wanted)), _mask(column.is_valid())


def _mask(column: pa.Array) -> Mask:
    mask: Mask = pc.fill_null(column, False).to_numpy(zero_copy_only=False)
    return mask


def _converted(column: pa.Array, doubtful: Mask | None, wanted: PropType) -> Converted:
    """The property column of a column whose doubtful values are null already."""
    values, bad = convert_column(column, wanted)
    if doubtful is None:
        return values, bad
    return values, doubtful if bad is None else bad | doubtful


def _scalars(column: pa.Array, scalar: Scalar) -> tuple[pa.Array, Mask | None]:
    """A column of the kind JSON has for the type, and the texts that it has no value for."""
    if scalar is Scalar.BOOL:
        known = pa.array(_TRUTH, pa.utf8())
        numbers = pc.index_in(pc.utf8_lower(column), known)
        values = pa.array(_TRUTH.values(), pa.bool_()).take(numbers)
        doubtful = _mask(pc.and_(column.is_valid(), values.is_null()))
        return values, doubtful if doubtful.any() else None
    if scalar.is_float:
        return _numbers(column, _PLAIN_FLOAT, pa.float64())
    if scalar is Scalar.U64:
        return _numbers(column, _PLAIN_UNSIGNED, pa.uint64())
    if scalar.is_integer:
        return _numbers(column, _PLAIN_SIGNED, pa.int64())
    return column, None


def _numbers(column: pa.Array, plain: str, kind: pa.DataType) -> tuple[pa.Array, Mask | None]:
    is_plain = pc.match_substring_regex(column, plain)
    if pc.all(is_plain).as_py():
        return pc.cast(column, kind), None
    kept = pc.if_else(is_plain, column, pa.scalar(None, pa.utf8()))
    return pc.cast(kept, kind), _mask(pc.invert(is_plain))


def _split_lists(column: pa.Array, wanted: PropType, separator: str) -> Converted:
    lists = pc.split_pattern(column, separator)
    empty = pc.fill_null(pc.equal(column, ""), False)
    if pc.any(empty).as_py():
        lists = pc.if_else(empty, pa.scalar([], lists.type), lists)
    scalar = Scalar.F32 if wanted.is_vector else wanted.scalar
    items, doubtful = _scalars(lists.flatten(), scalar)
    lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy()
    bounds = np.concatenate([[0], np.cumsum(lengths)])
    built = pa.ListArray.from_arrays(pa.array(bounds, pa.int32()), items, mask=lists.is_null())
    rows: Mask | None = None
    if doubtful is not None:
        before = np.concatenate([[0], np.cumsum(doubtful)])
        rows = before[bounds[1:]] > before[bounds[:-1]]
        built = pc.if_else(pa.array(rows), pa.scalar(None, built.type), built)
    return _converted(built, rows, wanted)


def _json_lists(column: pa.Array, wanted: PropType) -> Converted:
    texts = pc.binary_join_element_wise('{"v":', pc.fill_null(column, "null"), "}\n", "")
    shape = pa.schema([("v", json_shape(wanted))])
    try:
        table = parse_objects(texts.cast(pa.binary()), shape)
    except (JsonMismatch, SeveralRecords):
        return _all_doubtful(column, wanted)
    return convert_column(only_chunk(table.column("v")), wanted)
