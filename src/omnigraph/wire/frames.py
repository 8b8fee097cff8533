"""Rows as Arrow streams in request bodies.

What a server reads may come from anybody, so a stream is accepted only if its size in memory is about its
size on the wire: no compression, and no types that repeat a value by reference. The client writes such
streams, and everything that was read is validated. Tests: tests/unit/wire/test_frames.py.
"""

from __future__ import annotations

from struct import error as StructError
from struct import unpack_from
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import pyarrow as pa

ROWS_PER_BYTE: Final = 8
"""A column that is not all null needs one bit for each row."""

_DICTIONARY_BATCH: Final = 2
_RECORD_BATCH: Final = 3


class FrameError(ValueError):
    """The bytes are not an Arrow stream that is accepted."""


def encode_frame(table: pa.Table) -> bytes:
    """A table as an Arrow stream of plain types."""
    import pyarrow as pa

    schema = pa.schema([field.with_type(_plain(field.type)) for field in table.schema])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        writer.write_table(_without_run_ends(table).cast(schema))
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def decode_frame(data: bytes) -> pa.Table:
    """The table of an Arrow stream. Raises `FrameError`."""
    import pyarrow as pa

    try:
        _refuse_compression(data)
        with pa.ipc.open_stream(data) as stream:
            for field in stream.schema:
                if _plain(field.type) != field.type:
                    raise FrameError(
                        f"column '{field.name}' has type {field.type}; send plain values"
                    )
            table = stream.read_all()
        if table.num_rows > ROWS_PER_BYTE * len(data):
            raise FrameError("the stream has more rows than its size allows")
        table.validate(full=True)
    except FrameError:
        raise
    except (pa.ArrowException, OSError, ValueError, IndexError, StructError) as error:
        raise FrameError(str(error)) from None
    return table


def _without_run_ends(table: pa.Table) -> pa.Table:
    import pyarrow as pa
    import pyarrow.compute as pc

    for number, field in enumerate(table.schema):
        if pa.types.is_run_end_encoded(field.type):
            parts = [pc.run_end_decode(part) for part in table.column(number).chunks]
            table = table.set_column(
                number, field.name, pa.chunked_array(parts, field.type.value_type)
            )
    return table


def _plain(kind: pa.DataType) -> pa.DataType:
    """The type without dictionaries, views and run ends."""
    import pyarrow as pa

    types = pa.types
    if types.is_dictionary(kind) or types.is_run_end_encoded(kind):
        return _plain(kind.value_type)
    if types.is_string_view(kind):
        return pa.large_string()
    if types.is_binary_view(kind):
        return pa.large_binary()
    if types.is_fixed_size_list(kind):
        return pa.list_(kind.value_field.with_type(_plain(kind.value_type)), kind.list_size)
    if types.is_large_list(kind):
        return pa.large_list(kind.value_field.with_type(_plain(kind.value_type)))
    if types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_plain(kind.value_type)))
    if types.is_list_view(kind) or types.is_large_list_view(kind):
        return pa.large_list(kind.value_field.with_type(_plain(kind.value_type)))
    if types.is_struct(kind):
        return pa.struct([field.with_type(_plain(field.type)) for field in kind])
    return kind


def _refuse_compression(data: bytes) -> None:
    """Raises `FrameError` if a batch is compressed: it could be of any size in memory."""
    import pyarrow as pa

    messages = pa.ipc.MessageReader.open_stream(data)
    while True:
        try:
            message = messages.read_next_message()
        except StopIteration:
            return
        if _is_compressed(message.metadata.to_pybytes()):
            raise FrameError("the stream is compressed; send it as it is")


def _is_compressed(metadata: bytes) -> bool:
    """Whether the flatbuffer of a message says how its body is compressed."""
    message = _Fields(metadata, _target(metadata, 0))
    kind = message.at(1)
    header = message.at(2)
    if kind is None or header is None or metadata[kind] not in (_DICTIONARY_BATCH, _RECORD_BATCH):
        return False
    batch = _Fields(metadata, _target(metadata, header))
    if metadata[kind] == _DICTIONARY_BATCH:
        inner = batch.at(1)
        if inner is None:
            return False
        batch = _Fields(metadata, _target(metadata, inner))
    return batch.at(3) is not None


class _Fields:
    """The fields of a table in a flatbuffer, by their number in Arrow's message format."""

    def __init__(self, data: bytes, start: int) -> None:
        self._data = data
        self._start = start
        self._offsets = start - int(unpack_from("<i", data, start)[0])
        self._size = int(unpack_from("<H", data, self._offsets)[0])

    def at(self, number: int) -> int | None:
        """Where a field is; None if it is absent."""
        place = 4 + 2 * number
        if place >= self._size:
            return None
        offset = int(unpack_from("<H", self._data, self._offsets + place)[0])
        return self._start + offset if offset else None


def _target(data: bytes, start: int) -> int:
    return start + int(unpack_from("<I", data, start)[0])
