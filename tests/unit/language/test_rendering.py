"""How an error shows its place: positions, the underlined line, and the hint."""

from __future__ import annotations

import pickle

import pytest

from omnigraph.catalog.compile import compile_schema
from omnigraph.diagnostics import cut_values, shortened
from omnigraph.errors import InputError, LanguageError, QuerySelectionError
from omnigraph.language.query.parse import parse_queries
from omnigraph.language.schema.resolve import resolve_schema
from omnigraph.language.syntax import Source
from omnigraph.plan.compile import compile_query
from tests.support.workshop import WORKSHOP
from tests.unit.language.places import refusal

CATALOG = compile_schema(Source("<schema>", WORKSHOP))


def rendered(use, source: Source) -> str:
    with pytest.raises(LanguageError) as caught:
        use(source)
    return str(caught.value)


def check_query(source: Source) -> object:
    return compile_query(source, CATALOG)


def underlined(text: str) -> str:
    """What stands above the carets of a rendered error."""
    _, line, carets, *_ = text.split("\n")
    return line[carets.index("^") : carets.rindex("^") + 1]


def test_an_error_shows_its_line_with_the_region_underlined_and_a_hint():
    text = "\n" * 9 + "query q() {\n  match { $m: Maker\n    $m.agee > 3 }\n  return { $m } }"
    assert rendered(check_query, Source("queries.gq", text)).split("\n") == [
        "queries.gq:12:8: type error: T6: type `Maker` has no property `agee`",
        "   12 |     $m.agee > 3 }",
        "      |        ^^^^",
        "   hint: did you mean `age`?",
    ]


@pytest.mark.acceptance("L-111")
def test_a_misspelt_property_of_a_query_is_underlined():
    text = "query q() {\n  match { $m: Maker  $m.agee > 3 }\n  return { $m.handle }\n}\n"
    shown = rendered(check_query, Source("q.gq", text))
    assert shown.startswith("q.gq:2:25: type error: T6")
    assert underlined(shown) == "agee"
    assert shown.endswith("\n   hint: did you mean `age`?")


@pytest.mark.acceptance("L-042")
def test_a_misspelt_property_of_a_schema_is_underlined():
    text = 'node L {\n    code: String\n    @check(cod, "x")\n}\n'
    shown = rendered(resolve_schema, Source("s.pg", text))
    headline = shown.partition("\n")[0]
    assert headline.startswith("s.pg:3:12: ")
    assert "references unknown property 'cod'" in headline
    assert underlined(shown) == "cod"
    assert shown.endswith("\n   hint: did you mean `code`?")


@pytest.mark.parametrize("name", ["<schema>", "a b/s.pg"])
def test_the_source_is_called_as_its_reader_called_it(name):
    with pytest.raises(LanguageError) as caught:
        resolve_schema(Source(name, "node lamp { }"))
    assert caught.value.diagnostic.headline.startswith(f"{name}:1:6: parse error: ")
    assert caught.value.diagnostic.position.file == name


@pytest.mark.parametrize(
    ("text", "place", "token"),
    [
        pytest.param("node L {\n\ta: String\n\tB: I32 }", (3, 2, 3, 3), "B", id="a tab is one"),
        pytest.param('node L @d("é😀日") { B: I32 }', (1, 20, 1, 21), "B", id="code points"),
        pytest.param("node L {\r\n  B: I32\r\n}", (2, 3, 2, 4), "B", id="line ends with CR LF"),
        pytest.param(
            'node L @description(\n\n  " \n") { }', (1, 8, 4, 3), "@description(", id="many lines"
        ),
        pytest.param("\nnode l { }", (2, 6, 2, 7), "l", id="line break at the very start"),
        pytest.param("node L {\n  a: Strings\n}", (2, 6, 2, 13), "Strings", id="end of a line"),
        pytest.param("node L { }\nnodes", (2, 1, 2, 6), "nodes", id="last line without a break"),
        pytest.param("node L {", (1, 9, 1, 10), "", id="end of file"),
        pytest.param("node L {\n", (2, 1, 2, 2), "", id="end of file after a line break"),
        pytest.param("node L", (1, 7, 1, 8), "", id="end of file inside a line"),
    ],
)
def test_lines_and_columns_count_from_one_in_code_points(text, place, token):
    diagnostic = refusal(resolve_schema, text, marked=False)
    at = diagnostic.position
    assert (at.line, at.column, at.end_line, at.end_column) == place
    assert underlined(diagnostic.render()) == token
    assert "\r" not in diagnostic.render()


def test_the_span_counts_bytes():
    text = 'node L @d("é😀日") { B: I32 }'
    at = refusal(resolve_schema, text, marked=False).position
    assert text.encode()[at.start : at.end] == b"B"


