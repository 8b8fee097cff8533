"""Results of reads in all their forms: objects, lists of them, and several results of one query."""

from __future__ import annotations

import datetime as dt
import io
import json
from pathlib import Path

import pyarrow as pa
import pytest

from omnigraph.api.graph import Graph, init
from omnigraph.errors import ParameterOutOfRange, ParseError

CASES = Path(__file__).parents[1] / "cases"
SEVERAL = """
query q() {
    match { $t: Town }
    return { $t.name } order { $t.name } limit 2
    return total { count($t) as n }
    return pops distinct { $t.pop } order { $t.pop } limit 1
}
"""


@pytest.fixture(scope="module")
def roads(tmp_path_factory) -> Graph:
    graph = init(tmp_path_factory.mktemp("roads") / "g", (CASES / "roads.pg").read_text())
    graph.load((CASES / "roads.jsonl").read_bytes(), "append")
    return graph


@pytest.mark.acceptance("L-364")
def test_several_results_share_the_matched_rows(roads):
    result = roads.query(SEVERAL)
    assert [row["t.name"] for row in result] == ["ash", "bex"]
    assert result.results["total"].to_dicts() == [{"n": 5}]
    document = result.to_envelope()
    assert list(document)[-2:] == ["rows", "results"]
    assert document["results"] == {
        "total": {"columns": ["n"], "row_count": 1, "rows": [{"n": 5}]},
        "pops": {"columns": ["t.pop"], "row_count": 1, "rows": [{"t.pop": None}]},
    }
    assert json.loads(result.to_json()) == document
    out = io.StringIO()
    result.write_json(out)
    assert json.loads(out.getvalue()) == document


def test_a_single_result_has_no_others(roads):
    result = roads.query("query q() { match { $t: Town } return { $t.name } }")
    assert result.results == {}
    assert "results" not in result.to_envelope()


@pytest.mark.parametrize(
    "names", ["return rows { $t.pop }", "return a { $t.pop } return a { $t.name }"]
)
def test_results_have_names_of_their_own(roads, names):
    with pytest.raises(ParseError, match="result"):
        roads.query(f"query q() {{ match {{ $t: Town }} return {{ $t.name }} {names} }}")


def test_objects_are_structs_and_dicts(roads):
    text = (
        'query q() { match { $t: Town { name: "ash" } } return { $t.* as o, collect($t.*) as l } }'
    )
    with pytest.raises(Exception, match="T9"):
        roads.query(text)
    result = roads.query(text.replace(", collect($t.*) as l", ""))
    (row,) = result.to_dicts()
    assert row["o"]["since"] == dt.date(1990, 5, 10)
    assert row["o"]["seen"] == dt.datetime(2024, 3, 31, 23, 15, tzinfo=dt.UTC)
    kind = result.to_arrow().schema.field("o").type
    assert kind.field("seen").type == pa.timestamp("ms", "UTC")
    collected = roads.query("query q() { match { $t: Town } return { collect($t.*) as l } }")
    assert [one["@id"] for one in collected.to_dicts()[0]["l"]] == [
        "ash",
        "bex",
        "cob",
        "dun",
        "elm",
    ]
    assert collected.types[0].display == "[Object]"


def test_numbers_in_objects_are_safe_for_javascript(tmp_path):
    graph = init(tmp_path / "g", "node N { k: String @key  n: I64?  l: [I64]? }")
    big = 2**53 + 1
    graph.load(
        json.dumps({"type": "N", "data": {"k": "a", "n": big, "l": [big]}}).encode(), "append"
    )
    result = graph.query("query q() { match { $x: N } return { collect($x.*) as xs } }")
    (row,) = result.json_dicts(js_safe=True)
    assert row["xs"] == [{"@id": "a", "k": "a", "l": [str(big)], "n": str(big)}]
    (row,) = result.json_dicts()
    assert row["xs"][0]["n"] == big


@pytest.mark.acceptance("L-363")
@pytest.mark.parametrize("value", [-1, None])
def test_a_bound_that_is_no_number_of_rows_is_named(roads, value):
    text = "query q($n: I64?) { match { $t: Town } return { $t.name } limit $n }"
    with pytest.raises(ParameterOutOfRange, match="limit and must not be negative or null"):
        roads.query(text, {"n": value})


def test_a_limited_search_ranks_what_the_offset_drops(tmp_path):
    graph = init(tmp_path / "g", "node P { k: String @key  vec: Vector(2)? }")
    rows = [{"type": "P", "data": {"k": f"p{n}", "vec": [1.0, n / 10]}} for n in range(9)]
    graph.load("\n".join(map(json.dumps, rows)).encode(), "append")
    text = "query q() { match { $p: P } return { $p.k } order { nearest($p.vec, [1.0, 0.0]) } %s }"
    every = [row["p.k"] for row in graph.query(text % "limit 9")]
    assert [row["p.k"] for row in graph.query(text % "offset 2 limit 3")] == every[2:5]
