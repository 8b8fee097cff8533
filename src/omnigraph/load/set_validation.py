"""Validation of a load as a whole: ids, unique tuples, endpoints and cardinality, with what is committed.

Tables hold located rows, each type in order of source and record. The answer is a list of problems;
on the way to an empty one no row is looked at by itself.

A patch takes what records leave out from the rows they change. Records of one id are applied in their
order, each on what the one before it left, the first on the stored row. What comes out are whole rows,
one per id, in the location of its last record; from there on a patch is a merge."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.constraints import (
    cardinality_problem,
    duplicate_tuple,
    group_text,
    identity_group,
    missing_endpoint,
    other_unique_groups,
    taken_id,
    taken_tuple,
    tuple_text,
    unkeyable_column,
    unsupported_unique,
)
from omnigraph.catalog.identity import embed_column
from omnigraph.catalog.model import Catalog, EdgeType, EntityType, Group, NodeType
from omnigraph.load.json_table import only_chunk
from omnigraph.load.record_validation import GENERATED, LOCATION_COLUMNS, LOCATION_FIELDS
from omnigraph.load.records import Location, Problem, given_flags, in_order
from omnigraph.rows.bindings import (
    binding_fields,
    embedded_properties,
    given_bindings,
    given_for_unknown,
)
from omnigraph.rows.columns import row_schema
from omnigraph.rows.keys import (
    RowNumbers,
    comparable,
    derived_ids,
    distinct_tuples,
    shared_tuples,
    tuple_values,
    tuples_of,
)
from omnigraph.rows.validation import find_nulls, rows_where


class CommittedRows(Protocol):
    """The committed state a load is validated against: one snapshot, read as often as needed.

    Every column handed in holds distinct values without nulls.
    """

    def existing(self, declared: EntityType, ids: pa.Array) -> pa.Array:
        """Those of the ids that a committed row of the type has, in any order."""
        ...

    def owners(
        self, declared: EntityType, group: Group, tuples: pa.Table, without: pa.Array
    ) -> pa.Table:
        """Committed rows that hold one of the tuples and whose id is not in `without`.

        `tuples` has the group's columns under their names, in their types; the answer has them and
        `id`. Tuples are equal when all their values are.
        """
        ...

    def stored(self, declared: EntityType, ids: pa.Array, names: Sequence[str]) -> pa.Table:
        """The committed rows with these ids, in any order: the id and the named columns.

        The names are those of properties and of the bindings of vectors.
        """
        ...

    def outgoing(self, edge: EdgeType, sources: pa.Array, without: pa.Array) -> pa.Table:
        """How many committed edges leave each source, not counting those with an id in `without`.

        Columns `src` and `count` (int64); a source without edges may be left out.
        """
        ...

    def leaving(self, edge: EdgeType, sources: pa.Array, without: pa.Array) -> pa.Array:
        """The ids of committed edges that leave one of the sources, but for those in `without`."""
        ...


LoadMode = Literal["append", "merge", "overwrite", "patch"]
Tables = Mapping[str, pa.Table]
"""Located rows by table key; a type without rows is absent."""


def collapse(declared: EntityType, rows: pa.Table, mode: LoadMode) -> pa.Table:
    """The rows that count: of several edges without identity that carry one id, `merge` takes the last."""
    if mode != "merge" or not isinstance(declared, EdgeType) or declared.identity is not None:
        return rows
    return _last_of_each_id(rows)


def _last_of_each_id(rows: pa.Table) -> pa.Table:
    given = given_ids(rows)
    if len(pc.unique(given)) == len(given):
        return rows
    numbered = pa.table({"id": rows.column("id"), "row": np.arange(rows.num_rows)})
    last = numbered.group_by("id", use_threads=False).aggregate([("row", "max")])["row_max"]
    return rows.take(pa.array(np.sort(last.to_numpy())))


def validate_set(
    catalog: Catalog,
    tables: Tables,
    mode: LoadMode,
    committed: CommittedRows,
    names: Sequence[str],
    absent: Mapping[str, pa.Array] | None = None,
) -> list[Problem]:
    """Everything that is wrong with the rows together, in order of source and record.

    `names` are those of the sources, for messages about records of two of them. `absent` are the
    endpoints of edges that no node has, by node type, where the rows alone do not tell.
    """
    validator = _SetValidator(catalog, tables, mode, committed, names)
    problems: list[Problem] = []
    for node in catalog.nodes.values():
        if node.table_key in tables:
            rows = tables[node.table_key]
            problems += validator.ids(node, rows)
            problems += validator.unique_tuples(node, rows)
    edges = [(e, tables[e.table_key]) for e in catalog.edges.values() if e.table_key in tables]
    if absent is None:
        absent = validator.absent_endpoints(edges)
    for edge, rows in edges:
        problems += validator.endpoints(edge, rows, absent)
        problems += validator.ids(edge, rows)
        problems += validator.unique_tuples(edge, rows)
        problems += validator.cardinality(edge, rows)
    return in_order(problems)


@dataclass(frozen=True, slots=True)
class _SetValidator:
    catalog: Catalog
    tables: Tables
    mode: LoadMode
    committed: CommittedRows
    names: Sequence[str]

    # -- ids and tuples --------------------------------------------------------------------------

    def ids(self, declared: EntityType, rows: pa.Table) -> Iterator[Problem]:
        """Ids that occur twice and, in `append`, ids that are taken."""
        given = given_ids(rows)
        if not len(given):
            return
        repeated: set[int] = set()
        if len(pc.unique(given)) != len(given):
            group = identity_group(declared) or ("id",)
            for same in shared_tuples(*tuples_of(rows, ["id"])):
                yield from self._shared(declared, group, rows, same)
                repeated.update(same[1:].tolist())
        if self.mode != "append":
            return
        taken = self.committed.existing(declared, pc.unique(given))
        if len(taken):
            for row in _rows_in(rows.column("id"), taken):
                if row not in repeated:
                    id = rows.column("id")[row].as_py()
                    location = _location(rows, row)
                    yield Problem(location, "exists", taken_id(declared, id), declared.name, id)

    def unique_tuples(self, declared: EntityType, rows: pa.Table) -> Iterator[Problem]:
        """Tuples of unique groups that two ids share, in the load or with a committed row."""
        if not rows.num_rows:
            return
        if unkeyable := unkeyable_column(declared):
            message = unsupported_unique(declared, *unkeyable)
            prop = unkeyable[1].name
            invalidates = locations_of(rows, range(rows.num_rows))
            yield Problem(None, "unique", message, declared.name, None, prop, invalidates)
            return
        for group in other_unique_groups(declared):
            yield from self._unique_group(declared, group, rows)

    def _unique_group(
        self, declared: EntityType, group: Group, rows: pa.Table
    ) -> Iterator[Problem]:
        tuples, numbers = tuples_of(rows, group)
        if not len(numbers):
            return
        where = group_text(declared, group)
        owned: set[int] = set()
        for row, owner in self._owned(declared, group, rows, numbers):
            owned.add(row)
            shown = tuple_text(declared, group, tuple_values(rows, group, row))
            message = taken_tuple(where, shown, owner)
            yield Problem(_location(rows, row), "unique", message, declared.name, _id(rows, row))
        for same in shared_tuples(tuples, numbers):
            ids = {_id(rows, row) for row in same.tolist()}
            if len(ids) > 1 and int(same[0]) not in owned:
                yield from self._shared(declared, group, rows, same)

    def _owned(
        self, declared: EntityType, group: Group, rows: pa.Table, numbers: RowNumbers
    ) -> list[tuple[int, str]]:
        """Rows whose tuple a committed row with another id has, with that id."""
        if self.mode == "overwrite":
            return []
        distinct = distinct_tuples(rows, group)
        owners = self.committed.owners(declared, group, distinct, pc.unique(given_ids(rows)))
        if not owners.num_rows:
            return []
        holders: dict[tuple[object, ...], str] = {}
        for row in range(owners.num_rows):
            values = tuple_values(owners, group, row)
            holders.setdefault(values, owners.column("id")[row].as_py())
        candidates = np.ones(len(numbers), np.bool_)
        for column in group:
            held = comparable(owners.column(column))
            given = comparable(rows.column(column))
            candidates &= pc.is_in(given, value_set=held.combine_chunks()).to_numpy()[numbers]
        found = []
        for row in numbers[candidates].tolist():
            owner = holders.get(tuple_values(rows, group, row))
            if owner is not None:
                found.append((row, owner))
        return found

    def _shared(
        self, declared: EntityType, group: Group, rows: pa.Table, same: RowNumbers
    ) -> Iterator[Problem]:
        """Every row of the same tuple but the first is reported, together with the first."""
        values = tuple_values(rows, group, int(same[0]))
        if None in values:
            # An edge outside its type's identity, known by its explicit id.
            group, values = ("id",), (_id(rows, int(same[0])),)
        where, shown = group_text(declared, group), tuple_text(declared, group, values)
        first, *others = locations_of(rows, same.tolist())
        for row, location in zip(same[1:].tolist(), others, strict=True):
            message = duplicate_tuple(where, shown, self._both(first, location))
            id = _id(rows, row)
            yield Problem(location, "unique", message, declared.name, id, invalidates=(first,))

    def _both(self, first: Location, second: Location) -> str:
        if first.source == second.source:
            return f"records {first.record} and {second.record}"
        here, there = (f"{self.names[p.source]} record {p.record}" for p in (first, second))
        return f"{here} and {there}"

    # -- endpoints ------------------------------------------------------------------------------------

    def absent_endpoints(self, edges: Sequence[tuple[EdgeType, pa.Table]]) -> dict[str, pa.Array]:
        """By node type: the endpoints of input edges that no node has."""
        wanted: dict[str, list[pa.Array]] = {}
        for edge, rows in edges:
            for endpoint, type_name in (("src", edge.from_type), ("dst", edge.to_type)):
                wanted.setdefault(type_name, []).append(pc.unique(rows.column(endpoint)))
        return {
            type_name: self._absent(self.catalog.nodes[type_name], pa.chunked_array(endpoints))
            for type_name, endpoints in wanted.items()
        }

    def _absent(self, node: NodeType, endpoints: pa.ChunkedArray) -> pa.Array:
        absent = pc.unique(endpoints)
        mine = self.tables.get(node.table_key)
        if mine is not None:
            ids = mine.column("id").combine_chunks()
            absent = absent.filter(pc.invert(pc.is_in(absent, value_set=ids)))
            if self.mode == "overwrite":
                return absent
        if len(absent):
            there = self.committed.existing(node, absent)
            absent = absent.filter(pc.invert(pc.is_in(absent, value_set=there)))
        return absent

    def endpoints(
        self, edge: EdgeType, rows: pa.Table, absent: Mapping[str, pa.Array]
    ) -> Iterator[Problem]:
        """Edges with an endpoint that no node has."""
        for endpoint, type_name in (("src", edge.from_type), ("dst", edge.to_type)):
            if not len(absent[type_name]):
                continue
            for row in _rows_in(rows.column(endpoint), absent[type_name]):
                message = missing_endpoint(edge, endpoint, rows.column(endpoint)[row].as_py())
                location = _location(rows, row)
                yield Problem(location, "endpoint_not_found", message, edge.name, _id(rows, row))

    # -- cardinality -----------------------------------------------------------------------------

    def cardinality(self, edge: EdgeType, rows: pa.Table) -> Iterator[Problem]:
        """Sources of input edges that have too many or too few edges."""
        low, high = edge.cardinality.low, edge.cardinality.high
        if low <= 1 and high is None:
            return
        counted = pc.value_counts(_last_of_each_id(rows).column("src"))
        sources, counts = counted.field("values"), counted.field("counts").to_numpy().copy()
        if self.mode != "overwrite":
            without = pc.unique(given_ids(rows))
            before = self.committed.outgoing(edge, sources, without)
            found = pc.index_in(before.column("src"), value_set=sources).to_numpy()
            counts[found] += before.column("count").to_numpy()
        wrong = counts < low
        if high is not None:
            wrong |= counts > high
        for number in np.flatnonzero(wrong).tolist():
            source = sources[number].as_py()
            message = cardinality_problem(edge, source, int(counts[number]))
            if message is not None:
                invalidates = locations_of(rows, _rows_in(rows.column("src"), pa.array([source])))
                yield Problem(None, "cardinality", message, edge.name, invalidates=invalidates)


def given_ids(rows: pa.Table) -> pa.ChunkedArray:
    """The ids that were given or derived. Generated ones are new by construction."""
    generated = rows.column(GENERATED)
    if not pc.any(generated).as_py():
        return rows.column("id")
    return rows.column("id").filter(pc.invert(generated))


def _rows_in(column: pa.ChunkedArray, values: pa.Array) -> list[int]:
    mask = pc.is_in(column, value_set=values).to_numpy()
    rows: list[int] = np.flatnonzero(mask).tolist()
    return rows


def _id(rows: pa.Table, row: int) -> str:
    id: str = rows.column("id")[row].as_py()
    return id


def _location(rows: pa.Table, row: int) -> Location:
    return locations_of(rows, [row])[0]


def locations_of(rows: pa.Table, numbers: Sequence[int]) -> tuple[Location, ...]:
    """The records that rows of a located table were."""
    found = rows.select(LOCATION_COLUMNS).take(pa.array(numbers, pa.int64()))
    return tuple(map(Location, *(column.to_pylist() for column in found.columns)))


Numbers = npt.NDArray[np.int64]


def patched_schema(declared: EntityType) -> pa.Schema:
    """The columns of whole rows: those of located rows, and the bindings of vectors."""
    return pa.schema([*row_schema(declared), *binding_fields(declared), *LOCATION_FIELDS])


def patched(
    declared: EntityType, rows: pa.Table, committed: CommittedRows
) -> tuple[pa.Table, list[Problem]]:
    """Whole rows, and what is wrong with them by themselves."""
    patch = _Patch(declared, rows, committed)
    whole = patch.rows()
    return whole, _problems(declared, whole)


class _Patch:
    """Located rows of one type, in order of source and record, and what they are applied to."""

    def __init__(self, declared: EntityType, rows: pa.Table, committed: CommittedRows) -> None:
        self._declared = declared
        self._rows = rows
        self._committed = committed
        encoded = only_chunk(rows.column("id")).dictionary_encode()
        self._ids: pa.Array = encoded.dictionary
        self._group: Numbers = encoded.indices.to_numpy().astype(np.int64)
        self._last = self._last_where(np.ones(rows.num_rows, np.bool_))
        self._sources = {
            name: self._last_where(given_flags(rows, name)) for name in declared.properties
        }
        """By property: for each id the last row that has it, or -1."""
        self._stored = self._look_up()

    def _last_where(self, mask: npt.NDArray[np.bool_]) -> Numbers:
        """For each id the number of its last row in the mask, or -1."""
        last = np.full(len(self._ids), -1, np.int64)
        numbers = np.flatnonzero(mask)
        # Of several values for one location the last one stays, and rows are in order.
        last[self._group[numbers]] = numbers
        return last

    def _look_up(self) -> pa.Table:
        """The stored rows that something is taken from, with those properties."""
        absent = np.zeros(len(self._ids), np.bool_)
        names: list[str] = []
        for name, last in self._sources.items():
            if (last < 0).any():
                absent |= last < 0
                names.append(name)
        names += [
            embed_column(prop.prop_id)
            for prop in embedded_properties(self._declared)
            if prop.name in names
        ]
        generated = only_chunk(self._rows.column(GENERATED)).to_numpy(zero_copy_only=False)
        absent &= ~generated[self._last]
        wanted = self._ids.filter(pa.array(absent))
        return self._committed.stored(self._declared, wanted, names)

    def rows(self) -> pa.Table:
        """A whole row for each id, in order of their last records."""
        self._stored_rows = pc.index_in(self._ids, value_set=only_chunk(self._stored.column("id")))
        columns: dict[str, pa.Array | pa.ChunkedArray] = {}
        for name in ("id", "src", "dst", *LOCATION_COLUMNS, GENERATED):
            if name in self._rows.column_names:
                columns[name] = self._taken(name, self._last)
        for name in self._declared.properties:
            columns[name] = self._property(name)
        for prop in embedded_properties(self._declared):
            assert prop.embed_source is not None
            hidden = embed_column(prop.prop_id)
            vector, text = only_chunk(columns[prop.name]), only_chunk(columns[prop.embed_source])
            bound = given_bindings(vector, text)
            kept = pa.array(self._sources[prop.name] < 0)
            if pc.any(kept).as_py() and hidden in self._stored.column_names:
                stored = only_chunk(self._stored.column(hidden)).take(self._stored_rows)
                # A vector that is kept beside another text is that of an earlier one.
                changed = pa.array(self._sources[prop.embed_source] >= 0)
                stored = pc.if_else(changed, given_for_unknown(vector, stored), stored)
                bound = pc.if_else(kept, stored, bound)
            columns[hidden] = bound
        schema = patched_schema(self._declared)
        whole = pa.Table.from_arrays([columns[name] for name in schema.names], schema=schema)
        order = np.argsort(self._last, kind="stable")
        is_sorted = bool((order == np.arange(len(order))).all())
        return whole if is_sorted else whole.take(pa.array(order))

    def _taken(self, name: str, numbers: Numbers) -> pa.Array | pa.ChunkedArray:
        """A column of the input at these rows."""
        column = self._rows.column(name)
        if len(self._ids) == len(self._group):
            return column  # Each row has an id of its own, so the rows stay as they are.
        return only_chunk(column).take(pa.array(numbers))

    def _property(self, name: str) -> pa.Array | pa.ChunkedArray:
        """The last value each id was given, or the stored one."""
        last = self._sources[name]
        if name not in self._stored.column_names:
            return self._taken(name, last)
        given, stored = only_chunk(self._rows.column(name)), only_chunk(self._stored.column(name))
        from_stored = pc.add(self._stored_rows.cast(pa.int64()), len(given))
        source = pc.if_else(pa.array(last >= 0), pa.array(last), from_stored)
        return pa.concat_arrays([given, stored]).take(source)


def _problems(declared: EntityType, rows: pa.Table) -> list[Problem]:
    """Values that new rows lack, and edges that are no longer what their ids say."""
    found: list[Problem] = []
    required = [prop.name for prop in declared.properties.values() if not prop.type.nullable]
    if any(rows.column(name).null_count for name in required):
        for missing in find_nulls(declared, _columns(declared, rows)).missing:
            found.append(_problem(declared, rows, missing.row, missing.code, missing.message))
            found[-1] = replace(found[-1], property=missing.property)
    if isinstance(declared, EdgeType) and _may_lack_identity(declared):
        derived = derived_ids(declared, _columns(declared, rows))
        different = pc.fill_null(pc.not_equal(derived, only_chunk(rows.column("id"))), False)
        where = group_text(declared, identity_group(declared) or ())
        for row in rows_where(different):
            message = f"id '{rows.column('id')[row].as_py()}' is not that of its {where}"
            found.append(_problem(declared, rows, row, "bad_key", message))
    return found


def _columns(declared: EntityType, rows: pa.Table) -> dict[str, pa.Array]:
    return {name: only_chunk(rows.column(name)) for name in declared.columns}


def _may_lack_identity(declared: EdgeType) -> bool:
    """Whether an edge of the type may have an id of its own, because a part of its tuple is null."""
    properties = declared.properties
    group = identity_group(declared) or ()
    return any(properties[name].type.nullable for name in group if name in properties)


def _problem(declared: EntityType, rows: pa.Table, row: int, code: str, message: str) -> Problem:
    (location,) = locations_of(rows, [row])
    return Problem(location, code, message, declared.name, rows.column("id")[row].as_py())
