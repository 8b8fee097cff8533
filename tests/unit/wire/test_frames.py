"""Arrow streams in request bodies: what is written is read again, and nothing grows when it is read."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from omnigraph.wire.frames import FrameError, decode_frame, encode_frame


def stream_of(table, **options):
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


WORDS = pa.array(["a", None, "bb", "a"])
COLUMNS = {
    "text": WORDS,
    "dictionary": WORDS.dictionary_encode(),
    "view": WORDS.cast(pa.string_view()),
    "bytes": pa.array([b"a", None, b"", b"c"]).cast(pa.binary_view()),
    "run ends": pa.RunEndEncodedArray.from_arrays([2, 4], ["x", "y"]),
    "vector": pa.array([[1.0, 2.0]] * 4, pa.list_(pa.float32(), 2)),
    "list": pa.array([["a"], [], None, ["b", "c"]]),
    "large list": pa.array([["a"], [], None, ["b", "c"]], pa.large_list(pa.string())),
    "struct": pa.array([{"x": 1}, None, {"x": 3}, {"x": None}]),
    "null": pa.nulls(4),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_a_table_is_read_as_it_was_written(name):
    table = pa.table({"column": COLUMNS[name]})
    assert decode_frame(encode_frame(table)).to_pylist() == table.to_pylist()


def test_an_empty_table():
    table = pa.table({"a": pa.array([], pa.string())})
    assert decode_frame(encode_frame(table)).num_rows == 0


@pytest.mark.parametrize("name", ["dictionary", "view", "bytes", "run ends"])
def test_values_by_reference_are_refused(name):
    table = pa.table({"column": COLUMNS[name]})
    with pytest.raises(FrameError, match="column 'column' has type"):
        decode_frame(stream_of(table))


@pytest.mark.parametrize("codec", ["lz4", "zstd"])
def test_a_compressed_stream_is_refused_before_it_is_read(codec):
    bomb = stream_of(pa.table({"a": pa.array(["x" * 1_000_000] * 64)}), compression=codec)
    assert len(bomb) < 1_000_000
    before = pa.total_allocated_bytes()
    with pytest.raises(FrameError, match="compressed"):
        decode_frame(bomb)
    assert pa.total_allocated_bytes() - before < 1_000_000


def test_rows_without_bytes_are_refused():
    with pytest.raises(FrameError, match="more rows"):
        decode_frame(stream_of(pa.table({"a": pa.nulls(10_000_000)})))


def test_damaged_streams_are_refused_or_read():
    whole = encode_frame(pa.table({"a": ["x", "yy", None], "b": [[1], [2, 3], []]}))
    draw = random.Random(7)
    refused = 0
    for _ in range(2_000):
        damaged = bytearray(whole)
        for _ in range(draw.randint(1, 4)):
            damaged[draw.randrange(len(damaged))] = draw.randrange(256)
        try:
            decode_frame(
                bytes(damaged)[: draw.choice([len(damaged), draw.randrange(len(damaged))])]
            )
        except FrameError:
            refused += 1
    assert refused > 500
