"""The canonical form of a schema: what it ignores, its hash, its numbers and its JSON."""

from __future__ import annotations

import hashlib
import json

import pytest

from omnigraph.catalog.compile import build_schema
from omnigraph.catalog.identity import allocate_identities, physical_column
from omnigraph.catalog.ir import SchemaIR, TypeIR, schema_from_json
from omnigraph.catalog.model import Catalog
from omnigraph.language.syntax import Source
from tests.support.workshop import WORKSHOP
from tests.unit.language.schemas import NOTES, PAGES

TAG = "node Tag { slug: String @key }"

EVERYTHING = r"""
interface Named { name: String @index  nick: String? }
interface Aged { age: I32? }
node Item @description("a \"thing\"") @hue(warm) implements Named, Aged {
    code: I64
    kind: enum(b, a)
    vec: Vector(3)? @embed(name) @index
    pic: Blob?
    tags: [String]?
    w: F64 @backfill("-1.5")
    u: U64  v: U32  f: F32  d: Date  t: DateTime  ok: Bool
    @key(kind, code)
    @unique(w, d)
    @range(w, -1.5..)
    @range(u, ..7)
    @check(name, "^\\d\"é$")
}
edge Near: Item -> Item @card(1..3) @rename_from("Close") { note: String?  @unique(src, dst) }
"""


def ir(text: str) -> SchemaIR:
    return build_schema(Source("<schema>", text))


@pytest.mark.acceptance("L-035")
def test_numbers_column_and_hash_of_a_small_schema():
    schema = ir(TAG)
    (tag,) = schema.nodes
    (slug,) = tag.properties
    assert (tag.type_id, slug.prop_id, slug.column, schema.next_id) == (1, 2, "slug", 3)
    assert schema.hash == (
        "sha256:d790725e086599c3634dc6af13c00d23f80dc426fe4e33b9496e6c771fd8a007"
    )


def test_the_hash_covers_the_compact_json_without_identities():
    compact = (
        '{"ir_version":2,"interfaces":[],"nodes":[{"name":"Tag","annotations":[],"implements":[],'
        '"properties":[{"name":"slug","prop_type":{"scalar":"String","nullable":false,"list":false,'
        '"enum_values":null},"annotations":[{"name":"key","value":null}]}],'
        '"constraints":[{"Key":["slug"]}]}],"edges":[]}'
    )
    assert ir(TAG).hash == f"sha256:{hashlib.sha256(compact.encode()).hexdigest()}"


@pytest.mark.acceptance("L-036")
def test_comments_and_white_space_do_not_show_in_the_hash():
    other = "// a comment\n\n\tnode/**/Tag{\r\n slug /* x */ :String@key }//"
    assert ir(other) == ir(TAG)
    assert ir(other).hash == ir(TAG).hash


