"""The first phase of a load: every record on its own becomes a row, or errors say why not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from omnigraph.catalog.identity import KeyValue, edge_id, node_id
from omnigraph.catalog.model import Catalog, EdgeType, EntityType, NodeType
from omnigraph.diagnostics import with_hint
from tests.support.model.records import Record, read_records
from tests.support.model.rules import (
    Violation,
    identity_of,
    missing_values,
    value_violations,
)
from tests.support.model.values import BadValue, Row, Value, from_json, text_of
from tests.support.outcome import Json, LoadError, ReceiptWarning


@dataclass(frozen=True, slots=True)
class InputRow:
    """A record that became a row."""

    record: Record
    declared: EntityType
    row: Row
    given: frozenset[str] = frozenset()
    """The properties that the record has, be it with a null."""

    @property
    def id(self) -> str:
        return text_of(self.row, "id")


class LoadInput:
    """All records of a load: the rows they became, what is wrong, and what was put up with."""

    def __init__(
        self, text: str, catalog: Catalog, ids: Iterator[str], *, patches: bool = False
    ) -> None:
        self.records: list[Record] = []
        self.rows: list[InputRow] = []
        self.errors: list[LoadError] = []
        self._catalog = catalog
        self._ids = ids
        self._patches = patches
        self._unknown_properties: Counter[tuple[str, str]] = Counter()
        self._ignored_ids: Counter[str] = Counter()
        self.unnamed_edges: Counter[str] = Counter()
        for record in read_records(text):
            self.records.append(record)
            self._read(record)

    def warnings(self) -> list[ReceiptWarning]:
        found: list[ReceiptWarning] = []
        for (type_name, key), count in sorted(self._unknown_properties.items()):
            known = self._declared(type_name).properties
            message = with_hint(f"{type_name} has no property '{key}'", key, known)
            found.append(ReceiptWarning("unknown_property", message, count))
        for type_name, count in sorted(self._ignored_ids.items()):
            message = f"{type_name} edges have derived ids; explicit ones were replaced"
            found.append(ReceiptWarning("explicit_edge_id_ignored", message, count))
        return found

    def _declared(self, type_name: str) -> EntityType:
        return self._catalog.nodes.get(type_name) or self._catalog.edges[type_name]

    def _read(self, record: Record) -> None:
        if record.problem is not None:
            message = f"invalid JSON at record {record.number}: {record.problem}"
            return self._blame(record, "invalid_json", message)
        if record.repeated is not None:
            message = f"an object has the key '{record.repeated}' twice"
            return self._blame(record, "bad_record", message)
        fields = record.value if isinstance(record.value, dict) else {}
        node, edge = fields.get("type"), fields.get("edge")
        data = fields.get("data")
        if not isinstance(node, str) and not isinstance(edge, str):
            return self._blame(record, "bad_record", "expected 'type' or 'edge' field")
        if data is not None and not isinstance(data, dict):
            return self._blame(record, "bad_record", "'data' must be a JSON object")
        if isinstance(node, str):
            node_type = self._catalog.nodes.get(node)
            if node_type is None:
                problem = f"unknown node type '{node}'"
                problem = with_hint(problem, node, self._catalog.nodes)
                return self._blame(record, "unknown_type", problem)
            return self._read_row(record, node_type, data or {}, {})
        edge_type = self._catalog.edge_for_traversal(str(edge))
        if edge_type is None:
            problem = f"unknown edge type '{edge}'"
            problem = with_hint(problem, str(edge), self._catalog.edges)
            return self._blame(record, "unknown_type", problem)
        ends: dict[str, Value] = {}
        for end, key in (("src", "from"), ("dst", "to")):
            given = fields.get(key)
            if isinstance(given, str):
                ends[end] = given
            else:
                message = f"edge missing '{key}'"
                self._blame(record, "missing_endpoint", message, edge_type)
        return self._read_row(record, edge_type, data or {}, ends)

    def _read_row(
        self, record: Record, declared: EntityType, data: dict[str, Json], ends: dict[str, Value]
    ) -> None:
        row: dict[str, Value] = dict(ends)
        misfits = set()
        for name, prop in declared.properties.items():
            row[name] = None
            try:
                row[name] = from_json(data.get(name), name, prop.type)
            except BadValue as error:
                misfits.add(name)
                self._blame(record, "bad_value", str(error), declared, name)
        for key in data.keys() - declared.properties.keys() - {"id"}:
            self._unknown_properties[declared.name, key] += 1
        keys = declared.key if isinstance(declared, NodeType) and declared.key else ()
        for name in keys:
            if row[name] is None and name not in misfits:
                message = f"missing @key property '{name}'"
                self._blame(record, "bad_key", message, declared, name)
        missing = (
            v
            for v in missing_values(declared, row)
            if v.property not in keys and (not self._patches or _is_cleared(declared, data, v))
        )
        for violation in (*missing, *value_violations(declared, row)):
            if violation.property not in misfits:
                code, message = violation.code, violation.message
                self._blame(record, code, message, declared, violation.property)
        if not self.errors or self.errors[-1].record != record.number:
            given = frozenset(data) & frozenset(declared.properties)
            self._accept(record, declared, data.get("id"), row, given)

    def _accept(
        self,
        record: Record,
        declared: EntityType,
        explicit: Json,
        row: dict[str, Value],
        given: frozenset[str],
    ) -> None:
        derived = derived_id(declared, row)
        if isinstance(declared, NodeType):
            if derived is not None and explicit is not None and explicit != derived:
                keys = ", ".join(declared.key or ())
                message = f"explicit id '{explicit}' that does not match @key property '{keys}'"
                return self._blame(record, "bad_key", message, declared)
        elif derived is not None and isinstance(explicit, str) and explicit != derived:
            self._ignored_ids[declared.name] += 1
        id = derived
        if id is None:
            if not isinstance(explicit, str) and isinstance(declared, EdgeType):
                self.unnamed_edges[declared.name] += 1
            id = explicit if isinstance(explicit, str) else next(self._ids)
        self.rows.append(InputRow(record, declared, {"id": id, **row}, given))

    def _blame(
        self,
        record: Record,
        code: str,
        message: str,
        declared: EntityType | None = None,
        name: str | None = None,
    ) -> None:
        self.errors.append(
            LoadError(
                code=code,
                message=message,
                record=record.number,
                line=record.line,
                records=(record.number,),
                type=declared.name if declared else None,
                property=name,
            )
        )


def _is_cleared(declared: EntityType, data: dict[str, Json], violation: Violation) -> bool:
    """Whether a record has a null where none may be. Of a computed vector only a whole row tells."""
    name = violation.property
    return name is not None and name in data and declared.properties[name].embed_source is None


def derived_id(declared: EntityType, row: Row) -> str | None:
    """The id that follows from a row's key or ends; none when the type or the row has no identity."""
    if identity_of(declared) is None:
        return None
    values = {n: v for n, v in row.items() if isinstance(v, str | int | float) or v is None}
    if isinstance(declared, EdgeType):
        return edge_id(declared, text_of(row, "src"), text_of(row, "dst"), values)
    keys: dict[str, KeyValue] = {n: v for n, v in values.items() if v is not None}
    return node_id(declared, keys)
