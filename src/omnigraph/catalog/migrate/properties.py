"""The properties of a type that exists before and after: what each difference becomes.

Enum values may be added, because every stored value stays valid. Every other difference in type
would need the rows rewritten and is refused, numeric widening and nullability included.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from msgspec import structs

from omnigraph.catalog.ir import PropertyIR
from omnigraph.catalog.migrate.annotations import (
    describing,
    fixed,
    refuse_changes,
    with_embed_source,
)
from omnigraph.catalog.migrate.codes import MigrationCode
from omnigraph.catalog.migrate.matching import Matching
from omnigraph.catalog.migrate.steps import (
    AddProperty,
    DropMode,
    DropProperty,
    Entity,
    ExtendEnum,
    RenameProperty,
    Step,
    UnsupportedChange,
    UpdatePropertyMetadata,
)
from omnigraph.language.types import PropType


def property_steps(
    owner: Entity, matching: Matching[PropertyIR], drop_mode: DropMode
) -> Iterator[Step]:
    """Desired properties by name, then what was dropped. `owner` is the type as desired."""
    desired = {m.desired.name: m.desired.name for m in matching.matches}
    for match in matching.matches:
        entity = replace(owner, property_name=match.desired.name)
        if match.refusal is not None:
            yield UnsupportedChange(entity, match.refusal)
        elif match.accepted is None:
            yield _addition(entity, match.desired)
        else:
            yield from _changes(entity, match.accepted, match.desired)
            names = matching.successors, desired
            yield from _annotation_changes(entity, match.accepted, match.desired, *names)
    for prop in matching.leftovers:
        yield DropProperty(owner.kind, owner.type_name, prop.name, drop_mode)


def _addition(entity: Entity, prop: PropertyIR) -> Step:
    annotation = prop.annotation("backfill")
    backfill = annotation.value if annotation else None
    # Vectors of existing rows are computed from their source when the plan is applied.
    computed = prop.annotation("embed") is not None
    if prop.type.nullable or backfill is not None or computed:
        return AddProperty(entity.kind, entity.type_name, prop.name, prop.type, backfill)
    reason = f"adding required property '{entity.label}' requires a backfill"
    if prop.type.is_blob:
        reason = f"{reason}, which a Blob cannot have: make the property optional"
    else:
        reason = f"{reason} for existing rows: add @backfill(<value>) to the property"
    return UnsupportedChange(entity, reason, MigrationCode.REQUIRED_WITHOUT_BACKFILL)


def _changes(entity: Entity, before: PropertyIR, after: PropertyIR) -> Iterator[Step]:
    if before.name != after.name:
        yield RenameProperty(entity.kind, entity.type_name, before.name, after.name)
    if before.type == after.type:
        return
    added = _added_enum_values(before.type, after.type)
    if added:
        yield ExtendEnum(entity.kind, entity.type_name, after.name, added)
        return
    reason = (
        f"changing property type for '{entity.label}' "
        f"from {before.type.display} to {after.type.display} is not supported"
    )
    yield UnsupportedChange(entity, reason, MigrationCode.PROPERTY_TYPE_CHANGE)


def _added_enum_values(before: PropType, after: PropType) -> tuple[str, ...]:
    """The new values when the type only gained enum values, otherwise none."""
    if before.enum_values is None or after.enum_values is None:
        return ()
    only_values_differ = structs.replace(before, enum_values=after.enum_values) == after
    if not only_values_differ or not set(before.enum_values) <= set(after.enum_values):
        return ()
    return tuple(sorted(set(after.enum_values) - set(before.enum_values)))


def _annotation_changes(
    entity: Entity,
    before: PropertyIR,
    after: PropertyIR,
    successors: Mapping[str, str],
    desired: Mapping[str, str],
) -> Iterator[Step]:
    described = describing(after.annotations)
    if with_embed_source(describing(before.annotations), successors.get) != described:
        yield UpdatePropertyMetadata(entity.kind, entity.type_name, after.name, described)
    refusal = refuse_changes(
        entity,
        with_embed_source(fixed(before.annotations), successors.get),
        with_embed_source(fixed(after.annotations), desired.get),
    )
    if refusal:
        yield refusal
