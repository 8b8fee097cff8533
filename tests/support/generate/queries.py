"""Random query files, reads and mutations mixed, and each kind alone."""

from __future__ import annotations

from hypothesis import assume
from hypothesis import strategies as st

from omnigraph.catalog.model import Catalog, EdgeType, EntityType, NodeType, Property
from omnigraph.language.query.ast import (
    AliasReference,
    Assignment,
    Comparison,
    Delete,
    Insert,
    MutationBody,
    Note,
    Operator,
    Parameter,
    Query,
    QueryFile,
    ReadBody,
    Statement,
    Update,
    Variable,
)
from omnigraph.language.syntax import Name, TypeRef
from omnigraph.language.types import PropType, Scalar
from tests.support.generate.clauses import Range
from tests.support.generate.names import idents, texts
from tests.support.generate.reads import ReadBuilder
from tests.support.generate.values import Parameters, values

_COMPARISONS = [o for o in Operator if not o.value.isidentifier()]
_ID = PropType(Scalar.STRING)
_ENDS = ("from", "to")


@st.composite
def query_files(draw: st.DrawFn, catalog: Catalog) -> QueryFile:
    """A file of queries that all fit the catalog, which must have a node type."""
    names = draw(st.lists(idents, min_size=1, max_size=3, unique=True))
    return QueryFile(tuple(_query(draw, name, catalog) for name in names))


@st.composite
def mutation_queries(draw: st.DrawFn, catalog: Catalog) -> Query:
    """A mutation that fits the catalog, which must have a type that can be written."""
    parameters = Parameters()
    targets = _targets(catalog)
    assume(bool(targets))
    return _declared(draw, "q", _mutation(draw, targets, parameters), parameters)


@st.composite
def read_queries(draw: st.DrawFn, catalog: Catalog, may: Range | None = None) -> Query:
    """A read that fits the catalog, which must have a node type."""
    parameters = Parameters()
    return _declared(draw, "q", ReadBuilder(draw, catalog, parameters, may).body(), parameters)


def _query(draw: st.DrawFn, name: str, catalog: Catalog) -> Query:
    parameters = Parameters()
    body: ReadBody | MutationBody
    targets = _targets(catalog)
    if not targets or draw(st.booleans()):
        body = ReadBuilder(draw, catalog, parameters).body()
    else:
        body = _mutation(draw, targets, parameters)
    return _declared(draw, name, body, parameters)


def _targets(catalog: Catalog) -> list[EntityType]:
    return [t for t in catalog if _can_be_written(catalog, t)]


def _mutation(draw: st.DrawFn, targets: list[EntityType], parameters: Parameters) -> MutationBody:
    count = draw(st.integers(1, 3))
    return MutationBody(tuple(_statement(draw, targets, parameters) for _ in range(count)))


def _declared(
    draw: st.DrawFn, name: str, body: ReadBody | MutationBody, parameters: Parameters
) -> Query:
    declared = tuple(Parameter(Variable(p), TypeRef(kind)) for p, kind in parameters.types.items())
    notes = tuple(
        Note(Name(word), draw(texts))
        for word in ("description", "instruction")
        if draw(st.booleans())
    )
    return Query(Name(name), declared, notes, body)


def _can_be_written(catalog: Catalog, target: EntityType) -> bool:
    """Whether a mutation can name the type and fill it.

    A node type needs a property to assign. An edge type is hidden by a node type of its name, and
    its own properties by the ends they are called like.
    """
    if isinstance(target, NodeType):
        return bool(target.properties)
    hidden = [target.properties[word] for word in _ENDS if word in target.properties]
    return target.name not in catalog.nodes and all(p.type.nullable for p in hidden)


def _statement(draw: st.DrawFn, targets: list[EntityType], parameters: Parameters) -> Statement:
    target = draw(st.sampled_from(targets))
    name = Name(target.name)
    settable = sorted(target.properties)
    condition = _predicate(draw, target, parameters)
    choices = ["insert"]
    if condition is not None:
        choices.append("delete")
        if isinstance(target, NodeType) and settable:
            choices.append("update")
    match draw(st.sampled_from(choices)):
        case "delete" if condition is not None:
            return Delete(name, condition)
        case "update" if condition is not None:
            chosen = draw(st.lists(st.sampled_from(settable), min_size=1, unique=True))
            assignments = _assignments(draw, target, parameters, chosen)
            return Update(name, tuple(assignments), condition)
        case _:
            return _insert(draw, target, parameters)


def _insert(draw: st.DrawFn, target: EntityType, parameters: Parameters) -> Statement:
    required = [p.name for p in target.properties.values() if not p.type.nullable]
    optional = [p.name for p in target.properties.values() if p.type.nullable]
    least = 0 if required or isinstance(target, EdgeType) else 1
    chosen = list(required)
    if optional:
        chosen += draw(st.lists(st.sampled_from(optional), unique=True, min_size=least))
    assignments = []
    if isinstance(target, EdgeType):
        chosen = [name for name in chosen if name not in _ENDS]
        assignments = [Assignment(Name(w), values(draw, parameters, _ID)) for w in _ENDS]
    assignments += _assignments(draw, target, parameters, chosen)
    return Insert(Name(target.name), tuple(draw(st.permutations(assignments))))


def _assignments(
    draw: st.DrawFn, target: EntityType, parameters: Parameters, chosen: list[str]
) -> list[Assignment]:
    return [
        Assignment(Name(name), values(draw, parameters, target.properties[name].type))
        for name in chosen
    ]


def _predicate(draw: st.DrawFn, target: EntityType, parameters: Parameters) -> Comparison | None:
    usable = [p.name for p in target.properties.values() if _comparable(p)]
    if isinstance(target, EdgeType):
        usable = [name for name in usable if name not in _ENDS] + list(_ENDS)
    if not usable:
        return None
    name = draw(st.sampled_from(usable))
    is_end = isinstance(target, EdgeType) and name in _ENDS
    kind = _ID if is_end else target.properties[name].type
    operator = draw(st.sampled_from(_COMPARISONS))
    return Comparison(AliasReference(Name(name)), operator, values(draw, parameters, kind))


def _comparable(prop: Property) -> bool:
    return not (prop.type.list or prop.type.is_vector or prop.type.is_blob)
