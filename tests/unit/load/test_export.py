"""Rows as JSON lines: every value's text, and that a load reads the very same rows back."""

from __future__ import annotations

import io
import json

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from omnigraph.errors import ExportError
from omnigraph.export.json_lines import export_lines
from omnigraph.export.run import select_types
from omnigraph.language.types import INTEGER_RANGES, Scalar
from omnigraph.load.json_rows import JsonReader
from omnigraph.load.json_text import read_blocks
from omnigraph.rows.json_text import float_texts
from tests.support.model.export import export as reference_export
from tests.support.model.image import Image
from tests.support.model.values import shortest_float32
from tests.unit.load.inputs import catalogs, floats, moments, texts
from tests.unit.load.loading import W, catalog_of, load, rows_of, table_of

VALUES = catalog_of(
    """
node Thing {
    flag: Bool?  small: I32?  huge: U64?  single: F32?  double: F64?
    day: Date?  moment: DateTime?  text: String?  blob: Blob?  vec: Vector(2)?
    days: [Date]?  moments: [DateTime]?  doubles: [F64]?  texts: [String]?
}
edge Has: Thing -> Thing { why: String? }
"""
)
THING = VALUES.nodes["Thing"]


def written(declared, rows, **options):
    batches = table_of(declared, rows).to_batches()
    return b"".join(p.to_pybytes() for p in export_lines(declared, batches, **options)).decode()


def exported(name, value):
    """The JSON text of one value."""
    row = dict.fromkeys(THING.properties) | {"id": "i", name: value}
    (line,) = written(THING, [row]).splitlines()
    after = line.partition(f'"{name}":')[2]
    decoder = json.JSONDecoder()
    return after[: decoder.raw_decode(after)[1]]


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("flag", True, "true"),
        ("small", -5, "-5"),
        ("huge", 2**64 - 1, "18446744073709551615"),
        ("single", 0.4000000059604645, "0.4"),
        ("single", 16777216.0, "16777216.0"),
        ("single", 1e-7, "1e-07"),
        ("single", 1e-45, "1e-45"),
        ("single", 3.4028234663852886e38, "3.4028235e+38"),
        ("single", -0.0, "-0.0"),
        # Of seven digits, 7.038531e-26, a reader that goes through doubles would make its neighbour.
        ("single", 7.038530691851209e-26, "7.0385307e-26"),
        ("single", 61.0, "61.0"),
        ("double", 1e16, "1e+16"),
        ("double", 1e15, "1000000000000000.0"),
        ("double", 12345678901.5, "12345678901.5"),
        ("double", 1e-5, "1e-05"),
        ("double", -0.0, "-0.0"),
        ("double", 5e-324, "5e-324"),
        ("day", 18293, "18293"),
        ("day", -1, "-1"),
        ("moment", 1556697600000, '"2019-05-01T08:00:00"'),
        ("moment", 1556697600120, '"2019-05-01T08:00:00.120"'),
        ("moment", -1, '"1969-12-31T23:59:59.999"'),
        ("moment", -62_167_219_200_000, '"0000-01-01T00:00:00"'),
        ("moment", 253_402_300_799_999, '"9999-12-31T23:59:59.999"'),
        ("moment", 253_402_300_800_000, "253402300800000"),
        ("moment", -62_167_219_200_001, "-62167219200001"),
        ("text", 'ä"\\\n\t\x01/', '"ä\\"\\\\\\n\\t\\u0001/"'),
        ("blob", b"Hi", '"base64:SGk="'),
        ("blob", "s3://b/k", '"s3://b/k"'),
        ("vec", [1.0, 0.10000000149011612], "[1.0,0.1]"),
        ("days", [1, None], "[1,null]"),
        ("moments", [0, None, 5], '["1970-01-01T00:00:00",null,"1970-01-01T00:00:00.005"]'),
        ("doubles", [], "[]"),
        ("texts", ["a,", None, '"'], '["a,",null,"\\""]'),
        ("texts", None, "null"),
    ],
)
def test_a_value_has_one_text(name, value, text):
    assert exported(name, value) == text


