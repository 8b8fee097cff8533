"""The value an `@backfill` text stands for. What it refuses is tested with the schema's rules."""

from __future__ import annotations

import pytest

from omnigraph.language.schema.resolve import resolve_schema
from omnigraph.language.syntax import Source
from omnigraph.language.values import backfill_value


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("String @backfill(none)", "none"),
        ('String @backfill("")', ""),
        ("String @backfill(007)", "007"),
        ("enum(a, b) @backfill(b)", "b"),
        ("I32 @backfill(007)", 7),
        ('I32? @backfill("-2147483648")', -(2**31)),
        ("U64 @backfill(18446744073709551615)", 2**64 - 1),
        ('F64 @backfill("-1.5")', -1.5),
        ("F32 @backfill(3)", 3.0),
        ("Bool @backfill(true)", True),
        ("Bool @backfill(false)", False),
        ('Date @backfill("2021-7-15")', 18823),
        ('DateTime @backfill("1970-01-02")', 86_400_000),
        ('[I32] @backfill("[]")', []),
        ('[I32]? @backfill("[1, -2, null]")', [1, -2, None]),
        (r'[String] @backfill("[\"a\", \"\"]")', ["a", ""]),
        ('[Bool] @backfill("[true]")', [True]),
        ('[F64] @backfill("[1, 2.5]")', [1.0, 2.5]),
        (r'[Date] @backfill("[\"1970-01-02\"]")', [1]),
        (r'[DateTime] @backfill("[\"1970-01-02\"]")', [86_400_000]),
        ('Vector(2) @backfill("[1, 0.5]")', [1.0, 0.5]),
    ],
)
def test_a_text_is_converted_to_the_type_of_its_property(written, value):
    (node,) = resolve_schema(Source("<schema>", f"node L {{ p: {written} }}")).nodes
    (prop,) = node.properties
    annotation = prop.annotation("backfill")
    assert annotation is not None
    assert annotation.value is not None
    found = backfill_value(annotation.value.text, prop.type.type)
    assert (found, found.__class__) == (value, value.__class__)
