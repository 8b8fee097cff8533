"""Bulk load on an image: validate the records together, then take all of them or none.

Ids, uniqueness, endpoints and cardinality are validated on what the graph would hold. That happens only when
every record is fine on its own; with quarantine it is repeated with the records that are left until
all of them are good.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from omnigraph.catalog.model import EdgeType, EntityType, Group
from tests.support.model.image import Image
from tests.support.model.load_input import InputRow, LoadInput, derived_id
from tests.support.model.rules import (
    collisions,
    dangling_edges,
    group_text,
    identity_of,
    missing_ends,
    missing_values,
    pending_vectors,
    too_few,
    too_many,
    tuple_text,
    unkeyable,
)
from tests.support.model.values import Row, text_of
from tests.support.outcome import BadRecord, LoadError, ReceiptWarning, Refusal

Mode = Literal["overwrite", "append", "merge", "patch"]
Result = Mapping[str, Mapping[str, Row]]


@dataclass(frozen=True, slots=True)
class Loaded:
    """A load that can be committed."""

    image: Image
    touched: Mapping[str, frozenset[str]]
    rows_loaded: Mapping[str, int]
    warnings: tuple[ReceiptWarning, ...]
    quarantined: tuple[BadRecord, ...]


def load(
    image: Image,
    text: str,
    mode: Mode,
    ids: Iterator[str],
    max_errors: int,
    *,
    quarantine: bool,
    cascade: bool = False,
) -> Loaded:
    """The image after the load. Raises `Refusal` with every error when it cannot be made."""
    given = LoadInput(text, image.catalog, ids, patches=mode == "patch")
    rows, errors = given.rows, list(given.errors)
    while not errors or quarantine:
        whole = _whole(image, rows) if mode == "patch" else rows
        found = list(_lacking(whole)) if mode == "patch" else []
        found = found or list(_validate(image, whole, mode))
        if not found:
            break
        errors += found
        bad = {number for error in found for number in error.records}
        rows = [row for row in rows if row.record.number not in bad]
    errors.sort(key=lambda e: (e.record is None, e.record))
    if errors and (not quarantine or not rows):
        raise _refusal(errors, len(given.records), max_errors)
    whole = _whole(image, rows) if mode == "patch" else rows
    result = _result(image, whole, mode)
    left = _left_edges(image, rows, result)
    if left and not cascade:
        raise _left_behind(left)
    for edge, gone in left:
        for id in gone:
            del result[edge.table_key][id]
    touched = dict(_touched(image, rows, mode))
    touched.update((edge.table_key, frozenset(gone)) for edge, gone in left)
    return Loaded(
        image=Image(image.catalog, result),
        touched=touched,
        rows_loaded=dict(sorted(Counter(row.declared.table_key for row in rows).items())),
        warnings=(
            *given.warnings(),
            *(_unnamed_edges(given) if mode in ("merge", "patch") else ()),
            *pending_vectors((r.declared, r.row) for r in whole),
        ),
        quarantined=_set_aside(given, errors),
    )


def _whole(image: Image, rows: Sequence[InputRow]) -> list[InputRow]:
    """One row for each id: its records applied in their order, the first to the stored row."""
    whole: dict[tuple[str, str], InputRow] = {}
    for row in rows:
        key = row.declared.table_key
        earlier = whole.pop((key, row.id), None)
        before = image.tables[key].get(row.id) if earlier is None else earlier.row
        kept = {
            name: value
            for name, value in (before or {}).items()
            if name in row.declared.properties and name not in row.given
        }
        # In the place of its last record.
        whole[key, row.id] = replace(row, row={**row.row, **kept})
    return list(whole.values())


def _lacking(rows: Sequence[InputRow]) -> Iterator[LoadError]:
    """Values that new rows lack, and edges whose ids are not those of their tuples."""
    for row in rows:
        for violation in missing_values(row.declared, row.row):
            error = _error(row, violation.code, violation.message)
            yield replace(error, property=violation.property)
        derived = derived_id(row.declared, row.row)
        if derived is not None and derived != row.id:
            where = group_text(row.declared, _told_apart_by(row))
            yield _error(row, "bad_key", f"id '{row.id}' is not that of its {where}")


def _unnamed_edges(given: LoadInput) -> Iterator[ReceiptWarning]:
    for name, count in sorted(given.unnamed_edges.items()):
        what = f"{count} {name} edges have" if count > 1 else f"1 {name} edge has"
        them = "them" if count > 1 else "it"
        message = f"{what} neither an id nor an identity; loading {them} again adds {them} again"
        yield ReceiptWarning("edge_without_identity", message, count)


def _left_edges(
    image: Image, rows: Sequence[InputRow], result: Result
) -> list[tuple[EdgeType, list[str]]]:
    """Edges of types that were not loaded, at nodes that are there no more. An overwrite has such."""
    loaded = {row.declared.table_key for row in rows}
    found = []
    for edge in image.catalog.edges.values():
        if edge.table_key not in loaded:
            gone = dangling_edges(edge, image.tables, result)
            if gone:
                found.append((edge, gone))
    return found


def _result(image: Image, rows: Sequence[InputRow], mode: Mode) -> dict[str, dict[str, Row]]:
    """The tables with the input in them; of two rows with one id the last one counts."""
    tables = image.working_copy()
    if mode == "overwrite":
        tables.update({row.declared.table_key: {} for row in rows})
    for row in rows:
        tables[row.declared.table_key][row.id] = row.row
    return tables


def _touched(image: Image, rows: Sequence[InputRow], mode: Mode) -> Mapping[str, frozenset[str]]:
    touched: defaultdict[str, set[str]] = defaultdict(set)
    for row in rows:
        key = row.declared.table_key
        touched[key].add(row.id)
        if mode == "overwrite":
            touched[key].update(image.tables[key])
    return {key: frozenset(ids) for key, ids in touched.items()}


# -- validating the set ----------------------------------------------------------------------------


def _validate(image: Image, rows: Sequence[InputRow], mode: Mode) -> Iterator[LoadError]:
    if mode == "merge":
        rows = _collapse(rows)
    result = _result(image, rows, mode)
    by_type: dict[str, list[InputRow]] = {}
    for row in rows:
        by_type.setdefault(row.declared.table_key, []).append(row)
    for key, same_type in by_type.items():
        declared = same_type[0].declared
        committed = {} if mode == "overwrite" else image.tables[key]
        yield from _validate_ids(declared, same_type, committed, mode)
        yield from _validate_unique(declared, same_type, committed)
        if isinstance(declared, EdgeType):
            yield from _validate_endpoints(declared, same_type, result)
            yield from _validate_cardinality(declared, same_type, result[key])


def _collapse(rows: Sequence[InputRow]) -> list[InputRow]:
    """Of several edges without identity that carry one explicit id, the last."""
    last = {(row.declared.table_key, row.id): row for row in rows}
    return [
        row
        for row in rows
        if not (isinstance(row.declared, EdgeType) and row.declared.identity is None)
        or last[row.declared.table_key, row.id] is row
    ]


def _validate_ids(
    declared: EntityType, rows: Sequence[InputRow], committed: Mapping[str, Row], mode: Mode
) -> Iterator[LoadError]:
    first: dict[str, InputRow] = {}
    for row in rows:
        earlier = first.setdefault(row.id, row)
        if earlier is not row:
            group = _told_apart_by(earlier)
            where = group_text(declared, group)
            yield _shared(row, earlier, where, tuple_text(declared, group, earlier.row))
        elif mode == "append" and row.id in committed:
            yield _error(row, "exists", f"id '{row.id}' already exists in {declared.name}")


def _told_apart_by(row: InputRow) -> Group:
    """The columns that the id of a row is made of, or the id itself if it is not derived."""
    group = identity_of(row.declared)
    return ("id",) if group is None or any(row.row[name] is None for name in group) else group


def _validate_unique(
    declared: EntityType, rows: Sequence[InputRow], committed: Mapping[str, Row]
) -> Iterator[LoadError]:
    for violation in unkeyable(declared):
        yield _error_of_all(rows, "unique", violation.message)
        return
    replaced = {row.id for row in rows}
    kept = [row for key, row in committed.items() if key not in replaced]
    owner = {id(row.row): row for row in rows}
    for collision in collisions(declared, [*kept, *(row.row for row in rows)]):
        where = group_text(declared, collision.group)
        given = [owner[id(row)] for row in collision.rows if id(row) in owner]
        holder = next((row for row in collision.rows if id(row) not in owner), None)
        for row in given if holder else given[1:]:
            if holder is None:
                yield _shared(row, given[0], where, collision.tuple_text)
            else:
                message = f"@unique violation on {where}: value '{collision.tuple_text}'"
                message = f"{message} already belongs to '{text_of(holder, 'id')}'"
                yield _error(row, "unique", message)


def _validate_endpoints(
    edge: EdgeType, rows: Sequence[InputRow], result: Result
) -> Iterator[LoadError]:
    for row in rows:
        for _, message in missing_ends(edge, row.row, result):
            yield _error(row, "endpoint_not_found", message)


def _validate_cardinality(
    edge: EdgeType, rows: Sequence[InputRow], result: Mapping[str, Row]
) -> Iterator[LoadError]:
    for source in sorted({text_of(row.row, "src") for row in rows}):
        message = too_many(edge, result, source) or too_few(edge, result, source)
        if message:
            edges = [row for row in rows if row.row["src"] == source]
            yield _error_of_all(edges, "cardinality", message)


# -- errors -------------------------------------------------------------------------------------


def _error(row: InputRow, code: str, message: str) -> LoadError:
    return LoadError(
        code=code,
        message=message,
        record=row.record.number,
        line=row.record.line,
        records=(row.record.number,),
        type=row.declared.name,
        id=row.id,
    )


def _shared(row: InputRow, earlier: InputRow, where: str, shown: str) -> LoadError:
    numbers = (earlier.record.number, row.record.number)
    return LoadError(
        code="unique",
        message=f"@unique violation on {where}: value '{shown}' appears in records"
        f" {numbers[0]} and {numbers[1]}",
        record=row.record.number,
        line=row.record.line,
        records=numbers,
        type=row.declared.name,
        id=row.id,
    )


def _error_of_all(rows: Sequence[InputRow], code: str, message: str) -> LoadError:
    numbers = tuple(row.record.number for row in rows)
    return LoadError(
        code=code, message=message, record=None, records=numbers, type=rows[0].declared.name
    )


def _refusal(errors: Sequence[LoadError], records: int, max_errors: int) -> Refusal:
    bad = {number for error in errors for number in error.records}
    lines = [f"load failed: {len(bad)} bad records of {records}, nothing was loaded"]
    for error in errors[:max_errors]:
        place = "" if error.record is None else f"record {error.record}: "
        lines.append(f"  {place}{error.message}")
    if len(errors) > max_errors:
        lines.append(f"  … and {len(errors) - max_errors} more")
    return Refusal(
        "bad_request",
        "\n".join(lines),
        load_errors=tuple(errors[:max_errors]),
        load_errors_total=len(errors),
    )


def _left_behind(left: Sequence[tuple[EdgeType, Sequence[str]]]) -> Refusal:
    total = sum(len(gone) for _, gone in left)
    noun = "edge points" if total == 1 else "edges point"
    lines = [f"load failed: {total} {noun} to nodes that the overwrite removes"]
    for edge, gone in left:
        plural = "" if len(gone) == 1 else "s"
        more = ", …" if len(gone) > 5 else ""
        lines.append(f"  {edge.name}: {len(gone)} edge{plural}, {', '.join(gone[:5])}{more}")
    return Refusal("bad_request", "\n".join(lines))


def _set_aside(given: LoadInput, errors: Sequence[LoadError]) -> tuple[BadRecord, ...]:
    return tuple(
        BadRecord(record.number, record.line, record.raw, mine)
        for record in given.records
        if (mine := tuple(e for e in errors if record.number in e.records))
    )
