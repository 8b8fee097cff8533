"""Declarations after resolution: interfaces copied in, annotations turned into constraints."""

from __future__ import annotations

from dataclasses import dataclass

from omnigraph.language.nodes import Name
from omnigraph.language.schema.ast import Annotation, Cardinality, Constraint, Interface, Property
from omnigraph.language.span import Source


@dataclass(frozen=True, slots=True)
class ResolvedNode:
    name: Name
    annotations: tuple[Annotation, ...]
    implements: tuple[Name, ...]
    properties: tuple[Property, ...]
    constraints: tuple[Constraint, ...]


@dataclass(frozen=True, slots=True)
class ResolvedEdge:
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
