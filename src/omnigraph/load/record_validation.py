"""The record phase: typed rows to rows with ids, or everything that is wrong with a record.

Nothing here compares two rows. A row that has no id of its own gets one when it is placed in the
load (`omnigraph.load.record_validation`), because that id depends on the record's number.

MERGED: Records with blobs that are kept where the graph may not keep any. | Ids for rows that bring none: 26 characters in the form of a ULID, the same on every attempt. | Rows get their place in the load: source, record number, line, and an id if they have none.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.model import EdgeType, EntityType, NodeType
from omnigraph.errors import ExternalBlobRefused
from omnigraph.load.records import GIVEN, Numbers, Problem, TypedRows
from omnigraph.rows.blob_bases import BlobBases
from omnigraph.rows.checks import Violation, find_nulls, rows_where, value_violations
from omnigraph.rows.identity import derived_ids
from omnigraph.rows.schema import row_schema

Mask = npt.NDArray[np.bool_]
_Blame = tuple[int, str, str, str | None]
"""Row, code, message, property."""


@dataclass(frozen=True, slots=True)
class JudgedRows:
    """Rows that are fine by themselves; the id is null where one has to be made.

    `ignored_ids` counts explicit ids that gave way to derived ones.
    """

    declared: EntityType
    rows: pa.RecordBatch
    positions: Numbers
    ignored_ids: int


def judge_rows(typed: TypedRows) -> tuple[JudgedRows, list[Problem]]:
    """The good rows, and the problems of all others in order of position."""
    blames = list(_blames(typed))
    if blames:
        typed, problems = _without(typed, blames)
    else:
        problems = []
    derived = derived_ids(typed.declared, typed.columns)
    if isinstance(typed.declared, NodeType) and derived is not None:
        mismatches = list(_mismatches(typed, derived))
        if mismatches:
            typed, more = _without(typed, mismatches)
            problems += more
            derived = derived_ids(typed.declared, typed.columns)
    problems.sort(key=lambda p: p.position)
    return _finished(typed, derived), problems


def _finished(typed: TypedRows, derived: pa.Array | None) -> JudgedRows:
    declared = typed.declared
    ids, ignored = typed.ids, 0
    if derived is not None:
        if ids.null_count < len(ids):
            ignored = pc.sum(pc.not_equal(ids, derived)).as_py() or 0
        ids = derived if derived.null_count == 0 else pc.coalesce(derived, ids)
    schema = row_schema(declared)
    if GIVEN in typed.columns:
        # What a patch leaves out is null so far, whatever the type requires.
        fields = [field.with_nullable(True) for field in schema]
        schema = pa.schema([*fields, pa.field(GIVEN, typed.columns[GIVEN].type)])
    columns = [ids if name == "id" else typed.columns[name] for name in schema.names]
    rows = pa.RecordBatch.from_arrays(columns, schema=schema)
    return JudgedRows(declared, rows, typed.positions, int(ignored))


def _without(typed: TypedRows, blames: list[_Blame]) -> tuple[TypedRows, list[Problem]]:
    """The rows nobody blames, and the blames as problems. The sort keeps the order of rules."""
    name = typed.declared.name
    problems = [
        Problem(int(typed.positions[row]), code, message, name, prop)
        for row, code, message, prop in sorted(blames, key=lambda blame: blame[0])
    ]
    good = np.ones(len(typed.positions), np.bool_)
    good[[blame[0] for blame in blames]] = False
    kept = pa.array(good)
    moved = np.cumsum(good) - 1
    return (
        TypedRows(
            typed.declared,
            typed.positions[good],
            {name: column.filter(kept) for name, column in typed.columns.items()},
            typed.ids.filter(kept),
            odd_ids={int(moved[row]): text for row, text in typed.odd_ids.items() if good[row]},
        ),
        problems,
    )


def _blames(typed: TypedRows) -> Iterator[_Blame]:
    declared, columns = typed.declared, typed.columns
    misfits = {(m.row, m.property) for m in typed.misfits}
    if isinstance(declared, EdgeType):
        for end, key in (("src", "from"), ("dst", "to")):
            for row in _nulls(columns[end]):
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

    Of a vector only whole rows can tell, because it depends on a text.
    """
    if typed.declared.properties[violation.property].embed_source is not None:
        return False
    return bool(typed.columns[GIVEN].field(violation.property)[violation.row].as_py())


