"""The migration planner: two schemas in, the steps from one to the other out.

It compares canonical forms only and reports every difference, supported or not, in a fixed order:
interfaces, nodes, edges; within a kind the desired types by name, then the dropped ones; within a
type its rename, its header, its properties by name, its constraints. The order of the sources has
no influence.
"""

from __future__ import annotations

from collections.abc import Iterator

from omnigraph.catalog.ir import (
    CardinalityIR,
    EdgeIR,
    InterfaceIR,
    KeyIR,
    NodeIR,
    PropertyIR,
    SchemaIR,
)
from omnigraph.catalog.migrate.members import (
    Matching,
    constraint_steps,
    describing,
    fixed,
    match_by_name,
    property_steps,
    refuse_changes,
    without_endpoints,
)
from omnigraph.catalog.migrate.steps import (
    AddType,
    ChangeCardinality,
    DropMode,
    DropType,
    Entity,
    MigrationPlan,
    RenameType,
    Step,
    StoredKind,
    UnsupportedChange,
    UpdateTypeMetadata,
)
from omnigraph.catalog.model import edge_identity
from omnigraph.language.types import Scalar


def plan_migration(
    accepted: SchemaIR, desired: SchemaIR, *, allow_data_loss: bool = False
) -> MigrationPlan:
    """The steps that turn the accepted schema into the desired one; nothing is changed.

    The identities of `desired` play no role. With `allow_data_loss` every drop is hard: old
    versions of what is dropped become unreadable.
    """
    mode: DropMode = "hard" if allow_data_loss else "soft"
    nodes = match_by_name(accepted.nodes, desired.nodes, "node type", lambda n: n.annotations)
    edges = match_by_name(accepted.edges, desired.edges, "edge type", lambda e: e.annotations)
    return MigrationPlan(
        (
            *_interfaces(accepted.interfaces, desired.interfaces, mode),
            *_nodes(nodes, mode),
            *_edges(edges, nodes, mode),
        )
    )


def _interfaces(
    accepted: tuple[InterfaceIR, ...], desired: tuple[InterfaceIR, ...], mode: DropMode
) -> Iterator[Step]:
    matching = match_by_name(accepted, desired, "interface", lambda _: ())
    for match in matching.matches:
        owner = Entity("interface", match.desired.name)
        if match.accepted is None:
            yield AddType("interface", match.desired.name)
        else:
            properties = _properties(match.accepted.properties, match.desired.properties)
            yield from property_steps(owner, properties, mode)
    for interface in matching.leftovers:
        reason = f"removing interface '{interface.name}' is not supported"
        yield UnsupportedChange(Entity("interface", interface.name), reason)


def _nodes(matching: Matching[NodeIR], mode: DropMode) -> Iterator[Step]:
    for match in matching.matches:
        before, after = match.accepted, match.desired
        entity = Entity("node", after.name)
        if match.refusal is not None:
            yield UnsupportedChange(entity, match.refusal)
        elif before is None:
            yield AddType("node", after.name)
        else:
            if match.renamed:
                yield RenameType("node", before.name, after.name)
            if before.implements != after.implements:
                was, becomes = (", ".join(n.implements) or "none" for n in (before, after))
                yield _unsupported(entity, "implemented interfaces", was, becomes)
            yield from _metadata("node", before, after)
            yield from _members("node", before, after, mode)
    for node in matching.leftovers:
        yield DropType("node", node.name, mode)