def test_at_the_end_of_the_file_the_span_is_one_byte_wide():
    text = 'node L @d("é") {'
    at = refusal(resolve_schema, text, marked=False).position
    assert (at.start, at.end) == (len(text.encode()), len(text.encode()) + 1)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("node L {\n  \ud800 }", id="between tokens"),
        pytest.param('node L\n @\ud800("a") {', id="in a broken text"),
        pytest.param('node L @d("\n  \ud800") { }', id="in a string"),
        pytest.param("node L { // x\n \t\udfff }", id="behind a tab"),
        pytest.param("/*\n  \udc00 */", id="in a comment"),
    ],
)
def test_half_a_character_is_refused_where_it_stands(text):
    diagnostic = refusal(resolve_schema, text, marked=False)
    assert (diagnostic.position.line, diagnostic.position.column) == (2, 3)
    assert r"unexpected character '\ud" in diagnostic.message
    diagnostic.render().encode()


@pytest.mark.parametrize("before", ["", "\t", "\t \t"])
def test_carets_stand_below_the_text_whatever_tabs_precede_it(before):
    diagnostic = refusal(resolve_schema, f"node L {{\n{before}«Bad»: I32 }}")
    _, line, carets = diagnostic.render().split("\n")
    indent = carets.index("^")
    assert line[indent:].startswith("Bad")
    assert carets[:indent].count("\t") == line[:indent].count("\t") == before.count("\t")


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("x" * 1_000_000 + " {}", id="one long word"),
        pytest.param("node L { a: String @d(" + '"' + "y" * 1_000_000 + '") B: I32 }', id="end"),
        pytest.param("B" + " " * 1_000_000, id="start"),
        pytest.param("node L { " + " " * 500_000 + "B: I32" + " " * 500_000, id="middle"),
    ],
)
def test_a_line_of_a_megabyte_stays_readable(text):
    shown = refusal(resolve_schema, text, marked=False).render()
    assert len(shown) < 1_000
    assert underlined(shown)
    assert set(underlined(shown)) <= {"x", "B"}


def test_cut_ends_of_a_line_are_marked():
    text = "node L { " + "a: I32 " * 1_000 + "B: I32 " + "c: I32 " * 1_000
    _, line, carets = refusal(resolve_schema, text, marked=False).render().split("\n")
    assert line.startswith("    1 | …")
    assert line.endswith("…")
    assert "a: I32 B: I32 c: I32" in line
    assert line[carets.index("^")] == "B"
    assert carets.count("^") == 1


@pytest.mark.parametrize("columns", [159, 160])
def test_a_line_that_fits_is_shown_whole(columns):
    text = "B".ljust(columns - 1) + "x"
    assert refusal(resolve_schema, text, marked=False).render().split("\n")[1] == f"    1 | {text}"


# -- hints --------------------------------------------------------------------------------------


def hint_for(written: str, *known: str) -> str | None:
    """The name suggested for an unknown property of a type with these properties."""
    catalog = compile_schema(
        Source("<schema>", f"node L {{ {' '.join(f'{k}: I32' for k in known)} }}")
    )
    text = f"query q() {{ match {{ $l: L }} return {{ $l.{written} }} }}"
    hint = refusal(lambda s: compile_query(s, catalog), text, marked=False).hint
    return None if hint is None else hint.removeprefix("did you mean `").removesuffix("`?")


@pytest.mark.parametrize(
    ("written", "known", "suggested"),
    [
        pytest.param("handel", ["handle", "age"], "handle", id="two letters swapped are two edits"),
        pytest.param("agee", ["age"], "age", id="one too many"),
        pytest.param("abe", ["age"], "age", id="one of three"),
        pytest.param("ab", ["ae"], None, id="half of the name is too much"),
        pytest.param("abcd", ["abxy"], None, id="two of four is half"),
        pytest.param("abcde", ["abcxy"], "abcxy", id="two of five"),
        pytest.param("abcdefghij", ["abcdefgxyz"], None, id="three edits never"),
        pytest.param("labels", ["lapel", "label"], "label", id="the nearest wins"),
        pytest.param("mat", ["rat", "cat", "bat"], "bat", id="ties go by the alphabet"),
        pytest.param("x", [], None, id="nothing known"),
    ],
)
def test_a_hint_names_the_closest_known_name(written, known, suggested):
    assert hint_for(written, *known) == suggested


