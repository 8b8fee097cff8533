"""Loads without a graph: schemas, a committed state in memory, and the kernels in one call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.compile import compile_schema
from omnigraph.catalog.model import Catalog, EdgeType, EntityType, Group
from omnigraph.language.syntax import Source as SourceText
from omnigraph.language.types import Scalar
from omnigraph.load.recognition import recognise_sources
from omnigraph.load.splits import RowStore
from omnigraph.load.validation import LoadJob, ValidatedLoad, validate_load
from omnigraph.rows.bindings import bound_schema
from omnigraph.rows.blob_bases import BlobBases
from omnigraph.rows.columns import build_column, row_schema
from omnigraph.rows.keys import tuple_values

WORKSHOP = """
node Maker {
    handle: String @key
    joined: Date?
    age: I32?
    score: F64?
    active: Bool?
    skills: [String]?
    level: enum(novice, skilled, master)?
}
node Tool {
    code: String @key
    label: String @index
    weight: F32?
    serial: String? @unique
    @range(weight, 0.0..500.0)
    @check(code, "^[a-z]{2}-[0-9]+$")
}
node Shed {
    slug: String @key
    openedAt: DateTime?
}
edge Mentors: Maker -> Maker { since: Date? }
edge Borrows: Maker -> Tool { note: String? }
edge StoredIn: Tool -> Shed @card(0..1)
"""

WORKSHOP_RECORDS = """\
{"type":"Maker","data":{"handle":"ada","joined":"2020-02-01","age":41,"score":9.5,"active":true,"skills":["forge","lathe"],"level":"master"}}
{"type":"Maker","data":{"handle":"bo","joined":"2021-07-15","age":29,"score":7.25,"active":true,"skills":["lathe"],"level":"skilled"}}
{"type":"Maker","data":{"handle":"cy","score":3.0,"active":false,"skills":[],"level":"novice"}}
{"type":"Maker","data":{"handle":"dee","joined":"2023-01-10","age":29,"active":true}}
{"type":"Tool","data":{"code":"sa-1","label":"band saw","weight":80.5}}
{"type":"Tool","data":{"code":"dr-2","label":"drill press","weight":61.0}}
{"type":"Tool","data":{"code":"ch-3","label":"wood chisel","weight":0.4}}
{"type":"Shed","data":{"slug":"north","openedAt":"2019-05-01T08:00:00Z"}}
{"type":"Shed","data":{"slug":"south"}}
{"edge":"Mentors","from":"ada","to":"bo"}
{"edge":"Mentors","from":"bo","to":"cy"}
{"edge":"Mentors","from":"cy","to":"ada"}
{"edge":"Mentors","from":"ada","to":"dee"}
{"edge":"Borrows","from":"bo","to":"sa-1"}
{"edge":"Borrows","from":"bo","to":"sa-1"}
{"edge":"Borrows","from":"dee","to":"ch-3"}
{"edge":"Borrows","from":"ada","to":"dr-2"}
{"edge":"StoredIn","from":"sa-1","to":"north"}
{"edge":"StoredIn","from":"dr-2","to":"north"}
"""

FOLLOWS = "edge Follows: Maker -> Maker { since: Date?  @unique(src, dst) }"
PAGES = "node Page { slug: String @key  title: String @index  vec: Vector(3)? @index }"


def catalog_of(schema: str) -> Catalog:
    return compile_schema(SourceText("<schema>", schema))


W = catalog_of(WORKSHOP)
WF = catalog_of(WORKSHOP + FOLLOWS)


class CommittedTables:
    """Committed rows in memory: tables of `row_schema` by table key."""

    def __init__(self, catalog: Catalog, tables: Mapping[str, pa.Table] | None = None) -> None:
        given = tables or {}
        self.tables = {
            d.table_key: given.get(d.table_key, row_schema(d).empty_table()) for d in catalog
        }

    def existing(self, declared: EntityType, ids: pa.Array) -> pa.Array:
        assert len(pc.unique(ids)) == len(ids)
        assert ids.null_count == 0
        held = self.tables[declared.table_key].column("id")
        return ids.filter(pc.is_in(ids, value_set=held.combine_chunks()))

    def owners(
        self, declared: EntityType, group: Group, tuples: pa.Table, without: pa.Array
    ) -> pa.Table:
        assert set(tuples.column_names) == set(group)
        held = self.tables[declared.table_key]
        held = held.filter(pc.invert(pc.is_in(held.column("id"), value_set=_array(without))))
        wanted = {tuple(row) for row in _rows(tuples, group)}
        assert len(wanted) == tuples.num_rows
        kept = [n for n, row in enumerate(_rows(held, group)) if tuple(row) in wanted]
        return held.select([*group, "id"]).take(pa.array(kept, pa.int64()))

    def stored(self, declared: EntityType, ids: pa.Array, names: Sequence[str]) -> pa.Table:
        schema = bound_schema(declared)
        rows = self.tables.get(declared.table_key, schema.empty_table())
        for field in schema:
            if field.name not in rows.column_names:
                rows = rows.append_column(field, pa.nulls(rows.num_rows, field.type))
        return rows.filter(pc.is_in(rows.column("id"), value_set=ids)).select(["id", *names])

    def outgoing(self, edge: EdgeType, sources: pa.Array, without: pa.Array) -> pa.Table:
        held = self.tables[edge.table_key]
        held = held.filter(pc.invert(pc.is_in(held.column("id"), value_set=_array(without))))
        held = held.filter(pc.is_in(held.column("src"), value_set=sources))
        counted = held.group_by("src").aggregate([("id", "count")])
        return pa.table({"src": counted.column("src"), "count": counted.column("id_count")})

    def leaving(self, edge: EdgeType, sources: pa.Array, without: pa.Array) -> pa.Array:
        held = self.tables[edge.table_key]
        held = held.filter(pc.invert(pc.is_in(held.column("id"), value_set=_array(without))))
        return _array(held.filter(pc.is_in(held.column("src"), value_set=sources)).column("id"))

    def after(self, load: ValidatedLoad) -> CommittedTables:
        """What is committed once the load is."""
        changed = CommittedTables.__new__(CommittedTables)
        changed.tables = dict(self.tables)
        for key, loaded in load.types.items():
            kept = self.tables[key]
            if load.mode == "overwrite":
                kept = kept.slice(0, 0)
            replaced = pc.is_in(kept.column("id"), value_set=loaded.rows.column("id"))
            changed.tables[key] = pa.concat_tables([kept.filter(pc.invert(replaced)), loaded.rows])
        return changed


def _array(column: Any) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _rows(table: pa.Table, columns: Group) -> list[tuple[Any, ...]]:
    return [tuple_values(table, columns, row) for row in range(table.num_rows)]


@dataclass(frozen=True, slots=True)
class Anywhere(BlobBases):
    """Every address of a blob is fine."""

    def allow(self, uri: str) -> bool:
        return True


def load(
    given: object,
    catalog: Catalog = W,
    mode: Any = "append",
    committed: CommittedTables | None = None,
    *,
    load_id: str = "01J0000000000000000000000A",
    **options: Any,
) -> ValidatedLoad:
    """Prepare a load; the rows stay in memory, and blobs may be kept anywhere.

    A string is the text of records; files come as paths.
    """
    given = given.encode() if isinstance(given, str) else given
    told = options.pop("format", None), options.pop("mapping", None)
    sources = recognise_sources(given, catalog, *told)
    store = options.pop("store", None) or RowStore()
    committed = committed or CommittedTables(catalog)
    options = {"blobs": Anywhere(), **options}
    how = {name: options.pop(name) for name in [*options] if name in ("strict", "threads")}
    names = tuple(source.name for source in sources)
    job = LoadJob(catalog, mode, load_id, names, committed, **options)
    return validate_load(job, sources, store, **how)


def workshop() -> CommittedTables:
    """The workshop, committed."""
    return CommittedTables(W).after(load(WORKSHOP_RECORDS))


def rows_of(load: ValidatedLoad, key: str) -> list[dict[str, Any]]:
    """The rows of a type as stored values, dates as numbers."""
    loaded = load.types.get(key)
    return [] if loaded is None else stored_rows(loaded.declared, loaded.rows)


def stored_rows(declared: EntityType, rows: pa.Table) -> list[dict[str, Any]]:
    columns: dict[str, list[Any]] = {}
    for name in rows.column_names:
        prop = declared.properties.get(name)
        columns[name] = stored_values(rows.column(name), prop.type.scalar if prop else None)
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def stored_values(column: Any, scalar: Scalar | None) -> list[Any]:
    """A column as stored Python values; lists and vectors as tuples, blobs as bytes or text."""
    column = _array(column)
    if scalar is Scalar.BLOB:
        found = column.to_pylist()
        return [v and (v["uri"] if v["data"] is None else v["data"]) for v in found]
    if pa.types.is_list(column.type):
        items = stored_values(column.flatten(), scalar)
        lengths = pc.list_value_length(column).to_pylist()
        lists: list[Any] = []
        start = 0
        for length in lengths:
            lists.append(None if length is None else tuple(items[start : start + length]))
            start += length or 0
        return lists
    if pa.types.is_fixed_size_list(column.type):
        return [None if v is None else tuple(v) for v in column.to_pylist()]
    if scalar is Scalar.DATE:
        column = column.view(pa.int32())
    elif scalar is Scalar.DATETIME:
        column = column.view(pa.int64())
    values: list[Any] = column.to_pylist()
    return values


def table_of(declared: EntityType, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Stored rows as a table."""
    schema = row_schema(declared)
    columns = []
    for name in schema.names:
        values = [row[name] for row in rows]
        prop = declared.properties.get(name)
        column = build_column(values, prop.type) if prop else pa.array(values, pa.utf8())
        columns.append(column)
    return pa.Table.from_arrays(columns, schema=schema)
