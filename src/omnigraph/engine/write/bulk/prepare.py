"""A load prepared by Spark: pieces counted, screened and written by tasks, decided here.

Usually two jobs do: one counts records, so that every piece knows the numbers of its own; one reads,
judges and writes all pieces and compares their keys. Only if keys look suspicious, rows are brought
together by what tells them apart, and judged like those of a load in one process.
Tests: tests/spark.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

import numpy as np
import pyarrow as pa

from omnigraph.catalog.model import Catalog, NodeType
from omnigraph.engine.write.bulk.piece import (
    WRITE_KINDS,
    PieceAnswer,
    PieceWork,
    count_records,
)
from omnigraph.engine.write.change import TableWrite, WrittenTable
from omnigraph.engine.write.committed import SnapshotRows
from omnigraph.engine.write.ready_load import ReadyLoad, change_of
from omnigraph.engine.write.removed_nodes import NO_CASCADE, Cascade, cascade_of
from omnigraph.errors import LoadError, OmnigraphError, SparkJobFailed
from omnigraph.limits import LOAD_RANGE_BYTES
from omnigraph.load import LoadMode, LoadWarning, Source
from omnigraph.load.findings import Finding, FindingLog, Place, in_order
from omnigraph.load.pieces import Piece, PieceSize, bundled, cut_sources, placed
from omnigraph.load.placing import RECORD, SOURCE
from omnigraph.load.prepare import Notes, emptied, judge_together
from omnigraph.load.quarantine import set_aside
from omnigraph.load.screening import is_beyond_glancing
from omnigraph.load.set_phase import collapse, places_of
from omnigraph.progress import Progress
from omnigraph.rows.bindings import embedded_properties
from omnigraph.rows.blob_bases import BlobBases
from omnigraph.spark.answers import value_of
from omnigraph.spark.tasks import run_exchange, run_tasks
from omnigraph.storage.objects import ObjectStore
from omnigraph.storage.tables import TableStore
from omnigraph.storage.written import ShrunkFragments, by_fragment, remove_written
from omnigraph.versioning.snapshot import Snapshot

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Result = TypeVar("Result")

_NO_IDS: Final = pa.array([], pa.utf8())


@dataclass(frozen=True, slots=True)
class BulkOptions:
    """What a load is asked for, as far as its preparation goes."""

    mode: LoadMode
    load_id: str
    max_errors: int
    quarantine: bool
    progress: Progress
    cascade: bool = False
    strict: bool = False


@dataclass(frozen=True, slots=True)
class BulkJob:
    """All that a load on Spark is made of, but for the state it is made on."""

    spark: SparkSession
    sources: tuple[Source, ...]
    catalog: Catalog
    options: BulkOptions
    tables: TableStore
    objects: ObjectStore
    branch: str | None

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(source.name for source in self.sources)

    def run(
        self, job: str, numbers: Sequence[int], kernel: Callable[[int], Result]
    ) -> list[Result]:
        """The kernel's answers for these numbers, one task each."""
        if not numbers:
            return []
        return run_tasks(self.spark, job, len(numbers), partial(_at, tuple(numbers), kernel))

    def cut(self) -> list[Piece]:
        """The pieces of the sources, each with its place."""
        pieces = cut_sources(self.sources, LOAD_RANGE_BYTES)
        uncounted = [number for number, piece in enumerate(pieces) if not piece.is_counted]
        found = self.run("count records", uncounted, partial(count_records, tuple(pieces)))
        sizes = dict(zip(uncounted, map(value_of, found), strict=True))
        known = placed(pieces, [sizes.get(n, PieceSize(0, 0)) for n in range(len(pieces))])
        return [old if old.is_counted else new for old, new in zip(pieces, known, strict=True)]

    def work(self, pieces: Sequence[Piece], against: Snapshot) -> PieceWork:
        """What tasks have to do with the pieces."""
        options = self.options
        bundles = tuple(bundled(pieces))
        return PieceWork(
            pieces=tuple(pieces),
            names=self.names,
            catalog=self.catalog,
            mode=options.mode,
            load_id=options.load_id,
            committed=SnapshotRows(against, self.tables),
            keep=None if options.quarantine else options.max_errors,
            bundles=bundles,
            buckets=_buckets(len(bundles)),
            blobs=BlobBases.from_environment(),
        )