# fmt: off
# One pair per line.
EQUAL = [
    ("declarations", "node A { } node B { } edge E: A -> B edge F: B -> A interface I { } interface J { }", "interface J { } edge F: B -> A node B { } interface I { } edge E: A -> B node A { }"),
    ("properties", "node A { x: I32 y: String z: Date? }", "node A { z: Date? y: String x: I32 }"),
    ("properties of an interface", "interface A { x: I32 y: String }", "interface A { y: String x: I32 }"),
    ("properties of an edge", "node A { } edge E: A -> A { x: I32 y: I32 }", "node A { } edge E: A -> A { y: I32 x: I32 }"),
    ("enum values", "node A { k: enum(b, a, c) }", "node A { k: enum(c, b, a) }"),
    ("constraints", 'node A { x: I32 s: String @key(x) @unique(s) @index(s) @range(x, 0..1) @check(s, "a") }', 'node A { @check(s, "a") @range(x, 0..1) @index(s) x: I32 @unique(s) @key(x) s: String }'),
    ("key columns", "node A { x: I32 y: I32 @key(y, x) }", "node A { x: I32 y: I32 @key(x, y) }"),
    ("unique columns", "node A { } edge E: A -> A { y: I32 @unique(y, dst, src) }", "node A { } edge E: A -> A { y: I32 @unique(src, dst, y) }"),
    ("index columns", "node A { x: I32 y: I32 @index(y, x) }", "node A { x: I32 y: I32 @index(x, y) }"),
    ("implements", "interface I { x: I32 } interface J { y: I32 } node A implements I, J { }", "interface I { x: I32 } interface J { y: I32 } node A implements J, I, J { }"),
    ("annotations", "node A @b(2) @a(1) @b(1) { }", "node A @b(1) @b(2) @a(1) { }"),
    ("quotes of a value", 'node A { t: String v: Vector(2) @embed("t") @hue("1.0") }', "node A { t: String v: Vector(2) @embed(t) @hue(1.0) }"),
    ("leading zeros", "node A { v: Vector(3) w: I32 @range(w, 0..10) }", "node A { v: Vector(003) w: I32 @range(w, 00..010) }"),
    ("default cardinality", "node A { } edge E: A -> A", "node A { } edge E: A -> A @card(0..) { }"),
    ("where a property comes from", "interface I { x: I32 } node A implements I { }", "interface I { x: I32 } node A implements I { x: I32 }"),
]

DIFFERENT = [
    ("type name", "node A { }", "node B { }"),
    ("property name", "node A { x: I32 }", "node A { y: I32 }"),
    ("nullability", "node A { x: I32 }", "node A { x: I32? }"),
    ("list", "node A { x: I32 }", "node A { x: [I32] }"),
    ("enum and String", "node A { x: enum(a) }", "node A { x: String }"),
    ("direction", "node A { } node B { } edge E: A -> B", "node A { } node B { } edge E: B -> A"),
    ("cardinality", "node A { } edge E: A -> A", "node A { } edge E: A -> A @card(0..1)"),
    ("annotation and constraint", "node A { x: I32 @key }", "node A { x: I32 @key(x) }"),
    ("annotation value", "node A @hue(a) { }", "node A @hue(b) { }"),
    ("missing and empty value", "node A @hue { }", 'node A @hue("") { }'),
    ("integer and float bound", "node A { x: F64 @range(x, 0..1) }", "node A { x: F64 @range(x, 0.0..1) }"),
    ("side of a bound", "node A { x: F64 @range(x, 1..) }", "node A { x: F64 @range(x, ..1) }"),
    ("interface", "node A { }", "node A { } interface I { }"),
    ("groups", "node A { x: I32 y: I32 @unique(x, y) }", "node A { x: I32 y: I32 @unique(x) @unique(y) }"),
]
# fmt: on


@pytest.mark.parametrize(("what", "one", "other"), EQUAL, ids=[row[0] for row in EQUAL])
def test_the_form_does_not_depend_on(what, one, other):
    assert ir(one) == ir(other)
    assert ir(one).hash == ir(other).hash


@pytest.mark.parametrize(("what", "one", "other"), DIFFERENT, ids=[row[0] for row in DIFFERENT])
def test_the_hash_depends_on(what, one, other):
    assert ir(one).hash != ir(other).hash


# -- identities ---------------------------------------------------------------------------------


def types(schema: SchemaIR) -> tuple[TypeIR, ...]:
    return (*schema.interfaces, *schema.nodes, *schema.edges)


def numbers(schema: SchemaIR) -> dict[str, int]:
    found: dict[str, int] = {}
    for declared in types(schema):
        found[declared.name] = declared.type_id
        found |= {f"{declared.name}.{p.name}": p.prop_id for p in declared.properties}
    return found


