"""The syntax tree of a schema file, and its declarations after resolution."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cached_property

from omnigraph.language.syntax import NOWHERE, Name, Source, Span, Syntax, TypeRef

ENDPOINTS = ("src", "dst")
"""What constraints call the endpoints of an edge."""


class AnnotationValue(Syntax, frozen=True):
    """The text of an annotation's value; whether it was quoted has no meaning."""

    text: str
    spelling: str | None = None


class AnnotationArgument(Syntax, frozen=True):
    """A keyword argument, which comes after the value."""

    name: Name
    value: AnnotationValue


class Annotation(Syntax, frozen=True):
    name: Name
    value: AnnotationValue | None = None
    arguments: tuple[AnnotationArgument, ...] = ()
    span: Span = NOWHERE


class Property(Syntax, frozen=True):
    name: Name
    type: TypeRef
    annotations: tuple[Annotation, ...] = ()
    span: Span = NOWHERE

    def annotation(self, name: str) -> Annotation | None:
        return next((a for a in self.annotations if a.name.text == name), None)


class ConstraintKind(Enum):
    KEY = "key"
    UNIQUE = "unique"
    INDEX = "index"
    RANGE = "range"
    CHECK = "check"


class Bounds(Syntax, frozen=True):
    """Inclusive bounds as written; an open side is None."""

    low: str | None
    high: str | None


class Pattern(Syntax, frozen=True):
    """A regular expression, decoded; `spelling` is how the source wrote it."""

    text: str
    spelling: str | None = None


class Constraint(Syntax, frozen=True):
    """A body constraint. `@range` and `@check` name one column and carry bounds or a pattern.

    In a `@key` the endpoints of an edge are written `@src` and `@dst`, and keep these names here.
    """

    kind: ConstraintKind
    columns: tuple[Name, ...]
    bounds: Bounds | None = None
    pattern: Pattern | None = None
    span: Span = NOWHERE


Member = Property | Constraint


class Interface(Syntax, frozen=True):
    name: Name
    members: tuple[Property, ...] = ()
    span: Span = NOWHERE


class Node(Syntax, frozen=True):
    name: Name
    annotations: tuple[Annotation, ...] = ()
    implements: tuple[Name, ...] = ()
    members: tuple[Member, ...] = ()
    span: Span = NOWHERE


class Cardinality(Syntax, frozen=True):
    """Outgoing edges per source node; no maximum is None."""

    low: int = 0
    high: int | None = None
    span: Span = NOWHERE


class Edge(Syntax, frozen=True):
    name: Name
    source: Name
    target: Name
    cardinality: Cardinality | None = None
    annotations: tuple[Annotation, ...] = ()
    members: tuple[Member, ...] = ()
    span: Span = NOWHERE


Declaration = Interface | Node | Edge


class Schema(Syntax, frozen=True):
    """A whole schema file."""

    declarations: tuple[Declaration, ...] = ()


# -- resolved declarations ------------------------------------------------------------------------


class _Properties:
    """A declaration whose properties are found by name."""

    name: Name
    properties: tuple[Property, ...]

    @cached_property
    def by_name(self) -> Mapping[str, Property]:
        """Of several properties of one name the first."""
        return {p.name.text: p for p in reversed(self.properties)}


@dataclass(frozen=True)
class ResolvedNode(_Properties):
    name: Name
    annotations: tuple[Annotation, ...]
    implements: tuple[Name, ...]
    properties: tuple[Property, ...]
    constraints: tuple[Constraint, ...]


@dataclass(frozen=True)
class ResolvedEdge(_Properties):
    name: Name
    source: Name
    target: Name
    cardinality: Cardinality
    annotations: tuple[Annotation, ...]
    properties: tuple[Property, ...]
    constraints: tuple[Constraint, ...]


ResolvedType = ResolvedNode | ResolvedEdge


@dataclass(frozen=True, slots=True)
class ResolvedSchema:
    """A schema whose own rules all hold; `source` stays with it for later errors."""

    source: Source
    interfaces: tuple[Interface, ...]
    nodes: tuple[ResolvedNode, ...]
    edges: tuple[ResolvedEdge, ...]
