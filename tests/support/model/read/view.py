"""The part of an image a reader may see. Hidden rows are taken out before a query looks at any."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from omnigraph.catalog.model import EdgeType, EntityType
from omnigraph.language.query.ast import Operator
from omnigraph.language.query.parse import parse_condition
from omnigraph.language.syntax import Source
from omnigraph.language.types import PropType, Scalar
from omnigraph.language.values import parse_date, parse_datetime
from omnigraph.plan.check_mutation import check_condition
from omnigraph.plan.ir import ID_TYPE, ROW
from omnigraph.plan.ir import Filter as Condition
from omnigraph.plan.params import bind_host_values
from omnigraph.storage.filters.model import And, Comparison, Filter, In, IsNull, Not, Or
from tests.support.model.image import Image
from tests.support.model.read.compare import Side, holds
from tests.support.model.read.expressions import Evaluator
from tests.support.model.values import Row, Value


class View(Protocol):
    """What the oracle asks of a view. Queries are checked against the catalog a view leaves, so
    hidden properties need no care here; predicates may still look at them."""

    @property
    def hidden_types(self) -> frozenset[str]: ...

    @property
    def rows(self) -> Mapping[str, Filter | str]: ...

    @property
    def params(self) -> Mapping[str, object]: ...


def visible(image: Image, view: View) -> Image:
    """The image without hidden types and rows, and without edges that lost an end."""
    tables: dict[str, dict[str, Row]] = {}
    for declared in image.catalog:
        predicate = None if declared.name in view.hidden_types else view.rows.get(declared.name)
        shows = row_test(declared, predicate, view.params)
        tables[declared.table_key] = {
            id: row
            for id, row in image.tables[declared.table_key].items()
            if declared.name not in view.hidden_types and (predicate is None or shows(row))
        }
    return without_dangling_edges(Image(image.catalog, tables))


def without_dangling_edges(image: Image) -> Image:
    """The image without the edges that lost an endpoint."""
    tables = image.working_copy()
    for edge in image.catalog.edges.values():
        sources, targets = tables[f"node:{edge.from_type}"], tables[f"node:{edge.to_type}"]
        tables[edge.table_key] = {
            id: row
            for id, row in tables[edge.table_key].items()
            if row["src"] in sources and row["dst"] in targets
        }
    return Image(image.catalog, tables)


def row_test(
    declared: EntityType, predicate: Filter | str | None, params: Mapping[str, object]
) -> Callable[[Row], bool]:
    """Whether a row is visible."""
    if not isinstance(predicate, str):
        return lambda row: predicate is None or _truth(declared, predicate, row) is True
    source = Source("<rows>", predicate)
    condition, specs = check_condition(source, declared, parse_condition(source))
    bound = bind_host_values(specs, {spec.name: params[spec.name] for spec in specs})
    evaluator, kept = Evaluator(bound, None), Condition(condition)
    return lambda row: evaluator.satisfies(kept, {ROW: row})


def _truth(declared: EntityType, predicate: Filter, row: Row) -> bool | None:
    """True, false or unknown."""
    match predicate:
        case Comparison(column, operator, value):
            return _compare(row[column], Operator(operator), value, _type(declared, column))
        case In(column, values):
            kind = _type(declared, column)
            found = [_compare(row[column], Operator.EQ, value, kind) for value in values]
            return None if row[column] is None else True in found
        case IsNull(column):
            return row[column] is None
        case And(parts):
            return _all([_truth(declared, part, row) for part in parts])
        case Or(parts):
            return _not(_all([_not(_truth(declared, part, row)) for part in parts]))
        case Not(part):
            return _not(_truth(declared, part, row))
        case _:
            raise AssertionError(f"a view is not given a {type(predicate).__name__}")


def _compare(stored: Value, operator: Operator, given: Value, kind: PropType) -> bool | None:
    if stored is None or given is None:
        return None
    if isinstance(given, str) and kind.scalar is Scalar.DATE:
        given = parse_date(given)
    elif isinstance(given, str) and kind.scalar is Scalar.DATETIME:
        given = parse_datetime(given)
    return holds(Side(stored, kind, column=True), operator, Side(given, kind.element()))


def _type(declared: EntityType, column: str) -> PropType:
    if column == "id" or (isinstance(declared, EdgeType) and column in ("src", "dst")):
        return ID_TYPE
    return declared.properties[column].type


def _all(parts: list[bool | None]) -> bool | None:
    if False in parts:
        return False
    return None if None in parts else True


def _not(truth: bool | None) -> bool | None:
    return None if truth is None else not truth
