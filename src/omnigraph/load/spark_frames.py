"""Data frames as sources of a load on Spark.

A data frame of Spark need not give the same rows twice, and a load may read its input several times. So tasks
write the rows of every partition once, into files beside the tables of the graph, and the load reads
those. The driver only receives the names of the files. A large table or text that this process holds is
written to such files too, so that several tasks read it and none is sent what others read.
Tests: tests/spark/test_frames.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from types import TracebackType
from typing import TYPE_CHECKING

import pyarrow as pa

from omnigraph.errors import OmnigraphError, UsageError
from omnigraph.faults import declare
from omnigraph.limits import LOAD_RANGE_BYTES, LOAD_RANGE_ROWS
from omnigraph.load.sources import (
    FrameSource,
    JsonSource,
    Source,
    SparkFrame,
    StagedFile,
    StagedSource,
    table_batches,
)
from omnigraph.progress import Progress
from omnigraph.spark.choice import EngineChoice, session_of
from omnigraph.spark.tasks import (
    Failed,
    returning,
    run_on_frame,
    table_named,
    value_of,
    with_columns,
)
from omnigraph.storage.files import Scratch
from omnigraph.storage.tables import TableStore
from omnigraph.versioning.ids import new_ulid

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

STAGED = declare("load.frames_staged", "rows of data frames are in files, and nothing is read yet")


class SparkFrames:
    """The data frames of one load. Their files are removed when it is over."""

    def __init__(
        self, choice: EngineChoice, tables: TableStore, progress: Progress, *, whole_rows: bool
    ) -> None:
        self.engine = choice
        """What the load runs on: the session of its data frames, if it has any."""
        self._is_shared = tables.is_shared
        self._scratch = Scratch(tables.root, new_ulid())
        self._progress = progress
        self._whole_rows = whole_rows
        self._has_files = False

    def __enter__(self) -> SparkFrames:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._has_files:
            # The load may be committed by now; cleanup removes files that stay.
            with suppress(OmnigraphError):
                self._scratch.remove()

    def table(self, name: str) -> DataFrame:
        """A table by its name in the catalog of Spark. Raises `LoadSourceError` and `UsageError`."""
        self._refuse_inline()
        return table_named(session_of(self.engine), name)

    def stage(self, frames: Sequence[SparkFrame]) -> list[StagedSource]:
        """Have tasks write the rows of the data frames. Raises `SparkError` and `UsageError`."""
        self._refuse_inline()
        if self.engine.master is None:
            own = self.engine.spark or frames[0].frame.sparkSession
            self.engine = replace(self.engine, engine="spark", spark=own)
        session_of(self.engine)
        self._progress.stage("read frames")
        self._has_files = True
        staged = [self._staged(source) for source in frames]
        STAGED.hit(frames=len(staged))
        return staged

    def spread(self, sources: Sequence[Source]) -> tuple[Source, ...]:
        """The sources, with large ones that this process holds in files that tasks can read."""
        return tuple(map(self._spread, sources))

    def _spread(self, source: Source) -> Source:
        match source:
            case JsonSource(data=bytes() as data) if len(data) > LOAD_RANGE_BYTES:
                self._has_files = True
                return replace(source, data=None, address=self._scratch.write(data))
            case FrameSource(rows=rows) if not isinstance(rows, pa.Table) or _is_large(rows):
                self._has_files = True
                names = rows.schema.names
                if not self._whole_rows:
                    names = source.plan.sources() or names[:1]
                batches = table_batches(source, all_columns=self._whole_rows)
                files = FrameWork(self._scratch).files(batches)
                return StagedSource(source.name, source.plan, tuple(names), tuple(files))
            case _:
                return source

    def _staged(self, source: SparkFrame) -> StagedSource:
        names = list(source.frame.columns)
        if not self._whole_rows:
            # Any one column if none is wanted: the rows still have to be counted.
            names = source.plan.sources() or names[:1]
        chosen = with_columns(source.frame, names, source.name)
        answers = run_on_frame(chosen, f"read '{source.name}'", FrameWork(self._scratch).write)
        files = tuple(file for answer in answers for file in value_of(answer))
        self._progress.advance(sum(file.rows for file in files))
        return StagedSource(source.name, source.plan, tuple(names), files)

    def _refuse_inline(self) -> None:
        if self.engine.engine == "inline":
            problem = "Spark data frames and tables are read by tasks; do not pass engine='inline'"
            raise UsageError(problem)
        if not self._is_shared:
            raise UsageError(
                "Spark tasks cannot read an in-memory graph; load into a graph on disk"
            )


@dataclass(frozen=True, slots=True)
class FrameWork:
    """What a task does with a partition. It is sent to tasks as it is."""

    scratch: Scratch

    def write(self, batches: Iterator[pa.RecordBatch]) -> list[StagedFile] | Failed:
        """Write rows as they come, into files that are read as one split each."""
        return returning(lambda: self.files(batches))

    def files(self, batches: Iterable[pa.RecordBatch]) -> list[StagedFile]:
        """The files with all rows, in order."""
        return [self._file(part) for part in _parts(batches)]

    def _file(self, batches: Sequence[pa.RecordBatch]) -> StagedFile:
        sink = pa.BufferOutputStream()
        # A file has one dictionary for each column; batches may have several.
        options = pa.ipc.IpcWriteOptions(compression="lz4", unify_dictionaries=True)
        with pa.ipc.new_file(sink, batches[0].schema, options=options) as writer:
            writer.write_table(pa.Table.from_batches(batches))
        content = sink.getvalue()
        address = self.scratch.write(memoryview(content).cast("B"))
        return StagedFile(address, sum(batch.num_rows for batch in batches), content.size)


def _is_large(rows: pa.Table) -> bool:
    return bool(rows.nbytes > LOAD_RANGE_BYTES or rows.num_rows > LOAD_RANGE_ROWS)


def _parts(batches: Iterable[pa.RecordBatch]) -> Iterator[list[pa.RecordBatch]]:
    """The rows in parts of a few megabytes. No part is empty."""
    held: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        if batch.num_rows:
            held.append(batch)
            rows += batch.num_rows
            size += batch.nbytes
        if rows >= LOAD_RANGE_ROWS or size >= LOAD_RANGE_BYTES:
            yield held
            held, rows, size = [], 0, 0
    if held:
        yield held
