"""Refusing a plan, with the place in the desired schema's text that stands in the way."""

from __future__ import annotations

from omnigraph.catalog.migrate.codes import MigrationCode
from omnigraph.catalog.migrate.steps import Entity, MigrationPlan, UnsupportedChange
from omnigraph.errors import UnsupportedMigration
from omnigraph.language.schema.ast import Interface, Property
from omnigraph.language.schema.resolve import resolve_schema
from omnigraph.language.schema.resolved import ResolvedEdge, ResolvedNode
from omnigraph.language.span import Source, Span

_Declared = Interface | ResolvedNode | ResolvedEdge


def refuse_unsupported(plan: MigrationPlan, source: Source | None) -> None:
    """Raise `UnsupportedMigration` for the first unsupported change of a plan, if it has one.

    `source` is the text of the desired schema, when there is one to point into.
    """
    change = plan.first_unsupported
    if change is None:
        return
    place = _place(source, change) if source else None
    if source is None or place is None:
        raise UnsupportedMigration(change.message)
    code = change.code.value if change.code else UnsupportedMigration.code
    diagnostic = source.diagnose(place, UnsupportedMigration.category, code, change.message)
    raise UnsupportedMigration(change.message, diagnostic)


def _place(source: Source, change: UnsupportedChange) -> Span | None:
    """The token at fault. What was dropped has none; then the type that lost it is shown."""
    declared = _declaration(source, change.entity)
    if declared is None:
        return None
    name = change.entity.property_name
    prop = next((p for p in _properties(declared) if p.name.text == name), None)
    if prop is None:
        return declared.name.span
    return prop.type.span if change.code is MigrationCode.PROPERTY_TYPE_CHANGE else prop.name.span


def _declaration(source: Source, entity: Entity) -> _Declared | None:
    schema = resolve_schema(source)
    declared: dict[str, tuple[_Declared, ...]] = {
        "interface": schema.interfaces,
        "node": schema.nodes,
        "edge": schema.edges,
    }
    return next((d for d in declared[entity.kind] if d.name.text == entity.type_name), None)


def _properties(declared: _Declared) -> tuple[Property, ...]:
    return declared.members if isinstance(declared, Interface) else declared.properties
