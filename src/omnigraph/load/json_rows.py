"""JSON records to typed rows: routed, parsed as columns, converted.

The reader learns how the records of a type are spelled (dates as text or as numbers, keys the schema
does not know) from the first ones it cannot parse, so that even an unusual file is read in columns.
Records that still do not fit are read one by one.

MERGED: Plain JSON objects to typed rows of one type, as a plan says: parsed as columns, converted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds

from omnigraph.catalog.model import Catalog, EdgeType, EntityType
from omnigraph.load.columns import convert_column
from omnigraph.load.json_records import are_sound, read_objects, read_records
from omnigraph.load.json_table import (
    TIMES,
    JsonMismatch,
    Router,
    SeveralRecords,
    are_json,
    is_utf8,
    json_shape,
    learn_keys,
    only_chunk,
    parse_objects,
    sampled_objects,
    scalar_kind,
)
from omnigraph.load.json_text import Records, Stretch
from omnigraph.load.records import (
    GIVEN,
    Mask,
    Numbers,
    Reading,
    TypedRows,
    given_column,
    given_in_texts,
    has_key,
)
from omnigraph.load.row_plan import KeyColumns, RowPlan
from omnigraph.load.table_rows import TypedCells, read_cells

_SLICE: Final = 1000
"""Rows that are read one by one when one of them cannot be parsed in columns."""


@dataclass(frozen=True, slots=True)
class Spelling:
    """How the records of one type are written, as far as the schema leaves it open."""

    numeric_times: frozenset[str] = frozenset()
    unknown_keys: Mapping[str, pa.DataType] = field(default_factory=dict)
    other_fields: Mapping[str, pa.DataType] = field(default_factory=dict)

    def shape(self, declared: EntityType) -> pa.Schema:
        """The JSON shape of a record of the type in this spelling."""
        is_edge = isinstance(declared, EdgeType)
        data = [
            (name, json_shape(prop.type, numeric_times=name in self.numeric_times))
            for name, prop in declared.properties.items()
        ]
        data += [("id", pa.utf8()), *self.unknown_keys.items()]
        keys = ("edge", "from", "to") if is_edge else ("type",)
        fields = [(key, pa.utf8()) for key in keys]
        return pa.schema([*fields, ("data", pa.struct(data)), *self.other_fields.items()])


class JsonReader:
    """Reads the JSON records of one load. What it learns only makes it quicker."""

    def __init__(self, catalog: Catalog, *, patches: bool = False) -> None:
        self._catalog = catalog
        self._patches = patches
        self._router = Router(catalog)
        self._spellings: dict[str, Spelling] = {}

    def read(self, stretch: Stretch) -> Reading:
        """The rows and problems of a stretch of a stream."""
        try:
            return self._read(stretch.records)
        except SeveralRecords:
            return self._read(stretch.read_by_value())

    def _read(self, records: Records) -> Reading:
        reading = Reading(records.count, records.lines)
        reading.problems += records.problems("invalid_json")
        texts, positions = records.texts, records.positions
        if not is_utf8(texts):
            reading.add(self._read_singly(_Group(texts, positions)))
            return reading
        for routed in self._router.route(texts):
            mine = texts if len(routed.rows) == len(texts) else texts.take(pa.array(routed.rows))
            group = _Group(mine, positions[routed.rows])
            if routed.declared is None:
                reading.add(self._read_singly(group))
            else:
                self._read_group(routed.declared, group, reading)
        return reading

    def _read_group(self, declared: EntityType, group: _Group, reading: Reading) -> None:
        spelling = self._spellings.get(declared.table_key, Spelling())
        try:
            return reading.add(self._read_columns(declared, group, spelling))
        except JsonMismatch:
            learned = _learn(declared, group.texts)
        if learned != spelling:
            self._spellings[declared.table_key] = learned
            try:
                return reading.add(self._read_columns(declared, group, learned))
            except JsonMismatch:
                pass
        for start in range(0, len(group.texts), _SLICE):
            part = group.slice(start, _SLICE)
            try:
                reading.add(self._read_columns(declared, part, learned))
            except JsonMismatch:
                reading.add(self._read_singly(part))

    def _read_singly(self, group: _Group) -> Reading:
        positions = group.positions.tolist()
        return read_records(self._catalog, group.texts, positions, patches=self._patches)

    def _read_columns(self, declared: EntityType, group: _Group, spelling: Spelling) -> Reading:
        """The group as columns, its doubtful rows one by one. Raises `JsonMismatch`."""
        table = parse_objects(group.texts, spelling.shape(declared))
        data = only_chunk(table.column("data"))
        given = dict(zip(data.type.names, data.flatten(), strict=True))
        bad = np.zeros(len(group.texts), np.bool_)
        columns: dict[str, pa.Array] = {}
        if isinstance(declared, EdgeType):
            columns["src"] = only_chunk(table.column("from"))
            columns["dst"] = only_chunk(table.column("to"))
        for name, prop in declared.properties.items():
            columns[name], misfits = convert_column(given[name], prop.type)
            if misfits is not None:
                bad |= misfits
        for name in spelling.unknown_keys:
            bad |= _not_json(given[name])
        for name in spelling.other_fields:
            bad |= _not_json(only_chunk(table.column(name)))
        if self._patches:
            present = {name: (name, given[name]) for name in declared.properties}
            outside = {*_own_keys(declared), *spelling.other_fields}
            keys, doubtful = given_in_texts(present, group.texts, outside)
            bad |= doubtful
            columns[GIVEN] = given_column(declared, len(group.texts), keys)
        rows = TypedRows(declared, group.positions, columns, given["id"])
        if not bad.any():
            reading = Reading(len(group.texts), rows=[rows])
            kept = group
        else:
            reading = self._read_singly(group.where(bad))
            good = pa.array(~bad)
            reading.rows.append(_filtered(rows, good))
            kept = group.where(~bad)
            given = {name: given[name].filter(good) for name in spelling.unknown_keys}
        for name in spelling.unknown_keys:
            found = _records_with(name, given[name], kept)
            if len(found):
                reading.unknown.note((declared.name, name), found.tolist())
        return reading


@dataclass(frozen=True, slots=True)
class _Group:
    """Record texts and their positions."""

    texts: pa.Array
    positions: npt.NDArray[np.int64]

    def slice(self, start: int, length: int) -> _Group:
        return _Group(self.texts.slice(start, length), self.positions[start : start + length])

    def where(self, mask: Mask) -> _Group:
        return _Group(self.texts.filter(pa.array(mask)), self.positions[mask])


def _filtered(rows: TypedRows, kept: pa.Array) -> TypedRows:
    return TypedRows(
        rows.declared,
        rows.positions[kept.to_numpy(zero_copy_only=False)],
        {name: column.filter(kept) for name, column in rows.columns.items()},
        rows.ids.filter(kept),
    )


def _not_json(column: pa.Array) -> Mask:
    """Rows where a column nobody wants holds a number that JSON does not have."""
    if are_json(column):
        return np.zeros(len(column), np.bool_)
    if kinds.is_list(column.type):
        return np.ones(len(column), np.bool_)
    mask: Mask = pc.invert(pc.is_finite(column)).fill_null(False).to_numpy(zero_copy_only=False)
    return mask


def _records_with(key: str, column: pa.Array, group: _Group) -> npt.NDArray[np.int64]:
    """The positions of records that have a key, a null value included."""
    has = column.is_valid().to_numpy(zero_copy_only=False)
    if column.null_count:
        has = has.copy()
        has[~has] = has_key(key, group.where(~has).texts).to_numpy(zero_copy_only=False)
    found: npt.NDArray[np.int64] = group.positions[has]
    return found


# -- learning -----------------------------------------------------------------------------------


def _learn(declared: EntityType, texts: pa.Array) -> Spelling:
    """The spelling a few records suggest: the first and some from the whole length of the group."""
    numeric: dict[str, bool] = {}
    unknown: dict[str, pa.DataType] = {}
    fields: dict[str, pa.DataType] = {}
    own = _own_keys(declared)
    for record in sampled_objects(texts):
        data = record.get("data")
        if not isinstance(data, dict):
            continue
        for name, prop in declared.properties.items():
            if prop.type.scalar in TIMES and (sample := _first(data.get(name))) is not None:
                numeric.setdefault(name, not isinstance(sample, str))
        _learn_keys(unknown, data, declared.properties.keys() | {"id"})
        _learn_keys(fields, record, own)
    # A key that stands on both levels cannot be counted by its text.
    inner = {key: kind for key, kind in unknown.items() if key not in own | fields.keys()}
    numbers = frozenset(name for name, is_number in numeric.items() if is_number)
    return Spelling(numbers, inner, fields)


def _own_keys(declared: EntityType) -> set[str]:
    """The keys that records of a type have around their data."""
    return {"type", "data", *(("edge", "from", "to") if isinstance(declared, EdgeType) else ())}


def _learn_keys(found: dict[str, pa.DataType], given: Mapping[str, Any], known: Any) -> None:
    for key, value in given.items():
        if key not in known and (key not in found or found[key] == pa.null()):
            kind = _kind(value)
            if kind is not None:
                found[key] = kind


def _kind(value: object) -> pa.DataType | None:
    """The Arrow type of a value that is not loaded; None for what only a single reading can take."""
    if not isinstance(value, list):
        return scalar_kind(value)
    inner = scalar_kind(_first(value))
    return None if inner is None else pa.list_(inner)


def _first(value: object) -> object:
    """The value, or the first one in it that is not null."""
    if isinstance(value, list):
        return next((item for item in value if item is not None), None)
    return value


@dataclass(frozen=True, slots=True)
class ObjectReader:
    """Reads the objects of a stream; a value that tasks can share."""

    plan: RowPlan
    patches: bool = False

    def read(self, stretch: Stretch) -> Reading:
        """The rows and problems of a stretch of a stream."""
        try:
            return self._read(stretch.records)
        except SeveralRecords:
            return self._read(stretch.read_by_value())

    def _read(self, records: Records) -> Reading:
        reading = Reading(records.count, records.lines)
        reading.problems += records.problems("invalid_json")
        texts, positions = records.texts, records.positions
        if is_utf8(texts):
            self._read_part(texts, positions, reading)
        else:
            reading.add(self._read_singly(texts, positions))
        return reading

    def _read_singly(self, texts: pa.Array, positions: Numbers) -> Reading:
        return read_objects(self.plan, texts, positions.tolist(), patches=self.patches)

    def _read_part(self, texts: pa.Array, positions: Numbers, reading: Reading) -> None:
        table = self._parse(texts)
        if table is not None:
            for batch in table.combine_chunks().to_batches():
                self._read_batch(batch, texts, positions, reading)
            return
        if len(texts) <= _SLICE:
            reading.add(self._read_singly(texts, positions))
            return
        for start in range(0, len(texts), _SLICE):
            part = slice(start, start + _SLICE)
            self._read_part(texts[part], positions[part], reading)

    def _read_batch(
        self, batch: pa.RecordBatch, texts: pa.Array, positions: Numbers, reading: Reading
    ) -> None:
        """The rows of all texts; of a patch, those whose keys are not clear are read one by one."""
        given: dict[str, Mask] | None = None
        if self.patches:
            columns = {name: (key, batch.column(key)) for name, key in self.plan.columns.items()}
            given, doubtful = given_in_texts(columns, texts, ())
            # In an object within the object a key is another one.
            nested = pc.greater(pc.count_substring(texts, "{"), 1).to_numpy(zero_copy_only=False)
            some_absent = np.zeros(len(texts), np.bool_)
            for column in batch.columns:
                some_absent |= column.is_null().to_numpy(zero_copy_only=False)
            doubtful |= nested & some_absent
            if doubtful.any():
                clear = pa.array(~doubtful)
                unclear = texts.filter(pa.array(doubtful))
                reading.add(self._read_singly(unclear, positions[doubtful]))
                given = {name: mask[~doubtful] for name, mask in given.items()}
                batch, positions = batch.filter(clear), positions[~doubtful]
        reading.rows.append(read_cells(self.plan, batch, positions, TypedCells(typed=False), given))

    def _parse(self, texts: pa.Array) -> pa.Table | None:
        """The columns of the plan; None when the objects have to be read one by one."""
        others = learn_keys(texts, self.plan.sources())
        for shape in () if others is None else self._shapes():
            asked = pa.schema([*shape, *(others or {}).items()])
            with suppress(JsonMismatch):
                table = parse_objects(texts, asked)
                if all(are_json(only_chunk(table.column(name))) for name in others or ()):
                    return table.select(shape.names)
        for shape in self._shapes():
            with suppress(JsonMismatch):
                table = parse_objects(texts, shape, ignore_others=True)
                return table if are_sound(texts) else None
        return None

    def _shapes(self) -> Iterator[pa.Schema]:
        """The objects that are expected: times as texts or, all of them, as numbers."""
        plan = self.plan
        types = {name: prop.type for name, prop in plan.declared.properties.items()}
        wanted = [(key, types[name]) for name, key in plan.columns.items()]
        texts = [] if plan.id is None else [plan.id]
        for end in plan.ends.values():
            if isinstance(end, KeyColumns):
                keys = end.columns.items()
                wanted += [(key, end.node.properties[name].type) for name, key in keys]
            else:
                texts.append(end)
        has_times = any(kind.scalar in TIMES for _, kind in wanted)
        for numeric in (False, True)[: 1 + has_times]:
            fields = [(key, json_shape(kind, numeric_times=numeric)) for key, kind in wanted]
            shape = dict.fromkeys([*fields, *((key, pa.utf8()) for key in texts)])
            # A key that two parts of a row want as different types is left to single reading.
            if len({key for key, _ in shape}) == len(shape):
                yield pa.schema(list(shape))
