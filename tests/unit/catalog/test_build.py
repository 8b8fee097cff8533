"""What a schema file becomes in the catalog, and the rules across its declarations."""

from __future__ import annotations

import pytest

from omnigraph.catalog.compile import build_schema, check_reserved_names, compile_schema
from omnigraph.catalog.ir import AnnotationIR, CardinalityIR, CheckIR, RangeIR
from omnigraph.catalog.model import Catalog, EdgeType, NodeType
from omnigraph.language.schema.resolve import resolve_schema
from omnigraph.language.syntax import Source
from tests.support.workshop import WORKSHOP
from tests.unit.language.places import raises, refusal, table


def catalog(text: str) -> Catalog:
    return compile_schema(Source("<schema>", text))


def node(text: str, name: str = "Lamp") -> NodeType:
    return catalog(text).nodes[name]


def edge(text: str, name: str = "Lit") -> EdgeType:
    return catalog(f"node L {{ a: String }} {text}").edges[name]


def display(declared: NodeType | EdgeType) -> dict[str, str]:
    return {name: prop.type.display for name, prop in declared.properties.items()}


@pytest.mark.acceptance("L-001")
def test_the_workshop_schema_is_accepted():
    workshop = catalog(WORKSHOP)
    assert list(workshop.nodes) == ["Maker", "Shed", "Tool"]
    assert list(workshop.edges) == ["Borrows", "Mentors", "StoredIn"]
    assert workshop.nodes["Maker"].columns == (
        *("id", "active", "age", "handle", "joined", "level", "score", "skills"),
    )
    assert workshop.edges["Mentors"].columns == ("id", "src", "dst", "since")
    assert workshop.edges["Mentors"].is_self_typed
    assert not workshop.edges["Borrows"].is_self_typed


# fmt: off
# One row per line.
REFUSED = table(
    ("S40", "node X { } node «X» { }", "duplicate node type: X"),
    ("S40", "node A { } edge X: A -> A edge «X»: A -> A", "duplicate edge type: X"),
    ("S40", "interface X { } interface «X» { }", "duplicate interface: X"),
    ("S41", "node L { a: String  «a»: I32 }", "duplicate property 'a' on L", "L-040"),
    ("S41", "node A { } edge E: A -> A { a: String  «a»: String }", "duplicate property 'a' on E"),
    ("S41", "interface I { a: String  «a»: String }", "duplicate property 'a' on I"),
    ("S42", "node L { a: String }  edge Lit: L -> «Room»", "references unknown target type: Room", "L-026"),
    ("S42", "node L { a: String }  edge Lit: «Room» -> L", "references unknown source type: Room"),
    ("S42", "interface I { } node L { } edge Lit: L -> «I»", "references unknown target type: I"),
    ("S43", "node L { a: String }  edge Lit: L -> L  edge «LIT»: L -> L", "edge name collision after case folding", "L-030"),
    ("S43", "node L { }  edge ABc: L -> L  edge Zz: L -> L  edge «Abc»: L -> L", "edge name collision after case folding"),
)

ORDER = table(
    ("S33", "edge E: A -> Nope node A { @key(«x») }", "rules of one file come before names across it"),
    ("S41", "edge E: A -> Nope node A { a: I32 «a»: I32 }", "the canonical form comes before the catalog"),
    ("S40", "edge E: Nope -> Nope node A { } node «A» { }", "equal names come before ends"),
)
# fmt: on


@pytest.mark.parametrize(("code", "text", "fragment"), REFUSED)
def test_declarations_that_contradict_each_other_are_refused(code, text, fragment):
    raises("catalog", code, fragment, refusal(compile_schema, text))


@pytest.mark.parametrize("text", [row.values[1] for row in REFUSED])
def test_declarations_that_contradict_each_other_still_parse(text):
    resolve_schema(Source("<schema>", text.replace("«", "").replace("»", "")))


@pytest.mark.parametrize(("code", "text", "reason"), ORDER)
def test_checks_run_in_their_order(code, text, reason):
    assert refusal(compile_schema, text).code == code, reason


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("node X { } interface X { } edge X: X -> X", id="one name for every kind"),
        pytest.param("node A { } edge Works_at: A -> A edge WorksAt: A -> A", id="underscore"),
        pytest.param(
            "node A { x: I32 } node a_ { x: I32 }".replace("a_", "AA"), id="same property"
        ),
        pytest.param("edge E: A -> A node A { }", id="ends declared later"),
    ],
)
def test_names_that_do_not_clash_are_accepted(text):
    catalog(text)


ON_BOTH = [
    "_rowid",
    "_rowaddr",
    "_rowoffset",
    "_row_created_at_version",
    "_row_last_updated_at_version",
    "__x",
    "__",
]


