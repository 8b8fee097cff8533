"""Sources in splits give the records of the whole, wherever they are cut."""

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
from omnigraph.load.recognition import recognise_sources
from omnigraph.load.records import Problem
from omnigraph.load.sources import JsonSource
from omnigraph.load.splits import Split, bundled, count_split, located, read_split, split_sources
from tests.unit.load.inputs import DENSE, dense_inputs, inputs
from tests.unit.load.loading import W, catalog_of

DENSE_CATALOG = catalog_of(DENSE)


def counted(splits):
    """Pieces with the records and lines before them, as a load finds out."""
    if all(split.is_counted for split in splits):
        return splits
    return located(splits, [count_split(split) for split in splits])


def read(splits, catalog):
    """Rows and findings of splits, each with its place in the load."""
    rows: dict[str, list[pa.RecordBatch]] = {}
    problems: list[Problem] = []
    counts: list[int] = []
    for split in splits:
        count = 0
        for part in read_split(split, catalog, "job", threads=1):
            count += part.count
            problems += part.problems
            for key, found in part.rows.items():
                rows.setdefault(key, []).append(found)
        counts.append(count)
    tables = {key: pa.Table.from_batches(parts).combine_chunks() for key, parts in rows.items()}
    return tables, problems, counts


def lines(count):
    return "".join(f'{{"type":"Maker","data":{{"handle":"m{n}"}}}}\n' for n in range(count))


def assert_same_records(text, catalog, step):
    source = JsonSource(text.encode("utf-8", "surrogatepass"))
    whole = read([Split(0, source)], catalog)
    splits = counted(split_sources([source], step))
    rows, problems, counts = read(splits, catalog)
    if len(splits) > 1:
        # Several records in a line show when they are read; splits are then placed again.
        again = located(splits, [(n, 0) for n in counts])
        before = [split.lines_before for split in splits]
        splits = [
            Split(p.number, p.source, p.records_before, lines)
            for p, lines in zip(again, before, strict=True)
        ]
        rows, problems, counts = read(splits, catalog)
    assert sum(counts) == whole[2][0]
    assert problems == whole[1]
    assert rows == whole[0]
    return len(splits)


@settings(max_examples=100)
@given(text=inputs(DENSE_CATALOG, damaged=True), step=st.integers(20, 400))
def test_a_damaged_stream_in_splits_gives_the_same_records(text, step):
    assert_same_records(text, DENSE_CATALOG, step)


@settings(max_examples=100)
@given(text=dense_inputs(), step=st.integers(20, 400))
def test_lines_in_splits_give_the_same_records(text, step):
    assert_same_records(text, DENSE_CATALOG, step)


def test_lines_are_cut_about_where_they_should_be():
    data = lines(1000).encode()
    splits = split_sources([JsonSource(data)], 4000)
    sizes = [len(p.source.data or b"") for p in splits if isinstance(p.source, JsonSource)]
    assert sum(sizes) == len(data)
    assert len(splits) == len(data) // 4000 + 1
    assert all(3500 < size < 4100 for size in sizes)


def test_pretty_printed_records_stay_together():
    record = json.dumps({"type": "Maker", "data": {"handle": "x"}}, indent=2)
    text = "\n".join([record] * 50)
    assert len(split_sources([JsonSource(text.encode())], 100)) == 1


def test_an_inner_object_that_begins_a_line_is_not_cut_off():
    record = '{"type":"Maker","data":\n{"handle":"%s"}\n}\n'
    text = "".join(record % f"m{n}" for n in range(50))
    assert assert_same_records(text, W, 100) == 1


def test_a_cut_is_found_behind_long_records():
    long = json.dumps({"type": "Maker", "data": {"handle": "x" * 200_000}}) + "\n"
    assert assert_same_records(long * 4 + lines(2), W, 50_000) > 1


