"""A load staged by Spark: splits are counted, read, validated and written by tasks, decided here.

Usually two jobs do: one counts records, so that every split knows the numbers of its own; one reads,
validates and writes all splits and compares their keys. Rows whose keys may violate a rule are brought
together, reduced to what distinguishes them, and validated like those of a load in one process
(`spark_validation`). With quarantine, what becomes of one row may concern any other: then all rows are.
Tests: tests/spark.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

import numpy as np
import pyarrow as pa

from omnigraph.catalog.model import NodeType
from omnigraph.commit.change import TableWrite, WrittenTable
from omnigraph.errors import OmnigraphError, SparkJobFailed
from omnigraph.limits import LOAD_RANGE_BYTES
from omnigraph.load.bucket_validation import needs_full_validation
from omnigraph.load.quarantine import bad_records
from omnigraph.load.record_validation import RECORD, SOURCE
from omnigraph.load.records import Location, Numbers, ProblemLog, in_order
from omnigraph.load.set_validation import collapse, locations_of
from omnigraph.load.sources import Source
from omnigraph.load.spark_validation import Validated, all_rows, validate_suspects
from omnigraph.load.split_tasks import SplitAnswer, SplitTasks, count_records
from omnigraph.load.splits import Split, about_records, bundled, located, placed, split_sources
from omnigraph.load.stage import WRITE_MODES, Cascade, StagedLoad, cascade_of, change_of
from omnigraph.load.suspects import Suspects
from omnigraph.load.validation import (
    LoadJob,
    SplitResult,
    emptied_types,
    note_warnings,
    refusal_of_records,
    refuse_unknown,
    validate_together,
)
from omnigraph.progress import Progress
from omnigraph.rows.bindings import embedded_properties
from omnigraph.spark.following import following
from omnigraph.spark.tasks import run_exchange, run_tasks, value_of
from omnigraph.storage.objects import ObjectStore
from omnigraph.storage.tables import TableStore
from omnigraph.storage.written import ShrunkFragments, by_fragment, remove_written
from omnigraph.versioning.commits import Warning
from omnigraph.versioning.snapshot import Snapshot
from omnigraph.versioning.snapshot_rows import SnapshotRows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Result = TypeVar("Result")

_NO_IDS: Final = pa.array([], pa.utf8())


@dataclass(frozen=True, slots=True)
class SparkJob:
    """All that a load on Spark is made of, but for the state it is made on."""

    spark: SparkSession
    sources: tuple[Source, ...]
    tables: TableStore
    objects: ObjectStore
    branch: str | None
    progress: Progress
    cascade: bool = False
    strict: bool = False

    def run(
        self, name: str, numbers: Sequence[int], kernel: Callable[[int], Result]
    ) -> list[Result]:
        """The kernel's answers for these numbers, one task each."""
        if not numbers:
            return []
        return run_tasks(self.spark, name, len(numbers), partial(_at, tuple(numbers), kernel))

    def splits(self) -> list[Split]:
        """The splits of the sources, located."""
        splits = split_sources(self.sources, LOAD_RANGE_BYTES)
        uncounted = [number for number, split in enumerate(splits) if not split.is_counted]
        found = self.run("count records", uncounted, partial(count_records, tuple(splits)))
        return placed(splits, dict(zip(uncounted, map(value_of, found), strict=True)))


class SparkLoad:
    """One load on Spark. It may be staged several times, on newer and newer states."""

    def __init__(
        self,
        spark_job: SparkJob,
        job_on: Callable[[SnapshotRows], LoadJob],
        inline: Callable[[Snapshot], StagedLoad],
    ) -> None:
        self._spark_job = spark_job
        self._job_on = job_on
        self._inline = inline
        """Stages the same load in this process."""
        self._splits: Sequence[Split] | None = None
        self._attempts: list[_Attempt] = []

    @property
    def spark(self) -> SparkSession:
        return self._spark_job.spark

    def stage(self, against: Snapshot) -> StagedLoad:
        """Read, validate and write all splits. Raises `LoadError`; then nothing of it is left."""
        if self._splits is None:
            self._splits = self._spark_job.splits()
        attempt = _Attempt(self._spark_job, self._job_on, self._splits, against)
        try:
            staged = attempt.run()
        except _NeedsAllRecords:
            attempt.remove()
            return self._inline(against)
        except OmnigraphError:
            with suppress(OmnigraphError):  # Cleanup removes leftovers; the first error counts.
                attempt.remove()
            raise
        self._attempts.append(attempt)
        self._splits = attempt.splits
        return staged

    def finish(self, committed: Callable[[], Snapshot]) -> None:
        """Remove what other attempts wrote. To be called when the load is committed."""
        if len(self._attempts) > 1:
            state = committed()
            for attempt in self._attempts:
                attempt.remove(besides=state)