def _nulls(column: pa.Array) -> list[int]:
    return rows_where(column.is_null()) if column.null_count else []


def _mismatches(typed: TypedRows, derived: pa.Array) -> Iterator[_Blame]:
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


def refuse_outside(judged: JudgedRows, allowed: BlobBases) -> tuple[JudgedRows, list[Problem]]:
    """The rows all of whose blobs may be kept where they are, and the problems of the others."""
    bad = np.zeros(judged.rows.num_rows, np.bool_)
    problems = []
    for name in sorted(judged.declared.blobs):
        uris = pc.struct_field(judged.rows.column(name), "uri")
        if uris.null_count == len(uris):
            continue
        distinct = pc.unique(uris.drop_null()).to_pylist()
        refused = pa.array([uri for uri in distinct if not allowed.allow(uri)], pa.utf8())
        for row in np.flatnonzero(pc.is_in(uris, value_set=refused).to_numpy(zero_copy_only=False)):
            message = str(ExternalBlobRefused(name, uris[row].as_py()))
            position = int(judged.positions[row])
            problems.append(Problem(position, "bad_value", message, judged.declared.name, name))
            bad[row] = True
    if not problems:
        return judged, []
    kept = JudgedRows(
        judged.declared,
        judged.rows.filter(pa.array(~bad)),
        judged.positions[~bad],
        judged.ignored_ids,
    )
    return kept, problems


_ALPHABET: Final = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_LETTERS: Final = np.frombuffer(_ALPHABET.encode(), np.uint8)
_ULID: Final = re.compile(rf"[0-7][{_ALPHABET}]{{25}}")
_TIME_LENGTH: Final = 10
_PREFIX_LENGTH: Final = 18
_LENGTH: Final = 26
_NUMBER_SHIFTS: Final = np.arange(5 * (_LENGTH - _PREFIX_LENGTH - 1), -1, -5, dtype=np.int64)


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
    letters = np.empty((len(records), _LENGTH), np.uint8)
    letters[:, :_PREFIX_LENGTH] = np.frombuffer(prefix.encode(), np.uint8)
    letters[:, _PREFIX_LENGTH:] = _LETTERS[(records[:, None] >> _NUMBER_SHIFTS) & 31]
    bounds = np.arange(0, (len(records) + 1) * _LENGTH, _LENGTH, dtype=np.int32)
    buffers = [None, pa.py_buffer(bounds), pa.py_buffer(letters)]
    return pa.Array.from_buffers(pa.utf8(), len(records), buffers)


SOURCE: Final = "__source"
RECORD: Final = "__record"
LINE: Final = "__line"
GENERATED: Final = "__generated"
PLACE_COLUMNS: Final = [SOURCE, RECORD, LINE]
"""The columns that say which record a row was."""

PLACE_FIELDS: Final = (
    pa.field(SOURCE, pa.int32(), nullable=False),
    pa.field(RECORD, pa.int64(), nullable=False),
    pa.field(LINE, pa.int64()),
    pa.field(GENERATED, pa.bool_(), nullable=False),
)


def placed_schema(declared: EntityType) -> pa.Schema:
    """The columns of placed rows."""
    return pa.schema([*row_schema(declared), *PLACE_FIELDS])


def place_rows(
    judged: JudgedRows, source: int, before: int, lines: Numbers | None, prefix: str
) -> pa.RecordBatch:
    """The rows with their places; `before` records of the source come before position 0."""
    rows, positions = judged.rows, judged.positions
    records = positions + (before + 1)
    count = rows.num_rows
    ids = rows.column(0)
    absent = np.zeros(count, np.bool_)
    if ids.null_count == count:
        absent[:] = True
        ids = generated_ids(prefix, records)
    elif ids.null_count:
        absent = ids.is_null().to_numpy(zero_copy_only=False)
        made = generated_ids(prefix, records[absent])
        ids = pc.replace_with_mask(ids, pa.array(absent), made)
    line = pa.nulls(count, pa.int64()) if lines is None else pa.array(lines[positions])
    columns = [
        ids,
        *rows.columns[1:],
        pa.array(np.full(count, source, np.int32)),
        pa.array(records),
        line,
        pa.array(absent),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema([*rows.schema, *PLACE_FIELDS]))
