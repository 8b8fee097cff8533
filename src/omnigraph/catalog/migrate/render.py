"""A plan for people: one line per step, the same for `schema plan` and `schema apply`."""

from __future__ import annotations

from typing import assert_never

from omnigraph.catalog.migrate.constraints import constraint_text, quoted
from omnigraph.catalog.migrate.steps import (
    AddConstraint,
    AddProperty,
    AddType,
    DropProperty,
    DropType,
    ExtendEnum,
    MigrationPlan,
    RenameProperty,
    RenameType,
    Step,
    UnsupportedChange,
    UpdatePropertyMetadata,
    UpdateTypeMetadata,
)


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
        case AddConstraint(kind, owner, constraint):
            return f"add constraint {constraint_text(constraint)} on {kind} '{owner}'"
        case UpdateTypeMetadata(kind, name):
            return f"update metadata on {kind} '{name}'"
        case UpdatePropertyMetadata(kind, owner, name):
            return f"update metadata on property '{owner}.{name}' of {kind} '{owner}'"
        case DropType(kind, name, mode):
            return f"drop {kind} type '{name}' ({mode} mode)"
        case DropProperty(kind, owner, name, mode):
            return f"drop property '{owner}.{name}' of {kind} '{owner}' ({mode} mode)"
        case UnsupportedChange(entity, reason, code):
            tag = "" if code is None else f" [{code.value}, {code.meaning.tier.value}]"
            return f"unsupported change on {entity}{tag}: {reason}"
        case _:
            assert_never(step)


def _value(text: str) -> str:
    """A backfill value as it is, quoted only where it would break the line."""
    return text if text.isprintable() else quoted(text)
