"""Rows validated together and against what is committed."""

from __future__ import annotations

import json

import pytest

from omnigraph.errors import LoadError
from tests.unit.load.loading import CommittedTables, catalog_of, load, rows_of

PAIRS = catalog_of(
    """
node Pair { k: String @key  a: String?  b: String?  f: F64?  @unique(a, b)  @unique(f) }
node Loose { v: I32? }
edge Link: Loose -> Loose { w: I32? @unique }
edge Few: Loose -> Loose @card(2..3)
"""
)
MODES = ("append", "merge", "overwrite")


def node(name, **data):
    return json.dumps({"type": name, "data": data}) + "\n"


def edge(name, source, target, **data):
    return json.dumps({"edge": name, "from": source, "to": target, "data": data}) + "\n"


def problems(given, catalog=PAIRS, mode="append", committed=None):
    with pytest.raises(LoadError) as caught:
        load(given, catalog, mode, committed)
    return caught.value.load_errors


def committed_after(text, catalog=PAIRS):
    return CommittedTables(catalog).after(load(text, catalog, load_id="before"))


def test_tuples_are_compared_member_by_member():
    load(node("Pair", k="1", a="x,y", b="z") + node("Pair", k="2", a="x", b="y,z"), PAIRS)
    load(node("Pair", k="1", a="x", b=None) + node("Pair", k="2", a="x", b=None), PAIRS)
    (problem,) = problems(node("Pair", k="1", a="x", b="y") + node("Pair", k="2", a="x", b="y"))
    assert problem.message == (
        "@unique violation on Pair.(a, b): value '(x, y)' appears in records 1 and 2"
    )
    assert (problem.type, problem.id, problem.code) == ("Pair", "2", "unique")


def test_zero_is_one_number_whatever_its_sign():
    (problem,) = problems(node("Pair", k="1", f=0.0) + node("Pair", k="2", f=-0.0))
    assert "value '0' appears in records 1 and 2" in problem.message


def test_every_row_of_a_shared_tuple_is_reported_with_the_first():
    found = problems("".join(node("Pair", k=str(n), f=1) for n in range(4)))
    assert [p.record for p in found] == [2, 3, 4]
    assert [p.message.partition("appears in ")[2] for p in found] == [
        "records 1 and 2",
        "records 1 and 3",
        "records 1 and 4",
    ]


@pytest.mark.parametrize("mode", ["append", "merge"])
def test_a_tuple_of_a_committed_row_is_taken(mode):
    state = committed_after(node("Pair", k="old", a="x", b="y", f=2))
    given = node("Pair", k="n1", f=2) + node("Pair", k="n2", a="x", b="y")
    assert [p.message for p in problems(given, mode=mode, committed=state)] == [
        "@unique violation on Pair.f: value '2' already belongs to 'old'",
        "@unique violation on Pair.(a, b): value '(x, y)' already belongs to 'old'",
    ]


def test_overwrite_looks_at_the_input_only():
    state = committed_after(node("Pair", k="old", f=2))
    assert load(node("Pair", k="new", f=2), PAIRS, "overwrite", state).records == 1


def test_merge_may_move_a_unique_value_from_row_to_row():
    state = committed_after(node("Pair", k="a", f=1) + node("Pair", k="b", f=2))
    swapped = node("Pair", k="a", f=2) + node("Pair", k="b", f=1)
    assert load(swapped, PAIRS, "merge", state).records == 2


def test_members_that_occur_in_other_tuples_are_no_clash():
    state = committed_after(node("Pair", k="1", a="x", b="y") + node("Pair", k="2", a="p", b="q"))
    assert load(node("Pair", k="3", a="x", b="q"), PAIRS, "append", state).records == 1


@pytest.mark.parametrize("mode", MODES)
def test_explicit_ids_of_nodes_are_unique_in_every_mode(mode):
    (problem,) = problems(node("Loose", id="n") * 2, mode=mode)
    assert problem.message == "@unique violation on Loose.id: value 'n' appears in records 1 and 2"


