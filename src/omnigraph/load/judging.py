"""The record phase: typed rows to rows with ids, or everything that is wrong with a record.

Nothing here compares two rows. A row that has no id of its own gets one when it is placed in the
load (`omnigraph.load.placing`), because that id depends on the record's number.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.model import EdgeType, EntityType, NodeType
from omnigraph.load.given_keys import GIVEN
from omnigraph.load.typed_rows import Numbers, Problem, TypedRows
from omnigraph.rows.columns import row_schema
from omnigraph.rows.keys import derived_ids
from omnigraph.rows.validation import Violation, find_nulls, rows_where, value_violations

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
