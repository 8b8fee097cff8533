"""Random conditions on the rows of one type, as behind `where` and in views."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import strategies as st

from omnigraph.catalog.model import Catalog, EntityType
from omnigraph.errors import TypeCheckError
from omnigraph.language.query.ast import AliasReference, Expression
from omnigraph.language.query.parse import parse_condition
from omnigraph.language.query.print_expression import print_expression
from omnigraph.language.syntax import Name, Source
from omnigraph.language.types import PropType
from omnigraph.plan.check_mutation import check_condition
from tests.support.generate.clauses import ClauseBuilder, Range
from tests.support.generate.values import Parameters


@st.composite
def row_conditions(draw: st.DrawFn, catalog: Catalog, declared: EntityType, may: Range) -> str:
    """The text of a condition without parameters that fits the type."""
    return draw(_texts(catalog, declared, may).filter(lambda text: _fits(declared, text)))


def _fits(declared: EntityType, text: str) -> bool:
    source = Source("<rows>", text)
    try:
        check_condition(source, declared, parse_condition(source))
    except TypeCheckError:
        return False
    return True


@st.composite
def _texts(draw: st.DrawFn, catalog: Catalog, declared: EntityType, may: Range) -> str:
    builder = _RowBuilder(draw, catalog, declared, may)
    found = builder.comparison()
    if found is None:
        return '@id != ""'
    return print_expression(builder.condition(found.condition, depth=2))


OPERANDS = frozenset({"not", "null", "true", "false"})
"""Words that are no names where an operand begins."""


class _RowBuilder(ClauseBuilder):
    """Bare words are the properties of the row."""

    def __init__(self, draw: st.DrawFn, catalog: Catalog, declared: EntityType, may: Range) -> None:
        super().__init__(draw, catalog, Parameters(), may)
        self.declared = declared

    def access(
        self, wanted: Callable[[PropType], bool], *, edges: bool = False
    ) -> tuple[Expression, PropType] | None:
        properties = [p for p in self.declared.properties.values() if p.name not in OPERANDS]
        found = [(AliasReference(Name(p.name)), p.type) for p in properties if wanted(p.type)]
        return self.draw(st.sampled_from(found)) if found else None

    def value(self, kind: PropType, *, allow_now: bool = True) -> Expression:
        return self.draw(self.may.literals(kind))