def test_compressed_text_is_one_split(tmp_path):
    path = tmp_path / "makers.jsonl"
    path.write_bytes(gzip.compress(lines(1000).encode()))
    (split,) = split_sources(recognise_sources(path, W), 100)
    assert sum(read([split], W)[2]) == 1000


def test_a_file_is_read_in_ranges(tmp_path):
    path = tmp_path / "makers.jsonl"
    path.write_text(lines(500))
    splits = counted(split_sources(recognise_sources(path, W), 2000))
    assert len(splits) > 5
    rows, _, _ = read(splits, W)
    assert rows["node:Maker"].column("__record").to_pylist() == list(range(1, 501))
    assert rows["node:Maker"].column("__line").to_pylist() == list(range(1, 501))


def test_a_file_that_changes_between_its_splits_is_refused(tmp_path):
    path = tmp_path / "makers.jsonl"
    path.write_text(lines(500))
    splits = split_sources(recognise_sources(path, W), 2000)
    path.write_text(lines(400))
    with pytest.raises(LoadSourceError, match="changed while it was loaded"):
        read(splits, W)


def test_a_file_that_vanishes_between_its_splits_is_named(tmp_path):
    path = tmp_path / "makers.jsonl"
    path.write_text(lines(500))
    splits = split_sources(recognise_sources(path, W), 2000)
    path.unlink()
    with pytest.raises(SourceUnreadable, match=r"makers\.jsonl"):
        read(splits, W)


def test_row_groups_of_parquet_are_splits_that_know_their_place(tmp_path):
    path = tmp_path / "Maker.parquet"
    pq.write_table(pa.table({"handle": [f"m{n}" for n in range(1000)]}), path, row_group_size=100)
    splits = split_sources(recognise_sources(path, W), 1500)
    assert len(splits) > 2
    rows, _, _ = read(splits, W)
    assert rows["node:Maker"].column("__record").to_pylist() == list(range(1, 1001))


def test_splits_of_several_sources_are_counted_apart():
    splits = counted(split_sources([JsonSource(lines(300).encode())] * 2, 4000))
    rows, _, _ = read(splits, W)
    columns = rows["node:Maker"].select(["__source", "__record"]).columns
    assert list(zip(*(c.to_pylist() for c in columns), strict=True)) == [
        (source, record) for source in range(2) for record in range(1, 301)
    ]


def test_small_blocks_inside_a_split_change_nothing():
    with patch("omnigraph.load.json_text.LOAD_BLOCK_BYTES", 64):
        assert assert_same_records(lines(200), W, 1000) > 1


def test_small_splits_share_a_task_and_large_ones_come_first():
    shares = [0.1, 1.0, 0.2, 0.9, 0.3]
    splits = [Split(n, JsonSource(b""), share=share) for n, share in enumerate(shares)]
    assert bundled(splits) == [(1,), (3,), (0, 2, 4)]
    assert bundled(splits[:1]) == [(0,)]
    assert bundled([]) == []
    assert bundled(split_sources([JsonSource(b"")], 100)) == [(0,)]


def test_many_small_files_are_read_by_one_task(tmp_path):
    for number in range(20):
        (tmp_path / f"{number:02}.jsonl").write_text(lines(5))
    sources = recognise_sources(tmp_path, W)
    splits = split_sources(sources, 100_000)
    assert bundled(splits) == [tuple(range(20))]
    # A compressed file may hold any number of records.
    packed = tmp_path / "packed.jsonl.gz"
    packed.write_bytes(gzip.compress(lines(5).encode()))
    assert len(bundled([*splits, *split_sources(recognise_sources(packed, W), 100_000)])) == 2


def test_a_cut_source_has_a_task_for_each_of_its_splits(tmp_path):
    path = tmp_path / "Maker.parquet"
    pq.write_table(pa.table({"handle": [f"m{n}" for n in range(1000)]}), path, row_group_size=100)
    for source in (JsonSource(lines(1000).encode()), *recognise_sources(path, W)):
        splits = split_sources([source], 1500)
        assert len(bundled(splits)) >= len(splits) - 1
