"""Validation of single records: typed rows to rows with ids, or everything wrong with a record.

Nothing here compares two rows. Beside its values a row carries its location in the load in hidden
columns, until the load is committed or refused. A row without an id gets one when its block is
located, because that id depends on the record's number: 26 characters in the form of a ULID, the
same on every attempt. The first 18 stand for the load and the source, the last 8 for the record. A
load id that is a ULID keeps its time, so generated ids sort by the time of their load.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.model import EdgeType, EntityType, NodeType
from omnigraph.errors import ExternalBlobRefused
from omnigraph.load.records import (
    GIVEN,
    Notes,
    Numbers,
    ParsedRecords,
    Problem,
    TypedRows,
    problem_at,
)
from omnigraph.rows.blob_bases import BlobBases
from omnigraph.rows.columns import row_schema
from omnigraph.rows.keys import derived_ids
from omnigraph.rows.validation import Violation, find_nulls, rows_where, value_violations

SOURCE: Final = "__source"
RECORD: Final = "__record"
LINE: Final = "__line"
GENERATED: Final = "__generated"
LOCATION_COLUMNS: Final = [SOURCE, RECORD, LINE]
"""The columns that say which record a row was."""

LOCATION_FIELDS: Final = (
    pa.field(SOURCE, pa.int32(), nullable=False),
    pa.field(RECORD, pa.int64(), nullable=False),
    pa.field(LINE, pa.int64()),
    pa.field(GENERATED, pa.bool_(), nullable=False),
)

_ALPHABET: Final = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_LETTERS: Final = np.frombuffer(_ALPHABET.encode(), np.uint8)
_ULID: Final = re.compile(rf"[0-7][{_ALPHABET}]{{25}}")
_TIME_LENGTH: Final = 10
_PREFIX_LENGTH: Final = 18
_ID_LENGTH: Final = 26
_NUMBER_SHIFTS: Final = np.arange(5 * (_ID_LENGTH - _PREFIX_LENGTH - 1), -1, -5, dtype=np.int64)

_RowProblem = tuple[int, str, str, str | None]
"""Row, code, message, property."""


def located_schema(declared: EntityType) -> pa.Schema:
    """The columns of located rows."""
    return pa.schema([*row_schema(declared), *LOCATION_FIELDS])


@dataclass(frozen=True, slots=True)
class ValidRecords:
    """The valid rows of a block by table key, in order of record, and the problems of all others."""

    count: int
    rows: dict[str, pa.RecordBatch]
    problems: list[Problem]
    notes: Notes


@dataclass(frozen=True, slots=True)
class _ValidRows:
    """Rows that are valid by themselves; the id is null where one has to be generated."""

    declared: EntityType
    rows: pa.RecordBatch
    positions: Numbers


@dataclass(frozen=True, slots=True)
class ValidBlock:
    """A validated block that does not know yet how many records come before it."""

    parsed: ParsedRecords
    valid: list[_ValidRows]

    def located(self, source: int, before: int, lines_before: int, prefix: str) -> ValidRecords:
        """The records in their source, of which `before` records and some lines come before them."""
        parsed = self.parsed
        lines = None if parsed.lines is None else parsed.lines + lines_before
        parsed.notes.locate(source, before)
        return ValidRecords(
            parsed.count,
            {v.declared.table_key: _located(v, source, before, lines, prefix) for v in self.valid},
            [problem.located(source, before, lines) for problem in parsed.problems],
            parsed.notes,
        )


def validate_records(parsed: ParsedRecords, blobs: BlobBases) -> ValidBlock:
    """The valid rows of a block, one batch per type; blobs outside the graph need a base."""
    found: dict[str, list[_ValidRows]] = {}
    for typed in parsed.rows:
        valid = _validate(typed, blobs, parsed)
        found.setdefault(valid.declared.table_key, []).append(valid)
    parsed.problems.sort(key=lambda problem: problem.position())
    return ValidBlock(parsed, [_joined(same) for same in found.values()])


def _validate(typed: TypedRows, blobs: BlobBases, parsed: ParsedRecords) -> _ValidRows:
    typed = _without(typed, list(_violations(typed)), parsed)
    derived = derived_ids(typed.declared, typed.columns)
    if isinstance(typed.declared, NodeType) and derived is not None:
        mismatches = list(_mismatches(typed, derived))
        if mismatches:
            typed = _without(typed, mismatches, parsed)
            derived = derived_ids(typed.declared, typed.columns)
    refused = list(_refused_blobs(typed, blobs))
    if refused:
        typed = _without(typed, refused, parsed)
        derived = derived_ids(typed.declared, typed.columns)
    return _with_ids(typed, derived, parsed.notes)


def _with_ids(typed: TypedRows, derived: pa.Array | None, notes: Notes) -> _ValidRows:
    declared, ids = typed.declared, typed.ids
    if derived is not None:
        if ids.null_count < len(ids):
            ignored = pc.sum(pc.not_equal(ids, derived)).as_py() or 0
            if ignored:
                notes.ignored_ids[declared.name] += ignored
        ids = derived if derived.null_count == 0 else pc.coalesce(derived, ids)
    if ids.null_count and isinstance(declared, EdgeType):
        notes.generated_edges[declared.name] += ids.null_count
    schema = row_schema(declared)
    if GIVEN in typed.columns:
        # What a patch leaves out is null so far, whatever the type requires.
        fields = [field.with_nullable(True) for field in schema]
        schema = pa.schema([*fields, pa.field(GIVEN, typed.columns[GIVEN].type)])
    columns = [ids if name == "id" else typed.columns[name] for name in schema.names]
    rows = pa.RecordBatch.from_arrays(columns, schema=schema)
    return _ValidRows(declared, rows, typed.positions)


def _joined(same: list[_ValidRows]) -> _ValidRows:
    if len(same) == 1:
        return same[0]
    positions = np.concatenate([valid.positions for valid in same])
    order = np.argsort(positions, kind="stable")
    table = pa.Table.from_batches([valid.rows for valid in same]).take(pa.array(order))
    (rows,) = table.combine_chunks().to_batches() or [same[0].rows]
    return _ValidRows(same[0].declared, rows, positions[order])


# -- rules --------------------------------------------------------------------------------------


def _without(typed: TypedRows, found: list[_RowProblem], parsed: ParsedRecords) -> TypedRows:
    """The rows with no problem; the others are reported. The sort keeps the order of rules."""
    if not found:
        return typed
    parsed.problems += (
        problem_at(int(typed.positions[row]), code, text, type=typed.declared.name, property=prop)
        for row, code, text, prop in sorted(found, key=lambda problem: problem[0])
    )
    good = np.ones(len(typed.positions), np.bool_)
    good[[row for row, *_ in found]] = False
    return typed.where(good)


def _violations(typed: TypedRows) -> Iterator[_RowProblem]:
    declared, columns = typed.declared, typed.columns
    misfits = {(m.row, m.property) for m in typed.misfits}
    if isinstance(declared, EdgeType):
        for endpoint, key in (("src", "from"), ("dst", "to")):
            for row in _nulls(columns[endpoint]):
                if (row, key) not in misfits:
                    yield row, "missing_endpoint", f"edge missing '{key}'", None
    for misfit in typed.misfits:
        yield misfit.row, "bad_value", misfit.message, misfit.property
    keys = declared.key or () if isinstance(declared, NodeType) else ()
    for name in keys:
        for row in _nulls(columns[name]):
            if (row, name) not in misfits:
                yield row, "bad_key", f"missing @key property '{name}'", name
    for violation in find_nulls(declared, columns).missing:
        if violation.property in keys or (violation.row, violation.property) in misfits:
            continue
        if GIVEN not in columns or _is_cleared(typed, violation):
            yield violation.row, violation.code, violation.message, violation.property
    for violation in value_violations(declared, columns):
        if (violation.row, violation.property) not in misfits:
            yield violation.row, violation.code, violation.message, violation.property


def _is_cleared(typed: TypedRows, violation: Violation) -> bool:
    """Whether a patch has a null where none may be; what is absent may be in the stored row.

    A vector depends on a text, so only the whole row tells.
    """
    if typed.declared.properties[violation.property].embed_source is not None:
        return False
    return bool(typed.columns[GIVEN].field(violation.property)[violation.row].as_py())


def _nulls(column: pa.Array) -> list[int]:
    return rows_where(column.is_null()) if column.null_count else []


def _mismatches(typed: TypedRows, derived: pa.Array) -> Iterator[_RowProblem]:
    """Keyed nodes whose explicit id is not the one their key gives."""
    assert isinstance(typed.declared, NodeType)
    keys = ", ".join(typed.declared.key or ())
    different = dict(typed.odd_ids)
    if typed.ids.null_count < len(typed.ids):
        for row in rows_where(pc.fill_null(pc.not_equal(typed.ids, derived), False)):
            different[row] = typed.ids[row].as_py()
    for row, explicit in different.items():
        message = f"explicit id '{explicit}' that does not match @key property '{keys}'"
        yield row, "bad_key", message, None


def _refused_blobs(typed: TypedRows, allowed: BlobBases) -> Iterator[_RowProblem]:
    """Blobs that are kept where the graph may not keep any."""
    for name in sorted(typed.declared.blobs):
        uris = pc.struct_field(typed.columns[name], "uri")
        if uris.null_count == len(uris):
            continue
        distinct = pc.unique(uris.drop_null()).to_pylist()
        refused = pa.array([uri for uri in distinct if not allowed.allow(uri)], pa.utf8())
        for row in rows_where(pc.is_in(uris, value_set=refused)):
            yield row, "bad_value", str(ExternalBlobRefused(name, uris[row].as_py())), name


# -- locations and generated ids ----------------------------------------------------------------


def _located(
    valid: _ValidRows, source: int, before: int, lines: Numbers | None, prefix: str
) -> pa.RecordBatch:
    rows, positions = valid.rows, valid.positions
    records = positions + (before + 1)
    count = rows.num_rows
    ids = rows.column(0)
    absent = np.zeros(count, np.bool_)
    if ids.null_count == count:
        absent[:] = True
        ids = generated_ids(prefix, records)
    elif ids.null_count:
        absent = ids.is_null().to_numpy(zero_copy_only=False)
        ids = pc.replace_with_mask(ids, pa.array(absent), generated_ids(prefix, records[absent]))
    columns = [
        ids,
        *rows.columns[1:],
        pa.array(np.full(count, source, np.int32)),
        pa.array(records),
        pa.nulls(count, pa.int64()) if lines is None else pa.array(lines[positions]),
        pa.array(absent),
    ]
    schema = pa.schema([*rows.schema, *LOCATION_FIELDS])
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def id_prefix(load_id: str, source: int) -> str:
    """What the generated ids of one source of a load begin with."""
    digest = hashlib.sha256(f"{source}:{load_id}".encode()).digest()
    number = int.from_bytes(digest[:11], "big")
    text = "".join(_ALPHABET[(number >> shift) & 31] for shift in range(85, -1, -5))
    if _ULID.fullmatch(load_id):
        return load_id[:_TIME_LENGTH] + text[_TIME_LENGTH:]
    return text


def generated_ids(prefix: str, records: Numbers) -> pa.Array:
    """One id per record number."""
    letters = np.empty((len(records), _ID_LENGTH), np.uint8)
    letters[:, :_PREFIX_LENGTH] = np.frombuffer(prefix.encode(), np.uint8)
    letters[:, _PREFIX_LENGTH:] = _LETTERS[(records[:, None] >> _NUMBER_SHIFTS) & 31]
    bounds = np.arange(0, (len(records) + 1) * _ID_LENGTH, _ID_LENGTH, dtype=np.int32)
    buffers = [None, pa.py_buffer(bounds), pa.py_buffer(letters)]
    return pa.Array.from_buffers(pa.utf8(), len(records), buffers)
