"""Catalogue entries of stored queries."""

from __future__ import annotations

from typing import Any

import pytest

from omnigraph.language.span import Source
from omnigraph.plan.compile import compile_query
from omnigraph.plan.stored import catalogue_entry
from tests.unit.plan.compiling import W


def entry(text: str, tool_name: str | None = None) -> dict[str, Any]:
    return catalogue_entry(compile_query(Source("<query>", text), W), tool_name)


def test_a_read_with_everything():
    found = entry(
        'query find($h: String, $n: I32?) @description("d") @instruction("i")'
        " { match { $m: Maker { handle: $h } } return { $m } }",
        tool_name="find_maker",
    )
    assert found == {
        "name": "find",
        "tool_name": "find_maker",
        "description": "d",
        "instruction": "i",
        "mutation": False,
        "params": [
            {"name": "h", "kind": "string", "nullable": False},
            {"name": "n", "kind": "int", "nullable": True},
        ],
    }


def test_a_bare_mutation():
    assert entry("query drop() { delete Maker where age = 1 }") == {
        "name": "drop",
        "tool_name": "drop",
        "mutation": True,
        "params": [],
    }


@pytest.mark.parametrize(
    ("written", "kind"),
    [
        ("String", {"kind": "string"}),
        ("Bool", {"kind": "bool"}),
        ("I32", {"kind": "int"}),
        ("U32", {"kind": "int"}),
        ("I64", {"kind": "bigint"}),
        ("U64", {"kind": "bigint"}),
        ("F32", {"kind": "float"}),
        ("F64", {"kind": "float"}),
        ("Date", {"kind": "date"}),
        ("DateTime", {"kind": "datetime"}),
        ("Blob", {"kind": "blob"}),
        ("Vector(3)", {"kind": "vector", "vector_dim": 3}),
        ("[String]", {"kind": "list", "item_kind": "string"}),
        ("[I64]", {"kind": "list", "item_kind": "bigint"}),
        ("[DateTime]", {"kind": "list", "item_kind": "datetime"}),
    ],
)
@pytest.mark.parametrize("mark", ["", "?"])
def test_every_parameter_type_has_a_kind(written, kind, mark):
    found = entry(f"query q($x: {written}{mark}) {{ delete Maker where age = 1 }}")
    assert found["params"] == [{"name": "x", **kind, "nullable": bool(mark)}]


def test_parameters_keep_their_order():
    found = entry("query q($b: I32, $a: I32, $c: I32) { delete Maker where age = 1 }")
    assert [p["name"] for p in found["params"]] == ["b", "a", "c"]
