"""Rows as Parquet: that a load reads the very same columns back, and the same bytes for the same rows."""

from __future__ import annotations

import io

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph.export.parquet import file_names, write_parquet
from omnigraph.export.run import select_types
from omnigraph.load.row_plan import Assignment, plan_rows
from omnigraph.load.table_rows import read_table
from tests.unit.load.inputs import catalogs
from tests.unit.load.loading import catalog_of, table_of
from tests.unit.load.test_export import RELAXED, THING, VALUES, stored_rows


def written(declared, batches):
    out = io.BytesIO()
    counts = list(write_parquet(declared, batches, out))
    return out.getvalue(), counts


@settings(RELAXED, max_examples=25)
@given(st.data())
def test_reading_a_file_makes_the_same_columns(data):
    catalog = data.draw(catalogs())
    declared = data.draw(st.sampled_from(list(catalog)))
    table = table_of(declared, data.draw(stored_rows(declared)))
    content, counts = written(declared, table.to_batches())
    assert sum(counts) == table.num_rows
    file = pq.ParquetFile(io.BytesIO(content))
    plan = plan_rows(declared, file.schema_arrow.names, Assignment(), "file", catalog)
    found: dict[str, list[pa.Array]] = {name: [] for name in declared.columns if name != "id"}
    for batch in file.iter_batches(columns=plan.sources()):
        (rows,) = read_table(plan, batch).rows
        assert rows.misfits == ()
        for name, columns in found.items():
            columns.append(rows.columns[name])
    for name, columns in found.items():
        wanted = table.column(name)
        assert pa.chunked_array(columns, wanted.type).equals(wanted), name
    ids = file.read(["id"]).column("id")
    assert ids.equals(table.column("id"))


@settings(RELAXED, max_examples=25)
@given(st.data())
def test_the_same_rows_make_the_same_bytes_however_they_come(data):
    rows = data.draw(stored_rows(THING))
    table = table_of(THING, rows)
    whole, _ = written(THING, table.to_batches())
    singly, _ = written(THING, table.to_batches(1))
    padded = pa.concat_tables([table, table]).combine_chunks().slice(0, len(rows))
    assert written(THING, padded.to_batches())[0] == whole == singly


def test_groups_of_rows_are_small_where_rows_are_large():
    catalog = catalog_of(
        "node Wide { vec: Vector(4096) }\nnode Heavy { data: Blob }\nnode Thin { n: I32 }"
    )
    for name, kind, size in (
        ("Wide", pa.list_(pa.float32(), 4096), 4096),
        ("Heavy", pa.struct([("data", pa.large_binary()), ("uri", pa.utf8())]), 64),
        ("Thin", pa.int32(), 65_536),
    ):
        declared = catalog.nodes[name]
        (prop,) = declared.properties
        ids = pa.array(np.arange(size + 1)).cast(pa.utf8())
        batch = pa.RecordBatch.from_arrays([ids, pa.nulls(size + 1, kind)], names=["id", prop])
        assert written(declared, [batch])[1] == [size, 1]


def test_what_json_has_no_text_for_is_written():
    row = dict.fromkeys(THING.properties) | {"id": "i", "double": float("inf"), "moment": 2**60}
    content, _ = written(THING, table_of(THING, [row]).to_batches())
    read = pq.read_table(io.BytesIO(content))
    assert read.column("double").to_pylist() == [float("inf")]
    assert read.column("moment").cast(pa.int64()).to_pylist() == [2**60]


def test_files_are_named_after_types_as_loads_read_names():
    assert file_names(select_types(VALUES)) == {
        "edge:Has": "Has.parquet",
        "node:Thing": "Thing.parquet",
    }
    clash = catalog_of("node Tie { k: String @key }\nedge TIE: Tie -> Tie\nnode Other { n: I32 }")
    assert file_names(select_types(clash)) == {
        "edge:TIE": "edge:TIE.parquet",
        "node:Other": "Other.parquet",
        "node:Tie": "node:Tie.parquet",
    }
