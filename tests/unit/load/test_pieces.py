"""Sources in pieces give the records of the whole, wherever they are cut."""

from __future__ import annotations

import gzip
import json
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph.errors import LoadSourceError, SourceUnreadable
from omnigraph.load.reading import read_piece
from omnigraph.load.recognition import recognise_sources
from omnigraph.load.records import Finding
from omnigraph.load.sources import JsonText
from omnigraph.load.splits import Piece, PieceSize, bundled, count_piece, cut_sources, placed
from tests.unit.load.inputs import DENSE, dense_inputs, inputs
from tests.unit.load.loading import W, catalog_of

DENSE_CATALOG = catalog_of(DENSE)


def counted(pieces):
    """Pieces with the records and lines before them, as a load finds out."""
    if all(piece.is_counted for piece in pieces):
        return pieces
    return placed(pieces, [count_piece(piece) for piece in pieces])


def read(pieces, catalog):
    """Rows and findings of pieces, each with its place in the load."""
    rows: dict[str, list[pa.RecordBatch]] = {}
    findings: list[Finding] = []
    counts: list[int] = []
    for piece in pieces:
        count = 0
        for part in read_piece(piece, catalog, "job", threads=1):
            count += part.records
            findings += part.findings
            for found in part.rows:
                rows.setdefault(found.declared.table_key, []).append(found.rows)
        counts.append(count)
    tables = {key: pa.Table.from_batches(parts).combine_chunks() for key, parts in rows.items()}
    return tables, findings, counts


def lines(count):
    return "".join(f'{{"type":"Maker","data":{{"handle":"m{n}"}}}}\n' for n in range(count))


def assert_same_records(text, catalog, step):
    source = JsonText(text.encode("utf-8", "surrogatepass"))
    whole = read([Piece(0, source)], catalog)
    pieces = counted(cut_sources([source], step))
    rows, findings, counts = read(pieces, catalog)
    if len(pieces) > 1:
        # Several records in a line show when they are read; pieces are then placed again.
        again = placed(pieces, [PieceSize(n, 0) for n in counts])
        before = [piece.lines_before for piece in pieces]
        pieces = [
            Piece(p.number, p.source, p.records_before, lines)
            for p, lines in zip(again, before, strict=True)
        ]
        rows, findings, counts = read(pieces, catalog)
    assert sum(counts) == whole[2][0]
    assert findings == whole[1]
    assert rows == whole[0]
    return len(pieces)


@settings(max_examples=100)
@given(text=inputs(DENSE_CATALOG, damaged=True), step=st.integers(20, 400))
def test_a_damaged_stream_in_pieces_gives_the_same_records(text, step):
    assert_same_records(text, DENSE_CATALOG, step)


@settings(max_examples=100)
@given(text=dense_inputs(), step=st.integers(20, 400))
def test_lines_in_pieces_give_the_same_records(text, step):
    assert_same_records(text, DENSE_CATALOG, step)


def test_lines_are_cut_about_where_they_should_be():
    data = lines(1000).encode()
    pieces = cut_sources([JsonText(data)], 4000)
    sizes = [len(p.source.data) for p in pieces if isinstance(p.source, JsonText)]
    assert sum(sizes) == len(data)
    assert len(pieces) == len(data) // 4000 + 1
    assert all(3500 < size < 4100 for size in sizes)


def test_pretty_printed_records_stay_together():
    record = json.dumps({"type": "Maker", "data": {"handle": "x"}}, indent=2)
    text = "\n".join([record] * 50)
    assert len(cut_sources([JsonText(text.encode())], 100)) == 1


def test_an_inner_object_that_begins_a_line_is_not_cut_off():
    record = '{"type":"Maker","data":\n{"handle":"%s"}\n}\n'
    text = "".join(record % f"m{n}" for n in range(50))
    assert assert_same_records(text, W, 100) == 1


def test_a_cut_is_found_behind_long_records():
    long = json.dumps({"type": "Maker", "data": {"handle": "x" * 200_000}}) + "\n"
    assert assert_same_records(long * 4 + lines(2), W, 50_000) > 1


