"""Migration plans for people: one line per step, and the error for a plan that cannot be applied."""

from __future__ import annotations

from typing import assert_never

from omnigraph.catalog.ir import CardinalityIR
from omnigraph.catalog.migrate.members import constraint_text, quoted
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
    MigrationCode,
    MigrationPlan,
    RenameProperty,
    RenameType,
    Step,
    UnsupportedChange,
    UpdatePropertyMetadata,
    UpdateTypeMetadata,
)
from omnigraph.errors import UnsupportedMigration
from omnigraph.language.schema.ast import Interface, Property, ResolvedEdge, ResolvedNode
from omnigraph.language.schema.resolve import resolve_schema
from omnigraph.language.syntax import Source, Span


def plan_lines(plan: MigrationPlan) -> list[str]:
    """The output of `schema plan` below its header."""
    return [f"supported: {'yes' if plan.supported else 'no'}", *step_lines(plan)]


def step_lines(plan: MigrationPlan) -> list[str]:
    """One line per step, or the one that says there are none."""
    return [f"- {step_text(step)}" for step in plan.steps] or ["no schema changes"]


def step_text(step: Step) -> str:
    match step:
        case AddType(kind, name):
            return f"add {kind} type '{name}'"
        case RenameType(kind, old, new):
            return f"rename {kind} type '{old}' -> '{new}'"
        case AddProperty(kind, owner, name, prop_type, backfill):
            text = f"add property '{owner}.{name}' ({prop_type.display}) on {kind} '{owner}'"
            return text if backfill is None else f"{text} backfill {_value(backfill)}"
        case RenameProperty(kind, owner, old, new):
            return f"rename property '{owner}.{old}' -> '{owner}.{new}' on {kind} '{owner}'"
        case ExtendEnum(_, owner, name, values):
            return f"extend enum '{owner}.{name}' with {', '.join(values)}"
        case ChangePropertyType(kind, owner, name, old, new, validates):
            change = f"from {old.display} to {new.display} on {kind} '{owner}'"
            return f"change type of '{owner}.{name}' {change}{_validated(validates)}"
        case DropConstraint(kind, owner, constraint):
            return f"drop constraint {constraint_text(constraint)} on {kind} '{owner}'"
        case ChangeRange(kind, owner, was, now, validates):
            change = f"{constraint_text(was)} to {constraint_text(now)} on {kind} '{owner}'"
            return f"change constraint {change}{_validated(validates)}"
        case ChangeCardinality(owner, low_high, becomes, validates):
            change = f"from {_card_text(low_high)} to {_card_text(becomes)}"
            return f"change cardinality of edge '{owner}' {change}{_validated(validates)}"
        case AddConstraint(kind, owner, constraint, validates):
            text = f"add constraint {constraint_text(constraint)} on {kind} '{owner}'"
            return f"{text}{_validated(validates)}"
        case UpdateTypeMetadata(kind, name):
            return f"update metadata on {kind} '{name}'"
        case UpdatePropertyMetadata(kind, owner, name):
            return f"update metadata on property '{owner}.{name}' of {kind} '{owner}'"
        case DropType(kind, name, mode):
            return f"drop {kind} type '{name}' ({mode} mode)"
        case DropProperty(kind, owner, name, mode):
            return f"drop property '{owner}.{name}' of {kind} '{owner}' ({mode} mode)"
        case UnsupportedChange(entity, reason, code):
            tag = "" if code is None else f" [{code.value}, {code.tier}]"
            return f"unsupported change on {entity}{tag}: {reason}"
        case _:
            assert_never(step)


def _validated(validates: bool) -> str:
    return " (all rows are validated first)" if validates else ""


def _card_text(cardinality: CardinalityIR) -> str:
    high = "" if cardinality.high is None else cardinality.high
    return f"{cardinality.low}..{high}"


def _value(text: str) -> str:
    """A backfill value as it is, quoted only where it would break the line."""
    return text if text.isprintable() else quoted(text)


# -- unsupported changes -----------------------------------------------------------------------


_Declared = Interface | ResolvedNode | ResolvedEdge


def refuse_unsupported(plan: MigrationPlan, source: Source | None) -> None:
    """Raise `UnsupportedMigration` for the first unsupported change of a plan, if it has one.

    `source` is the text of the desired schema, when there is one to point into.
    """
    change = plan.first_unsupported
    if change is None:
        return
    span = _span_at_fault(source, change) if source else None
    if source is None or span is None:
        raise UnsupportedMigration(change.message)
    code = change.code.value if change.code else UnsupportedMigration.code
    diagnostic = source.diagnose(span, UnsupportedMigration.category, code, change.message)
    raise UnsupportedMigration(change.message, diagnostic)


def _span_at_fault(source: Source, change: UnsupportedChange) -> Span | None:
    """The token at fault, or the type that lost a property."""
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