class _NeedsAllRecords(Exception):
    """A patch in which records of several tasks may be for the same row, or have a problem."""


class _Attempt:
    """One attempt to stage a load on one state of the graph."""

    def __init__(
        self,
        spark_job: SparkJob,
        job_on: Callable[[SnapshotRows], LoadJob],
        splits: Sequence[Split],
        against: Snapshot,
    ) -> None:
        self._spark_job = spark_job
        self._against = against
        committed = SnapshotRows(against, spark_job.tables)
        self._job = job_on(committed)
        bundles = tuple(bundled(splits))
        self._tasks = SplitTasks(
            self._job, committed, tuple(splits), bundles, _bucket_count(len(bundles))
        )
        self._answers: list[SplitAnswer] = []
        self._result = SplitResult(self._job.new_log())
        """What all splits came to."""
        self._needs_all = False
        """Whether all rows have to be validated together."""
        self._written: list[tuple[str, tuple[str, ...]]] = []
        """Table key and files of everything tasks wrote, used in the end or not."""

    @property
    def splits(self) -> Sequence[Split]:
        """The splits, located by the records that were read."""
        return self._tasks.splits

    def run(self) -> StagedLoad:
        spark_job, job = self._spark_job, self._job
        suspects = self._read()
        in_doubt = bool(suspects) or self._needs_all
        if spark_job.strict:
            refuse_unknown(job.catalog, self._result.notes, spark_job.sources)
        if job.mode == "patch" and (in_doubt or any(a.is_incomplete for a in self._answers)):
            raise _NeedsAllRecords
        problems = self._result.log.problems
        emptied_types = self._emptied() if job.mode == "overwrite" else {}
        rows_loaded = {key: rows for key, rows in sorted(self._result.rows.items()) if rows}
        if in_doubt:
            found = self._validated(suspects, emptied_types)
            problems = in_order([*problems, *found.problems])
            if problems and not (job.quarantine and found.left):
                raise job.refusal(problems, self._result.records)
            if self._needs_all:
                rows_loaded = {key: rows.num_rows for key, rows in found.left.items()}
            self._drop(found.rows, found.left)
        elif problems and not (rows_loaded or emptied_types):
            raise job.refusal(problems, self._result.records)
        cascade = self._cascade({*rows_loaded, *emptied_types})
        if not self._tasks.writes:
            self._tasks = replace(self._tasks, writes=True)
            self._write(range(len(self.splits)))
        self._check_counts()
        return StagedLoad(
            change=change_of(job.catalog, self._writes({*rows_loaded, *emptied_types}), cascade),
            records=self._result.records,
            rows_loaded=rows_loaded | dict.fromkeys(emptied_types, 0),
            warnings=(
                *note_warnings(job, self._result.notes),
                *_summed(a.warnings for a in self._answers),
            ),
            quarantined=bad_records(self.splits, job.names, in_order(problems)),
        )

    # -- jobs -----------------------------------------------------------------------------------

    def _read(self) -> Suspects:
        """Read all splits; which keys may violate a rule together. Raises `LoadError`."""
        spark_job, catalog = self._spark_job, self._job.catalog
        # Vectors are computed only for a load that has no other problem.
        writes = not any(embedded_properties(declared) for declared in catalog)
        for _ in range(2):
            self._tasks = replace(self._tasks, writes=writes)
            bundles = self._tasks.bundles
            if not bundles:
                return Suspects()
            about = about_records(self.splits)
            spark_job.progress.stage("read", about or None)
            with following(spark_job.progress, about) as followed:
                done = run_exchange(
                    spark_job.spark, "load", len(bundles),
                    self._tasks.load, self._tasks.buckets, self._tasks.check_bucket,
                )  # fmt: skip
            self._answers = _by_split(bundles, done.answers)
            self._take(self._answers)
            followed.reach(self._result.records)
            counted = located(self.splits, [(a.read.records, 0) for a in self._answers])
            moved = tuple(
                replace(split, records_before=new.records_before)
                for split, new in zip(self.splits, counted, strict=True)
            )
            if moved == self.splits:
                break
            # A line held several records, which shows only when it is read: count by them.
            self._tasks = replace(self._tasks, splits=moved)
        else:
            raise SparkJobFailed("load", "the records of a source could not be counted twice alike")
        self._raise_problems()
        checks = [value_of(check) for check in done.reduced]
        suspects = Suspects()
        for check in checks:
            suspects.update(check.suspects)
        keys = {*self._result.rows}
        endpoint_types = {key for check in checks for key in check.endpoint_types}
        self._needs_all = (
            (bool(suspects) and self._job.quarantine)
            or any(needs_full_validation(catalog.entity(key)) for key in keys)
            or (
                self._job.mode == "overwrite" and bool(endpoint_types & (keys | {*self._emptied()}))
            )
        )
        return suspects

    def _emptied(self) -> dict[str, pa.Table]:
        present = {key for key, rows in self._result.rows.items() if rows}
        return emptied_types(self._spark_job.sources, present)

    def _validated(self, suspects: Suspects, emptied: Mapping[str, pa.Table]) -> Validated:
        """Rows validated together: those with suspicious keys, or all of them."""
        spark_job = self._spark_job
        spark_job.progress.stage("check", self._result.records)
        if not self._needs_all:
            return validate_suspects(spark_job.run, self._tasks, suspects, emptied)
        keys = all_rows(spark_job.run, self._tasks) | dict(emptied)
        problems, left, _ = validate_together(self._job, keys)
        return Validated(keys, left, problems)

    def _cascade(self, keys: set[str]) -> Cascade:
        """What becomes of edges whose nodes the load removes. Raises `DanglingEdges`."""
        if self._job.mode != "overwrite":
            return Cascade()
        left = {key for key in keys if not self._keeps_all(key)}
        deletes = self._spark_job.cascade
        return cascade_of(
            self._job.catalog, self._tasks.committed, left, self._ids, deletes=deletes
        )

    def _keeps_all(self, key: str) -> bool:
        """Whether rows in files are known to bring back every node of a type."""
        if not self._tasks.writes or not isinstance(self._job.catalog.entity(key), NodeType):
            return False
        known = sum(a.written[key].known for a in self._answers if key in a.written)
        return known == self._against.entry(key).row_count

    def _ids(self, nodes: Collection[NodeType]) -> dict[str, pa.Array]:
        """The ids of all rows of these types, by table key."""
        numbers, types = range(len(self.splits)), tuple(node.table_key for node in nodes)
        parts: dict[str, list[pa.Array]] = {key: [_NO_IDS] for key in types}
        kernel = partial(self._tasks.ids, types)
        for found in self._spark_job.run("bring ids of a load together", numbers, kernel):
            for key, ids in value_of(found).items():
                parts[key].append(ids)
        return {key: pa.concat_arrays(arrays) for key, arrays in parts.items()}

    def _drop(self, keys: Mapping[str, pa.Table], left: Mapping[str, pa.Table]) -> None:
        """Write splits again without the rows that do not count."""
        catalog, mode = self._job.catalog, self._job.mode
        kept = {key: collapse(catalog.entity(key), rows, mode) for key, rows in left.items()}
        by_split: dict[int, set[Location]] = {}
        for key, rows in keys.items():
            for location in _missing(rows, kept.get(key)):
                by_split.setdefault(self._split_of(location), set()).add(location)
        dropped = {number: frozenset(locations) for number, locations in by_split.items()}
        self._tasks = replace(self._tasks, dropped=dropped)
        if dropped and self._tasks.writes:
            self._write(sorted(dropped))

    def _write(self, numbers: Sequence[int]) -> None:
        written = self._spark_job.run("write rows of a load", numbers, self._tasks.write)
        for number, answer in zip(numbers, written, strict=True):
            self._answers[number] = answer
        self._take(written)
        self._raise_problems()

    def _split_of(self, location: Location) -> int:
        starts = [(split.number, split.records_before) for split in self.splits]
        record = location.source, location.record
        return max(number for number, start in enumerate(starts) if start < record)

    # -- answers --------------------------------------------------------------------------------

    def _take(self, new: Iterable[SplitAnswer]) -> None:
        """Note what tasks wrote and sum up all answers. Raises what failed in a task."""
        for answer in new:
            self._written += ((key, rows.fragments) for key, rows in answer.written.items())
        self._result = SplitResult(self._job.new_log())
        for answer in self._answers:
            if answer.error is not None:
                raise answer.error
            self._result.update(answer.read)

    def _raise_problems(self) -> None:
        """Raise `LoadError` for missing vectors, and for invalid records without quarantine."""
        missing = ProblemLog(self._job.max_errors)
        for answer in self._answers:
            if answer.missing_vectors is not None:
                missing.update(answer.missing_vectors)
        log = self._result.log
        if missing.total:
            raise missing.error(self._job.names, self._result.records)
        if log.total and not self._job.quarantine:
            raise refusal_of_records(self._job, self._result)

    def _check_counts(self) -> None:
        """Every record is a row, or invalid, or dropped; every row that is left was written."""
        records, bad = self._result.records, self._result.log.bad_records
        read = sum(self._result.rows.values())
        written = sum(rows.rows for answer in self._answers for rows in answer.written.values())
        dropped = sum(map(len, self._tasks.dropped.values()))
        combined = sum(answer.combined for answer in self._answers)
        if read + bad != records or written + dropped + combined != read:
            counts = f"{records} records, {bad} bad, {dropped} dropped, {written} written"
            raise SparkJobFailed("load", f"the numbers do not add up: {counts}")

    # -- result ---------------------------------------------------------------------------------

    def _writes(self, keys: set[str]) -> list[TableWrite]:
        mode = WRITE_MODES[self._job.mode]
        shrunk = self._shrunk(keys) if mode == "delta" else {}
        writes = []
        for key in sorted(keys):
            table = self._against.open(self._spark_job.tables, key)
            parts = tuple(a.written[key] for a in self._answers if key in a.written)
            written = WrittenTable(table, parts, shrunk.get(key, ()))
            writes.append(TableWrite(key, mode, table.schema.empty_table(), written=written))
        return writes

    def _shrunk(self, keys: set[str]) -> dict[str, tuple[ShrunkFragments, ...]]:
        """What is left of fragments with replaced rows, one task each.

        On a branch that has no table branch of its own yet, the commit looks for them there.
        """
        replaced: list[tuple[str, pa.Array]] = []
        for key in sorted(keys):
            if self._against.entry(key).branch == self._spark_job.branch:
                parts = (a.written[key] for a in self._answers if key in a.written)
                replaced += ((key, addresses) for addresses in by_fragment(parts))
        kernel = partial(self._tasks.shrink, replaced)
        found = self._spark_job.run("replace rows", range(len(replaced)), kernel)
        result: dict[str, tuple[ShrunkFragments, ...]] = {}
        for (key, _), shrunk in zip(replaced, found, strict=True):
            result[key] = (*result.get(key, ()), value_of(shrunk))
        return result

    def remove(self, besides: Snapshot | None = None) -> None:
        """Remove the files tasks wrote, but for those that a state names."""
        tables = self._spark_job.tables
        for key, fragments in self._written:
            table = self._against.open(tables, key)
            named = set() if besides is None else besides.open(tables, key).files()
            remove_written(self._spark_job.objects, table.lineage, fragments, besides=named)


