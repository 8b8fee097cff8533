"""Identities across schema versions, forward for a migration and back for reading earlier commits.

Applying a plan keeps the identity of what stays or is renamed and allocates numbers for what is
new, from the graph's one counter in the order of the plan's steps. No number is used twice, and no
column name is used twice within a table, because old versions of the table stay readable.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, TypeVar, assert_never

from msgspec.structs import replace

from omnigraph.catalog.identity import IdCounter, physical_column
from omnigraph.catalog.ir import (
    EdgeIR,
    InterfaceIR,
    NodeIR,
    PropertyIR,
    SchemaIR,
    TypeIR,
    type_kind,
)
from omnigraph.catalog.migrate.members import renamed_constraint, with_embed_source
from omnigraph.catalog.migrate.report import refuse_unsupported
from omnigraph.catalog.migrate.steps import (
    AddConstraint,
    AddProperty,
    AddType,
    ChangeCardinality,
    ChangePropertyType,
    ChangeRange,
    DropConstraint,
    DropProperty,
    DropType,
    Entity,
    ExtendEnum,
    MigrationPlan,
    RenameProperty,
    RenameType,
    UnsupportedChange,
    UpdatePropertyMetadata,
    UpdateTypeMetadata,
)
from omnigraph.language.types import PropType

T = TypeVar("T", InterfaceIR, NodeIR, EdgeIR)

_Types = Mapping[Entity, TypeIR]
_NO_HISTORY: Final[Mapping[int, Collection[str]]] = MappingProxyType({})


def carry_identities(
    accepted: SchemaIR,
    desired: SchemaIR,
    plan: MigrationPlan,
    columns_ever: Mapping[int, Collection[str]] = _NO_HISTORY,
) -> SchemaIR:
    """The desired schema with the identities it has once the plan is applied.

    `columns_ever` holds, by type id, the columns a table had in any version; those it has now need
    not be listed. Raises `UnsupportedMigration` for an unsupported plan and `ValueError` for one
    that does not lead from the one schema to the other.
    """
    refuse_unsupported(plan, None)
    known = _types(accepted)
    ledger = _read_ledger(plan, _types(desired), IdCounter(accepted.next_id))

    def carried(declared: T) -> T:
        entity = Entity(type_kind(declared), declared.name)
        before = _origin(entity, known, ledger)
        type_id = before.type_id if before else ledger.new_ids[entity]
        properties = _carried_properties(
            entity, declared.properties, before, columns_ever.get(type_id, ()), ledger
        )
        return replace(declared, type_id=type_id, properties=properties)

    return SchemaIR(
        next_id=ledger.next_id,
        interfaces=tuple(carried(i) for i in desired.interfaces),
        nodes=tuple(carried(n) for n in desired.nodes),
        edges=tuple(carried(e) for e in desired.edges),
    )


@dataclass(frozen=True, slots=True)
class _Ledger:
    """What a plan says about identity: old names of renamed things, numbers of new ones."""

    old_names: Mapping[Entity, str]
    new_ids: Mapping[Entity, int]
    next_id: int


def _read_ledger(plan: MigrationPlan, desired: _Types, counter: IdCounter) -> _Ledger:
    old_names: dict[Entity, str] = {}
    new_ids: dict[Entity, int] = {}
    for step in plan.steps:
        match step:
            case RenameType(kind, old, new):
                old_names[Entity(kind, new)] = old
            case RenameProperty(kind, type_name, old, new):
                old_names[Entity(kind, type_name, new)] = old
            case AddType(kind, name):
                entity = Entity(kind, name)
                if entity not in desired:
                    raise _foreign_plan(entity)
                new_ids[entity] = counter.take()
                for prop in desired[entity].properties:
                    new_ids[Entity(kind, name, prop.name)] = counter.take()
            case AddProperty(kind, type_name, name):
                new_ids[Entity(kind, type_name, name)] = counter.take()
            case (
                ExtendEnum()
                | ChangePropertyType()
                | DropConstraint()
                | ChangeRange()
                | ChangeCardinality()
                | AddConstraint()
                | UpdateTypeMetadata()
                | UpdatePropertyMetadata()
                | DropType()
                | DropProperty()
                | UnsupportedChange()
            ):
                pass  # These allocate no identity; a dropped number is not carried on.
            case _:
                assert_never(step)
    return _Ledger(old_names, new_ids, counter.next_id)


def _origin(entity: Entity, known: _Types, ledger: _Ledger) -> TypeIR | None:
    """The accepted type this one continues; none when the plan adds it."""
    old_name = ledger.old_names.get(entity, entity.type_name)
    before = known.get(Entity(entity.kind, old_name))
    if (before is None) != (entity in ledger.new_ids):
        raise _foreign_plan(entity)
    return before


def _carried_properties(
    owner: Entity,
    properties: tuple[PropertyIR, ...],
    before: TypeIR | None,
    columns_ever: Collection[str],
    ledger: _Ledger,
) -> tuple[PropertyIR, ...]:
    known = {p.name: p for p in before.properties} if before else {}
    used = {*columns_ever, *(p.column for p in known.values())}
    carried = []
    for prop in properties:
        entity = Entity(owner.kind, owner.type_name, prop.name)
        kept = known.get(ledger.old_names.get(entity, prop.name))
        new_id = ledger.new_ids.get(entity)
        if kept is not None and new_id is None:
            carried.append(replace(prop, prop_id=kept.prop_id, column=kept.column))
        elif kept is None and new_id is not None:
            column = physical_column(prop.name, new_id, used)
            used.add(column)
            carried.append(replace(prop, prop_id=new_id, column=column))
        else:
            raise _foreign_plan(entity)
    return tuple(carried)


def _types(schema: SchemaIR) -> _Types:
    types: tuple[TypeIR, ...] = (*schema.interfaces, *schema.nodes, *schema.edges)
    return {Entity(type_kind(t), t.name): t for t in types}


def _foreign_plan(entity: Entity) -> ValueError:
    return ValueError(f"the plan was made for other schemas: it does not account for {entity}")


# -- earlier schemas under present names -------------------------------------------------------


_Declared = TypeVar("_Declared", NodeIR, EdgeIR)
_Named = TypeVar("_Named", NodeIR, EdgeIR, PropertyIR)

_Names = Mapping[str, str]


def under_present_names(past: SchemaIR, present: SchemaIR) -> SchemaIR:
    """The types of `past` under the names of `present`."""
    nodes = _names(
        {n.name: n.type_id for n in past.nodes}, {n.type_id: n.name for n in present.nodes}
    )
    edges = _names(
        {e.name: e.type_id for e in past.edges}, {e.type_id: e.name for e in present.edges}
    )
    interfaces = {i.name: i for i in present.interfaces}
    present_nodes = {n.type_id: n for n in present.nodes}
    present_edges = {e.type_id: e for e in present.edges}
    return SchemaIR(
        next_id=past.next_id,
        interfaces=tuple(interfaces.get(i.name, i) for i in past.interfaces),
        nodes=_by_name(_restated(n, nodes, present_nodes) for n in past.nodes),
        edges=_by_name(
            replace(
                _restated(e, edges, present_edges),
                from_type=nodes[e.from_type],
                to_type=nodes[e.to_type],
            )
            for e in past.edges
        ),
    )


def _restated(declared: _Declared, names: _Names, present: Mapping[int, _Declared]) -> _Declared:
    successor = present.get(declared.type_id)
    now = () if successor is None else successor.properties
    properties = _names(
        {p.name: p.prop_id for p in declared.properties}, {p.prop_id: p.name for p in now}
    )
    return replace(
        declared,
        name=names[declared.name],
        properties=_properties(declared.properties, now, properties),
        constraints=tuple(renamed_constraint(c, properties) for c in declared.constraints),
    )


def _properties(
    past: tuple[PropertyIR, ...], present: tuple[PropertyIR, ...], names: _Names
) -> tuple[PropertyIR, ...]:
    """Those there were, with all enum values there are today, then those that came later."""
    now = {p.prop_id: p for p in present}
    found = [
        replace(now[p.prop_id], type=_past_type(p.type, now[p.prop_id].type))
        if p.prop_id in now
        else replace(p, name=names[p.name], annotations=with_embed_source(p.annotations, names.get))
        for p in past
    ]
    taken, known = {p.name for p in found}, {p.prop_id for p in past}
    found += [p for p in present if p.prop_id not in known and p.name not in taken]
    return _by_name(found)


def _past_type(past: PropType, present: PropType) -> PropType:
    """The type that values were stored with, with the enum values there are today."""
    return replace(past, enum_values=present.enum_values)


def _names(past: Mapping[str, int], present: Mapping[int, str]) -> dict[str, str]:
    """Past names to present names."""
    kept = {present[number] for number in past.values() if number in present}
    found = {}
    for name, number in past.items():
        last = f"{name}__{number}" if name in kept else name
        found[name] = present.get(number, last)
    return found


def _by_name(items: Iterable[_Named]) -> tuple[_Named, ...]:
    return tuple(sorted(items, key=lambda item: item.name))
