"""The rules rows must keep, checked one row and one table at a time.

Loads, mutations and merges ask the same questions here and put the answers into their own words.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from omnigraph.catalog.identity import canonical_text
from omnigraph.catalog.ir import CheckIR, RangeIR
from omnigraph.catalog.model import EdgeType, EntityType, Group, NodeType, Property
from omnigraph.diagnostics import counted
from omnigraph.language.types import Scalar
from tests.support.model.values import Row, Value, text_of
from tests.support.outcome import ReceiptWarning


@dataclass(frozen=True, slots=True)
class Violation:
    """A row that breaks a rule of its type."""

    code: str
    message: str
    property: str | None = None


# -- one row ------------------------------------------------------------------------------------


def missing_values(declared: EntityType, row: Row) -> Iterator[Violation]:
    """Required properties that hold null, as an engine without embedding provider sees them."""
    for name, prop in declared.properties.items():
        if row[name] is not None or prop.type.nullable:
            continue
        if prop.embed_source is not None and _has_text(row[prop.embed_source]):
            message = f"{declared.name}.{name} cannot be computed: GEMINI_API_KEY is not set"
            yield Violation("embedding", message, name)
            continue
        noun = "vector property" if prop.type.is_vector else "property"
        noun = "blob property" if prop.type.is_blob else noun
        yield Violation("missing_value", f"non-nullable {noun} '{name}' has null value", name)


def pending_vectors(rows: Iterable[tuple[EntityType, Row]]) -> tuple[ReceiptWarning, ...]:
    """`@embed` vectors that wait to be computed, counted by type and property."""
    counted: Counter[tuple[str, str]] = Counter()
    for declared, row in rows:
        for name, prop in declared.properties.items():
            source = prop.embed_source
            if source is not None and row[name] is None and _has_text(row[source]):
                counted[declared.name, name] += 1
    return tuple(
        ReceiptWarning("embedding_pending", f"{type_name}.{name} has text but no vector", count)
        for (type_name, name), count in sorted(counted.items())
    )


def _has_text(value: Value) -> bool:
    return isinstance(value, str) and bool(value.strip())


def value_violations(declared: EntityType, row: Row) -> Iterator[Violation]:
    """Enum, `@range` and `@check`. Nulls pass, and so do lists."""
    for name, prop in declared.properties.items():
        value, allowed = row[name], prop.type.enum_values
        if allowed is not None and isinstance(value, str) and value not in allowed:
            where = f"for {declared.name}.{name} (expected: {', '.join(allowed)})"
            yield Violation("enum", f"invalid enum value '{value}' {where}", name)
    if isinstance(declared, NodeType):
        for bounds in declared.ranges:
            yield from _range_violations(declared.name, bounds, row[bounds.property])
        for check in declared.checks:
            yield from _check_violations(declared.name, check, row[check.property])


def _range_violations(type_name: str, bounds: RangeIR, value: Value) -> Iterator[Violation]:
    if not isinstance(value, int | float):
        return
    # Bounds are compared in double precision, as the language says, also for 64-bit integers.
    problem = None
    if value != value:
        problem = "value is NaN"
    elif bounds.low is not None and float(value) < float(bounds.low):
        problem = f"value {value} < min {bounds.low}"
    elif bounds.high is not None and float(value) > float(bounds.high):
        problem = f"value {value} > max {bounds.high}"
    if problem:
        where = f"{type_name}.{bounds.property}"
        yield Violation("range", f"@range violation on {where}: {problem}", bounds.property)


def _check_violations(type_name: str, check: CheckIR, value: Value) -> Iterator[Violation]:
    where = f"{type_name}.{check.property}"
    problem = _invalid_pattern(check.pattern)
    if problem:
        message = f"@check on {where} has invalid regex '{check.pattern}': {problem}"
        yield Violation("check", message, check.property)
    elif isinstance(value, str) and not _found(check.pattern, value):
        message = f"@check violation on {where}: value '{value}' does not match pattern"
        yield Violation("check", f"{message} '{check.pattern}'", check.property)


def _invalid_pattern(pattern: str) -> str | None:
    # Imported here so that a graph without @check does not wait for Arrow, whose RE2 is the dialect
    # patterns are written in.
    import pyarrow as pa

    try:
        _found(pattern, "")
    except pa.ArrowInvalid as error:
        return str(error)
    return None


def _found(pattern: str, text: str) -> bool:
    import pyarrow as pa
    import pyarrow.compute as pc

    return bool(pc.match_substring_regex(pa.array([text]), pattern)[0].as_py())


# -- one table ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Collision:
    """Rows with different ids that share one tuple of a unique group, in the order given."""

    group: Group
    tuple_text: str
    rows: tuple[Row, ...]


def collisions(declared: EntityType, rows: Iterable[Row]) -> Iterator[Collision]:
    """Unique tuples that occur more than once. A null anywhere in the tuple exempts the row."""
    kept = list(rows)
    for group in declared.unique_groups:
        holders: defaultdict[tuple[Value, ...], list[Row]] = defaultdict(list)
        for row in kept:
            values = tuple(row[column] for column in group)
            if None not in values:
                holders[values].append(row)
        for same in holders.values():
            if len({row["id"] for row in same}) > 1:
                yield Collision(group, tuple_text(declared, group, same[0]), tuple(same))


def unkeyable(declared: EntityType) -> Iterator[Violation]:
    """Unique groups over lists, vectors or blobs: the schema allows them, no write can keep them."""
    for group in declared.unique_groups:
        for column in group:
            prop = declared.properties.get(column)
            if prop and not _is_comparable(prop):
                where = group_text(declared, group)
                message = f"@unique on {where}: unsupported column type {prop.type.display}"
                yield Violation("unique", message, column)


def identity_of(declared: EntityType) -> Group | None:
    """The columns that the ids of a type are made of: the key of a node type, an edge's identity.

    An edge type whose identity has a list, vector or blob has no derived ids.
    """
    group = declared.key if isinstance(declared, NodeType) else declared.identity
    props = [declared.properties[name] for name in group or () if name in declared.properties]
    return group if all(map(_is_comparable, props)) else None


def _is_comparable(prop: Property) -> bool:
    """Whether a unique group can have the property: not a list, vector or blob."""
    return not (prop.type.list or prop.type.is_vector or prop.type.is_blob)


def group_text(declared: EntityType, group: Group) -> str:
    """A group as messages name it: `Tool.serial`, `Follows.(src, dst)`."""
    return f"{declared.name}.{group[0] if len(group) == 1 else '(' + ', '.join(group) + ')'}"


def tuple_text(declared: EntityType, group: Group, row: Row) -> str:
    """The values of a group in one row, as messages show them."""
    texts = []
    for column in group:
        value, prop = row[column], declared.properties.get(column)
        assert isinstance(value, str | int | float)
        texts.append(canonical_text(value, prop.type.scalar if prop else Scalar.STRING))
    return texts[0] if len(texts) == 1 else f"({', '.join(texts)})"


def missing_ends(
    edge: EdgeType, row: Row, nodes: Mapping[str, Mapping[str, Row]]
) -> Iterator[tuple[str, str]]:
    """Ends of an edge that no node has, with a message that says which end and which type."""
    for end, type_name in (("src", edge.from_type), ("dst", edge.to_type)):
        id = text_of(row, end)
        if id not in nodes[f"node:{type_name}"]:
            yield end, f"edge {edge.name}: {end} '{id}' not found in {type_name}"


def dangling_edges(
    edge: EdgeType,
    before: Mapping[str, Mapping[str, Row]],
    after: Mapping[str, Mapping[str, Row]],
) -> list[str]:
    """The ids of edges that have lost a node at one of their ends, in order."""
    ends = (("src", f"node:{edge.from_type}"), ("dst", f"node:{edge.to_type}"))
    return sorted(
        id
        for id, row in after[edge.table_key].items()
        if any(row[end] in before[node] and row[end] not in after[node] for end, node in ends)
    )


def too_many(edge: EdgeType, rows: Mapping[str, Row], source: str) -> str | None:
    """A message when a source has more edges than the type allows."""
    found = sum(row["src"] == source for row in rows.values())
    high = edge.cardinality.high
    return None if high is None or found <= high else _card(edge, source, found, f"max {high}")


def too_few(edge: EdgeType, rows: Mapping[str, Row], source: str) -> str | None:
    """A message when a source has some edges, but fewer than the type asks for."""
    found = sum(row["src"] == source for row in rows.values())
    low = edge.cardinality.low
    return None if found == 0 or found >= low else _card(edge, source, found, f"min {low}")


def _card(edge: EdgeType, source: str, found: int, bound: str) -> str:
    return f"@card violation on edge {edge.name}: source '{source}' has {counted(found, 'edge')} ({bound})"
