"""Patches: what records leave out is taken from the rows they change.

Records of one id are applied in their order, each on what the one before it left, the first on the
stored row. What comes out are whole rows, one per id, in the location of its last record; from there on
a patch is a merge.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.constraints import group_text, identity_group
from omnigraph.catalog.identity import embed_column
from omnigraph.catalog.model import EdgeType, EntityType
from omnigraph.load.json_table import only_chunk
from omnigraph.load.record_validation import GENERATED, LOCATION_COLUMNS, LOCATION_FIELDS
from omnigraph.load.records import Problem, given_flags
from omnigraph.load.set_validation import CommittedRows, locations_of
from omnigraph.rows.bindings import (
    binding_fields,
    embedded_properties,
    given_bindings,
    given_for_unknown,
)
from omnigraph.rows.columns import row_schema
from omnigraph.rows.keys import derived_ids
from omnigraph.rows.validation import find_nulls, rows_where

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