def test_compressed_text_is_one_piece(tmp_path):
    path = tmp_path / "makers.jsonl"
    path.write_bytes(gzip.compress(lines(1000).encode()))
    (piece,) = cut_sources(recognise_sources(path, W), 100)
    assert sum(read([piece], W)[2]) == 1000


def test_a_file_is_read_in_ranges(tmp_path):
    path = tmp_path / "makers.jsonl"
    path.write_text(lines(500))
    pieces = counted(cut_sources(recognise_sources(path, W), 2000))
    assert len(pieces) > 5
    rows, _, _ = read(pieces, W)
    assert rows["node:Maker"].column("__record").to_pylist() == list(range(1, 501))
    assert rows["node:Maker"].column("__line").to_pylist() == list(range(1, 501))


def test_a_file_that_changes_between_its_pieces_is_refused(tmp_path):
    path = tmp_path / "makers.jsonl"
    path.write_text(lines(500))
    pieces = cut_sources(recognise_sources(path, W), 2000)
    path.write_text(lines(400))
    with pytest.raises(LoadSourceError, match="changed while it was loaded"):
        read(pieces, W)


def test_a_file_that_vanishes_between_its_pieces_is_named(tmp_path):
    path = tmp_path / "makers.jsonl"
    path.write_text(lines(500))
    pieces = cut_sources(recognise_sources(path, W), 2000)
    path.unlink()
    with pytest.raises(SourceUnreadable, match=r"makers\.jsonl"):
        read(pieces, W)


def test_row_groups_of_parquet_are_pieces_that_know_their_place(tmp_path):
    path = tmp_path / "Maker.parquet"
    pq.write_table(pa.table({"handle": [f"m{n}" for n in range(1000)]}), path, row_group_size=100)
    pieces = cut_sources(recognise_sources(path, W), 1500)
    assert len(pieces) > 2
    rows, _, _ = read(pieces, W)
    assert rows["node:Maker"].column("__record").to_pylist() == list(range(1, 1001))


def test_pieces_of_several_sources_are_counted_apart():
    pieces = counted(cut_sources([JsonText(lines(300).encode())] * 2, 4000))
    rows, _, _ = read(pieces, W)
    columns = rows["node:Maker"].select(["__source", "__record"]).columns
    assert list(zip(*(c.to_pylist() for c in columns), strict=True)) == [
        (source, record) for source in range(2) for record in range(1, 301)
    ]


def test_small_blocks_inside_a_piece_change_nothing():
    with patch("omnigraph.load.json_text.LOAD_BLOCK_BYTES", 64):
        assert assert_same_records(lines(200), W, 1000) > 1


def test_small_pieces_share_a_task_and_large_ones_come_first():
    shares = [0.1, 1.0, 0.2, 0.9, 0.3]
    pieces = [Piece(n, JsonText(b""), share=share) for n, share in enumerate(shares)]
    assert bundled(pieces) == [(1,), (3,), (0, 2, 4)]
    assert bundled(pieces[:1]) == [(0,)]
    assert bundled([]) == []
    assert bundled(cut_sources([JsonText(b"")], 100)) == [(0,)]


def test_many_small_files_are_read_by_one_task(tmp_path):
    for number in range(20):
        (tmp_path / f"{number:02}.jsonl").write_text(lines(5))
    sources = recognise_sources(tmp_path, W)
    pieces = cut_sources(sources, 100_000)
    assert bundled(pieces) == [tuple(range(20))]
    # A compressed file may hold any number of records.
    packed = tmp_path / "packed.jsonl.gz"
    packed.write_bytes(gzip.compress(lines(5).encode()))
    assert len(bundled([*pieces, *cut_sources(recognise_sources(packed, W), 100_000)])) == 2


def test_a_cut_source_has_a_task_for_each_of_its_pieces(tmp_path):
    path = tmp_path / "Maker.parquet"
    pq.write_table(pa.table({"handle": [f"m{n}" for n in range(1000)]}), path, row_group_size=100)
    for source in (JsonText(lines(1000).encode()), *recognise_sources(path, W)):
        pieces = cut_sources([source], 1500)
        assert len(bundled(pieces)) >= len(pieces) - 1
