"""The rules a schema puts on data, as values, and the message for breaking each of them.

Defined once for loads, mutations and merges. `omnigraph.rows` finds the rows that break a rule, and
callers add where those rows came from.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from omnigraph.catalog.identity import KeyValue, canonical_text
from omnigraph.catalog.ir import Bound
from omnigraph.catalog.model import EdgeType, EntityType, Group, NodeType, Property
from omnigraph.diagnostics import counted
from omnigraph.language.types import Scalar

# -- one value ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class EnumRule:
    """The value must be one of those listed."""

    property: str
    values: tuple[str, ...]
    code: ClassVar[str] = "enum"

    def broken(self, type_name: str, value: object) -> str:
        expected = f"(expected: {', '.join(self.values)})"
        return f"invalid enum value '{value}' for {type_name}.{self.property} {expected}"


@dataclass(frozen=True, slots=True)
class RangeRule:
    """The value must lie between the bounds, both included, compared in double precision."""

    property: str
    low: Bound | None
    high: Bound | None
    code: ClassVar[str] = "range"

    def broken(self, type_name: str, value: float) -> str:
        if value != value:
            problem = "value is NaN"
        elif self.low is not None and float(value) < float(self.low):
            problem = f"value {value} < min {self.low}"
        else:
            problem = f"value {value} > max {self.high}"
        return f"@range violation on {type_name}.{self.property}: {problem}"


@dataclass(frozen=True, slots=True)
class PatternRule:
    """The pattern must be found somewhere in the value."""

    property: str
    pattern: str
    code: ClassVar[str] = "check"

    def broken(self, type_name: str, value: object) -> str:
        where = f"{type_name}.{self.property}"
        return (
            f"@check violation on {where}: value '{value}' does not match pattern '{self.pattern}'"
        )

    def unusable(self, type_name: str, problem: str) -> str:
        where = f"{type_name}.{self.property}"
        return f"@check on {where} has invalid regex '{self.pattern}': {problem}"


ValueRule = EnumRule | RangeRule | PatternRule


def value_rules(declared: EntityType) -> tuple[ValueRule, ...]:
    """Every rule on single values: enums, then `@range`, then `@check`. Lists have none."""
    rules: list[ValueRule] = [
        EnumRule(p.name, p.type.enum_values)
        for p in declared.properties.values()
        if p.type.enum_values is not None
    ]
    if isinstance(declared, NodeType):
        single = {name for name, p in declared.properties.items() if not p.type.list}
        ranges = (r for r in declared.ranges if r.property in single)
        rules += (RangeRule(r.property, r.low, r.high) for r in ranges)
        checks = (c for c in declared.checks if c.property in single)
        rules += (PatternRule(c.property, c.pattern) for c in checks)
    return tuple(rules)


def missing_value(prop: Property) -> str:
    """A required property that holds null."""
    noun = "vector property" if prop.type.is_vector else "property"
    noun = "blob property" if prop.type.is_blob else noun
    return f"non-nullable {noun} '{prop.name}' has null value"


def uncomputable_vector(declared: EntityType, prop: Property, reason: str) -> str:
    """A required `@embed` vector that is neither given nor computed by a provider."""
    return f"{declared.name}.{prop.name} cannot be computed: {reason}"


# -- tuples -------------------------------------------------------------------------------------


def identity_group(declared: EntityType) -> Group | None:
    """The tuple a type's ids are derived from: the key of a node type, the identity of an edge type.

    An edge type that would need a list, vector or blob for it has no derived ids, and no rows.
    """
    group = declared.key if isinstance(declared, NodeType) else declared.identity
    if group is None or any(_is_unkeyable(declared.properties.get(name)) for name in group):
        return None
    return group


def key_assigned(node: NodeType, name: str) -> str:
    """An update that assigns a property the ids of its rows are made of."""
    return f"cannot update @key property '{name}' of {node.name}"


def other_unique_groups(declared: EntityType) -> tuple[Group, ...]:
    """The unique groups that equal ids do not already cover."""
    identity = identity_group(declared)
    return tuple(g for g in declared.unique_groups if g != identity)


def unkeyable_column(declared: EntityType) -> tuple[Group, Property] | None:
    """The first list, vector or blob in a unique group; a schema may declare one, writes refuse it."""
    for group in declared.unique_groups:
        for name in group:
            prop = declared.properties.get(name)
            if prop is not None and _is_unkeyable(prop):
                return group, prop
    return None


def _is_unkeyable(prop: Property | None) -> bool:
    return prop is not None and (prop.type.list or prop.type.is_vector or prop.type.is_blob)


def unsupported_unique(declared: EntityType, group: Group, prop: Property) -> str:
    where = group_text(declared, group)
    return f"@unique on {where}: unsupported column type {prop.type.display}"


def group_text(declared: EntityType, group: Group) -> str:
    """A group as messages name it: `Tool.serial`, `Follows.(src, dst)`."""
    return f"{declared.name}.{group[0] if len(group) == 1 else '(' + ', '.join(group) + ')'}"


def group_scalar(declared: EntityType, column: str) -> Scalar:
    """The scalar type of a group's column; ids and endpoints are text."""
    prop = declared.properties.get(column)
    return prop.type.scalar if prop else Scalar.STRING


def tuple_text(declared: EntityType, group: Group, values: tuple[KeyValue, ...]) -> str:
    """The values of a group as messages show them."""
    scalars = (group_scalar(declared, column) for column in group)
    texts = [canonical_text(v, s) for v, s in zip(values, scalars, strict=True)]
    return texts[0] if len(texts) == 1 else f"({', '.join(texts)})"


def duplicate_tuple(where: str, shown: str, holders: str) -> str:
    """Two rows of one write share a tuple; `holders` names both."""
    return f"@unique violation on {where}: value '{shown}' appears in {holders}"


def taken_tuple(where: str, shown: str, owner: str) -> str:
    """A committed row with another id has the tuple."""
    return f"@unique violation on {where}: value '{shown}' already belongs to '{owner}'"


def shared_tuple(where: str, shown: str, first: str, second: str) -> str:
    """Two rows that a merge would bring together share a tuple."""
    return f"'{first}' and '{second}' share {where} '{shown}'"


def taken_id(declared: EntityType, id: str) -> str:
    return f"id '{id}' already exists in {declared.name}"


# -- edges --------------------------------------------------------------------------------------


def missing_endpoint(edge: EdgeType, column: str, id: str) -> str:
    """An edge whose `src` or `dst` is not the id of a node."""
    type_name = edge.from_type if column == "src" else edge.to_type
    return f"edge {edge.name}: {column} '{id}' not found in {type_name}"


def cardinality_problem(edge: EdgeType, source: str, found: int) -> str | None:
    """What is wrong with a source that has `found` edges. A source without edges is never wrong."""
    low, high = edge.cardinality.low, edge.cardinality.high
    if high is not None and found > high:
        bound = f"max {high}"
    elif 0 < found < low:
        bound = f"min {low}"
    else:
        return None
    return f"@card violation on edge {edge.name}: source '{source}' has {counted(found, 'edge')} ({bound})"
