"""Verify every row of a table version against every constraint of its type.

Rows are streamed once. Ids, unique tuples and endpoints are kept as 64-bit hashes. Where hashes collide,
the rows are read again and compared by value. Constraints and messages are those of writes.
Tests: tests/behaviour/test_verify.py.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.arrow import physical_schema
from omnigraph.catalog.constraints import (
    ValueRule,
    cardinality_problem,
    duplicate_tuple,
    group_text,
    identity_group,
    missing_endpoint,
    missing_value,
    tuple_text,
    unkeyable_column,
    unsupported_unique,
    value_rules,
)
from omnigraph.catalog.identity import embed_column
from omnigraph.catalog.model import EdgeType, EntityType, Group, Property
from omnigraph.errors import StoreCallFailed
from omnigraph.language.schema.ast import ENDPOINTS
from omnigraph.load.columns import convert_column
from omnigraph.maintenance.verify_report import Findings, Mask, ProblemKind
from omnigraph.progress import Progress
from omnigraph.rows.bindings import embedded_properties
from omnigraph.rows.blob_bases import BlobBases
from omnigraph.rows.columns import row_type
from omnigraph.rows.equality import Hashes, hashes_of_tuples
from omnigraph.rows.keys import comparable, derived_ids, tuple_values
from omnigraph.rows.validation import InvalidPattern, breaks, null_masks
from omnigraph.storage.blobs import stored_schema
from omnigraph.storage.file_checks import (
    find_problems,
    fragment_files,
    joined,
    last_blobs,
    read_last_byte,
)
from omnigraph.storage.scan import ROW_ADDRESS
from omnigraph.storage.table import Table
from omnigraph.versioning.snapshot_rows import property_columns

_RULES: Final = {
    "enum": ProblemKind.ENUM,
    "range": ProblemKind.RANGE,
    "check": ProblemKind.CHECK,
}
_NO_HASHES: Final = np.zeros(0, np.uint64)
_MAX_SHOWN_CHARS: Final = 60
"""Characters of a value in an example."""

Columns = dict[str, pa.Array]
"""Columns of a batch by property name, without those that the table lacks."""


@dataclass(slots=True)
class TableResult:
    """The findings of one table version, and the hashes that the check of endpoints needs."""

    findings: Findings
    rows: int = 0
    files: int = 0
    is_whole: bool = False
    """Whether all rows could be read."""
    ids: Hashes = field(default_factory=_NO_HASHES.copy)
    """The hashes of a node type's ids, sorted."""
    endpoints: dict[str, Hashes] = field(default_factory=dict)
    """The hashes of the distinct sources and destinations of an edge type, sorted."""
    fragments: Sequence[int] = ()
    """The numbers of readable fragments."""
    has_hashes: bool = True

    def release_hashes(self) -> None:
        """Free what only the check of endpoints needs."""
        self.ids, self.endpoints, self.has_hashes = _NO_HASHES, {}, False


