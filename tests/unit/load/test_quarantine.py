"""Which records a load sets aside, and what is kept of them."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from omnigraph.errors import LoadError
from omnigraph.load.quarantine import report, without_records
from omnigraph.load.record_validation import RECORD, SOURCE
from omnigraph.load.records import Location
from tests.unit.load.loading import W, catalog_of, load, rows_of

GRAPH = catalog_of(
    """
node N { k: String @key  u: I32? @unique }
edge Few: N -> N @card(2..2)
edge Any: N -> N
"""
)


def node(k, **data):
    return json.dumps({"type": "N", "data": {"k": k, **data}})


def edge(name, source, target):
    return json.dumps({"edge": name, "from": source, "to": target})


def split(*lines):
    """Good and bad record numbers."""
    result = load("\n".join(lines), GRAPH, quarantine=True)
    bad = {b.record: [f.code for f in b.problems] for b in result.quarantined}
    return sum(t.rows_loaded for t in result.types.values()), bad


def test_all_records_with_one_key_or_tuple_are_bad():
    lines = [node("a"), node("a"), node("b", u=1), node("c", u=1), node("d", u=2)]
    assert split(*lines) == (1, {n: ["unique"] for n in (1, 2, 3, 4)})


def test_all_edges_of_a_source_that_breaks_its_cardinality_are_bad():
    lines = [node("a"), node("b"), *[edge("Few", "a", "b")] * 3, *[edge("Few", "b", "b")] * 2]
    assert split(*lines) == (4, {n: ["cardinality"] for n in (3, 4, 5)})


def test_what_refers_to_a_bad_record_is_bad_too():
    lines = [node("a"), node("x", u="?"), edge("Few", "a", "a"), edge("Few", "a", "x"), node("c")]
    # Without the edge to x its sister breaks the minimum.
    assert split(*lines) == (
        2,
        {2: ["bad_value"], 3: ["cardinality"], 4: ["endpoint_not_found"]},
    )


def test_without_a_good_record_the_load_fails():
    with pytest.raises(LoadError) as caught:
        load(node("a") + node("a"), GRAPH, quarantine=True)
    assert caught.value.bad_records == 2


def test_a_good_load_sets_nothing_aside():
    result = load(node("a"), GRAPH, quarantine=True)
    assert result.quarantined == ()


def test_raw_texts_are_those_of_the_source():
    pretty = json.dumps(json.loads(node("a", u="?")), indent=2)
    bad_bytes = b'{"type":"N","data":{"k":"\xff"}}'
    text = pretty.encode() + b"\n" + bad_bytes + b"\n" + node("good").encode()
    result = load(text, GRAPH, quarantine=True)
    assert [(b.line, b.raw) for b in result.quarantined] == [
        (1, pretty),
        (8, '{"type":"N","data":{"k":"\\xff"}}'),
    ]
    assert rows_of(result, "node:N") == [{"id": "good", "k": "good", "u": None}]


def test_rows_of_tables_are_kept_as_json():
    table = pa.table(
        {
            "handle": ["a", "b"],
            "age": pa.array([1.5, None]),
            "joined": pa.array([1, 2], pa.date32()),
            "seen": pa.array([1, 2], pa.timestamp("s")),
            "raw": [b"Hi", None],
            "skills": [["x"], None],
        }
    )
    result = load({"Maker": table}, W, quarantine=True)
    (bad,) = result.quarantined
    assert json.loads(bad.raw) == {
        "handle": "a",
        "age": 1.5,
        "joined": "1970-01-02",
        "seen": "1970-01-01T00:00:01.000Z",
        "raw": "base64:SGk=",
        "skills": ["x"],
    }
    assert bad.line is None
    assert "line" not in bad.to_json()


def test_the_report_counts_errors_by_code():
    result = load(
        "\n".join([node("a", u="?"), node("b", u="?"), "{", node("c")]), GRAPH, quarantine=True
    )
    assert report("job", result.records, result.quarantined) == {
        "load_id": "job",
        "records": 4,
        "quarantined": 3,
        "errors": {"bad_value": 2, "invalid_json": 1},
    }


def test_rows_are_removed_by_source_and_record():
    rows = pa.table(
        {SOURCE: pa.array([0, 0, 1, 1], pa.int32()), RECORD: [1, 2, 1, 2], "x": list("abcd")}
    )
    left = without_records(rows, [Location(0, 2), Location(1, 1)])
    assert left["x"].to_pylist() == ["a", "d"]
    assert without_records(rows, []).num_rows == 4