def _at(numbers: Sequence[int], kernel: Callable[[int], Result], task: int) -> Result:
    return kernel(numbers[task])


def _by_split(
    bundles: Sequence[Sequence[int]], answers: Sequence[Sequence[SplitAnswer]]
) -> list[SplitAnswer]:
    """The answers of tasks in the order of their splits."""
    found = {
        number: answer
        for bundle, some in zip(bundles, answers, strict=True)
        for number, answer in zip(bundle, some, strict=True)
    }
    return [found[number] for number in range(len(found))]


def _bucket_count(tasks: int) -> int:
    """One for a few tasks: comparing keys is fast, and every bucket is a task of its own."""
    return max(1, min(tasks // 4, 16), tasks // 8)


def _missing(rows: pa.Table, kept: pa.Table | None) -> tuple[Location, ...]:
    """The records of rows that are not among those that are kept."""
    if kept is None:
        return locations_of(rows, range(rows.num_rows))
    if kept.num_rows == rows.num_rows:
        return ()
    gone = ~np.isin(_record_numbers(rows), _record_numbers(kept))
    return locations_of(rows, np.flatnonzero(gone).tolist())


def _record_numbers(rows: pa.Table) -> Numbers:
    """Source and record as one number; a source has fewer than 2^40 records."""
    sources = rows.column(SOURCE).to_numpy().astype(np.int64)
    numbers: Numbers = sources << 40 | rows.column(RECORD).to_numpy()
    return numbers


def _summed(parts: Iterable[Sequence[Warning]]) -> tuple[Warning, ...]:
    counts: dict[tuple[str, str], int] = {}
    for warnings in parts:
        for warning in warnings:
            what = warning.code, warning.message
            counts[what] = counts.get(what, 0) + (warning.count or 0)
    return tuple(Warning(*what, count) for what, count in sorted(counts.items()))
