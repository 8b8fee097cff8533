"""The part of a schema that a reader with a restricted view may know, as text without comments.

Tests: tests/behaviour/test_restricted_handles.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from omnigraph.language.format import print_schema
from omnigraph.language.schema import ast as pg
from omnigraph.language.schema.parse import parse_schema
from omnigraph.language.syntax import Source


def schema_excerpt(source: Source, shown: Mapping[str, frozenset[str]]) -> str:
    """The schema with only the given types and properties.

    Properties of interfaces stand in the types that have them. Constraints and annotations that name
    another property are left out.
    """
    schema = parse_schema(source)
    interfaces = {d.name.text: d for d in schema.declarations if isinstance(d, pg.Interface)}
    kept = [
        _shown(declaration, interfaces, shown[declaration.name.text])
        for declaration in schema.declarations
        if not isinstance(declaration, pg.Interface) and declaration.name.text in shown
    ]
    return print_schema(pg.Schema(tuple(kept)))


def _shown(
    declared: pg.Node | pg.Edge, interfaces: Mapping[str, pg.Interface], shown: frozenset[str]
) -> pg.Node | pg.Edge:
    members = [*declared.members, *_inherited(declared, interfaces)]
    own = {member.name.text for member in members if isinstance(member, pg.Property)}
    hidden = own - shown
    kept: list[pg.Member] = []
    for member in members:
        if isinstance(member, pg.Property):
            if member.name.text in shown:
                kept.append(replace(member, annotations=_known(member.annotations, hidden)))
        elif hidden.isdisjoint(column.text for column in member.columns):
            kept.append(member)
    declared = replace(
        declared, members=tuple(kept), annotations=_known(declared.annotations, hidden)
    )
    return replace(declared, implements=()) if isinstance(declared, pg.Node) else declared


def _inherited(
    declared: pg.Node | pg.Edge, interfaces: Mapping[str, pg.Interface]
) -> Iterator[pg.Property]:
    if not isinstance(declared, pg.Node):
        return
    known = {member.name.text for member in declared.members if isinstance(member, pg.Property)}
    for name in declared.implements:
        for prop in interfaces[name.text].members:
            if prop.name.text not in known:
                known.add(prop.name.text)
                yield prop


def _known(annotations: tuple[pg.Annotation, ...], hidden: set[str]) -> tuple[pg.Annotation, ...]:
    return tuple(a for a in annotations if a.value is None or a.value.text not in hidden)
