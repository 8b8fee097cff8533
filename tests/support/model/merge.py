"""Three-way merge of images, row by row, and the rules the result has to keep."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from omnigraph.catalog.model import EdgeType, EntityType
from tests.support.model.image import Image
from tests.support.model.rules import (
    collisions,
    group_text,
    missing_ends,
    too_few,
    too_many,
    unkeyable,
    value_violations,
)
from tests.support.model.values import Row, text_of
from tests.support.outcome import Conflict, Refusal


@dataclass(frozen=True, slots=True)
class Merged:
    """The merged content and the rows that differ from the target's."""

    image: Image
    written: dict[str, frozenset[str]]


@dataclass(frozen=True, slots=True)
class Ancestor:
    """What two branches come from. Of `unclear` rows, as (table, id), nobody can say what they were."""

    image: Image
    unclear: frozenset[tuple[str, str]] = frozenset()


def merge(base: Ancestor, source: Image, target: Image) -> Merged:
    """The target with the source's changes. Raises `Refusal` with every conflict.

    What the merged content breaks is looked for only when no row is in conflict, and counts only if
    neither side broke it just so.
    """
    merged, conflicts = _merge_tables(base, source, target)
    if not conflicts:
        known = {*_broken_rules(source), *_broken_rules(target)}
        conflicts = [broken for broken in _broken_rules(merged) if broken not in known]
    if conflicts:
        raise _refusal(conflicts)
    written = {
        key: frozenset(
            id
            for id in rows.keys() | target.tables[key].keys()
            if rows.get(id) != target.tables[key].get(id)
        )
        for key, rows in merged.tables.items()
    }
    return Merged(merged, written)


def combine(base: Ancestor, theirs: Image, ours: Ancestor) -> Ancestor:
    """Two ancestors as one. Rows on which they disagree are unclear."""
    merged, conflicts = _merge_tables(base, theirs, ours.image)
    unclear = {(c.table_key, c.row_id) for c in conflicts if c.row_id is not None}
    return Ancestor(merged, ours.unclear | unclear)


def _merge_tables(base: Ancestor, source: Image, target: Image) -> tuple[Image, list[Conflict]]:
    """Row by row; where there is a conflict, the target's row stays."""
    tables: dict[str, dict[str, Row]] = {}
    conflicts: list[Conflict] = []
    for declared in target.catalog:
        key = declared.table_key
        old, theirs, ours = base.image.tables[key], source.tables[key], target.tables[key]
        unclear = {id for table, id in base.unclear if table == key}
        rows: dict[str, Row] = {}
        for id in sorted(old.keys() | theirs.keys() | ours.keys() | unclear):
            before = _UNCLEAR if id in unclear else old.get(id)
            result = _merge_row(key, id, before, theirs.get(id), ours.get(id))
            if isinstance(result, Conflict):
                conflicts.append(result)
                result = ours.get(id)
            if result is not None:
                rows[id] = result
        tables[key] = rows
    return Image(target.catalog, tables), conflicts


_UNCLEAR: Row = {"": "a row that is equal to none there is"}


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