class TableCheck:
    """Verifies one table version under one schema."""

    def __init__(
        self,
        declared: EntityType,
        table: Table,
        findings: Findings,
        progress: Progress,
        fragments: Sequence[int] | None = None,
        constants: Mapping[str, pa.Scalar] | None = None,
    ) -> None:
        """`fragments` are the numbers of readable fragments; all are tried by default. `constants` are
        the values of properties that the table does not have yet, the same in all rows.
        """
        self._declared = declared
        self._table = table
        self._findings = findings
        self._progress = progress
        self._stored = property_columns(declared, table.schema)
        known = declared.properties.keys() - self._stored.keys()
        self._constants = {n: value for n, value in (constants or {}).items() if n in known}
        every = (fragment.id for fragment in table.fragments())
        self._fragments = list(every if fragments is None else fragments)

    def run(self, recorded_rows: int) -> TableResult:
        """Verify files, columns and rows. `recorded_rows` is the row count in the manifest."""
        result = TableResult(self._findings)
        files = fragment_files(self._table)
        result.files = len(files)
        lost = set()
        for problem in find_problems(self._table, files):
            lost.add(problem.fragment_id)
            text = f"'{problem.address}' cannot be used: {problem.cause}"
            self._findings.add(ProblemKind.DAMAGED_FILE, text)
        self._fragments = [number for number in self._fragments if number not in lost]
        self._check_columns()
        if not self._has_identity():
            return result
        seen = self._read()
        result.rows, result.fragments = seen.rows, self._fragments
        result.is_whole = len(self._fragments) == len(self._table.fragments())
        if result.is_whole and seen.rows != recorded_rows:
            text = f"there are {seen.rows} rows, and the commit says {recorded_rows}"
            self._findings.add(ProblemKind.ROW_COUNT, text)
        self._check_repeated(seen)
        self._check_blobs(seen)
        if isinstance(self._declared, EdgeType):
            self._check_cardinality(self._declared, seen)
            result.endpoints = {end: np.unique(_together(seen.tuples[(end,)])) for end in ENDPOINTS}
        else:
            result.ids = np.sort(_together(seen.tuples[("id",)]))
        return result

    def check_rows(self) -> None:
        """Verify rows only. Raises `StoreCallFailed` if they cannot be read."""
        seen = _Seen(self._declared)
        for batch in self._batches(self._fragments):
            self._progress.advance(batch.num_rows)
            self._add(batch, seen)
        self._findings.take(seen.findings)
        self._check_unique(seen)
        if isinstance(self._declared, EdgeType):
            self._check_cardinality(self._declared, seen)

    # -- columns ----------------------------------------------------------------------------

    def _check_columns(self) -> None:
        wanted, found = stored_schema(physical_schema(self._declared)), self._table.schema
        # Tables of an older format get the columns for bindings with their first write.
        optional = {embed_column(p.prop_id) for p in embedded_properties(self._declared)}
        problems = []
        for column in wanted:
            if column.name not in found.names:
                if column.name not in optional:
                    problems.append(f"column '{column.name}' of type {column.type} is missing")
            elif found.field(column.name).type != column.type:
                kind = found.field(column.name).type
                problems.append(f"column '{column.name}' has type {kind}, not {column.type}")
        strange = [name for name in found.names if name not in wanted.names]
        problems += [f"column '{name}' belongs to no property" for name in strange]
        self._findings.extend(ProblemKind.COLUMNS, len(problems), problems)

    def _has_identity(self) -> bool:
        """Whether the id and endpoint columns exist."""
        names = ("id", *ENDPOINTS) if isinstance(self._declared, EdgeType) else ("id",)
        schema = self._table.schema
        return all(name in schema.names and schema.field(name).type == pa.utf8() for name in names)

    # -- reading ----------------------------------------------------------------------------

    def _read(self) -> _Seen:
        """Verify all readable rows; unreadable fragments are skipped from then on."""
        seen = _Seen(self._declared)
        try:
            for batch in self._batches(self._fragments):
                self._progress.advance(batch.num_rows)
                self._add(batch, seen)
        except StoreCallFailed:
            # Read fragment by fragment, from the start, to find the damaged one.
            seen = self._read_by_fragment()
        self._findings.take(seen.findings)
        return seen

    def _read_by_fragment(self) -> _Seen:
        seen, readable = _Seen(self._declared), []
        files = {fragment.id: fragment.files for fragment in self._table.fragments()}
        for number in self._fragments:
            try:
                batches = list(self._batches([number]))
            except StoreCallFailed as error:
                where = f"'{files[number]}' of '{self._table.lineage.uri}'"
                text = f"{where} cannot be read: {error.cause}"
                seen.findings.add(ProblemKind.DAMAGED_FILE, text)
                continue
            readable.append(number)
            for batch in batches:
                self._add(batch, seen)
        self._fragments = readable
        return seen

    def _batches(
        self, fragments: Collection[int], names: Sequence[str] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Rows of some fragments: the named columns, or all columns and row addresses."""
        if not fragments:
            return
        every = [*self._stored.values(), ROW_ADDRESS]
        wanted = every if names is None else [self._stored[n] for n in names if n in self._stored]
        is_all = len(fragments) == len(self._table.fragments())
        for batch in self._table.scan(wanted, fragment_ids=None if is_all else fragments):
            try:
                for column in batch.columns:
                    _dates_as_integers(column).validate(full=True)
            except pa.ArrowInvalid as error:
                raise StoreCallFailed("read", self._table.lineage.uri, str(error)) from error
            yield batch

    def _typed(
        self, batch: pa.RecordBatch, names: Collection[str]
    ) -> tuple[Columns, dict[str, Mask]]:
        """Columns by property name, with invalid values as null, and masks of invalid values."""
        columns: Columns = {}
        unfit: dict[str, Mask] = {}
        for name in names:
            if name in self._constants:
                columns[name] = pa.repeat(self._constants[name], batch.num_rows)
                continue
            column, misfits = batch.column(self._stored[name]), None
            prop = self._declared.properties.get(name)
            if prop is not None and not prop.type.is_blob:
                column, misfits = convert_column(column, prop.type)
            columns[name] = column
            if misfits is not None:
                unfit[name] = misfits
        return columns, unfit

    def _add(self, batch: pa.RecordBatch, seen: _Seen) -> None:
        seen.rows += batch.num_rows
        columns, unfit = self._typed(batch, [*self._stored, *self._constants])
        batch_check = _BatchCheck(self._declared, columns, seen.findings)
        for name, misfits in unfit.items():
            batch_check.unfit(self._declared.properties[name], batch[self._stored[name]], misfits)
        batch_check.nulls(unfit)
        for rule in value_rules(self._declared):
            batch_check.rule(rule)
        batch_check.ids()
        for group, hashes in seen.tuples.items():
            if columns.keys() >= set(group):
                hashes.append(_hashes(columns, group)[_complete(columns, group)])
        for name in sorted(self._declared.blobs & columns.keys()):
            last = last_blobs(columns[name], batch.column(ROW_ADDRESS))
            seen.blobs.setdefault(name, []).append(last)

    # -- uniqueness -------------------------------------------------------------------------

    def _check_repeated(self, seen: _Seen) -> None:
        self._repeated(("id",), seen, ProblemKind.DUPLICATE_ID)
        self._check_unique(seen)

    def _check_unique(self, seen: _Seen) -> None:
        unkeyable = unkeyable_column(self._declared)
        if unkeyable is not None:
            text = unsupported_unique(self._declared, *unkeyable)
            self._findings.extend(ProblemKind.DUPLICATE_VALUE, seen.rows, [text])
        for group in _unique_groups(self._declared):
            self._repeated(group, seen, ProblemKind.DUPLICATE_VALUE)

    def _repeated(self, group: Group, seen: _Seen, kind: ProblemKind) -> None:
        """Report rows that share a tuple. Rows with the same id count as duplicate ids only."""
        suspects = _repeated_hashes(_together(seen.tuples[group]))
        if not len(suspects):
            return
        rows = self._rows_with(group, suspects)
        keys = [f"key {number}" for number in range(len(group))]
        values = {k: comparable(rows.column(n)) for k, n in zip(keys, group, strict=True)}
        placed = pa.table({**values, "id": rows.column("id"), "row": np.arange(rows.num_rows)})
        if kind is ProblemKind.DUPLICATE_VALUE:
            placed = placed.group_by([*keys, "id"], use_threads=False).aggregate([("row", "min")])
            placed = placed.rename_columns([*keys, "id", "row"])
        counted = placed.group_by(keys, use_threads=False).aggregate(
            [("row", "count"), ("row", "min"), ("row", "max")]
        )
        shared = counted.filter(pc.greater(counted.column("row_count"), 1)).sort_by("row_min")
        where, ids = group_text(self._declared, group), rows.column("id").combine_chunks()

        def example(first: int, last: int) -> str:
            shown = tuple_text(self._declared, group, tuple_values(rows, group, first))
            return duplicate_tuple(where, shown, f"{_named(ids, first)} and {_named(ids, last)}")

        count = (pc.sum(shared.column("row_count")).as_py() or 0) - shared.num_rows
        pairs = zip(shared.column("row_min"), shared.column("row_max"), strict=True)
        self._findings.extend(kind, count, (example(a.as_py(), b.as_py()) for a, b in pairs))

    def _rows_with(self, group: Group, wanted: Hashes) -> pa.Table:
        """The ids and tuples of the rows whose tuple has one of the hashes."""
        names, found = list(dict.fromkeys(["id", *group])), []
        for batch in self._batches(self._fragments, names):
            columns, _ = self._typed(batch, names)
            kept = np.isin(_hashes(columns, group), wanted) & _complete(columns, group)
            found.append(pa.table(columns).filter(pa.array(kept)))
        return pa.concat_tables(found)

    # -- edges ------------------------------------------------------------------------------

    def _check_cardinality(self, edge: EdgeType, seen: _Seen) -> None:
        low, high = edge.cardinality.low, edge.cardinality.high
        if low <= 1 and high is None:
            return
        sources, counts = np.unique(_together(seen.tuples[("src",)]), return_counts=True)
        wrong = counts < low
        if high is not None:
            wrong |= counts > high
        if not wrong.any():
            return
        rows = self._rows_with(("src",), sources[wrong])
        counted = pc.value_counts(rows.column("src").combine_chunks())
        # Counting by value separates sources whose hashes collide.
        for source, count in zip(counted.field("values"), counted.field("counts"), strict=True):
            problem = cardinality_problem(edge, source.as_py(), count.as_py())
            if problem is not None:
                self._findings.add(ProblemKind.CARDINALITY, problem)

    def dangling(self, end: str, absent: Hashes) -> None:
        """Report edges whose endpoint has one of the hashes, which no node has."""
        edge = self._declared
        assert isinstance(edge, EdgeType)
        rows = self._rows_with((end,), absent)
        nodes, ids = rows.column(end), rows.column("id")
        self._findings.rows(
            ProblemKind.DANGLING_EDGE,
            np.ones(rows.num_rows, np.bool_),
            lambda row: (
                f"{missing_endpoint(edge, end, nodes[row].as_py())} (edge {_named(ids, row)})"
            ),
        )

    # -- blobs ------------------------------------------------------------------------------

    def _check_blobs(self, seen: _Seen) -> None:
        if not seen.blobs:
            return
        allowed = BlobBases.from_environment()
        for name, batches in sorted(seen.blobs.items()):
            for blob in joined(batches):
                # A URI that reads refuse is not checked either.
                if blob.uri is not None and not allowed.allow_reading(blob.uri):
                    continue
                try:
                    read_last_byte(self._table, self._stored[name], blob)
                except StoreCallFailed as error:
                    where = f"{self._declared.name}.{name}"
                    self._findings.add(ProblemKind.DAMAGED_BLOB, f"{where}: {error}")


class _Seen:
    """What is kept of a table's rows while they are read."""

    def __init__(self, declared: EntityType) -> None:
        self.findings = Findings()
        self.rows = 0
        groups = [("id",), *_unique_groups(declared)]
        if isinstance(declared, EdgeType):
            groups += [(end,) for end in ENDPOINTS]
        self.tuples: dict[Group, list[Hashes]] = {group: [] for group in groups}
        self.blobs: dict[str, list[pa.Table]] = {}


class _BatchCheck:
    """Validates the rows of one batch, each on its own."""

    def __init__(self, declared: EntityType, columns: Columns, findings: Findings) -> None:
        self._declared = declared
        self._columns = columns
        self._findings = findings
        self._ids = columns["id"]

    def unfit(self, prop: Property, stored: pa.Array, misfits: Mask) -> None:
        """Report values that are invalid for their type, such as infinite numbers."""
        where, kind = f"{self._declared.name}.{prop.name}", prop.type.display
        self._report(
            ProblemKind.UNFIT_VALUE,
            misfits,
            lambda row: f"{where} is {_shown(stored, row)}, which is not a value of {kind}",
        )

    def nulls(self, unfit: Mapping[str, Mask]) -> None:
        """Report nulls where a value is required, except values already reported as invalid."""
        declared, columns = self._declared, self._columns
        for name in ("id", *ENDPOINTS) if isinstance(declared, EdgeType) else ("id",):
            text = f"{declared.name} has no {name}"
            self._report(ProblemKind.MISSING_VALUE, _mask(columns[name].is_null()), text)
        absent = {
            name: pa.nulls(len(self._ids), row_type(prop.type))
            for name, prop in declared.properties.items()
            if name not in columns
        }
        for prop, empty, _waiting in null_masks(declared, columns | absent):
            if prop.type.nullable or prop.name in absent:
                continue
            mask = _mask(empty)
            if prop.name in unfit:
                mask &= ~unfit[prop.name]
            text = f"{declared.name}: {missing_value(prop)}"
            self._report(ProblemKind.MISSING_VALUE, mask, text)

    def rule(self, rule: ValueRule) -> None:
        """Report violations of an enum, `@range` or `@check`."""
        column = self._columns.get(rule.property)
        if column is None or not len(column):
            return
        name = self._declared.name
        try:
            broken = breaks(rule, column)
        except InvalidPattern as error:
            text = error.rule.unusable(name, str(error))
            self._findings.extend(ProblemKind.CHECK, len(column), [text])
            return
        self._report(
            _RULES[rule.code], _mask(broken), lambda row: rule.broken(name, column[row].as_py())
        )

    def ids(self) -> None:
        """Report ids that differ from those derived from key or identity."""
        group = identity_group(self._declared)
        if group is None or not self._columns.keys() >= set(group):
            return
        derived = derived_ids(self._declared, self._columns)
        assert derived is not None
        different = pc.fill_null(pc.not_equal(self._ids, derived), False)
        where = group_text(self._declared, group)
        self._report(
            ProblemKind.WRONG_ID,
            _mask(different),
            lambda row: f"the id by {where} is '{derived[row].as_py()}'",
        )

    def _report(self, kind: ProblemKind, mask: Mask, text: str | Callable[[int], str]) -> None:
        def example(row: int) -> str:
            return f"{text if isinstance(text, str) else text(row)} (id {_named(self._ids, row)})"

        self._findings.rows(kind, mask, example)


def _unique_groups(declared: EntityType) -> tuple[Group, ...]:
    """The unique tuples of a type, including the one that its ids derive from."""
    if unkeyable_column(declared) is not None:
        return ()
    own = identity_group(declared)
    return tuple(dict.fromkeys([*declared.unique_groups, *([] if own is None else [own])]))


# -- hashes and cells ---------------------------------------------------------------------------


def _hashes(columns: Columns, group: Group) -> Hashes:
    return hashes_of_tuples([columns[name] for name in group])


def _complete(columns: Columns, group: Group) -> Mask:
    """Rows whose tuple has no null; a null exempts its row."""
    complete = np.ones(len(columns[group[0]]), np.bool_)
    for name in group:
        if columns[name].null_count:
            complete &= _mask(columns[name].is_valid())
    return complete


def _together(hashes: Sequence[Hashes]) -> Hashes:
    return np.concatenate([_NO_HASHES, *hashes])


def _repeated_hashes(hashes: Hashes) -> Hashes:
    ordered = np.sort(hashes)
    return np.unique(ordered[1:][ordered[1:] == ordered[:-1]])


def missing_in(wanted: Hashes, there: Hashes) -> Hashes:
    """The hashes of one sorted array that are not in another."""
    if not len(there):
        return wanted
    positions = np.minimum(np.searchsorted(there, wanted), len(there) - 1)
    missing: Hashes = wanted[there[positions] != wanted]
    return missing


def _mask(mask: pa.Array) -> Mask:
    found: npt.NDArray[np.bool_] = mask.to_numpy(zero_copy_only=False)
    return found


def _dates_as_integers(column: pa.Array) -> pa.Array:
    """A date64 column as integers: Arrow validates whole days, but milliseconds are stored."""
    kind = column.type
    if pa.types.is_date64(kind):
        return column.view(pa.int64())
    if pa.types.is_list(kind) and pa.types.is_date64(kind.value_type):
        return column.view(pa.list_(kind.value_field.with_type(pa.int64())))
    return column


def _named(ids: pa.Array | pa.ChunkedArray, row: int) -> str:
    id = ids[row].as_py()
    return "missing" if id is None else f"'{id}'"


def _shown(column: pa.Array, row: int) -> str:
    try:
        text = str(column[row])
    except (ValueError, OverflowError):  # Python's dates end at the year 9999.
        text = "a time that has no text"
    return text if len(text) <= _MAX_SHOWN_CHARS else f"{text[:_MAX_SHOWN_CHARS]}…"
