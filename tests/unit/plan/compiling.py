"""Catalogs to compile against, and short ways to compile."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from omnigraph.catalog.compile import compile_schema
from omnigraph.catalog.model import Catalog
from omnigraph.language.syntax import Source
from omnigraph.plan.changes import MutationPlan
from omnigraph.plan.compile import CompiledQuery, compile_query
from omnigraph.plan.describe import describe_expression
from omnigraph.plan.ir import (
    Direction,
    Filter,
    Pattern,
    ReadPlan,
)
from tests.support.workshop import WORKSHOP
from tests.unit.language.schemas import NOTES, PAGES, read_query

ODDS = """\
// every type the other schemas lack
node Odd {
    code: String @key
    big: U64?
    pic: Blob?
    flags: [Bool]?
    numbers: [I32]?
    moments: [DateTime]?
    at: DateTime?
    on: Date?
    kind: enum(a, b)
    required: Vector(2)
}
node Same { a: I32? }
edge Same: Odd -> Odd { pic: Blob?  weight: F64 }
edge Linked: Odd -> Same { from: I32?  label: String? }
"""


def catalog(text: str) -> Catalog:
    return compile_schema(Source("<schema>", text))


W, P, E, O = (catalog(text) for text in (WORKSHOP, PAGES, NOTES, ODDS))  # noqa: E741


def against(schema: Catalog) -> Callable[[Source], CompiledQuery]:
    """Compile the only query of a source."""
    return lambda source: compile_query(source, schema)


def read(
    match: str, returned: str = "$m", tail: str = "", params: str = "", schema: Catalog = W
) -> ReadPlan:
    """The plan of a read called `q`."""
    text = read_query(match, returned, tail, params)
    return compile_query(Source("<query>", text), schema).read_plan()


def mutation(statements: str, params: str = "", schema: Catalog = W) -> MutationPlan:
    """The plan of a mutation called `q`."""
    source = Source("<query>", f"query q({params}) {{ {statements} }}")
    return compile_query(source, schema).mutation_plan()


def pattern(plan: ReadPlan) -> list[str]:
    """A pattern as lines in text order of each kind; what a negation holds is indented."""
    return list(_pattern_lines(plan.pattern))


def _pattern_lines(found: Pattern) -> Iterator[str]:
    for variable, node_type in found.types.items():
        yield f"{variable}: {node_type}"
    for edge in found.edges:
        ways = {direction for _, direction in edge.members}
        before = "<-" if Direction.IN in ways else "-"
        after = "->" if Direction.OUT in ways else "-"
        hops = "" if (edge.low, edge.high) == (1, 1) else f"{{{edge.low},{edge.high}}}"
        named = "" if edge.variable is None else f"{edge.variable}: "
        shortest = "" if edge.shortest is None else "shortest "
        types = " | ".join(edge.edge_types) or "*"
        yield f"{edge.left} {before}{named}{shortest}{types}{hops}{after} {edge.right}"
    for variable, conditions in found.conditions.items():
        yield f"{variable} where {' and '.join(map(_filter, conditions))}"
    for condition in found.filters:
        yield f"where {_filter(condition)}"
    for word, blocks in (
        ("not about", found.negations),
        ("exists about", found.requirements),
        ("optional about", found.optionals),
    ):
        for block in blocks:
            yield f"{word} {', '.join(block.outer)}"
            yield from (f"  {line}" for line in _pattern_lines(block.inner))


def _filter(condition: Filter) -> str:
    return describe_expression(condition.condition)


def columns(plan: ReadPlan) -> dict[str, str]:
    return {c.name: describe_expression(c.expression) for c in plan.columns}


def order(plan: ReadPlan) -> list[str]:
    return [
        f"{describe_expression(k.expression)} {'desc' if k.descending else 'asc'}"
        for k in plan.order
    ]