def test_nodes_and_edges_are_written_as_loads_read_them():
    row = {"id": 'e"1', "src": "a", "dst": "ä", "why": None}
    assert written(VALUES.edges["Has"], [row]) == (
        '{"edge":"Has","from":"a","to":"ä","data":{"id":"e\\"1","why":null}}\n'
    )
    row = dict.fromkeys(THING.properties) | {"id": "i"}
    line = written(THING, [row])
    assert line.startswith('{"type":"Thing","data":{"id":"i","blob":null,"day":null,')
    assert list(json.loads(line)["data"]) == ["id", *sorted(THING.properties)]


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("double", [0.5, float("nan")]),
        ("single", [0.5, float("inf")]),
        ("doubles", [[1.0], [1.0, float("-inf")]]),
        ("vec", [None, [float("nan"), 0.0]]),
    ],
)
def test_a_number_that_is_not_finite_cannot_be_exported(name, values):
    empty = dict.fromkeys(THING.properties)
    rows = [{**empty, "id": f"t{n}", name: value} for n, value in enumerate(values)]
    with pytest.raises(ExportError, match=rf"cannot export Thing\.{name} of 't1'"):
        written(THING, rows)


def test_blobs_can_be_fetched_by_the_caller():
    rows = [dict.fromkeys(THING.properties) | {"id": i} for i in "ab"]

    def fetch(name, batch):
        assert name == "blob"
        return pa.array([None if i == "a" else f"base64:{i}" for i in batch["id"].to_pylist()])

    lines = written(THING, rows, blobs=fetch).splitlines()
    assert [json.loads(line)["data"]["blob"] for line in lines] == [None, "base64:b"]


def test_large_rows_are_written_in_small_chunks():
    rows = [
        dict.fromkeys(THING.properties) | {"id": f"t{n}", "text": "x" * 3_000_000} for n in range(4)
    ]
    pieces = list(export_lines(THING, table_of(THING, rows).to_batches()))
    assert len(pieces) == 4
    assert all(p.to_pybytes().endswith(b"}}\n") for p in pieces)


def test_types_are_selected_by_name_or_key_and_ordered_by_key():
    catalog = catalog_of("node B { }\nnode A { }\nedge B: A -> B")
    keys = [d.table_key for d in select_types(catalog)]
    assert keys == ["edge:B", "node:A", "node:B"]
    assert [d.table_key for d in select_types(catalog, ["B"])] == ["edge:B", "node:B"]
    assert [d.table_key for d in select_types(catalog, ["node:B"])] == ["node:B"]
    assert len(select_types(W)) == 6


# Round trips


def stored_values(kind):
    if kind.is_vector:
        size = kind.dimension or 1
        return st.lists(_scalars(Scalar.F32), min_size=size, max_size=size).map(tuple)
    if kind.list:
        return st.lists(st.none() | _scalars(kind.scalar), max_size=3).map(tuple)
    if kind.enum_values is not None:
        return st.sampled_from(kind.enum_values)
    return _scalars(kind.scalar)


def _scalars(scalar):
    if scalar.is_float:
        return floats(scalar)
    if scalar.is_integer:
        return st.integers(*INTEGER_RANGES[scalar])
    match scalar:
        case Scalar.BOOL:
            return st.booleans()
        case Scalar.DATE:
            return st.integers(-(2**31), 2**31 - 1)
        case Scalar.DATETIME:
            return moments | st.integers(-(2**63), 2**63 - 1)
        case Scalar.BLOB:
            return st.binary(max_size=5) | st.just("s3://b/k")
        case _:
            return texts


@st.composite
def stored_rows(draw, declared):
    """Rows that ids alone tell apart; rules about values play no role here."""
    rows = []
    for n in range(draw(st.integers(0, 5))):
        row = {"id": f"i{n}", "src": draw(texts), "dst": draw(texts)}
        for name, prop in declared.properties.items():
            absent = prop.type.nullable and draw(st.integers(0, 3)) == 0
            row[name] = None if absent else draw(stored_values(prop.type))
        rows.append({column: row[column] for column in declared.columns})
    return rows


