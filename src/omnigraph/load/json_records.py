"""JSON records read one by one: the way for records that the columns could not take."""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.catalog.identity import node_id
from omnigraph.catalog.ir import compact_json
from omnigraph.catalog.model import Catalog, EdgeType, EntityType
from omnigraph.diagnostics import shortened, with_hint
from omnigraph.load.json_table import SeveralRecords
from omnigraph.load.json_text import MalformedText, read_record
from omnigraph.load.records import (
    GIVEN,
    MisfitValue,
    ParsedRecords,
    Problem,
    TypedRows,
    given_column,
    problem_at,
)
from omnigraph.load.row_plan import KeyColumns, RowPlan
from omnigraph.load.values import convert_value
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
