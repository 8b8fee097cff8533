"""Rows as Arrow streams, sent while they are read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from omnigraph.errors import OmnigraphError
from omnigraph.server.call import ARROW_STREAM, Call, Stream, Write
from omnigraph.server.handlers.queries import budget_of, state_of, typed_values
from omnigraph.server.problems import error_answer
from omnigraph.wire.requests import ScanRequest

if TYPE_CHECKING:
    import pyarrow as pa

    from omnigraph.wire.contracts import Contract


def scan(call: Call) -> Stream:
    """Read the rows of one type as an Arrow stream."""
    body: ScanRequest = call.body
    rows = state_of(call, body.branch, body.snapshot).scan(
        body.type,
        columns=body.columns,
        where=body.where,
        params=typed_values(body.typed_params or {}),
        budget=budget_of(body.budget),
        cancel=call.cancel,
    )
    return arrow_stream(rows, call.contract)


def arrow_stream(rows: pa.RecordBatchReader, contract: Contract) -> Stream:
    """Batches as they are read. An error after the first is the metadata of an empty last batch."""

    def produce(write: Write) -> None:
        import pyarrow as pa

        with pa.ipc.new_stream(pa.PythonFile(_Sink(write), "w"), rows.schema) as out:
            try:
                for batch in rows:
                    out.write_batch(batch)
            except OmnigraphError as error:
                told = msgspec.json.encode(error_answer(error, contract).body)
                last = rows.schema.empty_table().to_batches(max_chunksize=1)
                empty = last[0] if last else pa.RecordBatch.from_pylist([], schema=rows.schema)
                out.write_batch(empty, custom_metadata={"omnigraph-error": told})

    return Stream(produce, ARROW_STREAM)


class _Sink:
    """A binary file that sends what is written to it."""

    closed = False

    def __init__(self, write: Write) -> None:
        self._write = write

    def write(self, data: Any) -> int:
        part = bytes(data)
        if part:
            self._write(part)
        return len(part)

    def flush(self) -> None:
        """Nothing waits here."""

    def close(self) -> None:
        self.closed = True
