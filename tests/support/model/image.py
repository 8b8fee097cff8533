"""The whole content of a graph at one commit, and how two of them differ.

An image is never changed: an operation copies the tables, works on the copy and makes a new one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from omnigraph.catalog.model import Catalog, Property
from omnigraph.language.values import Value as BackfillValue
from omnigraph.language.values import backfill_value
from tests.support.model.values import Row, Value
from tests.support.outcome import Change

Tables = Mapping[str, Mapping[str, Row]]
"""Table key to id to row. A row holds its id, its ends if it is an edge, and every property."""


@dataclass(frozen=True)
class Image:
    catalog: Catalog
    tables: Tables

    @classmethod
    def empty(cls, catalog: Catalog) -> Image:
        return cls(catalog, {declared.table_key: {} for declared in catalog})

    def working_copy(self) -> dict[str, dict[str, Row]]:
        """Tables to change in place; rows are replaced, never changed, so they can be shared."""
        return {key: dict(rows) for key, rows in self.tables.items()}


def restate(image: Image, catalog: Catalog) -> Image:
    """The same content as another schema sees it: what was renamed keeps its values.

    Types and properties are recognised by their numbers. What the schema no longer has is left out,
    what it did not have yet is empty or null.
    """
    return _carry_over(image, catalog, fill=lambda prop: None)


def migrate(image: Image, catalog: Catalog) -> Image:
    """The content after the schema became another one: new properties get their `@backfill`."""
    return _carry_over(image, catalog, fill=_backfill)


def _carry_over(image: Image, catalog: Catalog, fill: Callable[[Property], Value]) -> Image:
    before = {declared.type_id: declared for declared in image.catalog}
    tables: dict[str, dict[str, Row]] = {}
    for declared in catalog:
        table = tables[declared.table_key] = {}
        old = before.get(declared.type_id)
        if old is None:
            continue
        old_names = {prop.prop_id: name for name, prop in old.properties.items()}
        for id, row in image.tables[old.table_key].items():
            carried = {c: row[c] for c in declared.columns if c not in declared.properties}
            for name, prop in declared.properties.items():
                known = old_names.get(prop.prop_id)
                carried[name] = fill(prop) if known is None else row[known]
            table[id] = carried
    return Image(catalog, tables)


def _backfill(prop: Property) -> Value:
    text = prop.backfill
    return None if text is None else _frozen(backfill_value(text, prop.type))


def _frozen(value: BackfillValue) -> Value:
    return tuple(_frozen(item) for item in value) if isinstance(value, list) else value


def compare(left: Image, right: Image, names: Catalog) -> tuple[Change, ...]:
    """The changes that lead from one image to the other, by table and id.

    Types and properties go by the names of the given schema, so renaming is no change; a type it
    does not have keeps the name it had.
    """
    changes: list[Change] = []
    seen: set[int] = set()
    for catalog in (names, right.catalog, left.catalog):
        before, after = restate(left, catalog), restate(right, catalog)
        for declared in catalog:
            if declared.type_id not in seen:
                seen.add(declared.type_id)
                key = declared.table_key
                changes += _row_changes(key, before.tables[key], after.tables[key])
    return tuple(sorted(changes, key=lambda c: (c.table_key, c.id)))


def _row_changes(key: str, before: Mapping[str, Row], after: Mapping[str, Row]) -> Iterator[Change]:
    for id in sorted(before.keys() | after.keys()):
        old, new = before.get(id), after.get(id)
        if old is None:
            yield Change(key, id, "insert", None, new)
        elif new is None:
            yield Change(key, id, "delete", old, None)
        elif old != new:
            yield Change(key, id, "update", old, new)


def snapshot_equal(left: Image, right: Image) -> bool:
    """Whether two images have the same schema and the same rows under the same names."""
    return left.catalog.hash == right.catalog.hash and left.tables == right.tables


def explain_difference(left: Image, right: Image) -> str:
    """What to print when two images should be equal and are not; empty when they are.

    Rows are compared under their names: a type or property that only one side has is named first.
    """
    lines: list[str] = []
    if left.catalog.hash != right.catalog.hash:
        lines.append(f"schema: {left.catalog.hash} is not {right.catalog.hash}")
    for key in sorted(left.tables.keys() ^ right.tables.keys()):
        lines.append(f"{key}: only {'left' if key in left.tables else 'right'}")
    for key in sorted(left.tables.keys() & right.tables.keys()):
        for change in _row_changes(key, left.tables[key], right.tables[key]):
            lines.append(_explain(change))
    return "\n".join(lines)


def _explain(change: Change) -> str:
    place = f"{change.table_key} {change.id}"
    if change.before is None:
        return f"{place}: only right {dict(change.after or {})}"
    if change.after is None:
        return f"{place}: only left {dict(change.before)}"
    columns = sorted(change.before.keys() | change.after.keys())
    different = [c for c in columns if change.before.get(c) != change.after.get(c)]
    shown = (f"{c} {change.before.get(c)!r} is not {change.after.get(c)!r}" for c in different)
    return f"{place}: {', '.join(shown)}"
