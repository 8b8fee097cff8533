"""Three-way merge of images, row by row, and the rules the result has to keep."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from omnigraph.catalog.model import EdgeType, EntityType
from omnigraph.testing.model.image import Image
from omnigraph.testing.model.rules import (
    collisions,
    group_text,
    missing_ends,
    too_few,
    too_many,
    unkeyable,
    value_violations,
)
from omnigraph.testing.model.values import Row, text_of
from omnigraph.testing.outcome import Conflict, Refusal


@dataclass(frozen=True, slots=True)
class Merged:
    """The merged content and the rows that differ from the target's."""

    image: Image
    written: dict[str, frozenset[str]]


def merge(base: Image, source: Image, target: Image) -> Merged:
    """The target with the source's changes. Raises `Refusal` with every conflict.

    What the merged content breaks is looked for only when no row is in conflict.
    """
    tables: dict[str, dict[str, Row]] = {}
    written: dict[str, frozenset[str]] = {}
    conflicts: list[Conflict] = []
    for declared in target.catalog:
        key = declared.table_key
        old, theirs, ours = base.tables[key], source.tables[key], target.tables[key]
        rows: dict[str, Row] = {}
        for id in sorted(old.keys() | theirs.keys() | ours.keys()):
            result = _merge_row(key, id, old.get(id), theirs.get(id), ours.get(id))
            if isinstance(result, Conflict):
                conflicts.append(result)
            elif result is not None:
                rows[id] = result
        tables[key] = rows
        written[key] = frozenset(
            id for id in rows.keys() | ours.keys() if rows.get(id) != ours.get(id)
        )
    merged = Image(target.catalog, tables)
    conflicts = conflicts or list(_broken_rules(merged))
    if conflicts:
        raise _refusal(conflicts)
    return Merged(merged, written)


def _merge_row(
    key: str, id: str, base: Row | None, source: Row | None, target: Row | None
) -> Row | Conflict | None:
    """The row both sides agree on, none when it is gone, or the conflict. Absent counts as a state."""
    if source in (base, target):
        return target
    if target == base:
        return source
    if base is None:
        message = f"both branches added '{id}' with different values"
        return Conflict(key, id, "divergent_insert", message)
    if source is None or target is None:
        message = f"'{id}' was deleted on one branch and changed on the other"
        return Conflict(key, id, "delete_vs_update", message)
    message = f"both branches changed '{id}' to different values"
    return Conflict(key, id, "divergent_update", message)


def _broken_rules(image: Image) -> Iterator[Conflict]:
    for declared in image.catalog:
        key = declared.table_key
        rows = image.tables[key]
        for row in rows.values():
            for violation in value_violations(declared, row):
                yield Conflict(key, None, "value_constraint_violation", violation.message)
        yield from _broken_uniqueness(declared, image)
        if isinstance(declared, EdgeType):
            for id, row in rows.items():
                for _, message in missing_ends(declared, row, image.tables):
                    yield Conflict(key, id, "orphan_edge", message)
            for source in sorted({text_of(row, "src") for row in rows.values()}):
                problem = too_many(declared, rows, source) or too_few(declared, rows, source)
                if problem:
                    yield Conflict(key, None, "cardinality_violation", problem)


def _broken_uniqueness(declared: EntityType, image: Image) -> Iterator[Conflict]:
    rows = image.tables[declared.table_key]
    unusable = [v.message for v in unkeyable(declared)]
    if unusable and rows:
        yield Conflict(declared.table_key, None, "unique_violation", unusable[0])
        return
    for collision in collisions(declared, (rows[id] for id in sorted(rows))):
        first, *others = (text_of(row, "id") for row in collision.rows)
        for other in others:
            where = group_text(declared, collision.group)
            message = f"'{first}' and '{other}' share {where} '{collision.tuple_text}'"
            yield Conflict(declared.table_key, other, "unique_violation", message)


def _refusal(conflicts: list[Conflict]) -> Refusal:
    ordered = sorted(conflicts, key=lambda c: (c.table_key, c.row_id or "", c.kind, c.message))
    shown = [
        f"{c.table_key}{'' if c.row_id is None else ':' + c.row_id} ({c.kind})" for c in ordered[:3]
    ]
    more = [f"and {len(ordered) - 3} more"] if len(ordered) > 3 else []
    message = "merge conflicts: " + "; ".join(shown + more)
    return Refusal("conflict", message, conflicts=tuple(ordered))
