"""Sources in splits give the records of the whole, wherever they are cut."""

from __future__ import annotations

import gzip
import json
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from omnigraph.errors import LoadSourceError, SourceUnreadable
from omnigraph.load.recognition import recognise_sources
from omnigraph.load.records import Problem
from omnigraph.load.sources import JsonSource
from omnigraph.load.splits import (
    Split,
    bundled,
    count_split,
    count_text,
    located,
    placed,
    read_split,
    split_sources,
    whole_splits,
)
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


# -- CSV --------------------------------------------------------------------------------------------


def csv_splits(path, step, **mapping):
    given = {"version": 1, "sources": [{"path": str(path), "node": "Maker", **mapping}]}
    sources = recognise_sources(None, W, mapping=given)
    splits = split_sources(sources, step)
    uncounted = {n: count_text(split) for n, split in enumerate(splits) if not split.is_counted}
    return whole_splits(sources), placed(splits, uncounted)


def assert_same_csv(path, step, **mapping):
    whole, splits = csv_splits(path, step, **mapping)
    rows, problems, counts = read(splits, W)
    expected = read(whole, W)
    assert (rows, problems, sum(counts)) == (expected[0], expected[1], expected[2][0])
    before = [split.records_before for split in splits]
    assert before == [sum(counts[:number]) for number in range(len(counts))]
    return splits


@settings(max_examples=100)
@given(
    text=st.text(st.sampled_from('ab,,"""\n\n\r'), max_size=120),
    step=st.integers(3, 40),
    header=st.booleans(),
    mark=st.booleans(),
)
@example(text='\n\n\n\na,b\n\n"a\nb",1\n"x""y",\n', step=3, header=True, mark=True)
@example(text='a,b\n1,"2\n3,4\n5,6\n7,8\n', step=4, header=False, mark=False)
@example(text='a,b\n1,x"2\n"3,\n4"\n5,6\n7,8\n', step=4, header=False, mark=False)
def test_a_csv_text_in_splits_gives_the_same_records(tmp_path_factory, text, step, header, mark):
    path = tmp_path_factory.mktemp("csv") / "Maker.csv"
    start = "handle,name\n" if header else ""
    path.write_bytes((("\ufeff" if mark else "") + start + text).encode())
    columns = {} if header else {"handle": "c1"}
    assert_same_csv(path, step, csv={"header": header}, columns=columns)


def test_quoted_line_ends_are_not_cut(tmp_path):
    path = tmp_path / "Maker.csv"
    rows = "".join(f'm{n},"one\n""two"", three\n"\n\n' for n in range(400))
    path.write_text("handle,name\n" + rows)
    splits = assert_same_csv(path, 1000)
    assert len(splits) > 10
    whole = split_sources(recognise_sources(path, W), 100_000)
    assert len(whole) == 1
    assert whole[0].is_counted


def test_a_csv_text_is_not_cut_behind_a_quote_in_the_middle_of_a_field(tmp_path):
    path = tmp_path / "Maker.csv"
    lines = [f"m{n},x\n" for n in range(400)]
    lines[200] = 'm200,12" pipe\n'
    path.write_text("handle,name\n" + "".join(lines))
    splits = assert_same_csv(path, 500)
    assert 2 < len(splits) < 6


def test_a_compressed_csv_text_is_one_split_and_a_task_of_its_own(tmp_path):
    for number in range(3):
        text = "handle\n" + "".join(f"m{number}-{n}\n" for n in range(50))
        (tmp_path / f"Maker.{number}.csv.gz").write_bytes(gzip.compress(text.encode()))
    splits = split_sources(recognise_sources(tmp_path, W), 100)
    assert [split.is_counted for split in splits] == [True] * 3
    assert len(bundled(splits)) == 3


def test_a_csv_file_that_changes_between_its_splits_is_refused(tmp_path):
    path = tmp_path / "Maker.csv"
    path.write_text("handle\n" + "m\n" * 500)
    _, splits = csv_splits(path, 100)
    path.write_text("handle\n" + "m\n" * 400)
    with pytest.raises(LoadSourceError, match="changed while it was loaded"):
        read(splits, W)