class BulkLoad:
    """One load on Spark. It may be prepared several times, on newer and newer states."""

    def __init__(self, job: BulkJob, inline: Callable[[Snapshot], ReadyLoad]) -> None:
        self._job = job
        self._inline = inline
        """The preparation of the same load in this process."""
        self._pieces: Sequence[Piece] | None = None
        self._made: list[_Preparation] = []

    def prepare(self, against: Snapshot) -> ReadyLoad:
        """Read, judge and write all pieces. Raises `LoadError`; then nothing of it is left."""
        if self._pieces is None:
            self._pieces = self._job.cut()
        preparation = _Preparation(self._job, self._pieces, against)
        try:
            ready = preparation.run()
        except _NeedsAllRecords:
            preparation.remove()
            return self._inline(against)
        except OmnigraphError:
            with suppress(OmnigraphError):  # What stays is nobody's; the first error counts.
                preparation.remove()
            raise
        self._made.append(preparation)
        self._pieces = preparation.pieces
        return ready

    def finish(self, committed: Callable[[], Snapshot]) -> None:
        """Remove what other preparations wrote. To be called when the load is committed."""
        if len(self._made) > 1:
            state = committed()
            for preparation in self._made:
                preparation.remove(besides=state)


class _NeedsAllRecords(Exception):
    """A patch in which records of several tasks may be for the same row, or something may be wrong."""


