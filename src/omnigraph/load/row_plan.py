"""Which columns of a table the rows of a type are made of, and the exact rules for one value.

A plan is made before the first record is read, from what a mapping says and the names of the
columns, so that a table which lacks something is refused as a whole.

`omnigraph.load.columns` converts whole columns. Values it marks as doubtful come here, so this module
decides what is accepted and what is reported about the rest."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal
from typing import Final, TypeGuard

from omnigraph.catalog.constraints import identity_group
from omnigraph.catalog.model import Catalog, EdgeType, EntityType, NodeType
from omnigraph.diagnostics import with_hint
from omnigraph.errors import LoadSourceError
from omnigraph.language.types import PropType, Scalar
from omnigraph.language.values import parse_date, parse_datetime
from omnigraph.rows.columns import (
    Misfit,
    StoredValue,
    blob_value,
    check_dimension,
    in_range,
    nearest_float,
)

_DAY_MS: Final = 86_400_000
_DAYS: Final = (-(2**31), 2**31 - 1)
_MILLIS: Final = (-(2**63), 2**63 - 1)
_NON_FINITE: Final = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


@dataclass(frozen=True, slots=True)
class Day:
    """A calendar day from a table, as days since the epoch."""

    number: int


@dataclass(frozen=True, slots=True)
class Moment:
    """A point in time from a table, as whole milliseconds since the epoch."""

    millis: int


def json_type(given: object) -> str:
    """The name of a value's type in messages."""
    match given:
        case bool():
            return "boolean"
        case int() | float() | Decimal():
            return "number"
        case str():
            return "string"
        case bytes():
            return "binary"
        case Day():
            return "date"
        case Moment():
            return "timestamp"
        case Sequence():
            return "array"
        case _:
            return "object"


# -- values -------------------------------------------------------------------------------------


def convert_value(given: object, name: str, wanted: PropType, *, typed: bool) -> StoredValue:
    """The stored value of a source value. Raises `Misfit`.

    Integers of a typed source (a table) become floats only when nothing is lost.
    """
    if given is None:
        return None
    if wanted.is_vector:
        return _vector(given, name, wanted, typed=typed)
    subject = f"property '{name}'"
    if not wanted.list:
        return _scalar(given, subject, wanted.scalar, typed=typed)
    if not _is_array(given):
        raise Misfit(f"{subject} expects a JSON array, got {json_type(given)}")
    return [
        None
        if item is None
        else _scalar(item, f"element {n} of '{name}'", wanted.scalar, typed=typed)
        for n, item in enumerate(given, 1)
    ]


def _is_array(given: object) -> TypeGuard[Sequence[object]]:
    return json_type(given) == "array"


def _scalar(given: object, subject: str, scalar: Scalar, *, typed: bool) -> StoredValue:
    if scalar is Scalar.BLOB:
        return blob_value(given, subject)
    if isinstance(given, bool):
        if scalar is Scalar.BOOL:
            return given
    elif scalar is Scalar.STRING:
        if isinstance(given, str):
            return given
    elif scalar is Scalar.DATE or scalar is Scalar.DATETIME:
        if isinstance(given, str | int | Day | Moment):
            return _time(given, subject, scalar)
    elif scalar.is_integer:
        if isinstance(given, int) or (
            isinstance(given, Decimal) and given == given.to_integral_value()
        ):
            return in_range(int(given), subject, scalar)
    elif scalar.is_float and isinstance(given, int | float | Decimal):
        return _nearest_float(given, subject, scalar, typed=typed)
    raise Misfit(f"{subject} expects {scalar.value}, got {json_type(given)}")


def _time(given: str | int | Day | Moment, subject: str, scalar: Scalar) -> int:
    is_date = scalar is Scalar.DATE
    match given:
        case str():
            try:
                return parse_date(given) if is_date else parse_datetime(given)
            except ValueError as error:
                raise Misfit(f"{subject}: {error}") from None
        case Day(days):
            number = days if is_date else days * _DAY_MS
        case Moment(millis):
            number = millis // _DAY_MS if is_date else millis
        case int():
            number = given
    low, high = _DAYS if is_date else _MILLIS
    if not low <= number <= high:
        raise Misfit(f"{subject}: {scalar.value} value out of range")
    return number


def _nearest_float(
    given: int | float | Decimal, subject: str, scalar: Scalar, *, typed: bool
) -> float:
    if typed and isinstance(given, float) and not math.isfinite(given):
        raise Misfit(f"{subject}: {_NON_FINITE[str(given)]} is not a finite number")
    stored = nearest_float(given, subject, scalar)
    if typed and isinstance(given, int) and stored != given:
        raise Misfit(f"{subject}: {given} has no exact {scalar.value}")
    return stored


def _vector(given: object, name: str, wanted: PropType, *, typed: bool) -> StoredValue:
    expects = f"property '{name}' expects {wanted.required().display}"
    if not _is_array(given):
        raise Misfit(f"{expects}, got {json_type(given)}")
    check_dimension(name, wanted, len(given))
    components = []
    for number, item in enumerate(given, 1):
        if isinstance(item, bool) or not isinstance(item, int | float | Decimal):
            raise Misfit(f"{expects}: element {number} is not a number")
        subject = f"element {number} of '{name}'"
        components.append(_nearest_float(item, subject, Scalar.F32, typed=typed))
    return components


ENDPOINTS: Final = ("from", "to")


@dataclass(frozen=True, slots=True)
class Constant:
    """A value that every row gets."""

    value: object


