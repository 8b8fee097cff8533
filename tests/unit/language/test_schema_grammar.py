"""What a schema file may look like: tokens, declarations, and where the grammar says no."""

from __future__ import annotations

import pytest

from omnigraph.errors import ParseError
from omnigraph.language.schema.resolve import resolve_schema
from omnigraph.language.syntax import Source
from tests.unit.language.places import refusal, table

# fmt: off
# One row per line.
REFUSED = table(
    ("S1", "node «crate» { n: String }", "type name", "L-002"),
    ("S1", "node Lamp { «Watt»: I32 }", "property", "L-003"),
    ("S1", "«#» note\n", "`#` does not start a comment", "L-004"),
    ("S1", "«nodeLamp» { a: String }", "", "L-043"),
    ("S1", "«edgeLit»: L -> L", ""),
    ("S1", "«interfaceI» { }", ""),
    ("S1", "node A «implementsI» { }", ""),
    ("S1", "node L { a: «Strings» }", "type"),
    ("S1", "node L { a: I32«»", "the end of the file"),
    ("S1", "node L «»", "the end of the file"),
    ("S1", "node L { } «}»", ""),
    ("S1", "node Gr«ö»sse { }", "unexpected character 'ö'"),
    ("S1", "node L { a: String«,» b: I32 }", ""),
    ("S1", "node L { a: String«;» }", ""),
    ("S1", "node L { a: [String«?»] }", ""),
    ("S1", "node L { a: [«[»I32]] }", ""),
    ("S1", "node L { a: [«enum»(a)] }", ""),
    ("S1", "node L { a: [«Vector»(2)] }", ""),
    ("S1", "node L { a: enum(«)» }", "enum"),
    ("S1", "node L { a: enum(x «y») }", "enum"),
    ("S1", "node L { a: enum(x«->»y) }", "after the enum value"),
    ("S1", "node L { a: enum(«1.5») }", "after the enum value"),
    ("S1", "node L { w: I32 @range(w, «-» 5..9) }", ""),
    ("S1", "node L { w: I32 @range(w, -5«)» }", "negative"),
    ("S1", "node L { a: Vector(«-»1) }", ""),
    ("S1", "node L { a: Vector(«1.5») }", ""),
    ("S1", "node L { a: String @hue(«)» }", ""),
    ("S1", "node L { a: String @hue(«-»1) }", ""),
    ("S1", "node L @hue(0«..»1) { }", ""),
    ("S1", "node L { @key(«)» }", ""),
    ("S1", "node L { @«hue» }", ""),
    ("S1", "interface I «@»hue { }", ""),
    ("S1", "interface I «implements» J { }", ""),
    ("S1", "interface I { «@»key(a) }", ""),
    ("S1", "interface I { a: String «@»key(a) }", ""),
    ("S1", "node A implements I «@»hue { }", ""),
    ("S1", "node A implements I, «{» }", ""),
    ("S1", "edge E: A «B»", ""),
    ("S1", "edge E «A» -> B", ""),
    ("S1", "edge E: A -> B { } «{» }", ""),
    ("S1", "edge E: A -> B @card(0..«*»)", ""),
    ("S1", "node L { w: I32 @range(w, ..«)» }", ""),
    ("S1", "node L { w: I32 @range(w, «+»1..2) }", ""),
    ("S1", "node L { a: String } «/»* never closed", "comment"),
    ("S1", "node L { } /* /* */ «*»/", ""),
    ("S1", "node L @hue(«\"»never closed) { }", "string"),
    ("S1", "node L @hue(«'»x') { }", "double quotes"),
)
# fmt: on


@pytest.mark.parametrize(("code", "text", "fragment"), REFUSED)
def test_text_outside_the_grammar_is_refused_where_it_leaves_it(code, text, fragment):
    diagnostic = refusal(resolve_schema, text)
    assert (diagnostic.code, diagnostic.category) == (code, "parse")
    assert fragment in diagnostic.message


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="empty file"),
        pytest.param(" \t\r\n// only a comment", id="comment at the end of the file"),
        pytest.param("node L { } // a \r b /* c\r\nnode M { }", id="line comment ends at LF"),
        pytest.param("/* a\n * / ** **/ node L { }", id="block comment"),
        pytest.param("node L { }", id="empty node"),
        pytest.param("edge E: A -> B", id="edge without body"),
        pytest.param("edge E: A -> B { }", id="edge with an empty body"),
        pytest.param("interface I { }", id="empty interface"),
        pytest.param("node L{a:String@key b:I32?@hue(x)}", id="no white space"),
        pytest.param("node L { a : [ String ] ? }", id="white space between all tokens"),
        pytest.param("node L { a: String @ /* x */ key }", id="comment inside an annotation"),
        pytest.param("node L { a: String @key /* x */ (a) }", id="comment before an argument"),
        pytest.param("edge E: A -> B @ card ( 1 .. )", id="white space in a cardinality"),
        pytest.param("node Node_1 { _: String __x: I32 aB_9: I32 }", id="names"),
        pytest.param("node L { node: String edge: I32 implements: I32 enum: I32 }", id="keywords"),
        pytest.param(
            "node L { s: enum(-, a-, --b, 3-way, A_b, node, true, 007) }", id="enum values"
        ),
        pytest.param("node L { s: enum(a-//x\n, b/*y*/) }", id="comments between enum values"),
        pytest.param('node L @d("größe\n日本 \U0001f600") { }', id="any character in a text"),
        pytest.param("node L { a: String @nodex @key2 @card }", id="annotation names"),
    ],
)
def test_the_grammar_is_generous_where_it_says_so(text):
    resolve_schema(Source("<schema>", text))


def only_node(text: str):
    (node,) = resolve_schema(Source("<schema>", text)).nodes
    return node


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ('"top"', "top"),
        (r'"a\"b\\c\nd\re\tf"', 'a"b\\c\nd\re\tf'),
        ("warm", "warm"),
        ("1.50", "1.50"),
        ("007", "007"),
        ("true", "true"),
        ('""', ""),
    ],
)
def test_an_annotation_keeps_its_value_as_text(written, kept):
    (annotation,) = only_node(f"node L @hue({written}) {{ }}").annotations
    assert annotation.value.text == kept


@pytest.mark.parametrize("depth", [100, 10_000])
def test_nested_brackets_are_refused_without_a_crash(depth):
    with pytest.raises(ParseError):
        resolve_schema(Source("<schema>", f"node L {{ a: {'[' * depth}I32{']' * depth} }}"))