class _Preparation:
    """One attempt to prepare a load on one state of the graph."""

    def __init__(self, job: BulkJob, pieces: Sequence[Piece], against: Snapshot) -> None:
        self._job = job
        self._against = against
        self._work = job.work(pieces, against)
        self._answers: list[PieceAnswer] = []
        self._written: list[tuple[str, tuple[str, ...]]] = []
        """Table key and files of everything tasks wrote, used in the end or not."""

    @property
    def pieces(self) -> Sequence[Piece]:
        """The pieces in the places they turned out to have."""
        return self._work.pieces

    def run(self) -> ReadyLoad:
        job, options = self._job, self._job.options
        suspicious = self._screened()
        if options.strict:
            self._notes().refuse_unknown(job.sources)
        if options.mode == "patch" and (suspicious or any(a.lacks for a in self._answers)):
            raise _NeedsAllRecords
        findings = [finding for answer in self._answers for finding in answer.findings]
        present = _emptied(job.sources, self._answers) if options.mode == "overwrite" else {}
        rows_loaded = _added(answer.rows for answer in self._answers)
        if suspicious:
            shown = self._shown() | present
            committed = self._work.committed
            judged = judge_together(
                job.catalog, shown, options.mode, committed, job.names,
                quarantine=options.quarantine,
            )  # fmt: skip
            findings = in_order([*findings, *judged.findings])
            if findings and not (options.quarantine and judged.tables):
                raise self._refusal(findings)
            rows_loaded = {key: rows.num_rows for key, rows in judged.tables.items()}
            self._drop(shown, judged.tables)
        elif findings and not (rows_loaded or present):
            raise self._refusal(findings)
        cascade = self._cascade({*rows_loaded, *present})
        if not self._work.writes:
            self._work = replace(self._work, writes=True)
            self._write(range(len(self._work.pieces)))
        self._check_rows()
        return ReadyLoad(
            change=change_of(job.catalog, self._writes({*rows_loaded, *present}), cascade),
            records=self._records(),
            rows_loaded=rows_loaded | dict.fromkeys(present, 0),
            warnings=(*self._notes().warnings(), *_summed(a.warnings for a in self._answers)),
            quarantined=set_aside(self._work.pieces, job.names, in_order(findings)),
        )

    # -- jobs -----------------------------------------------------------------------------------

    def _screened(self) -> bool:
        """Read all pieces; whether the exact judgement is needed. Raises for bad records."""
        job = self._job
        # Vectors are computed only for a load that nothing else is wrong with.
        writes = not any(embedded_properties(declared) for declared in job.catalog)
        for _ in range(2):
            self._work = replace(self._work, writes=writes)
            bundles = self._work.bundles
            if not bundles:
                return False
            job.options.progress.stage("read")
            done = run_exchange(
                job.spark, "load", len(bundles),
                self._work.screen, self._work.buckets, self._work.glance,
            )  # fmt: skip
            self._answers = _by_piece(bundles, done.answers)
            job.options.progress.advance(self._records())
            self._note(self._answers)
            self._raise_failures()
            pieces = placed(self._work.pieces, [PieceSize(a.records, 0) for a in self._answers])
            numbers = [piece.records_before for piece in pieces]
            if numbers == [piece.records_before for piece in self._work.pieces]:
                break
            # A line held several records, which shows only when it is read: count by them.
            moved = [
                replace(piece, records_before=number)
                for piece, number in zip(self._work.pieces, numbers, strict=True)
            ]
            self._work = replace(self._work, pieces=tuple(moved))
        else:
            raise SparkJobFailed("load", "the records of a source could not be counted twice alike")
        self._raise_bad_records()
        glances = [value_of(verdict) for verdict in done.verdicts]
        keys = {key for answer in self._answers for key in answer.rows}
        leaning = {key for seen in glances for key in seen.leaning}
        return (
            any(seen.suspicious for seen in glances)
            or any(is_beyond_glancing(job.catalog.entity(key)) for key in keys)
            or (job.options.mode == "overwrite" and bool(leaning & self._present(keys)))
        )

    def _present(self, keys: set[str]) -> set[str]:
        return keys | {*_emptied(self._job.sources, self._answers)}

    def _shown(self) -> dict[str, pa.Table]:
        """The rows of all pieces by what tells them apart, in order of source and record."""
        job = self._job
        job.options.progress.stage("check", self._records())
        numbers = range(len(self._work.pieces))
        parts: dict[str, list[pa.Table]] = {}
        for found in job.run("bring rows of a load together", numbers, self._work.show):
            for key, rows in value_of(found).items():
                parts.setdefault(key, []).append(rows)
        return {key: pa.concat_tables(tables) for key, tables in sorted(parts.items())}

    def _cascade(self, keys: set[str]) -> Cascade:
        """What becomes of edges whose nodes the load removes. Raises `DanglingEdges`."""
        job = self._job
        if job.options.mode != "overwrite":
            return NO_CASCADE
        committed, deletes = self._work.committed, job.options.cascade
        left = {key for key in keys if not self._keeps_all(key)}
        return cascade_of(job.catalog, committed, left, self._ids, deletes=deletes)

    def _keeps_all(self, key: str) -> bool:
        """Whether rows in files are known to bring back every node of a type."""
        if not self._work.writes or not isinstance(self._job.catalog.entity(key), NodeType):
            return False
        known = sum(a.written[key].known for a in self._answers if key in a.written)
        return known == self._against.entry(key).row_count

    def _ids(self, nodes: Collection[NodeType]) -> dict[str, pa.Array]:
        """The ids of all rows of these types, by table key."""
        numbers, types = range(len(self._work.pieces)), tuple(node.table_key for node in nodes)
        parts: dict[str, list[pa.Array]] = {key: [_NO_IDS] for key in types}
        kernel = partial(self._work.ids, types)
        for found in self._job.run("bring ids of a load together", numbers, kernel):
            for key, ids in value_of(found).items():
                parts[key].append(ids)
        return {key: pa.concat_arrays(arrays) for key, arrays in parts.items()}

    def _drop(self, shown: Mapping[str, pa.Table], left: Mapping[str, pa.Table]) -> None:
        """Write pieces again without the rows that do not count."""
        job = self._job
        kept = {
            key: collapse(job.catalog.entity(key), rows, job.options.mode)
            for key, rows in left.items()
        }
        gone = {place for key, rows in shown.items() for place in _missing(rows, kept.get(key))}
        by_piece: dict[int, set[Place]] = {}
        for place in gone:
            by_piece.setdefault(self._piece_of(place), set()).add(place)
        dropped = {number: frozenset(places) for number, places in by_piece.items()}
        self._work = replace(self._work, dropped=dropped)
        if dropped and self._work.writes:
            self._write(sorted(dropped))

    def _write(self, numbers: Sequence[int]) -> None:
        written = self._job.run("write rows of a load", numbers, self._work.write)
        for number, answer in zip(numbers, written, strict=True):
            self._answers[number] = answer
        self._note(written)
        self._raise_failures()
        self._raise_bad_records()

    def _piece_of(self, place: Place) -> int:
        starts = [(piece.number, piece.records_before) for piece in self._work.pieces]
        return max(n for n, start in enumerate(starts) if start < (place.source, place.record))

    # -- answers --------------------------------------------------------------------------------

    def _note(self, answers: Iterable[PieceAnswer]) -> None:
        for answer in answers:
            for key, rows in answer.written.items():
                self._written.append((key, rows.fragments))

    def _raise_failures(self) -> None:
        """What went wrong in tasks, bad records apart."""
        for answer in self._answers:
            if answer.error is not None and not isinstance(answer.error, LoadError):
                raise answer.error

    def _raise_bad_records(self) -> None:
        """Bad records, unless they are to be set aside."""
        options = self._job.options
        errors = [a.error for a in self._answers if isinstance(a.error, LoadError)]
        if errors:
            raise _joined(errors, self._records(), options.max_errors)
        if not options.quarantine and any(answer.findings_total for answer in self._answers):
            log = FindingLog(options.max_errors)
            for answer in self._answers:
                log.add(answer.findings)
            log.total = sum(answer.findings_total for answer in self._answers)
            log.bad_records = sum(answer.bad_records for answer in self._answers)
            log.alike = sum((answer.alike for answer in self._answers), Counter())
            raise log.error(self._job.names, self._records())

    def _notes(self) -> Notes:
        notes = Notes(self._job.catalog, self._job.options.mode)
        for answer in self._answers:
            notes.add(answer.unknown, answer.ignored, answer.unnamed)
        return notes

    def _records(self) -> int:
        return sum(answer.records for answer in self._answers)

    def _refusal(self, findings: Sequence[Finding]) -> LoadError:
        log = FindingLog(self._job.options.max_errors)
        log.add(findings)
        return log.error(self._job.names, self._records())

    def _check_rows(self) -> None:
        """Every record is a row, or bad, or dropped; every row that is left was written."""
        read = sum(sum(answer.rows.values()) for answer in self._answers)
        bad = sum(answer.bad_records for answer in self._answers)
        written = sum(rows.rows for answer in self._answers for rows in answer.written.values())
        dropped = sum(map(len, self._work.dropped.values()))
        combined = sum(answer.combined for answer in self._answers)
        if read + bad != self._records() or written + dropped + combined != read:
            counts = f"{self._records()} records, {bad} bad, {dropped} dropped, {written} written"
            raise SparkJobFailed("load", f"the numbers do not add up: {counts}")

    # -- result ---------------------------------------------------------------------------------

    def _writes(self, keys: set[str]) -> list[TableWrite]:
        job = self._job
        shrunk = self._shrunk(keys) if WRITE_KINDS[job.options.mode] == "delta" else {}
        writes = []
        for key in sorted(keys):
            table = self._against.open(job.tables, key)
            parts = tuple(a.written[key] for a in self._answers if key in a.written)
            written = WrittenTable(table, parts, shrunk.get(key, ()))
            writes.append(
                TableWrite(
                    key,
                    WRITE_KINDS[job.options.mode],
                    table.schema.empty_table(),
                    written=written,
                )
            )
        return writes

    def _shrunk(self, keys: set[str]) -> dict[str, tuple[ShrunkFragments, ...]]:
        """What is left of fragments with replaced rows, one task each.

        On a branch that has no line of its own yet they are looked for there, when it has one.
        """
        places: list[tuple[str, pa.Array]] = []
        for key in sorted(keys):
            if self._against.entry(key).branch == self._job.branch:
                parts = (a.written[key] for a in self._answers if key in a.written)
                places += ((key, addresses) for addresses in by_fragment(parts))
        kernel = partial(self._work.shrink, places)
        found = self._job.run("replace rows", range(len(places)), kernel)
        result: dict[str, tuple[ShrunkFragments, ...]] = {}
        for (key, _), shrunk in zip(places, found, strict=True):
            result[key] = (*result.get(key, ()), value_of(shrunk))
        return result

    def remove(self, besides: Snapshot | None = None) -> None:
        """Remove the files tasks wrote, but for those that a state names."""
        for key, fragments in self._written:
            table = self._against.open(self._job.tables, key)
            named = set() if besides is None else besides.open(self._job.tables, key).files()
            remove_written(self._job.objects, table.lineage, fragments, besides=named)


