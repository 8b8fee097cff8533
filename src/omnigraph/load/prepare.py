"""A load from its sources to rows that can be committed: the kernels joined, in one process.

The record phase reads and judges every record; the set phase, when nothing was found or with
quarantine on the good records, judges them together. Nothing is written but scratch files.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.catalog.model import Catalog, EntityType, NodeType
from omnigraph.limits import MAX_LOAD_ERRORS
from omnigraph.load.committed import CommittedRows
from omnigraph.load.findings import FindingLog, in_order
from omnigraph.load.placing import placed_schema
from omnigraph.load.quarantine import BadRecord, set_aside, split_rows
from omnigraph.load.reading import read_sources
from omnigraph.load.row_store import RowStore
from omnigraph.load.set_phase import LoadMode, collapse, judge_set
from omnigraph.load.sources import (
    Frame,
    ParquetFile,
    Source,
    TableSource,
    check_columns,
    table_columns,
)
from omnigraph.rows.checks import find_nulls
from omnigraph.rows.schema import row_schema


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
    `pending` holds, for each `@embed` vector, the rows that have text and no vector.
    """

    declared: EntityType
    rows: pa.Table
    rows_loaded: int
    pending: Mapping[str, npt.NDArray[np.int64]]


@dataclass(frozen=True, slots=True)
class PreparedLoad:
    """A load nothing is wrong with, apart from the records it set aside."""

    mode: LoadMode
    load_id: str
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
    quarantine: bool = False,
    max_errors: int = MAX_LOAD_ERRORS,
    threads: int | None = None,
) -> PreparedLoad:
    """Read and judge a load. Raises `LoadError` with every error when it cannot be made.

    Rows go through `store`, which has to stay open as long as the result is used.
    """
    for source in sources:
        if isinstance(source, ParquetFile | Frame):
            check_columns(source)
    names = [source.name for source in sources]
    log = FindingLog(None if quarantine else max_errors)
    records, notes = 0, _Notes()
    threads = threads or min(os.cpu_count() or 1, 8)
    for piece in read_sources(sources, catalog, load_id, threads=threads):
        records += piece.records
        log.add(piece.findings)
        notes.unknown.update(piece.unknown_properties)
        notes.ignored.update(piece.ignored_ids)
        if quarantine or not log.total:
            for placed in piece.rows:
                store.add(placed.declared, placed.rows)
    if log.total and not quarantine:
        raise log.error(names, records)
    findings = list(log.findings)
    tables = dict(store.tables())
    if mode == "overwrite":
        tables |= _emptied(sources, tables)
    while found := judge_set(catalog, _collapsed(catalog, tables, mode), mode, committed, names):
        findings += found
        if not quarantine:
            break
        # What is left may have leant on what is gone, so it is judged again.
        bad = {place for finding in found for place in finding.bad_records()}
        parts = {key: split_rows(rows, bad)[0] for key, rows in tables.items()}
        tables = {k: rows for k, rows in parts.items() if rows.num_rows or not tables[k].num_rows}
    findings = in_order(findings)
    if findings and not (quarantine and tables):
        log = FindingLog(max_errors)
        log.add(findings)
        raise log.error(names, records)
    types = {key: _loaded(catalog.entity(key), rows, mode) for key, rows in tables.items()}
    return PreparedLoad(
        mode=mode,
        load_id=load_id,
        records=records,
        types=types,
        warnings=notes.warnings(types),
        quarantined=set_aside(sources, findings),
    )


class _Notes:
    """What the record phase put up with."""

    def __init__(self) -> None:
        self.unknown: Counter[tuple[str, str]] = Counter()
        self.ignored: Counter[str] = Counter()

    def warnings(self, types: Mapping[str, LoadedType]) -> tuple[LoadWarning, ...]:
        found = [
            LoadWarning("unknown_property", f"{type_name} has no property '{key}'", count)
            for (type_name, key), count in sorted(self.unknown.items())
        ]
        for type_name, count in sorted(self.ignored.items()):
            message = f"{type_name} edges have derived ids; explicit ones were replaced"
            found.append(LoadWarning("explicit_edge_id_ignored", message, count))
        for loaded in types.values():
            for name, rows in sorted(loaded.pending.items()):
                message = f"{loaded.declared.name}.{name} has text but no vector"
                found.append(LoadWarning("embedding_pending", message, len(rows)))
        return tuple(found)


def _emptied(sources: Sequence[Source], tables: Mapping[str, pa.Table]) -> dict[str, pa.Table]:
    """Types that tables without a row were given for; nothing of them is left by an overwrite.

    Rows that were there and are bad are no reason to empty a type.
    """
    named = [source for source in sources if isinstance(source, ParquetFile | Frame)]
    absent = {s.declared.table_key: s.declared for s in named if s.declared.table_key not in tables}
    for source in named:
        if source.declared.table_key in absent and _has_rows(source):
            del absent[source.declared.table_key]
    return {key: placed_schema(declared).empty_table() for key, declared in absent.items()}


def _has_rows(source: TableSource) -> bool:
    return any(batch.num_rows for batch in source.batches(table_columns(source)))


def _collapsed(
    catalog: Catalog, tables: Mapping[str, pa.Table], mode: LoadMode
) -> dict[str, pa.Table]:
    return {key: collapse(catalog.entity(key), rows, mode) for key, rows in tables.items()}


def _loaded(declared: EntityType, rows: pa.Table, mode: LoadMode) -> LoadedType:
    kept = collapse(declared, rows, mode).select(row_schema(declared).names)
    return LoadedType(declared, kept, rows.num_rows, _pending(declared, kept))


def _pending(declared: EntityType, rows: pa.Table) -> dict[str, npt.NDArray[np.int64]]:
    if not isinstance(declared, NodeType) or not declared.embeds:
        return {}
    columns = dict(zip(rows.column_names, rows.columns, strict=True))
    return {
        name: np.flatnonzero(waiting.to_numpy()).astype(np.int64)
        for name, waiting in find_nulls(declared, columns).pending.items()
    }
