"""Validate stored rows against the rules that a migration plan adds or narrows.

Only types with such rules are read, only the columns that the rules need, and each once. Nothing is
changed. Tests: tests/behaviour/test_schema_widening.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa
from msgspec.structs import replace as struct_replace

from omnigraph.catalog.arrow import arrow_type
from omnigraph.catalog.ir import CardinalityIR, CheckIR, RangeIR, UniqueIR
from omnigraph.catalog.migrate import MigrationPlan
from omnigraph.catalog.migrate.steps import (
    AddConstraint,
    ChangeCardinality,
    ChangePropertyType,
    ChangeRange,
)
from omnigraph.catalog.model import Catalog, EntityType, NodeType, Property
from omnigraph.errors import SchemaViolated
from omnigraph.language.values import backfill_value
from omnigraph.maintenance.verify_report import Findings
from omnigraph.maintenance.verify_rows import TableCheck
from omnigraph.progress import SILENT, Progress
from omnigraph.storage.tables import TableStore
from omnigraph.versioning.snapshot import Snapshot, table_id


def validate_rows(
    plan: MigrationPlan,
    before: Catalog,
    after: Catalog,
    snapshot: Snapshot,
    tables: TableStore,
    progress: Progress = SILENT,
) -> None:
    """Raise `SchemaViolated` with all violations by rows of a snapshot under the schema `before`."""
    entries = {entry.table_id: entry for entry in snapshot.entries.values()}
    stored = {p.prop_id for declared in before for p in declared.properties.values()}
    violations: list[str] = []
    total = 0
    for key, rules in _rules(plan).items():
        declared = after.entity(key)
        entry = entries.get(table_id(declared))
        if entry is None or not entry.row_count:
            continue
        progress.stage(f"validate {key}", entry.row_count)
        findings = Findings(key)
        table = snapshot.open(tables, entry.table_key)
        check = TableCheck(
            rules.alone(declared), table, findings, progress, constants=_constants(declared, stored)
        )
        check.check_rows()
        for problem in findings.on(snapshot.branch):
            total += problem.count
            violations += problem.examples
    if total:
        raise SchemaViolated(violations, total)


@dataclass(slots=True)
class _Rules:
    """The rules of one type that stored rows may break."""

    required: list[str] = field(default_factory=list)
    ranges: list[RangeIR] = field(default_factory=list)
    checks: list[CheckIR] = field(default_factory=list)
    uniques: list[UniqueIR] = field(default_factory=list)
    cardinality: CardinalityIR = field(default_factory=CardinalityIR)

    def alone(self, declared: EntityType) -> EntityType:
        """The type with these rules and no others, and with the properties they are about."""
        groups = tuple(
            group
            for group in declared.unique_groups
            if any(set(group) == set(unique.columns) for unique in self.uniques)
        )
        names = {*self.required, *(name for group in groups for name in group)}
        names |= {rule.property for rule in self.ranges} | {rule.property for rule in self.checks}
        properties = {
            name: replace(prop, embed_source=None) if name in self.required else _optional(prop)
            for name, prop in declared.properties.items()
            if name in names
        }
        if isinstance(declared, NodeType):
            return replace(
                declared,
                properties=properties,
                key=None,
                unique_groups=groups,
                ranges=tuple(self.ranges),
                checks=tuple(self.checks),
            )
        return replace(
            declared,
            properties=properties,
            identity=None,
            unique_groups=groups,
            cardinality=self.cardinality,
        )


def _rules(plan: MigrationPlan) -> Mapping[str, _Rules]:
    """By table key, what the plan says that rows have to be validated for."""
    found: dict[str, _Rules] = {}
    for step in plan.steps:
        match step:
            case ChangePropertyType(kind, owner, name, validates=True):
                found.setdefault(f"{kind}:{owner}", _Rules()).required.append(name)
            case ChangeRange(kind, owner, _, new, validates=True):
                found.setdefault(f"{kind}:{owner}", _Rules()).ranges.append(new)
            case ChangeCardinality(owner, _, bounds, validates=True):
                found.setdefault(f"edge:{owner}", _Rules()).cardinality = bounds
            case AddConstraint(kind, owner, rule, validates=True):
                rules = found.setdefault(f"{kind}:{owner}", _Rules())
                match rule:
                    case RangeIR():
                        rules.ranges.append(rule)
                    case CheckIR():
                        rules.checks.append(rule)
                    case UniqueIR():
                        rules.uniques.append(rule)
    return found


def _optional(prop: Property) -> Property:
    """A property that is not validated for nulls."""
    return replace(prop, type=struct_replace(prop.type, nullable=True), embed_source=None)


def _constants(declared: EntityType, stored: set[int]) -> Mapping[str, pa.Scalar]:
    """The values that new properties will have in all stored rows."""
    return {
        name: pa.scalar(backfill_value(prop.backfill, prop.type), arrow_type(prop.type))
        for name, prop in declared.properties.items()
        if prop.prop_id not in stored and prop.backfill is not None
    }