def test_numbers_go_to_interfaces_nodes_and_edges_by_name_each_with_its_properties():
    schema = ir(
        "edge Z: B -> A { q: I32 p: I32 } edge Y: A -> A "
        "node B { } node A implements J, I { b: I32 } "
        "interface J { z: I32 a: I32 } interface I { }"
    )
    assert list(numbers(schema).items()) == [
        *(("I", 1), ("J", 2), ("J.a", 3), ("J.z", 4)),
        *(("A", 5), ("A.a", 6), ("A.b", 7), ("A.z", 8), ("B", 9)),
        *(("Y", 10), ("Z", 11), ("Z.p", 12), ("Z.q", 13)),
    ]
    assert schema.next_id == 14


def test_columns_of_a_new_graph_are_called_like_their_properties():
    assert all(p.column == p.name for t in types(ir(EVERYTHING)) for p in t.properties)


def test_the_hash_does_not_depend_on_identities():
    schema = ir(EVERYTHING)
    document = schema.to_json()
    document["next_id"] = 99
    document["nodes"][0]["type_id"] = 50
    document["nodes"][0]["properties"][0] |= {"prop_id": 51, "column": "old"}
    moved = schema_from_json(document)
    assert moved != schema
    assert moved.hash == schema.hash
    assert allocate_identities(moved) == schema


@pytest.mark.parametrize(
    ("used", "column"),
    [
        ((), "score"),
        (("age",), "score"),
        (("score",), "score__7"),
        (("score", "score__5"), "score__7"),
    ],
)
def test_a_column_name_is_never_used_twice(used, column):
    assert physical_column("score", 7, used) == column


# -- JSON ---------------------------------------------------------------------------------------


def test_the_json_has_its_fields_in_their_order():
    document = ir(EVERYTHING).to_json()
    assert list(document) == ["ir_version", "next_id", "interfaces", "nodes", "edges"]
    assert document["ir_version"] == 2
    (item,), (near,) = document["nodes"], document["edges"]
    assert list(document["interfaces"][0]) == ["name", "type_id", "properties"]
    assert list(item) == [
        *("name", "type_id", "annotations", "implements", "properties", "constraints"),
    ]
    assert list(near) == [
        *("name", "type_id", "from_type", "to_type", "cardinality"),
        *("annotations", "properties", "constraints"),
    ]
    assert list(item["properties"][0]) == ["name", "prop_id", "column", "prop_type", "annotations"]


def test_the_json_spells_out_types_constraints_and_annotations():
    (item,), (near,) = ir(EVERYTHING).to_json()["nodes"], ir(EVERYTHING).to_json()["edges"]
    shown = {p["name"]: p["prop_type"] for p in item["properties"]}
    assert shown["vec"] == {
        "scalar": {"Vector": 3},
        "nullable": True,
        "list": False,
        "enum_values": None,
    }
    assert shown["kind"] == {
        "scalar": "String",
        "nullable": False,
        "list": False,
        "enum_values": ["a", "b"],
    }
    assert shown["tags"] == {
        "scalar": "String",
        "nullable": True,
        "list": True,
        "enum_values": None,
    }
    assert item["implements"] == ["Aged", "Named"]
    assert item["annotations"] == [
        {"name": "description", "value": 'a "thing"'},
        {"name": "hue", "value": "warm"},
    ]
    assert item["constraints"] == [
        {"Check": {"property": "name", "pattern": '^\\d"é$'}},
        {"Index": ["name"]},
        {"Index": ["vec"]},
        {"Key": ["code", "kind"]},
        {"Range": {"property": "u", "min": None, "max": {"Integer": 7}}},
        {"Range": {"property": "w", "min": {"Float": -1.5}, "max": None}},
        {"Unique": ["d", "w"]},
    ]
    assert near["cardinality"] == {"min": 1, "max": 3}
    assert near["constraints"] == [{"Unique": ["dst", "src"]}]
    vector = next(p for p in item["properties"] if p["name"] == "vec")
    assert vector["annotations"] == [
        {"name": "embed", "value": "name"},
        {"name": "index", "value": None},
    ]


