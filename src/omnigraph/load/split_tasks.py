"""What a Spark task does with splits of a load: read and validate their records, write their rows.

The steps are those of a load in one process. A task commits nothing, returns its errors, and names
every file it wrote in its answer. The same split gives the same rows on every attempt.
Tests: tests/spark.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import OmnigraphError
from omnigraph.faults import declare
from omnigraph.load.bucket_validation import (
    BucketCheck,
    check_bucket,
    keys_of,
    validated_columns,
)
from omnigraph.load.quarantine import without_records
from omnigraph.load.record_validation import GENERATED, LOCATION_COLUMNS
from omnigraph.load.records import Location, ProblemLog
from omnigraph.load.splits import Counted, RowStore, Split, count_text
from omnigraph.load.stage import WRITE_MODES, embed_types
from omnigraph.load.suspects import Suspects
from omnigraph.load.validation import (
    LoadJob,
    SplitResult,
    collect_rows,
    loaded_type,
    whole_rows,
)
from omnigraph.providers.documents import DocumentVectors
from omnigraph.spark.tasks import Failed, Sent, returning
from omnigraph.storage.written import ShrunkFragments, WrittenRows, shrink, write_part
from omnigraph.versioning.commits import Warning
from omnigraph.versioning.snapshot_rows import SnapshotRows, stored_rows

BEFORE_WRITE = declare("load.task_pre_write", "a task has read its split and written nothing")
AFTER_WRITE = declare("load.task_post_write", "a task has written all its rows")


@dataclass(slots=True)
class SplitAnswer:
    """What became of one split."""

    read: SplitResult
    is_incomplete: bool = False
    """Whether rows of a patch lack something, as far as this split can tell."""
    combined: int = 0
    """Rows of a patch that became one with another."""
    written: dict[str, WrittenRows] = field(default_factory=dict)
    warnings: list[Warning] = field(default_factory=list)
    missing_vectors: ProblemLog | None = None
    error: OmnigraphError | None = None


@dataclass(frozen=True, slots=True)
class SplitTasks:
    """The work on all splits of a load. It is sent to tasks as it is."""

    job: LoadJob
    committed: SnapshotRows
    splits: tuple[Split, ...]
    bundles: tuple[tuple[int, ...], ...]
    """The splits that one task reads, for each of the tasks."""
    buckets: int
    writes: bool = True
    dropped: Mapping[int, frozenset[Location]] = field(default_factory=dict)
    """By split: records whose rows are left out."""

    def load(self, bundle: int) -> Iterator[Sent | list[SplitAnswer]]:
        """Read the splits of a bundle, send their keys to buckets, and write their rows."""
        answers: list[SplitAnswer] = []
        for number in self.bundles[bundle]:
            answer = self._new_answer()
            answers.append(answer)
            try:
                with RowStore() as store:
                    tables = self._read(number, store, answer)
                    for bucket, content in keys_of(self.job.catalog, tables, self.buckets):
                        yield Sent(bucket, content)
                    if self.writes:
                        self._write(tables, answer)
            except OmnigraphError as error:
                answer.error = error
        yield answers

    def write(self, number: int) -> SplitAnswer:
        """Read a split again and write it."""
        answer = self._new_answer()
        try:
            with RowStore() as store:
                self._write(self._read(number, store, answer), answer)
        except OmnigraphError as error:
            answer.error = error
        return answer

    def check_bucket(self, _bucket: int, contents: Iterator[bytes]) -> BucketCheck | Failed:
        """Compare the keys in one bucket."""
        job = self.job
        return returning(lambda: check_bucket(job.catalog, job.mode, self.committed, contents))

    def keys(self, suspects: Suspects | None, number: int) -> dict[str, pa.Table] | Failed:
        """The rows of a split reduced to the columns that distinguish them and their locations.

        All rows, or those that have a suspicious key.
        """
        hidden = [*LOCATION_COLUMNS, GENERATED]

        def found() -> dict[str, pa.Table]:
            result: dict[str, pa.Table] = {}
            for key, rows in self._tables(number).items():
                declared = self.job.catalog.entity(key)
                wanted = rows.select([*validated_columns(declared), *hidden])
                result[key] = wanted if suspects is None else suspects.rows_of(declared, wanted)
            return {key: rows for key, rows in result.items() if rows.num_rows}

        return returning(found)

    def ids_among(
        self, wanted: Mapping[str, pa.Array], number: int
    ) -> dict[str, pa.Array] | Failed:
        """Those of the wanted ids that rows of a split have, by table key."""

        def found() -> dict[str, pa.Array]:
            tables = self._tables(number)
            return {
                key: ids.filter(pc.is_in(ids, value_set=pc.unique(tables[key].column("id"))))
                for key, ids in wanted.items()
                if key in tables
            }

        return returning(found)

    def ids(self, keys: Sequence[str], number: int) -> dict[str, pa.Array] | Failed:
        """The ids of the rows of a split, of the given types."""

        def found() -> dict[str, pa.Array]:
            tables = self._tables(number)
            return {key: tables[key].column("id").combine_chunks() for key in keys if key in tables}

        return returning(found)

    def shrink(
        self, replaced: Sequence[tuple[str, pa.Array]], number: int
    ) -> ShrunkFragments | Failed:
        """Take replaced rows out of one fragment; no other task has rows of it."""
        key, addresses = replaced[number]
        table = self.committed.open(self.job.catalog.entity(key))
        return returning(lambda: shrink(table, addresses))

    def _new_answer(self) -> SplitAnswer:
        return SplitAnswer(SplitResult(self.job.new_log()))

    def _tables(self, number: int) -> dict[str, pa.Table]:
        with RowStore() as store:
            return self._read(number, store, self._new_answer())

    def _read(self, number: int, store: RowStore, answer: SplitAnswer) -> dict[str, pa.Table]:
        """The valid rows of a split by table key; none once a record is invalid and none may be."""
        collect_rows(self.job, self.splits[number], store, answer.read, threads=1)
        if answer.read.log.total and not self.job.quarantine:
            return {}
        tables = store.tables()
        if bad := self.dropped.get(number):
            kept = {key: without_records(rows, bad) for key, rows in tables.items()}
            tables = {key: rows for key, rows in kept.items() if rows.num_rows}
        if self.job.mode != "patch":
            return tables
        # Whether a row lacks something depends on all records of its id.
        whole, problems = whole_rows(self.job, tables)
        answer.is_incomplete = bool(problems)
        answer.combined = _count(tables) - _count(whole)
        return {} if problems else whole

    def _write(self, tables: Mapping[str, pa.Table], answer: SplitAnswer) -> None:
        job, records = self.job, answer.read.records
        if job.mode == "merge" and any(map(_repeats_ids, tables.values())):
            # Such a split is refused, or written again without the rows that do not count.
            return
        types = {
            key: loaded_type(job.catalog.entity(key), rows, rows.num_rows)
            for key, rows in tables.items()
        }
        types, answer.warnings, problems = embed_types(
            types, job.mode, self.committed, DocumentVectors()
        )
        if problems:
            answer.missing_vectors = ProblemLog(job.max_errors, problems)
            return
        BEFORE_WRITE.hit(records=records)
        for key, loaded in types.items():
            table = self.committed.open(loaded.declared)
            rows = stored_rows(loaded.declared, loaded.rows, table.schema)
            answer.written[key] = write_part(table, rows, WRITE_MODES[job.mode])
        AFTER_WRITE.hit(records=records)


def count_records(splits: Sequence[Split], number: int) -> Counted | Failed:
    """How many records and lines a split has, as far as it tells."""
    return returning(lambda: count_text(splits[number]))


def _count(tables: Mapping[str, pa.Table]) -> int:
    return sum(rows.num_rows for rows in tables.values())


def _repeats_ids(rows: pa.Table) -> bool:
    return bool(len(pc.unique(rows.column("id"))) != rows.num_rows)