def test_merge_takes_the_last_of_several_edges_with_one_id():
    given = node("Loose", id="n") + "".join(edge("Link", "n", "n", id="e", w=w) for w in (1, 2, 3))
    result = load(given, PAIRS, "merge")
    assert [row["w"] for row in rows_of(result, "edge:Link")] == [3]
    assert result.types["edge:Link"].rows_loaded == 3
    (one, two) = problems(given, mode="append")
    assert (one.record, two.record) == (3, 4)
    assert "@unique violation on Link.id" in one.message


def test_an_id_that_exists_is_reported_once():
    state = committed_after(node("Loose", id="n"))
    found = problems(node("Loose", id="n") * 2, committed=state)
    assert [(p.record, p.code) for p in found] == [(1, "exists"), (2, "unique")]


# Ends


@pytest.mark.parametrize("mode", ["append", "merge"])
def test_ends_may_be_in_the_input_or_committed(mode):
    state = committed_after(node("Loose", id="old"))
    given = edge("Link", "old", "new") + node("Loose", id="new")
    assert load(given, PAIRS, mode, state).records == 2


def test_overwrite_counts_a_node_type_with_its_input_rows_only():
    state = committed_after(node("Loose", id="old"))
    assert load(edge("Link", "old", "old"), PAIRS, "overwrite", state).records == 1
    (problem,) = problems(
        node("Loose", id="new") + edge("Link", "new", "old"), mode="overwrite", committed=state
    )
    assert problem.message == "edge Link: dst 'old' not found in Loose"
    assert (problem.code, problem.record, problem.type) == ("endpoint_not_found", 2, "Link")


def test_both_ends_can_be_missing():
    assert [p.message for p in problems(edge("Link", "x", "y"))] == [
        "edge Link: src 'x' not found in Loose",
        "edge Link: dst 'y' not found in Loose",
    ]


# Cardinality


def few(*ends, **data):
    return node("Loose", id="n") + "".join(edge("Few", "n", "n", **data) for _ in ends)


def test_a_source_needs_its_minimum_only_when_it_has_an_edge():
    load(node("Loose", id="n"), PAIRS)
    load(few(1, 2), PAIRS)
    (problem,) = problems(few(1))
    assert problem.message == "@card violation on edge Few: source 'n' has 1 edge (min 2)"
    assert (problem.code, problem.record, problem.source) == ("cardinality", None, None)


def test_committed_edges_count_and_replaced_ones_count_once():
    state = committed_after(few() + "".join(edge("Few", "n", "n", id=f"e{i}") for i in range(3)))
    (problem,) = problems(edge("Few", "n", "n"), committed=state)
    assert problem.message == "@card violation on edge Few: source 'n' has 4 edges (max 3)"
    assert load(edge("Few", "n", "n", id="e0"), PAIRS, "merge", state).records == 1
    assert load(edge("Few", "n", "n") * 2, PAIRS, "overwrite", state).records == 2


def test_an_error_of_several_records_has_no_record_and_comes_last():
    given = few(1) + edge("Link", "n", "gone")
    with pytest.raises(LoadError) as caught:
        load(given, PAIRS)
    assert str(caught.value).splitlines() == [
        "load failed: 2 bad records of 3, nothing was loaded",
        "  <data> record 3: edge Link: dst 'gone' not found in Loose",
        "  @card violation on edge Few: source 'n' has 1 edge (min 2)",
    ]
    assert caught.value.load_errors[1].to_json() == {
        "source": None,
        "record": None,
        "code": "cardinality",
        "message": "@card violation on edge Few: source 'n' has 1 edge (min 2)",
        "type": "Few",
    }


# Types that cannot be unique


@pytest.mark.parametrize("kind", ["[String]?", "Vector(2)?", "Blob?"])
def test_a_group_that_cannot_be_compared_fails_the_type(kind):
    catalog = catalog_of(f"node Odd {{ x: {kind}  y: I32?  @unique(x, y) }}")
    (problem,) = problems(node("Odd"), catalog)
    assert f"@unique on Odd.(x, y): unsupported column type {kind}" in problem.message
    assert problem.property == "x"
