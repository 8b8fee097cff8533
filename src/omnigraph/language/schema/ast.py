"""The syntax tree of a schema file."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from omnigraph.language.nodes import NOWHERE, Name, TypeRef
from omnigraph.language.span import Span


@dataclass(frozen=True, slots=True)
class AnnotationValue:
    """The text of an annotation's value; whether it was quoted has no meaning."""

    text: str
    spelling: str | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class AnnotationArgument:
    """A keyword argument, which comes after the value."""

    name: Name
    value: AnnotationValue


@dataclass(frozen=True, slots=True)
class Annotation:
    name: Name
    value: AnnotationValue | None = None
    arguments: tuple[AnnotationArgument, ...] = ()
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Property:
    name: Name
    type: TypeRef
    annotations: tuple[Annotation, ...] = ()
    span: Span = field(default=NOWHERE, compare=False, repr=False)

    def annotation(self, name: str) -> Annotation | None:
        return next((a for a in self.annotations if a.name.text == name), None)


class ConstraintKind(Enum):
    KEY = "key"
    UNIQUE = "unique"
    INDEX = "index"
    RANGE = "range"
    CHECK = "check"


@dataclass(frozen=True, slots=True)
class Bounds:
    """Inclusive bounds as written; an open side is None."""

    low: str | None
    high: str | None


@dataclass(frozen=True, slots=True)
class Pattern:
    """A regular expression, decoded; `spelling` is how the source wrote it."""

    text: str
    spelling: str | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Constraint:
    """A body constraint. `@range` and `@check` name one column and carry bounds or a pattern.

    In a `@key` the ends of an edge are written `@src` and `@dst`, and so they are called here.
    """

    kind: ConstraintKind
    columns: tuple[Name, ...]
    bounds: Bounds | None = None
    pattern: Pattern | None = None
    span: Span = field(default=NOWHERE, compare=False, repr=False)


Member = Property | Constraint


@dataclass(frozen=True, slots=True)
class Interface:
    name: Name
    members: tuple[Property, ...] = ()
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Node:
    name: Name
    annotations: tuple[Annotation, ...] = ()
    implements: tuple[Name, ...] = ()
    members: tuple[Member, ...] = ()
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Cardinality:
    """Outgoing edges per source node; no maximum is None."""

    low: int = 0
    high: int | None = None
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Edge:
    name: Name
    source: Name
    target: Name
    cardinality: Cardinality | None = None
    annotations: tuple[Annotation, ...] = ()
    members: tuple[Member, ...] = ()
    span: Span = field(default=NOWHERE, compare=False, repr=False)


Declaration = Interface | Node | Edge


@dataclass(frozen=True, slots=True)
class Schema:
    """A whole schema file."""

    declarations: tuple[Declaration, ...] = ()
