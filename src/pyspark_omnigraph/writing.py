"""Writes one type as one commit. Tasks write Arrow files beside the graph; one process loads them.

PySpark runs `commit` in a process without a Spark session, so that process makes all checks of a load by
itself. Of more rows than it should hold it names the call that has a session.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

from omnigraph.errors import InputError, OmnigraphError
from omnigraph.limits import DATA_SOURCE_BYTES
from omnigraph.storage.files import Scratch, is_remote, open_remote
from omnigraph.storage.uris import normalise_root
from omnigraph.versioning.ids import new_ulid
from pyspark_omnigraph.options import SourceOptions

if TYPE_CHECKING:
    import omnigraph as og

_ENDPOINTS: Final = {"src": "from", "dst": "to"}
"""What a load calls the columns of edges that a read returns."""


@dataclass(frozen=True)
class PartitionFiles(WriterCommitMessage):
    """The files that one task has written."""

    partition: int
    job: str
    files: tuple[str, ...]
    rows: int
    nbytes: int


class _Writer:
    """What writers of tables and of streams share."""

    def __init__(self, options: SourceOptions, overwrite: bool) -> None:
        mode = options.load_mode or ("overwrite" if overwrite else "append")
        if overwrite and mode != "overwrite":
            raise InputError(
                f"mode('overwrite') and the option load_mode '{mode}' contradict each other; "
                "use mode('append') with load_mode"
            )
        self._options = options
        self._mode = mode
        self._scratch = Scratch(normalise_root(options.graph), new_ulid())

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        context = TaskContext.get()
        assert context is not None, "this runs in a task"
        files, rows, size = [], 0, 0
        for batch in iterator:
            if batch.num_rows:
                rows, size = rows + batch.num_rows, size + batch.nbytes
                self._require_size(size)
                files.append(self._scratch.write(memoryview(_ipc(batch)).cast("B")))
        return PartitionFiles(context.partitionId(), self._scratch.job, tuple(files), rows, size)

    def _require_size(self, nbytes: int) -> None:
        if nbytes > DATA_SOURCE_BYTES:
            raise InputError(
                f"format('omnigraph') commits up to {DATA_SOURCE_BYTES:,} bytes, and the rows have "
                f"{nbytes:,} or more; use omnigraph.spark.write(df, graph, '{self._options.type}', "
                f"'{self._mode}')"
            )

    def _load(
        self, messages: Sequence[WriterCommitMessage | None], load_id: str | None
    ) -> og.LoadResult | None:
        import omnigraph as og

        parts = sorted(_parts_of(messages), key=lambda part: part.partition)
        try:
            self._require_size(sum(part.nbytes for part in parts))
            batches = [_table(file) for part in parts for file in part.files]
            if not batches and self._mode != "overwrite":
                return None
            options = self._options
            with og.open(
                options.graph, branch=options.branch or "main", actor=options.actor
            ) as graph:
                return graph.load(
                    {options.type: _named(pa.concat_tables(batches)) if batches else []},
                    self._mode,
                    load_id=load_id,
                    message=options.message,
                    strict=options.strict,
                    engine="inline",
                )
        finally:
            self._remove(messages)

    def _remove(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Remove the files of all attempts. Those that stay are removed by cleanup."""
        for job in {self._scratch.job, *(part.job for part in _parts_of(messages))}:
            with suppress(OmnigraphError):
                Scratch(self._scratch.root, job).remove()


def _parts_of(messages: Sequence[WriterCommitMessage | None]) -> list[PartitionFiles]:
    return [part for part in messages if isinstance(part, PartitionFiles)]


def _ipc(batch: pa.RecordBatch) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    with pa.ipc.new_file(sink, batch.schema, options=options) as writer:
        writer.write_batch(batch)
    return sink.getvalue()


def _table(address: str) -> pa.Table:
    with open_remote(address) if is_remote(address) else open(address, "rb") as file:
        return pa.ipc.open_file(pa.BufferReader(file.read())).read_all()


def _named(rows: pa.Table) -> pa.Table:
    """Columns of a read under the names that a load expects."""
    present = set(rows.column_names)
    return rows.rename_columns(
        [
            _ENDPOINTS[name] if name in _ENDPOINTS and _ENDPOINTS[name] not in present else name
            for name in rows.column_names
        ]
    )


class TypeWriter(_Writer, DataSourceArrowWriter):
    """Writes a data frame."""

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        self._load(messages, self._options.load_id)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        self._remove(messages)


class StreamWriter(_Writer, DataSourceStreamArrowWriter):
    """Writes each batch of a stream as a commit; a batch that Spark repeats is committed once."""

    def __init__(self, options: SourceOptions, overwrite: bool) -> None:
        super().__init__(options, overwrite)
        if options.load_id is None:
            raise InputError(
                "a stream needs the option load_id, a name that stays the same when it is started "
                "again: with the number of each batch it makes sure that none is loaded twice"
            )

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        self._load(messages, f"{self._options.load_id}-{batchId}")

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        self._remove(messages)
