"""Answers of a server that are used while they arrive: Arrow batches and export lines."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final, cast

from omnigraph.client.failures import failure
from omnigraph.client.transport import Incoming, Transport
from omnigraph.errors import ExportError, InputError, QueryCancelled, UnexpectedAnswer

if TYPE_CHECKING:
    import pyarrow as pa

ARROW: Final = "application/vnd.apache.arrow.stream"
_ERROR: Final = b"omnigraph-error"


def arrow_batches(
    transport: Transport,
    method: str,
    path: str,
    *,
    query: Iterable[tuple[str, str]] = (),
    body: object = None,
    cancelled: Callable[[], bool] | None = None,
) -> pa.RecordBatchReader:
    """The batches of a streamed answer. A refused request raises at once."""
    import pyarrow as pa

    with ExitStack() as opened:
        incoming = opened.enter_context(
            transport.stream(
                method, path, query=query, body=body, accept=ARROW, cancelled=cancelled
            )
        )
        stream = _opened(incoming, transport.server)
        held = opened.pop_all()

    def batches() -> Iterator[pa.RecordBatch]:
        with held:
            while True:
                if cancelled is not None and cancelled():
                    raise QueryCancelled
                try:
                    batch, about = stream.read_next_batch_with_custom_metadata()
                except StopIteration:
                    incoming.read()
                    return
                except (pa.ArrowInvalid, OSError) as error:
                    raise _broken(transport.server, error) from error
                if about is not None and _ERROR in about:
                    raise failure(transport.server, 400, {}, about[_ERROR])
                if batch.num_rows:
                    yield batch

    return pa.RecordBatchReader.from_batches(stream.schema, batches())


def _opened(incoming: Incoming, server: str) -> Any:
    import pyarrow as pa

    try:
        return pa.ipc.open_stream(pa.PythonFile(incoming, "r"))
    except (pa.ArrowInvalid, OSError) as error:
        raise _broken(server, error) from error


def _broken(server: str, error: Exception) -> UnexpectedAnswer:
    return UnexpectedAnswer(server, f"the answer is not a complete Arrow stream ({error})")


# -- exports --------------------------------------------------------------------------------


def export_lines(transport: Transport, body: object, target: str | Path | BinaryIO) -> int:
    """Write the lines of an export to a path, a URI or a binary stream; returns their number."""
    from omnigraph.replace_file import replacing_bytes
    from omnigraph.storage.files import is_remote, writing_remote

    if not isinstance(target, str | Path):
        return _copied(transport, body, _binary(target))
    if is_remote(str(target)):
        with writing_remote(str(target)) as out:
            return _copied(transport, body, out)
    try:
        with replacing_bytes(os.fspath(target)) as out:
            return _copied(transport, body, out)
    except OSError as error:
        raise ExportError(f"'{target}' cannot be written: {error.strerror or error}") from None


def _copied(transport: Transport, body: object, out: BinaryIO) -> int:
    lines = 0
    with transport.stream("POST", "/export", body=body) as incoming:
        for part in incoming:
            lines += part.count(b"\n")
            out.write(part)
    return lines


def _binary(target: object) -> BinaryIO:
    if not hasattr(target, "write"):
        kind = "None" if target is None else type(target).__name__
        raise InputError(f"target must be a path, a URI or a binary stream, not {kind}")
    if hasattr(target, "encoding"):
        raise InputError("target must be a binary stream; open the file with mode 'wb'")
    return cast(BinaryIO, target)
