"""Splits of a load to validated rows: every record by itself, then all of them together.

Both engines use these steps: inline on every source as one split, Spark on each split in a task. The
rows are validated together when no record was invalid, or with quarantine those that are left.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from omnigraph.catalog.model import Catalog, EntityType
from omnigraph.diagnostics import shortened, with_hint
from omnigraph.errors import LoadError, UnknownPropertiesRefused, UnknownProperty
from omnigraph.limits import MAX_LOAD_ERRORS
from omnigraph.load.quarantine import BadRecord, bad_records, without_records
from omnigraph.load.record_validation import LOCATION_COLUMNS, located_schema
from omnigraph.load.records import Key, Notes, Problem, ProblemLog, in_order
from omnigraph.load.set_validation import CommittedRows, LoadMode, collapse, patched, validate_set
from omnigraph.load.sources import Source, has_rows
from omnigraph.load.splits import RowStore, Split, read_split, whole_splits
from omnigraph.progress import SILENT, Progress
from omnigraph.rows.bindings import bound_schema
from omnigraph.rows.blob_bases import NO_BASES, BlobBases
from omnigraph.versioning.commits import Warning

_MAX_THREADS = 8
_MAX_NAMED_UNKNOWN = 8
"""Unknown properties that the error of a load names."""


@dataclass(frozen=True, slots=True)
class LoadJob:
    """What reading and validating any split of a load needs. It is sent to tasks as it is."""

    catalog: Catalog
    mode: LoadMode
    load_id: str
    names: tuple[str, ...]
    """Those of the sources."""
    committed: CommittedRows
    quarantine: bool = False
    max_errors: int = MAX_LOAD_ERRORS
    blobs: BlobBases = NO_BASES

    def new_log(self) -> ProblemLog:
        """A log of the record phase; quarantine needs all problems, an error the first ones."""
        return ProblemLog(None if self.quarantine else self.max_errors)

    def refusal(self, problems: Sequence[Problem], records: int) -> LoadError:
        """The error of a load of that many records."""
        return ProblemLog(self.max_errors, problems).error(self.names, records)


@dataclass(slots=True)
class SplitResult:
    """What reading one split, or several in order, came to."""

    log: ProblemLog
    records: int = 0
    rows: Counter[str] = field(default_factory=Counter)
    """Valid rows by table key."""
    notes: Notes = field(default_factory=Notes)

    def update(self, other: SplitResult) -> None:
        """Add the result of the next split."""
        self.log.update(other.log)
        self.records += other.records
        self.rows.update(other.rows)
        self.notes.update(other.notes)


@dataclass(frozen=True, slots=True)
class LoadedType:
    """The rows of one type, ready to be staged.

    `rows_loaded` counts input rows; fewer rows are staged when several of them were one edge.
    `locations` says of each row which record it was. Vectors of texts are not computed yet; rows of
    a patch have the bindings of those they keep.
    """

    declared: EntityType
    rows: pa.Table
    rows_loaded: int
    locations: pa.Table


@dataclass(frozen=True, slots=True)
class ValidatedLoad:
    """A load without problems, apart from those of quarantined records."""

    mode: LoadMode
    records: int
    types: Mapping[str, LoadedType]
    warnings: tuple[Warning, ...]
    quarantined: tuple[BadRecord, ...]


def validate_load(
    job: LoadJob,
    sources: Sequence[Source],
    store: RowStore,
    *,
    strict: bool = False,
    threads: int | None = None,
    progress: Progress = SILENT,
) -> ValidatedLoad:
    """Read and validate a load in this process. Raises `LoadError` with every problem.

    A strict one raises `UnknownPropertiesRefused` for keys without a property. Rows go through
    `store`, which has to stay open as long as the result is used.
    """
    result, splits = SplitResult(job.new_log()), whole_splits(sources)
    progress.stage("read")
    for split in splits:
        collect_rows(job, split, store, result, threads=threads, progress=progress)
    if result.log.total and not job.quarantine:
        raise refusal_of_records(job, result)
    if strict:
        refuse_unknown(job.catalog, result.notes, sources)
    tables = store.tables()
    if job.mode == "overwrite":
        tables |= emptied_types(sources, tables)
    progress.stage("check", result.records)
    problems, left, whole = validate_together(job, tables)
    progress.advance(result.records)
    problems = in_order([*result.log.problems, *problems])
    if problems and not (job.quarantine and whole):
        raise job.refusal(problems, result.records)
    return ValidatedLoad(
        job.mode,
        result.records,
        {
            key: loaded_type(job.catalog.entity(key), rows, left[key].num_rows)
            for key, rows in whole.items()
        },
        note_warnings(job, result.notes),
        bad_records(splits, job.names, problems),
    )


def collect_rows(
    job: LoadJob,
    split: Split,
    store: RowStore,
    result: SplitResult,
    *,
    threads: int | None,
    progress: Progress = SILENT,
) -> None:
    """Read and validate the records of a split; rows are kept while the load can still be made."""
    threads = threads or min(os.cpu_count() or 1, _MAX_THREADS)
    patches = job.mode == "patch"
    for valid in read_split(
        split, job.catalog, job.load_id, threads=threads, blobs=job.blobs, patches=patches
    ):
        result.records += valid.count
        progress.advance(valid.count)
        result.log.add(valid.problems)
        result.notes.update(valid.notes)
        result.rows.update({key: rows.num_rows for key, rows in valid.rows.items()})
        if job.quarantine or not result.log.total:
            store.add(valid.rows)


def loaded_type(declared: EntityType, rows: pa.Table, input_rows: int) -> LoadedType:
    """Located rows of a type as they are staged."""
    names = [name for name in bound_schema(declared).names if name in rows.column_names]
    return LoadedType(declared, rows.select(names), input_rows, rows.select(LOCATION_COLUMNS))


# -- together -----------------------------------------------------------------------------------


def validate_together(
    job: LoadJob, tables: Mapping[str, pa.Table], absent: Mapping[str, pa.Array] | None = None
) -> tuple[list[Problem], dict[str, pa.Table], dict[str, pa.Table]]:
    """The problems of located rows together, the input rows left, and the whole rows these become.

    With quarantine, rows are validated until nothing is wrong with what is left. Rows need the
    columns that distinguish them and no others; those of a patch need all. `absent` are endpoints
    that no node has, if the rows are not all of a load.
    """
    problems: list[Problem] = []
    left = dict(tables)
    while True:
        whole, found = whole_rows(job, left)
        found = found or validate_set(
            job.catalog, whole, job.mode, job.committed, job.names, absent
        )
        problems += found
        if not found or not job.quarantine:
            return problems, left, whole
        # What is left may have depended on what is gone.
        bad = {location for problem in found for location in problem.bad_records()}
        parts = {key: without_records(rows, bad) for key, rows in left.items()}
        left = {k: rows for k, rows in parts.items() if rows.num_rows or not left[k].num_rows}


def whole_rows(
    job: LoadJob, tables: Mapping[str, pa.Table]
) -> tuple[dict[str, pa.Table], list[Problem]]:
    """The rows that input rows become by themselves, and their problems."""
    catalog = job.catalog
    if job.mode != "patch":
        return {k: collapse(catalog.entity(k), rows, job.mode) for k, rows in tables.items()}, []
    whole: dict[str, pa.Table] = {}
    problems: list[Problem] = []
    for key, rows in tables.items():
        whole[key], found = patched(catalog.entity(key), rows, job.committed)
        problems += found
    return whole, in_order(problems)


def emptied_types(sources: Sequence[Source], present: Collection[str]) -> dict[str, pa.Table]:
    """Types that an overwrite empties: tables without a row were given for them.

    Invalid rows do not empty a type.
    """
    planned = [(source, source.plan.declared) for source in sources if source.plan is not None]
    absent = {type.table_key: type for _, type in planned if type.table_key not in present}
    for source, declared in planned:
        if declared.table_key in absent and has_rows(source):
            del absent[declared.table_key]
    return {key: located_schema(declared).empty_table() for key, declared in absent.items()}


# -- notes --------------------------------------------------------------------------------------


def note_warnings(job: LoadJob, notes: Notes) -> tuple[Warning, ...]:
    """What the record phase accepted and reports."""
    unknown = sorted(notes.unknown.items())
    found = [
        Warning("unknown_property", _unknown(job.catalog, key), count)
        for key, count in unknown[:MAX_LOAD_ERRORS]
    ]
    more = unknown[MAX_LOAD_ERRORS:]
    if more:
        message = f"{len(more):,} more properties are unknown"
        found.append(Warning("unknown_property", message, sum(count for _, count in more)))
    for type_name, count in sorted(notes.ignored_ids.items()):
        message = f"{type_name} edges have derived ids; explicit ones were replaced"
        found.append(Warning("explicit_edge_id_ignored", message, count))
    if job.mode in ("merge", "patch"):
        for type_name, count in sorted(notes.generated_edges.items()):
            message = edges_without_identity(type_name, count)
            found.append(Warning("edge_without_identity", message, count))
    return tuple(found)


def refusal_of_records(job: LoadJob, result: SplitResult) -> LoadError:
    """The error of the record phase. A misspelt property looks like a missing value, so both are named."""
    lacking = {one.type for one in result.log.problems if one.code == "missing_value"}
    ignored = [
        _unknown(job.catalog, key) for key in sorted(result.notes.unknown) if key[0] in lacking
    ]
    return result.log.error(job.names, result.records, ignored[:_MAX_NAMED_UNKNOWN])


def refuse_unknown(catalog: Catalog, notes: Notes, sources: Sequence[Source]) -> None:
    """Raise `UnknownPropertiesRefused` for keys of records and columns of tables without a property."""
    names = [source.name for source in sources]
    found = [
        UnknownProperty(
            type=key[0],
            property=key[1],
            message=_unknown(catalog, key),
            records=count,
            first=tuple((names[source], record) for source, record in notes.first[key]),
        )
        for key, count in sorted(notes.unknown.items())
    ]
    for source in sources:
        if source.plan is not None:
            type_name = source.plan.declared.name
            found += (
                UnknownProperty(
                    type=type_name,
                    property=column,
                    message=_unknown(catalog, (type_name, column)),
                    source=source.name,
                )
                for column in source.plan.unused
            )
    if found:
        raise UnknownPropertiesRefused(found)


def _unknown(catalog: Catalog, key: Key) -> str:
    type_name, name = key
    declared = catalog.nodes.get(type_name) or catalog.edges[type_name]
    problem = f"{type_name} has no property '{shortened(name)}'"
    return with_hint(problem, name, declared.properties)


def edges_without_identity(type_name: str, count: int) -> str:
    """The warning about edges that a repeated load adds again."""
    what = "edge has" if count == 1 else "edges have"
    again = "loading it again adds it again" if count == 1 else "loading them again adds them again"
    return f"{count} {type_name} {what} neither an id nor an identity; {again}"
