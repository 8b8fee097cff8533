"""JSON records to typed rows: routed, parsed as columns, converted.

The reader learns how the records of a type are spelled (dates as text or as numbers, keys the schema
does not know) from the first ones it cannot parse, so that even an unusual file is read in columns.
Records that still do not fit are read one by one.

Plain objects of one type are read as a plan says. Keys that the plan does not name are ignored, but an
object must not have one twice. Arrow's reader sees that only for keys it is asked for, so it is asked for
those that the first objects have; where objects differ in them, they are read one by one for it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Container, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds

from omnigraph.catalog.identity import node_id
from omnigraph.catalog.ir import compact_json
from omnigraph.catalog.model import Catalog, EdgeType, EntityType
from omnigraph.diagnostics import shortened, with_hint
from omnigraph.load.columns import convert_column
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
from omnigraph.load.json_text import Block, MalformedText, Records, read_record
from omnigraph.load.records import (
    GIVEN,
    Mask,
    MisfitValue,
    Numbers,
    ParsedRecords,
    Problem,
    TypedRows,
    given_column,
    given_in_texts,
    has_key,
    problem_at,
)
from omnigraph.load.row_plan import KeyColumns, RowPlan, convert_value
from omnigraph.load.table_rows import TypedCells, read_cells
from omnigraph.rows.columns import Misfit, StoredValue, build_column

_ENDPOINTS = (("src", "from"), ("dst", "to"))


@dataclass(slots=True)
class _Rows:
    """Rows of one type under construction."""

    declared: EntityType
    positions: list[int] = field(default_factory=list)
    values: dict[str, list[StoredValue]] = field(default_factory=dict)
    endpoints: dict[str, list[str | None]] = field(default_factory=dict)
    ids: list[str | None] = field(default_factory=list)
    misfits: list[MisfitValue] = field(default_factory=list)
    odd_ids: dict[int, str] = field(default_factory=dict)
    patches: bool = False
    given: list[Container[str]] = field(default_factory=list)
    """The keys of each record."""

    def add(self, position: int, fields: dict[str, Any], data: dict[str, Any]) -> None:
        row = len(self.positions)
        self.positions.append(position)
        self.given.append(data)
        for name, prop in self.declared.properties.items():
            value: StoredValue = None
            try:
                value = convert_value(data.get(name), name, prop.type, typed=False)
            except Misfit as misfit:
                self.misfits.append(MisfitValue(row, name, str(misfit)))
            self.values.setdefault(name, []).append(value)
        if isinstance(self.declared, EdgeType):
            for endpoint, key in _ENDPOINTS:
                given = fields.get(key)
                self.endpoints.setdefault(endpoint, []).append(
                    given if isinstance(given, str) else None
                )
        explicit = data.get("id")
        self.ids.append(explicit if isinstance(explicit, str) else None)
        if explicit is not None and not isinstance(explicit, str):
            self.odd_ids[row] = compact_json(explicit)

    def typed(self) -> TypedRows:
        columns = {endpoint: pa.array(ids, pa.utf8()) for endpoint, ids in self.endpoints.items()}
        for name, values in self.values.items():
            columns[name] = build_column(values, self.declared.properties[name].type)
        if self.patches:
            flags = {
                name: np.array([name in keys for keys in self.given], np.bool_)
                for name in self.declared.properties
            }
            columns[GIVEN] = given_column(self.declared, len(self.given), flags)
        return TypedRows(
            self.declared,
            np.array(self.positions, np.int64),
            columns,
            pa.array(self.ids, pa.utf8()),
            tuple(self.misfits),
            self.odd_ids,
        )


def read_records(
    catalog: Catalog, texts: pa.Array, positions: list[int], *, patches: bool = False
) -> ParsedRecords:
    """The records of the texts. Raises `SeveralRecords` when a text holds more than one."""
    parsed = ParsedRecords(len(texts))
    rows: dict[str, _Rows] = {}
    for position, record in _values(texts, positions, parsed.problems):
        declared = _declared(catalog, record, position, parsed.problems)
        if declared is not None:
            data = record.get("data") or {}
            new = _Rows(declared, patches=patches)
            rows.setdefault(declared.table_key, new).add(position, record, data)
            for key in data:
                if key != "id" and key not in declared.properties:
                    parsed.notes.add_unknown((declared.name, key), [position])
    parsed.rows += (r.typed() for r in rows.values())
    return parsed


def read_objects(
    plan: RowPlan, texts: pa.Array, positions: list[int], *, patches: bool = False
) -> ParsedRecords:
    """Plain objects as rows of one type. Raises `SeveralRecords`."""
    parsed = ParsedRecords(len(texts))
    rows = _Rows(plan.declared, patches=patches)
    for position, record in _values(texts, positions, parsed.problems):
        if not isinstance(record, dict):
            parsed.problems.append(problem_at(position, "bad_record", "expected a JSON object"))
            continue
        data = {name: record[key] for name, key in plan.columns.items() if key in record}
        if plan.id is not None:
            data["id"] = record.get(plan.id)
        endpoints: dict[str, Any] = {}
        for endpoint, source in plan.endpoints.items():
            if isinstance(source, str):
                endpoints[endpoint] = record.get(source)
                continue
            try:
                endpoints[endpoint] = _endpoint_by_key(source, record)
            except Misfit as misfit:
                rows.misfits.append(
                    MisfitValue(len(rows.positions), endpoint, f"'{endpoint}': {misfit}")
                )
        rows.add(position, endpoints, {**plan.constants, **data})
    if rows.positions:
        parsed.rows.append(rows.typed())
    return parsed


def are_sound(texts: pa.Array) -> bool:
    """Whether every text can be read, and no object in it has a key twice."""
    problems: list[Problem] = []
    for _ in _values(texts, list(range(len(texts))), problems):
        if problems:
            return False
    return not problems


def _endpoint_by_key(source: KeyColumns, record: dict[str, Any]) -> str | None:
    """The id of the node with the key a record has; None when a part of it is missing."""
    values: dict[str, Any] = {}
    for name, key in source.columns.items():
        wanted = source.node.properties[name].type
        values[name] = convert_value(record.get(key), name, wanted, typed=False)
        if values[name] is None:
            return None
    return node_id(source.node, values)


def _values(
    texts: pa.Array, positions: list[int], problems: list[Problem]
) -> Iterator[tuple[int, Any]]:
    """The value of each text that is one. Raises `SeveralRecords`."""
    for position, raw in zip(positions, texts.to_pylist(), strict=True):
        text = raw.decode("utf-8", "surrogateescape")
        try:
            value, end, repeated = read_record(text)
        except MalformedText as error:
            offset = error.offset_in(text, 0)
            problems.append(problem_at(position, "invalid_json", str(error), offset=offset))
            continue
        if text[end:].strip():
            raise SeveralRecords
        if repeated is None:
            yield position, value
        else:
            message = f"an object has the key '{shortened(repeated)}' twice"
            problems.append(problem_at(position, "bad_record", message))


def _declared(
    catalog: Catalog, record: object, position: int, problems: list[Problem]
) -> EntityType | None:
    """The type a record belongs to; without one, a problem says why."""
    fields = record if isinstance(record, dict) else {}
    node, edge, data = fields.get("type"), fields.get("edge"), fields.get("data")
    if not isinstance(node, str) and not isinstance(edge, str):
        problems.append(problem_at(position, "bad_record", "expected 'type' or 'edge' field"))
    elif data is not None and not isinstance(data, dict):
        problems.append(problem_at(position, "bad_record", "'data' must be a JSON object"))
    elif isinstance(node, str):
        declared = catalog.nodes.get(node)
        if declared is not None:
            return declared
        problems.append(
            problem_at(position, "unknown_type", _unknown_type("node", node, tuple(catalog.nodes)))
        )
    elif isinstance(edge, str):
        edge_type = catalog.edge_for_traversal(edge)
        if edge_type is not None:
            return edge_type
        problems.append(
            problem_at(position, "unknown_type", _unknown_type("edge", edge, tuple(catalog.edges)))
        )
    return None


@lru_cache(maxsize=256)
def _unknown_type(kind: str, name: str, known: tuple[str, ...]) -> str:
    return with_hint(f"unknown {kind} type '{shortened(name)}'", name, known)


_SLICE_ROWS: Final = 1000
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


class _BlockReader(ABC):
    """Reads blocks of a JSON stream in columns, and what does not fit one by one."""

    def read(self, block: Block) -> ParsedRecords:
        """The rows and problems of a block."""
        try:
            return self._read(block.records)
        except SeveralRecords:
            return self._read(block.read_by_value())

    def _read(self, records: Records) -> ParsedRecords:
        parsed = ParsedRecords(records.count, records.lines)
        parsed.problems += (malformed.problem for malformed in records.malformed)
        group = _Group(records.texts, records.positions)
        if is_utf8(group.texts):
            self._read_texts(group, parsed)
        else:
            parsed.add(self._read_singly(group))
        return parsed

    @abstractmethod
    def _read_texts(self, group: _Group, parsed: ParsedRecords) -> None:
        """Add the records of UTF-8 texts."""

    @abstractmethod
    def _read_singly(self, group: _Group) -> ParsedRecords:
        """The records, read one by one."""


class JsonReader(_BlockReader):
    """Reads records that name their type. What it learns about them only makes it faster."""

    def __init__(self, catalog: Catalog, *, patches: bool = False) -> None:
        self._catalog = catalog
        self._patches = patches
        self._router = Router(catalog)
        self._spellings: dict[str, Spelling] = {}

    def _read_texts(self, group: _Group, parsed: ParsedRecords) -> None:
        texts = group.texts
        for routed in self._router.route(texts):
            mine = texts if len(routed.rows) == len(texts) else texts.take(pa.array(routed.rows))
            same = _Group(mine, group.positions[routed.rows])
            if routed.declared is None:
                parsed.add(self._read_singly(same))
            else:
                self._read_group(routed.declared, same, parsed)

    def _read_group(self, declared: EntityType, group: _Group, parsed: ParsedRecords) -> None:
        spelling = self._spellings.get(declared.table_key, Spelling())
        try:
            return parsed.add(self._read_columns(declared, group, spelling))
        except JsonMismatch:
            learned = _learn(declared, group.texts)
        if learned != spelling:
            self._spellings[declared.table_key] = learned
            try:
                return parsed.add(self._read_columns(declared, group, learned))
            except JsonMismatch:
                pass
        for start in range(0, len(group.texts), _SLICE_ROWS):
            part = group.slice(start, _SLICE_ROWS)
            try:
                parsed.add(self._read_columns(declared, part, learned))
            except JsonMismatch:
                parsed.add(self._read_singly(part))

    def _read_singly(self, group: _Group) -> ParsedRecords:
        positions = group.positions.tolist()
        return read_records(self._catalog, group.texts, positions, patches=self._patches)

    def _read_columns(
        self, declared: EntityType, group: _Group, spelling: Spelling
    ) -> ParsedRecords:
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
            parsed = ParsedRecords(len(group.texts), rows=[rows])
            kept = group
        else:
            parsed = self._read_singly(group.where(bad))
            good = pa.array(~bad)
            parsed.rows.append(rows.where(~bad))
            kept = group.where(~bad)
            given = {name: given[name].filter(good) for name in spelling.unknown_keys}
        for name in spelling.unknown_keys:
            found = _records_with(name, given[name], kept)
            if len(found):
                parsed.notes.add_unknown((declared.name, name), found.tolist())
        return parsed


@dataclass(frozen=True, slots=True)
class _Group:
    """Record texts and their positions."""

    texts: pa.Array
    positions: Numbers

    def slice(self, start: int, length: int) -> _Group:
        return _Group(self.texts.slice(start, length), self.positions[start : start + length])

    def where(self, mask: Mask) -> _Group:
        return _Group(self.texts.filter(pa.array(mask)), self.positions[mask])


def _not_json(column: pa.Array) -> Mask:
    """Rows where a column that is not loaded holds a number that JSON does not have."""
    if are_json(column):
        return np.zeros(len(column), np.bool_)
    if kinds.is_list(column.type):
        return np.ones(len(column), np.bool_)
    mask: Mask = pc.invert(pc.is_finite(column)).fill_null(False).to_numpy(zero_copy_only=False)
    return mask


def _records_with(key: str, column: pa.Array, group: _Group) -> Numbers:
    """The positions of records that have a key, a null value included."""
    has = column.is_valid().to_numpy(zero_copy_only=False)
    if column.null_count:
        has = has.copy()
        has[~has] = has_key(key, group.where(~has).texts).to_numpy(zero_copy_only=False)
    found: Numbers = group.positions[has]
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
    """The Arrow type of a value that is not loaded; None for what only a record of its own can take."""
    if not isinstance(value, list):
        return scalar_kind(value)
    inner = scalar_kind(_first(value))
    return None if inner is None else pa.list_(inner)


def _first(value: object) -> object:
    """The value, or the first one in it that is not null."""
    if isinstance(value, list):
        return next((item for item in value if item is not None), None)
    return value


# -- plain objects ------------------------------------------------------------------------------


@dataclass(frozen=True)
class ObjectReader(_BlockReader):
    """Reads plain objects as rows of one type."""

    plan: RowPlan
    patches: bool = False

    def _read_singly(self, group: _Group) -> ParsedRecords:
        positions = group.positions.tolist()
        return read_objects(self.plan, group.texts, positions, patches=self.patches)

    def _read_texts(self, group: _Group, parsed: ParsedRecords) -> None:
        table = self._parse(group.texts)
        if table is not None:
            for batch in table.combine_chunks().to_batches():
                self._read_batch(batch, group, parsed)
        elif len(group.texts) <= _SLICE_ROWS:
            parsed.add(self._read_singly(group))
        else:
            for start in range(0, len(group.texts), _SLICE_ROWS):
                self._read_texts(group.slice(start, _SLICE_ROWS), parsed)

    def _read_batch(self, batch: pa.RecordBatch, group: _Group, parsed: ParsedRecords) -> None:
        """The rows of all texts; of a patch, those whose keys are not clear are read one by one."""
        given: dict[str, Mask] | None = None
        texts, positions = group.texts, group.positions
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
                parsed.add(self._read_singly(group.where(doubtful)))
                given = {name: mask[~doubtful] for name, mask in given.items()}
                batch, positions = batch.filter(pa.array(~doubtful)), positions[~doubtful]
        parsed.rows.append(read_cells(self.plan, batch, positions, TypedCells(typed=False), given))

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
        for endpoint in plan.endpoints.values():
            if isinstance(endpoint, KeyColumns):
                keys = endpoint.columns.items()
                wanted += [(key, endpoint.node.properties[name].type) for name, key in keys]
            else:
                texts.append(endpoint)
        has_times = any(kind.scalar in TIMES for _, kind in wanted)
        for numeric in (False, True)[: 1 + has_times]:
            fields = [(key, json_shape(kind, numeric_times=numeric)) for key, kind in wanted]
            shape = dict.fromkeys([*fields, *((key, pa.utf8()) for key in texts)])
            # A key that two parts of a row want as different types is left to the reading of single objects.
            if len({key for key, _ in shape}) == len(shape):
                yield pa.schema(list(shape))
