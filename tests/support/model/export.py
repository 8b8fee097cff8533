"""An image as the records that would load it: tables by key, rows by id, one object per line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from omnigraph.catalog.ir import compact_json
from omnigraph.catalog.model import EdgeType, EntityType
from tests.support.model.image import Image
from tests.support.model.values import Row, text_of, to_export
from tests.support.outcome import Json, Refusal


def export(image: Image, types: Sequence[str] = ()) -> list[str]:
    """The lines of an export: everything, or the given type names and table keys."""
    return [
        compact_json(_record(declared, rows[id]))
        for declared in sorted(_selected(image, types), key=lambda d: d.table_key)
        for rows in (image.tables[declared.table_key],)
        for id in sorted(rows)
    ]


def _selected(image: Image, types: Sequence[str]) -> Iterator[EntityType]:
    names = {declared.name for declared in image.catalog}
    keys = {declared.table_key for declared in image.catalog}
    for wanted in types:
        if ":" in wanted and wanted not in keys:
            raise Refusal("bad_request", f"unknown export table '{wanted}'")
        if ":" not in wanted and wanted not in names:
            raise Refusal("bad_request", f"unknown export type '{wanted}'")
    for declared in image.catalog:
        if not types or declared.name in types or declared.table_key in types:
            yield declared


def _record(declared: EntityType, row: Row) -> Json:
    data: dict[str, Json] = {"id": text_of(row, "id")}
    for name in sorted(declared.properties):
        data[name] = to_export(row[name], declared.properties[name].type)
    if isinstance(declared, EdgeType):
        ends: dict[str, Json] = {"from": text_of(row, "src"), "to": text_of(row, "dst")}
        return {"edge": declared.name, **ends, "data": data}
    return {"type": declared.name, "data": data}
