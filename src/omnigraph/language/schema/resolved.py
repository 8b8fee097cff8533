"""Declarations after resolution: interfaces copied in, annotations turned into constraints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from omnigraph.language.nodes import Name
from omnigraph.language.schema.ast import Annotation, Cardinality, Constraint, Interface, Property
from omnigraph.language.span import Source


class _Properties:
    """What has properties, to be found by name."""

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
