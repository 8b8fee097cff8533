"""The schema most migration tests start from, and short ways to plan and apply a change to it."""

from __future__ import annotations

from omnigraph.catalog.compile import build_declared, build_schema
from omnigraph.catalog.ir import PropertyIR, SchemaIR, TypeIR
from omnigraph.catalog.migrate import MigrationPlan, carry_identities, plan_migration
from omnigraph.catalog.migrate.steps import UnsupportedChange
from omnigraph.language.syntax import Source
from tests.support.workshop import WORKSHOP


def change(text: str, *replacements: tuple[str, str]) -> str:
    """The text with each old part, which must be there, replaced everywhere by the new one."""
    for old, new in replacements:
        assert old in text, f"{old!r} is not part of the schema"
        text = text.replace(old, new)
    return text


def workshop(*replacements: tuple[str, str]) -> str:
    return change(WORKSHOP, *replacements)


def accepted(text: str) -> SchemaIR:
    """The schema of a new graph, with identities."""
    return build_schema(Source("<schema>", text))


def desired(text: str) -> SchemaIR:
    """A schema as written, without identities."""
    return build_declared(Source("<schema>", text))


def plan_text(before: str, after: str, *, allow_data_loss: bool = False) -> MigrationPlan:
    return plan_migration(accepted(before), desired(after), allow_data_loss=allow_data_loss)


def steps_of(before: str, after: str) -> list[dict[str, object]]:
    """The plan's steps as JSON; the plan must be supported."""
    plan = plan_text(before, after)
    assert plan.supported, plan.first_unsupported
    return [step.to_json() for step in plan.steps]


def refusals_of(before: str, after: str) -> list[UnsupportedChange]:
    """All unsupported changes of a plan, which must have some."""
    plan = plan_text(before, after)
    refusals = [step for step in plan.steps if isinstance(step, UnsupportedChange)]
    assert refusals, plan.steps
    return refusals


def migrate(
    schema: SchemaIR, text: str, columns_ever: dict[int, set[str]] | None = None
) -> SchemaIR:
    """What the accepted schema becomes when the text is applied to it."""
    target = desired(text)
    return carry_identities(schema, target, plan_migration(schema, target), columns_ever or {})


def types_of(schema: SchemaIR) -> tuple[TypeIR, ...]:
    return (*schema.interfaces, *schema.nodes, *schema.edges)


def type_of(schema: SchemaIR, name: str) -> TypeIR:
    return next(t for t in types_of(schema) if t.name == name)


def property_of(schema: SchemaIR, path: str) -> PropertyIR:
    """The property at `Type.property`."""
    owner, _, name = path.partition(".")
    return next(p for p in type_of(schema, owner).properties if p.name == name)
