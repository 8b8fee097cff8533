"""Which indexes a type asks for."""

from __future__ import annotations

import pytest

from omnigraph.catalog.arrow import index_specs
from omnigraph.catalog.compile import compile_schema
from omnigraph.language.syntax import Source
from tests.support.workshop import WORKSHOP
from tests.unit.language.schemas import PAGES


def indexes(text: str, name: str = "Lamp") -> dict[str, str]:
    catalog = compile_schema(Source("<schema>", text))
    declared = catalog.nodes.get(name) or catalog.edges[name]
    return {intent.column: intent.kind.value for intent in index_specs(declared)}


@pytest.mark.parametrize(
    ("written", "kind"),
    [
        ("enum(a, b)", "btree"),
        ("Date?", "btree"),
        ("DateTime", "btree"),
        ("Bool", "btree"),
        *((number, "btree") for number in ("I32", "I64", "U32", "U64", "F32", "F64")),
        ("String?", "text"),
        ("Vector(3)", "vector"),
        pytest.param("[String]", None, marks=pytest.mark.acceptance("L-014")),
        ("[I32]", None),
    ],
)
def test_an_index_fits_the_type_of_its_property(written, kind):
    found = indexes(f"node Lamp {{ p: {written}  @index(p) }}")
    assert found == ({"id": "btree", "p": kind} if kind else {"id": "btree"})


def test_a_key_of_one_property_is_indexed():
    assert indexes("node Lamp { code: I64 @key }") == {"id": "btree", "code": "btree"}
    assert indexes(PAGES, "Page") == {
        "id": "btree",
        "slug": "text",
        "title": "text",
        "vec": "vector",
    }


def test_groups_of_several_properties_are_not_materialised():
    assert indexes("node Lamp { a: I32 b: I32 @key(a, b) @index(b, a) }") == {"id": "btree"}


def test_unique_alone_asks_for_no_index():
    assert indexes("node Lamp { a: I32 @unique }") == {"id": "btree"}


def test_an_edge_is_indexed_by_its_id_and_ends():
    assert indexes(WORKSHOP, "Borrows") == {"id": "btree", "src": "btree", "dst": "btree"}


def test_a_property_indexed_twice_has_one_index():
    text = "node Lamp { a: I32 @index  @index(a)  @key(a) }"
    catalog = compile_schema(Source("<schema>", text))
    columns = [intent.column for intent in index_specs(catalog.nodes["Lamp"])]
    assert columns == ["id", "a"]
