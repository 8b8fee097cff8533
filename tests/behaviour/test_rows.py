"""Inserting and updating rows of one type from Python values, tables and data frames."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from uuid import UUID

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph.errors import IdempotencyKeyReused, InputError, LoadError, LoadSourceError

SCHEMA = """
node Item {
    code: String @key
    label: String?
    count: I64?
    price: F64?
    day: Date?
    at: DateTime?
    tags: [String]?
    vec: Vector(3)?
    data: Blob?
}
node Log { text: String }
edge Holds: Item -> Item { since: Date?  @unique(src, dst) }
edge Saw: Item -> Item
"""


@pytest.fixture
def graph(tmp_path):
    with og.init(tmp_path / "items.omni", schema=SCHEMA) as made:
        yield made


def test_every_kind_of_python_value_is_stored_and_comes_back(graph):
    row = {
        "code": "a",
        "label": "Ä \ud83d\ude00".encode("utf-16", "surrogatepass").decode("utf-16"),
        "count": 2**53 + 1,
        "price": 0.1,
        "day": date(2026, 2, 28),
        "at": datetime(2026, 2, 28, 12, 30, 0, 250_000, tzinfo=UTC),
        "tags": ["x", "y"],
        "vec": [0.5, 0.25, 0.125],
        "data": b"\x00\xff",
    }
    done = graph.insert("Item", [row])
    assert done.rows_loaded == {"node:Item": 1}
    assert graph.get("Item", "a") == {"id": "a", **row}


def test_values_of_numpy_and_others_are_taken_for_what_they_are(graph):
    here = datetime(2026, 1, 1, 12, tzinfo=timezone(timedelta(hours=2)))
    graph.insert(
        "Item",
        [
            {
                "code": str(UUID(int=7)),
                "label": UUID(int=7),
                "count": np.int64(3),
                "price": np.float32(0.5),
                "vec": np.array([1, 2, 3], np.float32),
                "at": here,
            },
            {"code": "naive", "at": datetime(2026, 1, 1, 10)},
        ],
    )
    found = graph.get("Item", str(UUID(int=7)))
    assert (found["label"], found["count"], found["price"]) == (str(UUID(int=7)), 3, 0.5)
    assert found["vec"] == [1.0, 2.0, 3.0]
    assert found["at"] == graph.get("Item", "naive")["at"] == datetime(2026, 1, 1, 10, tzinfo=UTC)


@pytest.mark.parametrize(
    "rows",
    [
        [{"code": "a", "count": 1}, {"code": "b", "count": None}],
        pa.table({"code": ["a", "b"], "count": pa.array([1, None], pa.int64())}),
        pl.DataFrame({"code": ["a", "b"], "count": [1, None]}),
        pytest.param("pandas", id="pandas"),
    ],
    ids=["dicts", "arrow", "polars", "pandas"],
)
def test_rows_come_in_any_of_the_usual_forms(graph, rows):
    if isinstance(rows, str):
        pandas = pytest.importorskip("pandas")
        rows = pandas.DataFrame({"code": ["a", "b"], "count": pandas.array([1, None], "Int64")})
    graph.insert("Item", rows)
    assert [graph.get("Item", key)["count"] for key in "ab"] == [1, None]


def test_an_insert_of_a_key_that_exists_changes_nothing(graph):
    graph.insert("Item", [{"code": "a"}])
    head = graph.head().id
    with pytest.raises(LoadError, match="'a'"):
        graph.insert("Item", [{"code": "b"}, {"code": "a"}])
    assert graph.head().id == head


def test_an_upsert_keeps_what_a_row_does_not_have_and_clears_what_is_none(graph):
    graph.upsert("Item", [{"code": "a", "label": "old", "count": 1, "price": 2.0}])
    done = graph.upsert("Item", [{"code": "a", "label": "new", "count": None}, {"code": "b"}])
    found = graph.get("Item", "a")
    assert (found["label"], found["count"], found["price"]) == ("new", None, 2.0)
    counts = done.receipt.counts["node:Item"]
    assert (counts.inserted, counts.updated) == (1, 1)


def test_rows_may_have_different_keys(graph):
    graph.insert("Item", [{"code": "a", "label": "x"}, {"code": "b", "price": 1.5}])
    assert graph.get("Item", "a")["price"] is None
    assert graph.get("Item", "b")["price"] == 1.5


def test_edges_are_found_by_their_identity(graph):
    graph.insert("Item", [{"code": "a"}, {"code": "b"}])
    graph.upsert("Holds", [{"from": "a", "to": "b", "since": date(2020, 1, 1)}])
    graph.upsert("Holds", [{"from": "a", "to": "b", "since": date(2021, 1, 1)}])
    [edge] = graph.scan("Holds", columns=["src", "dst", "since"]).read_all().to_pylist()
    assert edge == {"src": "a", "dst": "b", "since": date(2021, 1, 1)}
    graph.insert("Saw", [{"from": "a", "to": "b"}] * 2)
    assert graph.at("main").counts["Saw"] == 2


@pytest.mark.parametrize("type", ["Log", "Saw"])
def test_what_has_no_identity_is_not_upserted(graph, type):
    with pytest.raises(InputError, match=f"'{type}'.*use insert"):
        graph.upsert(type, [{"text": "x"}])


def test_a_repeated_key_returns_the_first_receipt(graph):
    first = graph.insert("Item", [{"code": "a"}], idempotency_key="k1")
    again = graph.insert("Item", [{"code": "a"}], idempotency_key="k1")
    assert (again.replayed, again.commit_id) == (True, first.commit_id)
    with pytest.raises((IdempotencyKeyReused, og.errors.ConflictError)):
        graph.upsert("Item", [{"code": "a"}], idempotency_key="k1")


def test_the_rows_of_one_call_are_one_commit_by_the_actor_of_the_handle(graph):
    before = graph.head().number
    graph.as_actor("ada").insert("Item", [{"code": str(n)} for n in range(500)], message="many")
    head = graph.head()
    assert (head.number, head.actor, head.message) == (before + 1, "ada", "many")
    assert head.counts["node:Item"].inserted == 500


def test_rows_go_to_another_branch_if_asked(graph):
    graph.branches.create("dev")
    graph.insert("Item", [{"code": "a"}], branch="dev")
    assert (graph.get("Item", "a"), graph.get("Item", "a", branch="dev")["code"]) == (None, "a")


def test_no_rows_are_a_load_of_nothing(graph):
    assert graph.insert("Item", []).rows_loaded == {}
    assert graph.at("main").counts["Item"] == 0


def test_records_of_several_types_can_be_given_as_dicts(graph):
    graph.load(
        [
            {"type": "Item", "data": {"code": "a", "day": date(2026, 1, 1)}},
            {"type": "Item", "data": {"code": "b"}},
            {"edge": "Holds", "from": "a", "to": "b"},
        ],
        "append",
    )
    assert graph.at("main").counts == {"Holds": 1, "Saw": 0, "Item": 2, "Log": 0}


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"code": "a"}, "b"], "row 2 is not a dict"),
        ([{"code": object()}], "row 1.*object"),
        ([{"code": "a", "price": float("nan")}], "price"),
        ([{"label": "no key"}], "code"),
    ],
)
def test_a_row_that_cannot_be_stored_is_named(graph, rows, message):
    with pytest.raises((LoadError, LoadSourceError), match=message):
        graph.insert("Item", rows)
    assert graph.at("main").counts["Item"] == 0


def test_a_node_type_and_an_edge_type_of_one_name_are_told_apart(tmp_path):
    schema = "node Near { slug: String @key }\nedge Near: Near -> Near { @unique(src, dst) }"
    with og.init(tmp_path / "near.omni", schema=schema) as graph:
        graph.insert("Near", [{"slug": "a"}, {"slug": "b"}])
        graph.upsert("edge:Near", [{"from": "a", "to": "b"}])
        assert graph.scan("node:Near").read_all().num_rows == 2
        [edge] = graph.scan("edge:Near").read_all().to_pylist()
        assert (edge["src"], edge["dst"]) == ("a", "b")
        found = graph.get("edge:Near", edge["id"])
        assert found is not None
        assert found["dst"] == "b"