@pytest.mark.parametrize(
    "text",
    [
        "node L { «id»: String }",
        "edge E: L -> L { «id»: String }",
        "edge E: L -> L { «src»: String }",
        "edge E: L -> L { «dst»: String }",
        *(f"node L {{ a: I32 «{name}»: String }}" for name in ON_BOTH),
        *(f"edge E: L -> L {{ «{name}»: String }}" for name in ON_BOTH),
        "interface I { «__x»: String } node L implements I { }",
    ],
)
def test_a_reserved_property_name_is_refused_when_a_graph_is_made(text):
    raises("catalog", "S46", "is reserved", refusal(check_reserved_names, text))
    plain = f"{text} node L {{ }}" if "node L" not in text else text
    resolve_schema(Source("<schema>", plain.replace("«", "").replace("»", "")))


@pytest.mark.parametrize(
    "text",
    [
        "node L { src: String dst: String _x: I32 _row: I32 idx: I32 }",
        "edge E: L -> L { from: String to: String _id: I32 }",
    ],
)
def test_other_property_names_are_not_reserved(text):
    check_reserved_names(Source("<schema>", text))


# -- what is kept -------------------------------------------------------------------------------


@pytest.mark.acceptance("L-008")
def test_enum_values_may_start_with_a_digit_and_hold_hyphens():
    level = node("node Lamp { s: enum(dim_able, 3-way)? }").properties["s"].type
    assert level.enum_values == ("3-way", "dim_able")
    assert level.display == "enum(3-way, dim_able)?"


@pytest.mark.parametrize(
    ("written", "shown"),
    [("[ String ] ?", "[String]?"), ("enum(b, a)?", "enum(a, b)?"), ("Vector(03)", "Vector(3)")],
)
def test_types_have_one_display_name(written, shown):
    assert display(node(f"node Lamp {{ p: {written} }}")) == {"p": shown}


@pytest.mark.acceptance("L-025")
def test_unknown_annotations_are_kept():
    lamp = node('node Lamp @shelf("top") { t: String @hue(warm) }')
    assert lamp.annotations == (AnnotationIR("shelf", "top"),)
    assert lamp.properties["t"].annotations == (AnnotationIR("hue", "warm"),)


@pytest.mark.parametrize(
    ("written", "low", "high"),
    [
        pytest.param("-5..5", -5, 5, marks=pytest.mark.acceptance("L-016")),
        ("..5", None, 5),
        ("-1.5..", -1.5, None),
        ("0..9223372036854775807", 0, 2**63 - 1),
        ("-9223372036854775808..9223372036854775808", -(2**63), float(2**63)),
        ("0.0..007", 0.0, 7),
        (f"-{'0' * 30}5..{'0' * 5000}9", -5, 9),
        (f"0..1{'0' * 30}", 0, 1e30),
    ],
)
def test_range_bounds_are_integers_where_they_fit(written, low, high):
    (found,) = node(f"node Lamp {{ w: F64  @range(w, {written}) }}").ranges
    assert found == RangeIR("w", low, high)
    assert (type(found.low), type(found.high)) == (type(low), type(high))


@pytest.mark.parametrize(
    ("written", "pattern"),
    [
        (r"\\d+", r"\d+"),
        ("(", "("),
    ],
)
def test_a_pattern_is_kept_without_validation(written, pattern):
    lamp = node(f'node Lamp {{ c: String  @check(c, "{written}") }}')
    assert lamp.checks == (CheckIR("c", pattern),)


@pytest.mark.parametrize(
    ("written", "low", "high"),
    [
        ("", 0, None),
        pytest.param("@card(1..)", 1, None, marks=pytest.mark.acceptance("L-028")),
        ("@card(0..1)", 0, 1),
        ("@card(4294967295..4294967295)", 2**32 - 1, 2**32 - 1),
    ],
)
def test_cardinality_is_kept(written, low, high):
    assert edge(f"edge Lit: L -> L {written}").cardinality == CardinalityIR(low, high)


# -- keys, unique and index groups --------------------------------------------------------------


@pytest.mark.acceptance("L-011")
def test_a_key_tuple_is_in_identity_order():
    assert node("node Lamp { a: String  b: I64  @key(b, a) }").key == ("a", "b")


def test_a_node_may_have_properties_called_like_the_ends_of_an_edge():
    lamp = node("node Lamp { src: I32  dst: I32  a: I32  @key(src, dst, a)  @unique(src, a) }")
    assert lamp.key == ("a", "dst", "src")
    assert lamp.unique_groups == (("a", "src"),)


@pytest.mark.acceptance("L-034")
def test_an_index_argument_names_the_property_it_means():
    assert node("node Bin { email: String @index(name)  name: String }", "Bin").index_groups == (
        ("name",),
    )


def test_index_groups_start_with_the_key():
    lamp = node("node Lamp { z: String @key  a: I32 @index  b: I32  @index(b, a) @index(z, a) }")
    assert lamp.key == ("z",)
    assert lamp.index_groups[0] == ("z",)
    assert sorted(lamp.index_groups[1:]) == [("a",), ("a", "b"), ("a", "z")]


def test_unique_groups_are_kept_as_tuples():
    lamp = node("node Lamp { b: String @unique  a: I32  @unique(b, a) }")
    assert sorted(lamp.unique_groups) == [("a", "b"), ("b",)]
    assert lamp.key is None