def _at(numbers: Sequence[int], kernel: Callable[[int], Result], task: int) -> Result:
    return kernel(numbers[task])


def _by_piece(
    bundles: Sequence[Sequence[int]], answers: Sequence[Sequence[PieceAnswer]]
) -> list[PieceAnswer]:
    """The answers of tasks in the order of their pieces."""
    found = {
        number: answer
        for bundle, some in zip(bundles, answers, strict=True)
        for number, answer in zip(bundle, some, strict=True)
    }
    return [found[number] for number in range(len(found))]


def _buckets(tasks: int) -> int:
    """One for a few tasks: keys are compared quickly, and every bucket is a task of its own."""
    return max(1, min(tasks // 4, 16), tasks // 16)


def _added(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for part in counts:
        for key, count in part.items():
            total[key] = total.get(key, 0) + count
    return {key: total[key] for key in sorted(total) if total[key]}


def _emptied(sources: Sequence[Source], answers: Iterable[PieceAnswer]) -> dict[str, pa.Table]:
    return emptied(sources, _added(answer.rows for answer in answers))


def _missing(rows: pa.Table, kept: pa.Table | None) -> tuple[Place, ...]:
    """The records of rows that are not among those that are kept."""
    if kept is None:
        return places_of(rows, range(rows.num_rows))
    if kept.num_rows == rows.num_rows:
        return ()
    gone = ~np.isin(_numbers(rows), _numbers(kept))
    return places_of(rows, np.flatnonzero(gone).tolist())


def _numbers(rows: pa.Table) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Source and record as one number; a source has fewer than 2^40 records."""
    sources = rows.column(SOURCE).to_numpy().astype(np.int64)
    numbers: np.ndarray[tuple[int], np.dtype[np.int64]] = (
        sources << 40 | rows.column(RECORD).to_numpy()
    )
    return numbers


def _summed(parts: Iterable[Sequence[LoadWarning]]) -> tuple[LoadWarning, ...]:
    counts: dict[tuple[str, str], int] = {}
    for warnings in parts:
        for warning in warnings:
            what = warning.code, warning.message
            counts[what] = counts.get(what, 0) + warning.count
    return tuple(LoadWarning(*what, count) for what, count in sorted(counts.items()))


def _joined(errors: Sequence[LoadError], records: int, max_errors: int) -> LoadError:
    problems = [problem for error in errors for problem in error.load_errors]
    alike: Counter[tuple[str | None, str]] = Counter()
    for error in errors:
        alike.update(error.alike)
    return LoadError(
        problems[:max_errors],
        total=sum(error.load_errors_total for error in errors),
        bad_records=sum(error.bad_records for error in errors),
        records=records,
        alike=alike,
    )