@pytest.mark.parametrize(
    ("text", "name"),
    [
        pytest.param("query q() { match { $m: Makr } return { $m } }", "Maker", id="type"),
        pytest.param("query q() { match { $m: Maker $m mentor $x } return { $m } }", "mentors"),
        pytest.param("query q() { match { $m: Maker { agee: 3 } } return { $m } }", "age"),
        pytest.param(
            "query q($who: String) { match { $m: Maker { handle: $whoo } } return { $m } }", "who"
        ),
        pytest.param(
            "query q($who: String) { insert Shed { slug: $whoo } }", "who", id="in a mutation"
        ),
        pytest.param("query q() { match { $maker: Maker } return { $makr.age } }", "maker"),
        pytest.param(
            "query q() { match { $m: Maker } return { $m.age as years } order { yeers } }", "years"
        ),
        pytest.param("query q() { insert Shedd { slug: 3 } }", "Shed", id="insert"),
        pytest.param("query q() { update Maker set { agee: 3 } where age = 1 }", "age"),
        pytest.param("query q() { delete Borows where from = 3 }", "Borrows", id="delete"),
    ],
)
def test_names_of_every_kind_are_suggested(text, name):
    hint = refusal(check_query, text, marked=False).hint
    assert hint is not None
    assert f"`{name}`" in hint or f"`{name.lower()}`" in hint.lower()


def test_the_id_is_had_by_returning_the_variable():
    text = "query q() { match { $m: Maker } return { $m.«id» } }"
    assert refusal(check_query, text).hint == "return the variable itself to get the id"


def test_an_annotation_of_a_query_is_suggested():
    diagnostic = refusal(parse_queries, 'query q() @«descripton»("x") { }', marked=True)
    assert diagnostic.hint == "did you mean `description`?"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("interface Tagged { } node L implements «Taged» { }", "Tagged"),
        ("node Lamp { } edge Lit: Lamp -> «Lmp»", "Lamp"),
        ("node L { a: «Strng» }", "String"),
        ("node L { body: String v: Vector(2) «@embed(bdy)» }", "body"),
        ("node L { level: I32 @unique(«lvel») }", "level"),
        ("edge E: A -> B { @unique(src, «dts») }", None),
    ],
)
def test_names_in_a_schema_are_suggested(text, name):
    hint = refusal(compile_schema, text).hint
    assert hint == (None if name is None else f"did you mean `{name}`?")


def test_a_query_name_is_suggested():
    source = Source("<query>", "query find() { insert Shed { slug: 1 } }")
    with pytest.raises(QuerySelectionError, match="query 'fin' not found; did you mean `find`"):
        compile_query(source, CATALOG, "fin")


def test_a_diagnostic_travels_as_json_with_its_hint_if_it_has_one():
    with_hint = refusal(check_query, "query q() { match { $m: «Makr» } return { $m } }")
    assert with_hint.to_json() == {
        "severity": "error",
        "code": "T1",
        "message": "T1: unknown node type `Makr`",
        "file": "<text>",
        "line": 1,
        "column": 25,
        "end_line": 1,
        "end_column": 29,
        "hint": "did you mean `Maker`?",
    }
    without = refusal(check_query, "query q() { match { $m: «Gizmo» } return { $m } }")
    assert "hint" not in without.to_json()
    assert "hint" not in without.render()


def test_one_line_carries_message_and_hint():
    with pytest.raises(LanguageError) as caught:
        check_query(Source("q.gq", "query q() { match { $m: Makr } return { $m } }"))
    assert caught.value.wire_message == (
        "q.gq:1:25: type error: T1: unknown node type `Makr`; did you mean `Maker`?"
    )


def test_a_message_shows_the_beginning_of_a_long_value_and_its_length():
    assert shortened("x" * 200) == "x" * 200
    assert shortened("x" * 5_000) == "x" * 200 + "… (5,000 characters)"
    assert shortened("Ada Lovelace", limit=3) == "Ada… (12 characters)"


@pytest.mark.parametrize("quote", ["'", "`", '"'])
def test_a_message_shows_the_beginning_of_a_long_value(quote):
    long = "a b " * 1000
    message = cut_values(f"it's {quote}{long}{quote}, not {quote}short{quote}")
    assert message.startswith(f"it's {quote}a b ")
    assert message.endswith(f"… (4,000 characters){quote}, not {quote}short{quote}")
    assert len(message) < 300


def test_a_message_of_many_short_values_is_left_alone():
    message = "one of " + ", ".join(f"'name {n}'" for n in range(200)) + "; it's in " + "p/" * 150
    assert cut_values(message) == message


def test_no_error_shows_a_long_value_as_a_whole():
    error = InputError(f"expected 1, got {'9' * 5000}\nand {'9' * 5000}")
    assert len(str(error)) < 600
    assert str(error) == error.message
    assert len(str(pickle.loads(pickle.dumps(error)))) < 600
