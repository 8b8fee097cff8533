"""The Arrow schemas of node and edge types."""

from __future__ import annotations

import pyarrow as pa
import pytest

from omnigraph.catalog.arrow import logical_schema, physical_schema
from omnigraph.catalog.compile import build_schema, compile_schema
from omnigraph.catalog.ir import schema_from_json
from omnigraph.catalog.model import Catalog
from omnigraph.language.syntax import Source
from tests.support.workshop import WORKSHOP
from tests.unit.language.schemas import NOTES


def catalog(text: str) -> Catalog:
    return compile_schema(Source("<schema>", text))


@pytest.mark.parametrize(
    ("written", "arrow"),
    [
        ("String", pa.utf8()),
        ("enum(a, b)", pa.utf8()),
        ("Bool", pa.bool_()),
        ("I32", pa.int32()),
        ("I64", pa.int64()),
        ("U32", pa.uint32()),
        ("U64", pa.uint64()),
        ("F32", pa.float32()),
        ("F64", pa.float64()),
        ("Date", pa.date32()),
        ("DateTime", pa.date64()),
        ("Blob", pa.large_binary()),
        ("Vector(3)", pa.list_(pa.field("item", pa.float32(), nullable=True), 3)),
        ("[String]", pa.list_(pa.field("item", pa.utf8(), nullable=True))),
        ("[DateTime]", pa.list_(pa.field("item", pa.date64(), nullable=True))),
    ],
)
@pytest.mark.parametrize("mark", ["", "?"])
def test_every_type_has_its_arrow_type_and_nullability(written, arrow, mark):
    lamp = catalog(f"node Lamp {{ p: {written}{mark} }}").nodes["Lamp"]
    assert logical_schema(lamp).field("p").equals(pa.field("p", arrow, nullable=bool(mark)))


def test_a_node_has_its_id_then_properties_by_name():
    schema = logical_schema(catalog(WORKSHOP).nodes["Tool"])
    assert schema.names == ["id", "code", "label", "serial", "weight"]
    assert schema.field("id").equals(pa.field("id", pa.utf8(), nullable=False))


def test_an_edge_has_its_id_and_ends_then_properties_by_name():
    schema = logical_schema(catalog(WORKSHOP).edges["Borrows"])
    assert schema.names == ["id", "src", "dst", "note"]
    assert not any(schema.field(name).nullable for name in ("id", "src", "dst"))


def test_a_computed_vector_has_a_hidden_column_behind_all_others():
    note = catalog(NOTES).nodes["Note"]
    number = note.properties["vec"].prop_id
    assert logical_schema(note).names == ["id", "body", "slug", "vec"]
    assert physical_schema(note).names == ["id", "body", "slug", "vec", f"__embed_{number}"]
    assert (
        physical_schema(note)
        .field(-1)
        .equals(pa.field(f"__embed_{number}", pa.utf8(), nullable=True))
    )


def test_readers_see_present_names_and_tables_keep_their_columns():
    document = build_schema(Source("<schema>", "node Lamp { a: I32 b: I32 }")).to_json()
    document["nodes"][0]["properties"][0]["name"] = "z"
    document["nodes"][0]["properties"].reverse()
    lamp = Catalog.from_ir(schema_from_json(document)).nodes["Lamp"]
    assert logical_schema(lamp).names == ["id", "b", "z"]
    assert physical_schema(lamp).names == ["id", "b", "a"]