@pytest.mark.parametrize(
    ("body", "identity"),
    [
        pytest.param(
            "w: I32?  @unique(src, dst, w)",
            ("src", "dst", "w"),
            marks=pytest.mark.acceptance("L-041"),
        ),
        ("@unique(dst, src)", ("src", "dst")),
        ("@unique(src)", None),
        ("@unique(dst) @unique(src)", None),
        ("w: I32  @unique(w, src)", None),
        ("w: I32  @index(src, dst)", None),
        ("w: I32  @unique(w, dst, src)  @unique(src, dst)", ("src", "dst")),
        ("b: I32 a: I32  @unique(src, dst, b)  @unique(dst, src, a)", ("src", "dst", "a")),
        ("b: I32 a: I32  @unique(src, dst, b, a)  @unique(src, dst, b)", ("src", "dst", "b")),
        ("b: I32 a: I32  @unique(b, src, a, dst)", ("src", "dst", "a", "b")),
    ],
)
def test_an_edge_is_identified_by_its_smallest_group_with_both_ends(body, identity):
    lit = edge(f"edge Lit: L -> L {{ {body} }}")
    assert lit.identity == identity
    if identity is not None:
        assert identity in lit.unique_groups


def test_only_vectors_computed_from_text_are_in_the_embed_map():
    text = 'node Lamp { body: String  v: Vector(2)? @embed("body")  w: Vector(2) b: Blob }'
    assert node(text).properties["v"].embed_source == "body"
    assert node(text).blobs == {"b"}


@pytest.mark.parametrize("word", ["worksAt", "worksat", "WORKSAT", "WorksAt"])
def test_a_traversal_finds_its_edge_whatever_the_capitals(word):
    found = catalog("node A { } edge WorksAt: A -> A").edge_for_traversal(word)
    assert found is not None
    assert found.name == "WorksAt"


def test_a_traversal_does_not_ignore_underscores():
    assert catalog("node A { } edge WorksAt: A -> A").edge_for_traversal("works_at") is None


# -- interfaces ---------------------------------------------------------------------------------


@pytest.mark.acceptance("L-031")
def test_an_interface_gives_its_properties_and_key():
    text = "interface Tagged { tag: String @key }  node Bin implements Tagged { size: I32? }"
    found = node(text, "Bin")
    assert list(found.properties) == ["size", "tag"]
    assert found.key == ("tag",)
    assert found.implements == ("Tagged",)


def test_a_redeclared_property_does_not_inherit_annotations():
    text = "interface I { a: String @key @hue(warm) } node Lamp implements I { a: String }"
    lamp = node(text)
    assert lamp.key is None
    assert lamp.properties["a"].annotations == ()


def test_the_first_of_two_interfaces_gives_a_shared_property():
    text = "interface I { a: String @index } interface J { a: String @key }"
    assert node(f"{text} node Lamp implements I, J {{ }}").key is None
    assert node(f"{text} node Lamp implements J, I {{ }}").key == ("a",)


def test_two_interfaces_must_agree_on_a_shared_property():
    text = "interface I { a: String } interface J { a: I32 } node Lamp implements I, J { }"
    assert refusal(resolve_schema, text, marked=False).code == "S16"


def test_an_interface_named_twice_gives_its_properties_once():
    lamp = node("interface I { a: String @key } node Lamp implements I, I { }")
    assert (lamp.key, lamp.implements) == (("a",), ("I",))


@pytest.mark.parametrize(
    ("text", "code", "fragment"),
    [
        ("interface I { t: [String] «@key» } node B implements I { }", "S20", "property B.t"),
        ("interface I { t: String @key } node B implements I { u: I32 @key }", "S32", "multiple"),
        ("interface I { «t»: String? @key } node B implements I { }", "S34", "cannot be nullable"),
        ("interface I { v: Vector(2) «@embed(x)» } node B implements I { }", "S29", "unknown"),
        ("interface I { v: Vector(«0») }", "S3", "greater than zero"),
    ],
)
def test_rules_hold_for_what_an_interface_brings(text, code, fragment):
    raises("parse", code, fragment, refusal(resolve_schema, text, marked="«" in text))


def test_an_embedded_vector_may_come_from_an_interface_and_its_text_from_the_node():
    lamp = node("interface I { v: Vector(2)? @embed(t) } node Lamp implements I { t: String }")
    assert lamp.properties["v"].embed_source == "t"


def test_property_level_forms_follow_the_written_constraints_and_interfaces_come_last():
    text = (
        "interface I { i: I32 @index } "
        "node Lamp implements I { b: I32 @unique a: I32 @index @unique(a) }"
    )
    (lamp,) = resolve_schema(Source("<schema>", text)).nodes
    written = [(c.kind.value, *(str(n) for n in c.columns)) for c in lamp.constraints]
    assert written == [("unique", "a"), ("unique", "b"), ("index", "a"), ("index", "i")]


def test_every_accepted_schema_can_be_built():
    assert build_schema(Source("<schema>", "")).next_id == 1
