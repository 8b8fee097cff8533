"""The formatter: house style, comments kept, nothing else changed."""

import random
from collections import Counter

import pytest

from omnigraph.catalog.compile import compile_schema
from omnigraph.language.format import format_queries, format_schema
from omnigraph.language.query.parse import parse_queries
from omnigraph.language.schema.parse import parse_schema
from omnigraph.language.syntax import Source
from omnigraph.language.tokens import tokenize
from tests.unit.language.sources import QUERIES, SCHEMA

LANGUAGES = {
    "schema": (SCHEMA, format_schema, parse_schema),
    "query": (QUERIES, format_queries, parse_queries),
}


def comments(text):
    return Counter(c.text.rstrip() for c in tokenize(Source("x", text)).comments)


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("seed", range(40))
def test_comments_between_any_two_tokens_survive_formatting(language, seed):
    original, formatter, parser = LANGUAGES[language]
    rng = random.Random(seed)
    tokens = tokenize(Source("x", original))
    # Behind white space only: `-5` and `3-way` are one word to a reader, a comment would split them.
    able = [start for start in tokens.starts if start == 0 or original[start - 1].isspace()]
    places = sorted(rng.sample(able, k=12), reverse=True)
    text = original
    for number, place in enumerate(places):
        comment = rng.choice(
            [f"// line {number}\n", f"/* block {number} */", f"\n/* a{number}\n b */\n"]
        )
        text = text[:place] + comment + text[place:]
    once = formatter(Source("x", text))
    assert comments(once) == comments(text)
    assert parser(Source("x", once)) == parser(Source("x", original))
    assert formatter(Source("x", once)) == once


def test_a_schema_in_house_style():
    text = 'node  A@description("d")implements I,J{b:String@key c:[I32]?//tail\n@range(c,..5)}edge E:A->A@card(0..)'
    assert format_schema(Source("x", text)) == (
        'node A @description("d") implements I, J {\n'
        "    b: String @key\n"
        "    c: [I32]?  //tail\n"
        "    @range(c, ..5)\n"
        "}\n"
        "\n"
        "edge E: A -> A @card(0..)\n"
    )


def test_edges_without_a_body_stay_together_as_written():
    text = "node A {}\n\nedge X: A -> A\nedge Y: A -> A\n\nedge Z: A -> A\n"
    assert format_schema(Source("x", text)) == text


def test_a_query_in_house_style():
    text = (
        'query q($a:I32){match{$m:Maker{handle:"ada"}not{$m borrows $_}}'
        "return{$m.handle as h count($m)}order{h desc}limit 3}"
    )
    assert format_queries(Source("x", text)) == (
        "query q($a: I32) {\n"
        "    match {\n"
        '        $m: Maker { handle: "ada" }\n'
        "        not { $m borrows $_ }\n"
        "    }\n"
        "    return { $m.handle as h, count($m) }\n"
        "    order { h desc }\n"
        "    limit 3\n"
        "}\n"
    )


def test_long_blocks_and_headers_are_written_one_element_per_line():
    note = "a description that is much too long to stand on the line of the query's own name"
    text = f'query q() @description("{note}") {{ insert A {{ {", ".join(f"property{i}: {i}" for i in range(9))} }} }}'
    formatted = format_queries(Source("x", text))
    assert formatted.startswith(f'query q()\n    @description("{note}")\n{{\n    insert A {{\n')
    assert "        property8: 8\n    }\n}\n" in formatted


def test_parameters_that_do_not_fit_stand_one_per_line():
    parameters = [f"$parameter_number_{i}: String" for i in range(4)]
    text = f"query q({', '.join(parameters)}) {{ delete A where b = 1 }}"
    lines = ",\n    ".join(parameters)
    assert format_queries(Source("x", text)) == (
        f"query q(\n    {lines}\n) {{\n    delete A where b = 1\n}}\n"
    )


def test_at_most_one_blank_line_is_kept():
    text = "query q() {\n\n\n  match {\n\n    $a: A\n\n\n    $b: A\n  }\n  return { $a }\n}\n"
    assert format_queries(Source("x", text)) == (
        "query q() {\n    match {\n        $a: A\n\n        $b: A\n    }\n    return { $a }\n}\n"
    )


def test_formatting_keeps_the_schema_hash():
    formatted = format_schema(Source("x", SCHEMA))
    assert formatted != SCHEMA
    before = compile_schema(Source("x", SCHEMA)).hash
    assert compile_schema(Source("x", formatted)).hash == before


def test_an_empty_file_stays_empty():
    assert format_schema(Source("x", "")) == ""
    assert format_queries(Source("x", "\n\n")) == ""


def test_keyword_arguments_and_keys_of_edges_stay_as_they_are_written():
    text = """node Note {
    body: String
    vec: Vector(4)? @embed("body", model="openai/text-embedding-3-large")
}

edge Cites: Note -> Note {
    kind: String
    @key(@src, @dst, kind)
}
"""
    assert format_schema(Source("x", text)) == text
    squeezed = text.replace(", model=", ",model =").replace("@src, @dst", "@src,@dst")
    assert format_schema(Source("x", squeezed)) == text
