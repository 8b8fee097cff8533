"""Reading a migration plan back from JSON. A document that is not one raises `ValueError`."""

from __future__ import annotations

from typing import Any

from omnigraph.catalog.ir import IndexIR, TypeKind
from omnigraph.catalog.ir_json import (
    annotations_from_json,
    constraint_from_json,
    prop_type_from_json,
)
from omnigraph.catalog.migrate.codes import MigrationCode
from omnigraph.catalog.migrate.steps import (
    AddConstraint,
    AddProperty,
    AddType,
    DropMode,
    DropProperty,
    DropType,
    Entity,
    ExtendEnum,
    MigrationPlan,
    RenameProperty,
    RenameType,
    Step,
    StoredKind,
    UnsupportedChange,
    UpdatePropertyMetadata,
    UpdateTypeMetadata,
)


def plan_from_json(document: Any) -> MigrationPlan:
    """Rebuild a plan from `MigrationPlan.to_json()`."""
    try:
        supported, steps = document["supported"], list(document["steps"])
    except (KeyError, TypeError) as error:
        raise ValueError(f"not a migration plan: {error!r}") from error
    plan = MigrationPlan(tuple(step_from_json(s) for s in steps))
    if plan.supported is not supported:
        raise ValueError(f"not a migration plan: its steps contradict supported={supported}")
    return plan


def step_from_json(document: Any) -> Step:
    """Rebuild one step from its `to_json()`."""
    try:
        return _step(document)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"not a migration step: {error!r}") from error


def _step(document: Any) -> Step:
    kind = document["kind"]
    match kind:
        case "add_type":
            return AddType(_type_kind(document), _text(document, "name"))
        case "rename_type":
            return RenameType(
                _stored_kind(document), _text(document, "from"), _text(document, "to")
            )
        case "add_property":
            return AddProperty(
                *_property(document),
                prop_type_from_json(document["property_type"]),
                _text(document, "backfill") if "backfill" in document else None,
            )
        case "rename_property":
            return RenameProperty(
                _type_kind(document),
                _text(document, "type_name"),
                _text(document, "from"),
                _text(document, "to"),
            )
        case "extend_enum":
            return ExtendEnum(*_property(document), tuple(document["added_values"]))
        case "add_constraint":
            return AddConstraint(
                _stored_kind(document), _text(document, "type_name"), _index(document)
            )
        case "update_type_metadata":
            return UpdateTypeMetadata(
                _stored_kind(document),
                _text(document, "name"),
                annotations_from_json(document["annotations"]),
            )
        case "update_property_metadata":
            return UpdatePropertyMetadata(
                *_property(document), annotations_from_json(document["annotations"])
            )
        case "drop_type":
            return DropType(_stored_kind(document), _text(document, "name"), _mode(document))
        case "drop_property":
            return DropProperty(*_property(document), _mode(document))
        case "unsupported_change":
            return UnsupportedChange(
                _entity(_text(document, "entity")),
                _text(document, "reason"),
                MigrationCode(document["code"]) if "code" in document else None,
            )
        case _:
            raise ValueError(f"unknown migration step {kind!r}")


def _property(document: Any) -> tuple[TypeKind, str, str]:
    return _type_kind(document), _text(document, "type_name"), _text(document, "property_name")


def _type_kind(document: Any) -> TypeKind:
    match _text(document, "type_kind"):
        case "interface" | "node" | "edge" as kind:
            return kind
        case other:
            raise ValueError(f"unknown kind of type {other!r}")


def _stored_kind(document: Any) -> StoredKind:
    kind = _type_kind(document)
    if kind == "interface":
        raise ValueError(f"{document['kind']} is not possible on an interface")
    return kind


def _mode(document: Any) -> DropMode:
    match _text(document, "mode"):
        case "soft" | "hard" as mode:
            return mode
        case other:
            raise ValueError(f"unknown drop mode {other!r}")


def _index(document: Any) -> IndexIR:
    constraint = constraint_from_json(document["constraint"])
    if not isinstance(constraint, IndexIR):
        raise ValueError("only an index can be added to a type that has rows")
    return constraint


def _entity(text: str) -> Entity:
    kind, _, name = text.partition(":")
    type_name, _, property_name = name.partition(".")
    if not type_name:
        raise ValueError(f"{text!r} names no type or property")
    return Entity(_type_kind({"type_kind": kind}), type_name, property_name or None)


def _text(document: Any, field: str) -> str:
    value = document[field]
    if not isinstance(value, str):
        raise ValueError(f"{field} is not text: {value!r}")
    return value