RELAXED = settings(
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


@RELAXED
@given(st.data())
def test_reading_an_export_makes_the_same_columns(data):
    catalog = data.draw(catalogs())
    declared = data.draw(st.sampled_from(list(catalog)))
    rows = data.draw(stored_rows(declared))
    table = table_of(declared, rows)
    text = written(declared, rows)
    (reading,) = readings(catalog, text) or [None]
    if reading is None:
        assert table.num_rows == 0
        return
    for name in declared.columns:
        found = reading.ids if name == "id" else reading.columns[name]
        wanted = table.column(name).combine_chunks()
        assert found.type == wanted.type
        assert found.equals(wanted), name


def readings(catalog, text):
    """The typed rows of a text, which must be read in columns and without a problem."""
    reader, rows = JsonReader(catalog), []
    for stretch in read_blocks(io.BytesIO(text.encode())):
        reading = reader.read(stretch)
        assert reading.problems == []
        assert not reading.notes.unknown
        rows += reading.rows
    return rows


@RELAXED
@given(st.data())
def test_lines_are_those_of_the_reference_graph(data):
    catalog = data.draw(catalogs())
    tables = {}
    for declared in catalog:
        rows = data.draw(stored_rows(declared))
        # The reference writes moments outside the years 0000 to 9999 in a form no load reads.
        for row in rows:
            for name, prop in declared.properties.items():
                if prop.type.scalar is Scalar.DATETIME:
                    row[name] = () if prop.type.list else data.draw(moments)
        tables[declared.table_key] = {row["id"]: row for row in rows}
    text = "".join(
        written(declared, list(tables[declared.table_key].values()))
        for declared in select_types(catalog)
    )
    assert text == "".join(line + "\n" for line in reference_export(Image(catalog, tables)))


def single_patterns(count):
    """Finite single-precision numbers of all sizes: random bits, and those next to every border."""
    random = np.random.default_rng(17).integers(0, 2**32, count)
    borders = np.arange(0, 2**32, 2**23)[:, None] + np.arange(-2, 3)
    singles = np.concatenate([random, borders.ravel() % 2**32]).astype(np.uint32).view(np.float32)
    return singles[np.isfinite(singles)]


def test_single_precision_numbers_are_read_back_bit_by_bit():
    singles = single_patterns(20_000)
    singles = np.concatenate([singles, np.array([7.0385307e-26, -7.0385307e-26], np.float32)])
    rows = [
        dict.fromkeys(THING.properties) | {"id": f"t{n}", "single": value, "vec": [value, value]}
        for n, value in enumerate(singles.tolist())
    ]
    text = written(THING, rows)
    columns = [reading.columns for reading in readings(VALUES, text)]
    for name in ("single", "vec"):
        found = [column[name] for column in columns]
        if name == "vec":
            found = [column.flatten()[::2] for column in found]
        assert_same_bits(pa.concat_arrays(found), singles)
    # As most others read JSON: each number as a double first.
    doubles = [json.loads(line)["data"]["single"] for line in text.splitlines()]
    assert_same_bits(pa.array(doubles, pa.float64()).cast(pa.float32(), safe=False), singles)


def assert_same_bits(found, singles):
    bits = found.to_numpy(zero_copy_only=False).view(np.uint32)
    np.testing.assert_array_equal(bits, singles.view(np.uint32))


def test_no_shorter_text_reads_back_to_a_single_precision_number():
    singles = single_patterns(2_000)
    texts = float_texts(pa.array(singles)).to_pylist()
    assert texts == [json.dumps(shortest_float32(single)) for single in singles.tolist()]


def test_a_load_of_an_export_is_the_same_load():
    text = '{"type":"Tool","data":{"code":"ha-1","label":"ä","weight":0.4,"serial":null}}'
    first = rows_of(load(text, W), "node:Tool")
    assert rows_of(load(written(W.nodes["Tool"], first), W), "node:Tool") == first