@dataclass(frozen=True, slots=True)
class Assignment:
    """What a mapping says about rows; whatever it leaves out goes by name.

    `columns` has a column, a constant, or None for a property that is not loaded. An endpoint is a
    column of ids, or key properties of the node there with their columns.
    """

    columns: Mapping[str, str | Constant | None] = field(default_factory=dict)
    endpoints: Mapping[str, str | Mapping[str, str]] = field(default_factory=dict)
    id: str | None = None


@dataclass(frozen=True, slots=True)
class KeyColumns:
    """An endpoint of an edge given by key values of its node: key property to column."""

    node: NodeType
    columns: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class RowPlan:
    """Where each part of a row comes from: property to column, and `from` and `to` of edges."""

    declared: EntityType
    columns: Mapping[str, str]
    constants: Mapping[str, StoredValue]
    endpoints: Mapping[str, str | KeyColumns]
    id: str | None
    unused: tuple[str, ...] = ()
    """Columns of a source without a mapping that no part of a row is called after."""

    def sources(self) -> list[str]:
        """The columns that are read, each once."""
        return list(dict.fromkeys(self._sources()))

    def _sources(self) -> Iterator[str]:
        for endpoint in self.endpoints.values():
            if isinstance(endpoint, KeyColumns):
                yield from endpoint.columns.values()
            else:
                yield endpoint
        if self.id is not None:
            yield self.id
        yield from self.columns.values()


def _has_derived_ids(declared: EntityType) -> bool:
    """Whether every row gets its id from its values. An edge with a null among them does not."""
    properties = declared.properties
    group = identity_group(declared)
    return group is not None and not any(
        properties[name].type.nullable for name in group if name in properties
    )


def plan_rows(
    declared: EntityType,
    present: Collection[str] | None,
    assignment: Assignment,
    source: str,
    catalog: Catalog,
    *,
    is_empty: bool = False,
) -> RowPlan:
    """The plan for rows with the columns `present`, or for objects that may have any key.

    A source that has no rows may also have no columns.

    Raises `LoadSourceError` for an unknown property, a column that is not there, and a part of a
    row that nothing provides.
    """
    if is_empty and not present:
        return RowPlan(declared, {}, {}, {}, None)
    planner = _Planner(declared, present, assignment, source)
    columns, constants = planner.properties()
    plan = RowPlan(declared, columns, constants, planner.endpoints(catalog), planner.id())
    if present is not None and assignment == Assignment():
        # The id is a part of every row, also where it is derived from others.
        known = {*plan.sources(), "id"}
        plan = replace(plan, unused=tuple(name for name in present if name not in known))
    if present is not None:
        for name in plan.sources():
            if sum(column == name for column in present) > 1:
                raise LoadSourceError(source, f"source has several columns '{name}'")
    return plan


@dataclass(frozen=True, slots=True)
class _Planner:
    declared: EntityType
    present: Collection[str] | None
    assignment: Assignment
    source: str

    def properties(self) -> tuple[dict[str, str], dict[str, StoredValue]]:
        known = self.declared.properties
        for name in self.assignment.columns:
            if name not in known:
                raise self._error(f"{self.declared.name} has no property '{name}'", name, known)
        columns: dict[str, str] = {}
        constants: dict[str, StoredValue] = {}
        for name in known:
            if name not in self.assignment.columns:
                if self._has(name):
                    columns[name] = name
                continue
            match self.assignment.columns[name]:
                case Constant(value):
                    constants[name] = self._constant(name, value)
                case str(column):
                    columns[name] = self._column(column)
        for name in self._keys():
            if name not in columns and constants.get(name) is None:
                raise LoadSourceError(self.source, f"source has no column '{name}'")
        return columns, constants

    def endpoints(self, catalog: Catalog) -> dict[str, str | KeyColumns]:
        if not isinstance(self.declared, EdgeType):
            return {}
        nodes = (self.declared.from_type, self.declared.to_type)
        return {
            endpoint: self._endpoint(endpoint, catalog.nodes[node])
            for endpoint, node in zip(ENDPOINTS, nodes, strict=True)
        }

    def id(self) -> str | None:
        derived = _has_derived_ids(self.declared)
        if self.assignment.id is not None:
            if derived:
                problem = f"ids of {self.declared.name} are derived; leave 'id' out"
                raise LoadSourceError(self.source, problem)
            return self._column(self.assignment.id)
        return "id" if not derived and self._has("id") else None

    def _endpoint(self, endpoint: str, node: NodeType) -> str | KeyColumns:
        given = self.assignment.endpoints.get(endpoint, endpoint)
        if isinstance(given, str):
            return self._column(given)
        if set(given) != set(node.key or ()):
            keys = ", ".join(node.key or ()) or "none"
            problem = f"'{endpoint}' must name the key properties of {node.name} ({keys})"
            raise LoadSourceError(self.source, problem)
        return KeyColumns(node, {name: self._column(column) for name, column in given.items()})

    def _keys(self) -> tuple[str, ...]:
        return (self.declared.key or ()) if isinstance(self.declared, NodeType) else ()

    def _has(self, column: str) -> bool:
        return self.present is None or column in self.present

    def _column(self, column: str) -> str:
        if not self._has(column):
            raise self._error(f"source has no column '{column}'", column, self.present or ())
        return column

    def _constant(self, name: str, value: object) -> StoredValue:
        # A mapping made in Python may hold a day or a moment as one.
        given = value.isoformat() if isinstance(value, date) else value
        try:
            return convert_value(given, name, self.declared.properties[name].type, typed=False)
        except Misfit as misfit:
            raise LoadSourceError(self.source, str(misfit)) from None

    def _error(self, problem: str, name: str, known: Collection[str]) -> LoadSourceError:
        return LoadSourceError(self.source, with_hint(problem, name, known))