def _edges(matching: Matching[EdgeIR], nodes: Matching[NodeIR], mode: DropMode) -> Iterator[Step]:
    for match in matching.matches:
        before, after = match.accepted, match.desired
        entity = Entity("edge", after.name)
        if match.refusal is not None:
            yield UnsupportedChange(entity, match.refusal)
        elif before is None:
            yield AddType("edge", after.name)
        else:
            if match.renamed:
                yield RenameType("edge", before.name, after.name)
            endpoints = [nodes.successors.get(n, n) for n in (before.from_type, before.to_type)]
            if endpoints != [after.from_type, after.to_type]:
                becomes = f"{after.from_type} -> {after.to_type}"
                yield _unsupported(entity, "edge endpoints", " -> ".join(endpoints), becomes)
            if before.cardinality != after.cardinality:
                was_card, card = before.cardinality, after.cardinality
                yield ChangeCardinality(after.name, was_card, card, not _allows_all(was_card, card))
            yield from _metadata("edge", before, after)
            yield from _members("edge", before, after, mode)
    for edge in matching.leftovers:
        yield DropType("edge", edge.name, mode)


def _metadata(kind: StoredKind, before: NodeIR | EdgeIR, after: NodeIR | EdgeIR) -> Iterator[Step]:
    described = describing(after.annotations)
    if describing(before.annotations) != described:
        yield UpdateTypeMetadata(kind, after.name, described)
    refusal = refuse_changes(
        Entity(kind, after.name), fixed(before.annotations), fixed(after.annotations)
    )
    if refusal:
        yield refusal


def _members(
    kind: StoredKind, before: NodeIR | EdgeIR, after: NodeIR | EdgeIR, mode: DropMode
) -> Iterator[Step]:
    properties = _properties(before.properties, after.properties)
    yield from property_steps(Entity(kind, after.name), properties, mode)
    yield from _changed_ids(Entity(kind, after.name), before, after, properties)
    yield from constraint_steps(
        kind, after.name, before.constraints, after.constraints, properties.successors
    )


def _changed_ids(
    entity: Entity,
    before: NodeIR | EdgeIR,
    after: NodeIR | EdgeIR,
    properties: Matching[PropertyIR],
) -> Iterator[Step]:
    """Refusals of what would give stored rows other ids. A changed key is refused as a constraint."""
    numbers = {p.name: p.prop_id for p in before.properties}
    if isinstance(after, EdgeIR):
        was = edge_identity(before.constraints, numbers)
        present = {
            m.desired.name: m.accepted.prop_id for m in properties.matches if m.accepted is not None
        }
        becomes = edge_identity(after.constraints, present)
        names = without_endpoints(properties.successors)
        renamed = None if was is None else {names.get(column, column) for column in was}
        if renamed != (None if becomes is None else set(becomes)):
            shown = (f"({', '.join(c)})" if c else "none" for c in (was, becomes))
            yield _unsupported(entity, "the identity", *shown)
            return
        identity = becomes or ()
    else:
        identity = next((c.columns for c in after.constraints if isinstance(c, KeyIR)), ())
    for match in properties.matches:
        prop, old = match.desired, match.accepted
        if prop.name not in identity or old is None or prop.type.scalar == old.type.scalar:
            continue
        if prop.type.scalar is Scalar.F64 and old.type.scalar is Scalar.F32:
            # The text of a number with fewer digits is not that of the same number with more.
            reason = f"'{entity.type_name}.{prop.name}' is part of the ids and cannot become F64"
            yield UnsupportedChange(Entity(entity.kind, entity.type_name, prop.name), reason)


def _properties(
    before: tuple[PropertyIR, ...], after: tuple[PropertyIR, ...]
) -> Matching[PropertyIR]:
    return match_by_name(before, after, "property", lambda p: p.annotations)


def _unsupported(entity: Entity, what: str, was: str, becomes: str) -> UnsupportedChange:
    reason = f"changing {what} of '{entity.type_name}' from {was} to {becomes} is not supported"
    return UnsupportedChange(entity, reason)


def _allows_all(before: CardinalityIR, after: CardinalityIR) -> bool:
    """Whether no number of edges is refused that was allowed. A source without edges always is."""
    low = max(after.low, 1) <= max(before.low, 1)
    return low and (after.high is None or (before.high is not None and after.high >= before.high))
