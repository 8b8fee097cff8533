"""A load from its sources to rows that can be committed: the kernels joined, in one process.

The record phase reads and judges every record; the set phase, when nothing was found or with
quarantine on the good records, judges them together. Nothing is written but scratch files.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from omnigraph.catalog.model import Catalog, EntityType
from omnigraph.diagnostics import shortened, with_hint
from omnigraph.errors import UnknownPropertiesRefused, UnknownProperty
from omnigraph.limits import MAX_LOAD_ERRORS
from omnigraph.load.patch import patched
from omnigraph.load.quarantine import BadRecord, set_aside, split_rows
from omnigraph.load.reading import RowStore, read_sources
from omnigraph.load.record_validation import PLACE_COLUMNS, placed_schema
from omnigraph.load.records import Finding, FindingLog, Key, UnknownProperties, in_order
from omnigraph.load.set_validation import CommittedRows, LoadMode, collapse, judge_set
from omnigraph.load.sources import JsonFile, JsonText, Source
from omnigraph.load.splits import Piece
from omnigraph.progress import SILENT, Progress
from omnigraph.rows.bindings import bound_schema
from omnigraph.rows.blob_bases import NO_BASES, BlobBases


@dataclass(frozen=True, slots=True)
class LoadWarning:
    """Something a load put up with; `count` says in how many records."""

    code: str
    message: str
    count: int


@dataclass(frozen=True, slots=True)
class LoadedType:
    """The rows of one type, ready to be staged.

    `rows_loaded` counts input rows; fewer rows are staged when several of them were one edge.
    `places` says of each row which record it was. Vectors of texts are not computed yet; rows of a
    patch have the bindings of those they keep.
    """

    declared: EntityType
    rows: pa.Table
    rows_loaded: int
    places: pa.Table


@dataclass(frozen=True, slots=True)
class PreparedLoad:
    """A load nothing is wrong with, apart from the records it set aside."""

    mode: LoadMode
    load_id: str
    sources: tuple[str, ...]
    records: int
    types: Mapping[str, LoadedType]
    warnings: tuple[LoadWarning, ...]
    quarantined: tuple[BadRecord, ...]


def prepare_load(
    sources: Sequence[Source],
    catalog: Catalog,
    mode: LoadMode,
    load_id: str,
    committed: CommittedRows,
    *,
    store: RowStore,
    blobs: BlobBases = NO_BASES,
    quarantine: bool = False,
    strict: bool = False,
    max_errors: int = MAX_LOAD_ERRORS,
    threads: int | None = None,
    progress: Progress = SILENT,
) -> PreparedLoad:
    """Read and judge a load. Raises `LoadError` with every error when it cannot be made.

    A strict one raises `UnknownPropertiesRefused` for what no property takes. Rows go through `store`, which has to stay open as long as the result is used.
    """
    names = [source.name for source in sources]
    log = FindingLog(None if quarantine else max_errors)
    records, notes = 0, Notes(catalog, mode)
    threads = threads or min(os.cpu_count() or 1, 8)
    progress.stage("read")
    reading = read_sources(
        sources, catalog, load_id, threads=threads, blobs=blobs, patches=mode == "patch"
    )
    for piece in reading:
        records += piece.records
        progress.advance(piece.records)
        log.add(piece.findings)
        notes.add(piece.unknown_properties, piece.ignored_ids, piece.unnamed_edges)
        if quarantine or not log.total:
            for placed in piece.rows:
                store.add(placed.declared, placed.rows)
    if log.total and not quarantine:
        raise log.error(names, records)
    if strict:
        notes.refuse_unknown(sources)
    tables = dict(store.tables())
    if mode == "overwrite":
        tables |= emptied(sources, tables)
    progress.stage("check", records)
    judged = judge_together(catalog, tables, mode, committed, names, quarantine=quarantine)
    progress.advance(records)
    given = {key: rows.num_rows for key, rows in judged.tables.items()}
    tables = judged.whole
    findings = in_order([*log.findings, *judged.findings])
    if findings and not (quarantine and tables):
        log = FindingLog(max_errors)
        log.add(findings)
        raise log.error(names, records)
    types = {key: _loaded(catalog.entity(key), rows, given[key]) for key, rows in tables.items()}
    return PreparedLoad(
        mode=mode,
        load_id=load_id,
        sources=tuple(names),
        records=records,
        types=types,
        warnings=notes.warnings(),
        quarantined=set_aside([Piece(n, s) for n, s in enumerate(sources)], names, findings),
    )


@dataclass(frozen=True, slots=True)
class JudgedTogether:
    """What the set phase found, the input rows it leaves, and the whole rows that these become."""

    findings: list[Finding]
    tables: dict[str, pa.Table]
    whole: dict[str, pa.Table]


def judge_together(
    catalog: Catalog,
    tables: Mapping[str, pa.Table],
    mode: LoadMode,
    committed: CommittedRows,
    names: Sequence[str],
    *,
    quarantine: bool,
) -> JudgedTogether:
    """The set phase on placed rows; with quarantine, until nothing is wrong with what is left.

    Rows need the columns that tell them apart and no others; those of a patch need all.
    """
    findings: list[Finding] = []
    left = dict(tables)
    while True:
        whole, found = whole_rows(catalog, left, mode, committed)
        found = found or judge_set(catalog, whole, mode, committed, names)
        if not found:
            break
        findings += found
        if not quarantine:
            break
        # What is left may have leant on what is gone, so it is judged again.
        bad = {place for finding in found for place in finding.bad_records()}
        parts = {key: split_rows(rows, bad)[0] for key, rows in left.items()}
        left = {k: rows for k, rows in parts.items() if rows.num_rows or not left[k].num_rows}
    return JudgedTogether(findings, left, whole)


def whole_rows(
    catalog: Catalog, tables: Mapping[str, pa.Table], mode: LoadMode, committed: CommittedRows
) -> tuple[dict[str, pa.Table], list[Finding]]:
    """The rows that input rows become by themselves, and what is wrong with these."""
    if mode != "patch":
        return {key: collapse(catalog.entity(key), rows, mode) for key, rows in tables.items()}, []
    whole: dict[str, pa.Table] = {}
    findings: list[Finding] = []
    for key, rows in tables.items():
        whole[key], found = patched(catalog.entity(key), rows, committed)
        findings += found
    return whole, in_order(findings)


class Notes:
    """What the record phase put up with."""

    def __init__(self, catalog: Catalog, mode: LoadMode) -> None:
        self._catalog = catalog
        self._mode = mode
        self.unknown = UnknownProperties()
        self.ignored: Counter[str] = Counter()
        self.unnamed: Counter[str] = Counter()

    def add(self, unknown: UnknownProperties, ignored: Counter[str], unnamed: Counter[str]) -> None:
        self.unknown.update(unknown)
        self.ignored.update(ignored)
        self.unnamed.update(unnamed)

    def warnings(self) -> tuple[LoadWarning, ...]:
        unknown = sorted(self.unknown.counts.items())
        found = [
            LoadWarning("unknown_property", self._unknown(key), count)
            for key, count in unknown[:MAX_LOAD_ERRORS]
        ]
        more = unknown[MAX_LOAD_ERRORS:]
        if more:
            message = f"{len(more):,} more properties are unknown"
            count = sum(count for _, count in more)
            found.append(LoadWarning("unknown_property", message, count))
        for type_name, count in sorted(self.ignored.items()):
            message = f"{type_name} edges have derived ids; explicit ones were replaced"
            found.append(LoadWarning("explicit_edge_id_ignored", message, count))
        if self._mode in ("merge", "patch"):
            for type_name, count in sorted(self.unnamed.items()):
                message = edges_without_identity(type_name, count)
                found.append(LoadWarning("edge_without_identity", message, count))
        return tuple(found)

    def refuse_unknown(self, sources: Sequence[Source]) -> None:
        """Raises `UnknownPropertiesRefused` for keys of records and columns of tables without a property."""
        names = [source.name for source in sources]
        found = [
            UnknownProperty(
                type=key[0],
                property=key[1],
                message=self._unknown(key),
                records=count,
                first=tuple((names[source], record) for source, record in self.unknown.first[key]),
            )
            for key, count in sorted(self.unknown.counts.items())
        ]
        for source in sources:
            if not isinstance(source, JsonText | JsonFile):
                type_name = source.declared.name
                found += (
                    UnknownProperty(
                        type=type_name,
                        property=column,
                        message=self._unknown((type_name, column)),
                        source=source.name,
                    )
                    for column in source.plan.unused
                )
        if found:
            raise UnknownPropertiesRefused(found)

    def _unknown(self, key: Key) -> str:
        type_name, name = key
        declared = self._catalog.nodes.get(type_name) or self._catalog.edges[type_name]
        problem = f"{type_name} has no property '{shortened(name)}'"
        return with_hint(problem, name, declared.properties)


def edges_without_identity(type_name: str, count: int) -> str:
    """What is said about edges that nothing tells from those of the next load."""
    what = "edge has" if count == 1 else "edges have"
    again = "loading it again adds it again" if count == 1 else "loading them again adds them again"
    return f"{count} {type_name} {what} neither an id nor an identity; {again}"


def emptied(sources: Sequence[Source], present: Collection[str]) -> dict[str, pa.Table]:
    """Types that tables without a row were given for; nothing of them is left by an overwrite.

    Rows that were there and are bad are no reason to empty a type.
    """
    named = [source for source in sources if not isinstance(source, JsonText | JsonFile)]
    absent = {
        s.declared.table_key: s.declared for s in named if s.declared.table_key not in present
    }
    for source in named:
        if source.declared.table_key in absent and source.has_rows():
            del absent[source.declared.table_key]
    return {key: placed_schema(declared).empty_table() for key, declared in absent.items()}


def _loaded(declared: EntityType, rows: pa.Table, input_rows: int) -> LoadedType:
    names = [name for name in bound_schema(declared).names if name in rows.column_names]
    return LoadedType(declared, rows.select(names), input_rows, rows.select(PLACE_COLUMNS))
