"""The catalog of stored queries: which are listed, and the kinds of their parameters."""

from __future__ import annotations

import msgspec
import pytest

from omnigraph.language.types import Scalar
from omnigraph.stored_queries.catalog import _KINDS
from omnigraph.stored_queries.registry import QueryEntry, read_registry

QUERIES = """\
query everything(
    $a: String, $b: Bool?, $c: I32, $d: U32, $e: I64, $f: U64, $g: F32, $h: F64,
    $i: Date, $j: DateTime, $k: Blob, $l: Vector(3), $m: [String], $n: [I64]?
) @description("All kinds") @instruction("Try it") { match { $x: T } return { $x.id } }
query hidden() { match { $x: T } return { $x.id } }
query change($s: String) { insert T { s: $s } }
"""


@pytest.mark.acceptance("U-106", partly="the catalog")
def test_the_catalog_lists_exposed_queries_with_typed_parameters(tmp_path):
    path = tmp_path / "q.gq"
    path.write_text(QUERIES)
    stored = read_registry(
        [
            QueryEntry("hidden", path, is_exposed=False),
            QueryEntry("everything", path, tool_name="try_all"),
            QueryEntry("change", path),
        ]
    )
    listed = msgspec.to_builtins(stored.exposed())
    assert [entry["name"] for entry in listed] == ["change", "everything"]
    assert listed[0] == {
        "name": "change",
        "tool_name": "change",
        "mutation": True,
        "params": [{"name": "s", "kind": "string", "nullable": False}],
    }
    assert list(listed[1]) == [
        "name", "tool_name", "description", "instruction", "mutation", "params",
    ]  # fmt: skip
    assert (listed[1]["description"], listed[1]["instruction"]) == ("All kinds", "Try it")
    assert [param["kind"] for param in listed[1]["params"]] == [
        "string", "bool", "int", "int", "bigint", "bigint", "float", "float",
        "date", "datetime", "blob", "vector", "list", "list",
    ]  # fmt: skip
    assert listed[1]["params"][1]["nullable"]
    assert listed[1]["params"][11] == {
        "name": "l", "kind": "vector", "vector_dim": 3, "nullable": False,
    }  # fmt: skip
    assert listed[1]["params"][13] == {
        "name": "n", "kind": "list", "item_kind": "bigint", "nullable": True,
    }  # fmt: skip
    assert stored.find("hidden") is not None


def test_every_scalar_has_a_kind():
    assert set(_KINDS) == set(Scalar)