@pytest.mark.parametrize("text", ["", TAG, WORKSHOP, PAGES, NOTES, EVERYTHING])
def test_a_schema_reads_back_from_its_json(text):
    schema = ir(text)
    again = schema_from_json(json.loads(json.dumps(schema.to_json())))
    assert again == schema
    assert again.hash == schema.hash


@pytest.mark.parametrize(
    "document",
    [
        *(None, [], {}, {"ir_version": 1}, {"ir_version": 2, "next_id": 1}, {"ir_version": "2"}),
        ir("node A { }").to_json() | {"edges": [3]},
        {**ir(TAG).to_json(), "nodes": [{**ir(TAG).to_json()["nodes"][0], "constraints": ["x"]}]},
    ],
)
def test_a_document_of_another_shape_is_refused(document):
    with pytest.raises(ValueError):
        schema_from_json(document)


# -- identity order -----------------------------------------------------------------------------


def renamed(schema: SchemaIR, names: dict[str, str]) -> SchemaIR:
    """The schema after a rename of properties: numbers stay, everything is sorted again."""
    document = schema.to_json()
    for declared in (*document["nodes"], *document["edges"]):
        for prop in declared["properties"]:
            prop["name"] = names.get(prop["name"], prop["name"])
        declared["properties"].sort(key=lambda p: p["name"])
        for constraint in declared["constraints"]:
            for kind in ("Key", "Unique", "Index"):
                if kind in constraint:
                    constraint[kind] = sorted(names.get(c, c) for c in constraint[kind])
    return schema_from_json(document)


def test_a_rename_does_not_change_the_identity_order():
    schema = ir(
        "node A { a: I32 b: I32 @key(b, a) @unique(a, b) } "
        "edge E: A -> A { a: I32 b: I32 @unique(src, dst, a, b) }"
    )
    before, after = Catalog.from_ir(schema), Catalog.from_ir(renamed(schema, {"a": "z"}))
    assert before.nodes["A"].key == ("a", "b")
    assert after.nodes["A"].key == ("z", "b")
    assert after.nodes["A"].unique_groups == (("z", "b"),)
    assert after.edges["E"].identity == ("src", "dst", "z", "b")
    assert after.nodes["A"].properties["z"].column == "a"


def test_a_rename_does_not_change_which_group_identifies_an_edge():
    schema = ir(
        "node A { } edge E: A -> A { a: I32 b: I32 @unique(src, dst, a) @unique(src, dst, b) }"
    )
    assert Catalog.from_ir(schema).edges["E"].identity == ("src", "dst", "a")
    after = Catalog.from_ir(renamed(schema, {"a": "z"}))
    assert after.edges["E"].identity == ("src", "dst", "z")


def test_a_key_of_both_ends_is_the_identity_of_an_edge():
    nodes = "node Item { code: String @key }"
    edge = "edge Near: Item -> Item { kind: String  %s }"
    keyed = ir(f"{nodes}\n{edge % '@key(@src, @dst, kind)'}")
    unique = ir(f"{nodes}\n{edge % '@unique(src, dst, kind)'}")
    assert (keyed, keyed.hash) == (unique, unique.hash)
    assert Catalog.from_ir(keyed).edges["Near"].identity == ("src", "dst", "kind")
    both = ir(f"{nodes}\n{edge % '@unique(kind, dst, src) @key(kind, @dst, @src)'}")
    assert both == unique


def test_the_model_of_a_vector_is_part_of_the_schema():
    text = "node Note { body: String  vec: Vector(4) @embed(body%s) }"
    plain, named = ir(text % ""), ir(text % ', model="openai/x"')
    assert plain.hash != named.hash
    assert "arguments" not in json.dumps(plain.to_json())
    assert schema_from_json(named.to_json()) == named
    vec = Catalog.from_ir(named).nodes["Note"].properties["vec"]
    assert (vec.embed_source, vec.embed_model) == ("body", "openai/x")
