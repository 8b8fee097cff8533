"""The rules of the catalog on rows that a statement writes, seen on the working image."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.constraints import (
    cardinality_problem,
    group_text,
    missing_endpoint,
    other_unique_groups,
    taken_tuple,
    tuple_text,
    uncomputable_vector,
    unkeyable_column,
    unsupported_unique,
)
from omnigraph.catalog.model import EdgeType, EntityType, Group
from omnigraph.embedding.vectors import why_not
from omnigraph.errors import EmbeddingNotConfigured, MutationError
from omnigraph.limits import MAX_LOAD_ERRORS
from omnigraph.mutation.working import WorkingImage, WorkingTable
from omnigraph.rows.keys import shared_tuples, tuple_values, tuples_of
from omnigraph.rows.validation import Columns, find_nulls, rows_where, value_violations


def refuse_any(problems: Iterable[str]) -> None:
    """Raises `MutationError` that lists the problems, if there are any."""
    found = list(problems)
    if found:
        raise MutationError(found[:MAX_LOAD_ERRORS], len(found))


def null_problems(
    declared: EntityType, columns: Columns, unconfigured: EmbeddingNotConfigured | None
) -> list[str]:
    """Nulls where a value is required, property by property.

    A vector that waits for its text to be embedded is a problem only if no provider can do that.
    """
    nulls = find_nulls(declared, columns)
    problems = [(violation.property, violation.message) for violation in nulls.missing]
    for name, waiting in nulls.pending.items():
        prop = declared.properties[name]
        if not prop.type.nullable and unconfigured is not None:
            message = uncomputable_vector(declared, prop, why_not(unconfigured))
            problems += [(name, message) for _ in rows_where(waiting)]
    # Properties are kept by name, so this is their order.
    return [message for _, message in sorted(problems, key=lambda problem: problem[0])]


def value_problems(declared: EntityType, columns: Columns) -> Iterator[str]:
    """Enum, `@range` and `@check`."""
    return (violation.message for violation in value_violations(declared, columns))


def edge_problems(image: WorkingImage, table: WorkingTable, rows: pa.Table) -> Iterator[str]:
    """Ends of inserted edges that no node has, and sources that now have too many edges."""
    edge = table.declared
    if not isinstance(edge, EdgeType):
        return
    ends = {end: rows.column(end).combine_chunks() for end in ("src", "dst")}
    missing = _missing_ends(image, edge, ends)
    if any(missing.values()):
        shown = {end: ids.to_pylist() for end, ids in ends.items()}
        for row in range(rows.num_rows):
            for end, ids in missing.items():
                if shown[end][row] in ids:
                    yield missing_endpoint(edge, end, shown[end][row])
    if edge.cardinality.high is not None:
        counted = table.count_by_source(ends["src"].unique().to_pylist())
        for source, found in counted.items():
            problem = cardinality_problem(edge, source, found)
            if found > edge.cardinality.high and problem is not None:
                yield problem


def _missing_ends(
    image: WorkingImage, edge: EdgeType, ends: Mapping[str, pa.Array]
) -> dict[str, set[str]]:
    """The ids at each end that no node has."""
    nodes = image.catalog.nodes
    wanted = {end: ids.unique().to_pylist() for end, ids in ends.items()}
    if edge.is_self_typed:
        both = list(dict.fromkeys(id for ids in wanted.values() for id in ids))
        missing = image[nodes[edge.from_type]].missing(both)
        return dict.fromkeys(wanted, missing)
    types = {"src": edge.from_type, "dst": edge.to_type}
    return {end: image[nodes[types[end]]].missing(ids) for end, ids in wanted.items()}


def too_few(edges: WorkingTable, sources: Sequence[str]) -> Iterator[str]:
    """Sources that have some edges, but fewer than their type asks for."""
    edge = edges.declared
    assert isinstance(edge, EdgeType)
    if edge.cardinality.low <= 1:
        return
    for source, found in edges.count_by_source(sources).items():
        problem = cardinality_problem(edge, source, found)
        if problem is not None:
            yield problem


def unique_problems(
    table: WorkingTable, rows: pa.Table, assigned: Mapping[str, object] | None = None
) -> Iterator[str]:
    """Tuples of unique groups that rows to be written share with each other or with others.

    One problem per tuple. `assigned` are the properties an update changes: other groups are as
    good as they were.
    """
    declared = table.declared
    if unkeyable := unkeyable_column(declared):
        yield unsupported_unique(declared, *unkeyable)
        return
    for group in other_unique_groups(declared):
        if assigned is None or not assigned.keys().isdisjoint(group):
            yield from _shared(table, rows, group)


def _shared(table: WorkingTable, rows: pa.Table, group: Group) -> Iterator[str]:
    mine = rows.select(["id", *group])
    tuples, _ = tuples_of(mine, group)
    if not tuples.num_rows:
        return
    others = table.holders(group, tuples.rename_columns(list(group)))
    others = others.filter(pc.invert(pc.is_in(others.column("id"), value_set=_ids(rows))))
    together = pa.concat_tables([mine, others])
    for same in shared_tuples(*tuples_of(together, group)):
        if same[0] >= mine.num_rows:
            continue
        strangers = same[same >= mine.num_rows]
        holders = together.column("id").take(pa.array(strangers if len(strangers) else same))
        shown = tuple_text(table.declared, group, tuple_values(together, group, int(same[0])))
        yield taken_tuple(group_text(table.declared, group), shown, min(holders.to_pylist()))


def _ids(rows: pa.Table) -> pa.Array:
    return rows.column("id").combine_chunks()
