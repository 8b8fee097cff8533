"""What a task does with one piece of a load: read and judge its records, write its rows.

The kernels are those of a load in one process. A task commits nothing, returns its errors, and names
every file it wrote in its answer. The same piece gives the same rows on every attempt.
Tests: tests/spark.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.model import Catalog, EntityType
from omnigraph.embed.documents import DocumentVectors
from omnigraph.engine.write.columns import stored_rows
from omnigraph.engine.write.committed import SnapshotRows
from omnigraph.engine.write.load_vectors import embed_load
from omnigraph.errors import OmnigraphError
from omnigraph.faults import declare
from omnigraph.load import LoadedType, LoadMode, LoadWarning, PreparedLoad, RowStore
from omnigraph.load.findings import Finding, FindingLog, Place
from omnigraph.load.pieces import Piece, PieceSize, count_piece
from omnigraph.load.placing import GENERATED, PLACE_COLUMNS
from omnigraph.load.prepare import whole_rows
from omnigraph.load.quarantine import split_rows
from omnigraph.load.reading import read_piece
from omnigraph.load.screening import Glance, glance, keys_of, screened_columns
from omnigraph.load.typed_rows import UnknownProperties
from omnigraph.rows.bindings import bound_schema
from omnigraph.rows.blob_bases import NO_BASES, BlobBases
from omnigraph.spark.answers import Failed, returning
from omnigraph.spark.tasks import Sent
from omnigraph.storage.written import ShrunkFragments, WriteKind, WrittenRows, shrink, write_part

BEFORE_WRITE = declare("load.task_pre_write", "a task has read its piece and written nothing")
AFTER_WRITE = declare("load.task_post_write", "a task has written all its rows")

WRITE_KINDS: Mapping[LoadMode, WriteKind] = {
    "append": "append",
    "merge": "delta",
    "overwrite": "overwrite",
    "patch": "delta",
}


@dataclass(slots=True)
class PieceAnswer:
    """What became of one piece."""

    records: int = 0
    lines: int = 0
    findings: list[Finding] = field(default_factory=list)
    findings_total: int = 0
    bad_records: int = 0
    alike: Counter[tuple[int | None, str]] = field(default_factory=Counter)
    unknown: UnknownProperties = field(default_factory=UnknownProperties)
    ignored: Counter[str] = field(default_factory=Counter)
    unnamed: Counter[str] = field(default_factory=Counter)
    lacks: bool = False
    """Whether rows of a patch lack something, as far as this piece can tell."""
    combined: int = 0
    """Rows of a patch that became one with another."""
    rows: dict[str, int] = field(default_factory=dict)
    """Good rows by table key, as the record phase has them."""
    written: dict[str, WrittenRows] = field(default_factory=dict)
    warnings: tuple[LoadWarning, ...] = ()
    error: OmnigraphError | None = None


@dataclass(frozen=True, slots=True)
class PieceWork:
    """The work on all pieces of a load. It travels to the tasks as it is."""

    pieces: tuple[Piece, ...]
    names: tuple[str, ...]
    catalog: Catalog
    mode: LoadMode
    load_id: str
    committed: SnapshotRows
    keep: int | None
    """Findings told in full; None, with quarantine, for all of them and for going on."""
    bundles: tuple[tuple[int, ...], ...]
    """The pieces that one task screens, for each of the tasks."""
    buckets: int
    blobs: BlobBases = NO_BASES
    writes: bool = True
    dropped: Mapping[int, frozenset[Place]] = field(default_factory=dict)
    """By piece: records whose rows are left out."""

    def screen(self, bundle: int) -> Iterator[Sent | list[PieceAnswer]]:
        """Read the pieces of a bundle, send their keys to where they meet others, and write them."""
        answers: list[PieceAnswer] = []
        for number in self.bundles[bundle]:
            for found in self._screen(number):
                if isinstance(found, Sent):
                    yield found
                else:
                    answers.append(found)
        yield answers

    def _screen(self, number: int) -> Iterator[Sent | PieceAnswer]:
        answer = PieceAnswer()
        try:
            with RowStore() as store:
                tables = self._read(number, store, answer)
                for bucket, content in keys_of(self.catalog, tables, self.buckets):
                    yield Sent(bucket, content)
                if self.writes:
                    self._write(tables, answer)
        except OmnigraphError as error:
            answer.error = error
        yield answer

    def write(self, number: int) -> PieceAnswer:
        """Read a piece again and write it."""
        answer = PieceAnswer()
        try:
            with RowStore() as store:
                self._write(self._read(number, store, answer), answer)
        except OmnigraphError as error:
            answer.error = error
        return answer

    def show(self, number: int) -> dict[str, pa.Table] | Failed:
        """The rows of a piece by what tells them apart and where they stand in the load."""
        return returning(lambda: self._show(number))

    def ids(self, keys: Sequence[str], number: int) -> dict[str, pa.Array] | Failed:
        """The ids of the rows of a piece, of the given types."""
        return returning(lambda: self._ids(keys, number))

    def glance(self, bucket: int, contents: Iterator[bytes]) -> Glance | Failed:
        """Compare the keys in one bucket."""
        return returning(lambda: glance(self.catalog, self.mode, self.committed, contents))

    def shrink(
        self, places: Sequence[tuple[str, pa.Array]], number: int
    ) -> ShrunkFragments | Failed:
        """Take replaced rows out of one fragment; no other task has any of the same one."""
        key, addresses = places[number]
        table = self.committed.open(self.catalog.entity(key))
        return returning(lambda: shrink(table, addresses))

    # -- reading --------------------------------------------------------------------------------

    def _read(self, number: int, store: RowStore, answer: PieceAnswer) -> dict[str, pa.Table]:
        """The good rows of a piece by table key; none once a record is bad and nothing may be."""
        log = FindingLog(self.keep)
        piece = self.pieces[number]
        reading = read_piece(
            piece, self.catalog, self.load_id, threads=1, blobs=self.blobs,
            patches=self.mode == "patch",
        )  # fmt: skip
        for read in reading:
            answer.records += read.records
            log.add(read.findings)
            answer.unknown.update(read.unknown_properties)
            answer.ignored.update(read.ignored_ids)
            answer.unnamed.update(read.unnamed_edges)
            for placed in read.rows:
                key = placed.declared.table_key
                answer.rows[key] = answer.rows.get(key, 0) + placed.rows.num_rows
                if self.keep is None or not log.total:
                    store.add(placed.declared, placed.rows)
        answer.findings, answer.findings_total = log.findings, log.total
        answer.bad_records, answer.alike = log.bad_records, log.alike
        if log.total and self.keep is not None:
            return {}
        kept = self._kept(number, store.tables())
        return self._patched(kept, answer) if self.mode == "patch" else kept

    def _patched(self, tables: Mapping[str, pa.Table], answer: PieceAnswer) -> dict[str, pa.Table]:
        """Whole rows. Whether one lacks something, all records of its id have to say."""
        whole, found = whole_rows(self.catalog, tables, self.mode, self.committed)
        answer.lacks = bool(found)
        answer.combined = _count(tables) - _count(whole)
        return {} if found else whole

    def _kept(self, number: int, tables: Mapping[str, pa.Table]) -> dict[str, pa.Table]:
        bad = self.dropped.get(number)
        if not bad:
            return dict(tables)
        kept = {key: split_rows(rows, bad)[0] for key, rows in tables.items()}
        return {key: rows for key, rows in kept.items() if rows.num_rows}

    def _show(self, number: int) -> dict[str, pa.Table]:
        with RowStore() as store:
            tables = self._read(number, store, PieceAnswer())
            return {
                key: rows.select(
                    [*screened_columns(self.catalog.entity(key)), *PLACE_COLUMNS, GENERATED]
                )
                for key, rows in tables.items()
            }

    def _ids(self, keys: Sequence[str], number: int) -> dict[str, pa.Array]:
        with RowStore() as store:
            tables = self._read(number, store, PieceAnswer())
            return {key: tables[key].column("id").combine_chunks() for key in keys if key in tables}

    # -- writing --------------------------------------------------------------------------------

    def _write(self, tables: Mapping[str, pa.Table], answer: PieceAnswer) -> None:
        if self.mode == "merge" and any(map(_repeats_ids, tables.values())):
            # Such a piece is refused, or written again without the rows that do not count.
            return
        types = {key: _loaded(self.catalog.entity(key), rows) for key, rows in tables.items()}
        prepared = PreparedLoad(
            mode=self.mode,
            load_id=self.load_id,
            sources=self.names,
            records=answer.records,
            types=types,
            warnings=(),
            quarantined=(),
        )
        limit = max(answer.records, 1) if self.keep is None else self.keep
        prepared = embed_load(prepared, self.committed, DocumentVectors(), limit)
        answer.warnings = prepared.warnings
        BEFORE_WRITE.hit(records=answer.records)
        for key, loaded in prepared.types.items():
            table = self.committed.open(loaded.declared)
            rows = stored_rows(loaded.declared, loaded.rows, table.schema)
            answer.written[key] = write_part(table, rows, WRITE_KINDS[self.mode])
        AFTER_WRITE.hit(records=answer.records)


def count_records(pieces: Sequence[Piece], number: int) -> PieceSize | Failed:
    """How much a piece holds."""
    return returning(lambda: count_piece(pieces[number]))


def _count(tables: Mapping[str, pa.Table]) -> int:
    return sum(rows.num_rows for rows in tables.values())


def _repeats_ids(rows: pa.Table) -> bool:
    return bool(len(pc.unique(rows.column("id"))) != rows.num_rows)


def _loaded(declared: EntityType, rows: pa.Table) -> LoadedType:
    names = [name for name in bound_schema(declared).names if name in rows.column_names]
    return LoadedType(declared, rows.select(names), rows.num_rows, rows.select(PLACE_COLUMNS))
