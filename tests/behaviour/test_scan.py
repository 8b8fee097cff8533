"""Scans: the rows of one type as Arrow batches, with a condition of mutations and under a view."""

from __future__ import annotations

import datetime as dt
import json
import random
import uuid
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.api.graph import Graph, init
from omnigraph.errors import (
    ExternalBlobRefused,
    InputError,
    LanguageError,
    ParameterError,
    ParseError,
    QueryBudgetExceeded,
    QueryCancelled,
    TypeCheckError,
    UnknownColumn,
    UnknownType,
)
from omnigraph.language.syntax import Source
from omnigraph.mutation import MutationIds, prepare_mutation
from omnigraph.plan.compile import compile_query
from omnigraph.plan.params import bind_host_values
from omnigraph.providers.documents import DocumentVectors
from omnigraph.read import entities
from omnigraph.read.budget import CancelToken, QueryBudget
from omnigraph.read.scan import scan_type
from omnigraph.read.view import ReadView
from omnigraph.storage.filters import Comparison, IsNull, Not

SCHEMA = """
node Thing {
    name: String @key
    small: I32?  large: U64?  half: F32?  whole: F64?  yes: Bool?
    day: Date?  moment: DateTime?  level: enum(low, high)?
    tags: [String]?  moments: [DateTime]?  place: Vector(2)?  image: Blob?
}
node Box { number: I64 @key  label: String? }
edge Near: Thing -> Thing { since: Date?  weight: F64? }
edge Holds: Box -> Thing
"""
MOMENT = pa.timestamp("ms", "UTC")


def thing(name: str, **data: Any) -> str:
    return json.dumps({"type": "Thing", "data": {"name": name, **data}})


def box(number: int, **data: Any) -> str:
    return json.dumps({"type": "Box", "data": {"number": number, **data}})


def edge(kind: str, source: str, target: str, **data: Any) -> str:
    return json.dumps({"edge": kind, "from": source, "to": target, "data": data})


def load(graph: Graph, *records: str) -> None:
    graph.load("\n".join(records).encode(), "append")


def reader(graph: Graph, type_name: Any, *, version: int | None = None, **wanted: Any) -> Any:
    snapshot = graph._snapshot() if version is None else graph.at(version)._snapshot
    return scan_type(snapshot, graph._core.parts.tables, type_name, **wanted)


def scan(graph: Graph, type_name: Any, **wanted: Any) -> pa.Table:
    found = reader(graph, type_name, **wanted)
    table = found.read_all()
    assert table.schema == found.schema
    table.validate(full=True)
    return table


def ids(graph: Graph, type_name: str, **wanted: Any) -> list[str]:
    return sorted(scan(graph, type_name, columns=["id"], **wanted).column("id").to_pylist())


@pytest.fixture
def graph(memory_uri: str) -> Graph:
    graph = init(memory_uri, SCHEMA)
    load(
        graph,
        thing("a", small=1, day="1970-01-02", moment="1970-01-01T00:00:00.001Z", level="low"),
        thing("b", small=2, tags=["x", None], moments=["1970-01-02"], place=[0.5, -1]),
        thing("c", image="base64:SGk=", half=0.5, yes=True, large=2**64 - 1),
        box(7, label="seven"),
        edge("Near", "a", "b", id="n1", since="2020-01-01"),
        edge("Near", "b", "c", id="n2", weight=0.5),
        edge("Holds", "7", "c", id="h1"),
    )
    return graph


# -- columns ------------------------------------------------------------------------------------


def test_columns_are_the_id_and_the_properties_with_their_arrow_types(graph):
    table = scan(graph, "Thing")
    assert {field.name: field.type for field in table.schema} == {
        "id": pa.utf8(),
        "name": pa.utf8(),
        "small": pa.int32(),
        "large": pa.uint64(),
        "half": pa.float32(),
        "whole": pa.float64(),
        "yes": pa.bool_(),
        "day": pa.date32(),
        "moment": MOMENT,
        "level": pa.utf8(),
        "tags": pa.list_(pa.field("item", pa.utf8())),
        "moments": pa.list_(pa.field("item", MOMENT)),
        "place": pa.list_(pa.field("item", pa.float32()), 2),
    }
    properties = graph._snapshot().catalog.nodes["Thing"].properties
    assert table.column_names == ["id", *(name for name in properties if name != "image")]
    rows = {row["id"]: row for row in table.to_pylist()}
    assert rows["a"]["day"] == dt.date(1970, 1, 2)
    assert rows["a"]["moment"] == dt.datetime(1970, 1, 1, microsecond=1000, tzinfo=dt.UTC)
    assert rows["b"]["moments"] == [dt.datetime(1970, 1, 2, tzinfo=dt.UTC)]
    assert (rows["b"]["tags"], rows["b"]["place"]) == (["x", None], [0.5, -1.0])
    assert (rows["c"]["half"], rows["c"]["large"], rows["c"]["moment"]) == (0.5, 2**64 - 1, None)


def test_an_edge_has_its_endpoints(graph):
    table = scan(graph, "Near")
    assert table.column_names == ["id", "src", "dst", "since", "weight"]
    assert {"id": "n1", "src": "a", "dst": "b", "since": dt.date(2020, 1, 1), "weight": None} in (
        table.to_pylist()
    )


def test_columns_come_in_the_order_asked_for(graph):
    assert scan(graph, "Near", columns=["weight", "dst", "id"]).column_names == [
        "weight",
        "dst",
        "id",
    ]
    assert sorted(scan(graph, "Thing", columns=("name",)).column("name").to_pylist()) == [*"abc"]


def test_a_type_without_rows_has_its_columns(memory_uri):
    graph = init(memory_uri, SCHEMA)
    table = scan(graph, "Near", where='from = "a"')
    assert (table.num_rows, table.column_names[:3]) == (0, ["id", "src", "dst"])


def test_blobs_come_as_bytes_when_they_are_named(graph):
    table = scan(graph, "Thing", columns=["image", "id"])
    assert table.schema.types == [pa.large_binary(), pa.utf8()]
    assert {row["id"]: row["image"] for row in table.to_pylist()} == {
        "a": None,
        "b": None,
        "c": b"Hi",
    }
    assert scan(graph, "Thing", columns=["image"], where='name = "c"').to_pylist() == [
        {"image": b"Hi"}
    ]


def test_many_blobs_come_in_small_batches(memory_uri):
    graph = init(memory_uri, SCHEMA)
    load(graph, *(thing(f"t{n:03}", image="base64:SGk=" if n % 3 else None) for n in range(200)))
    batches = list(reader(graph, "Thing", columns=["id", "image"]))
    assert max(batch.num_rows for batch in batches) <= 64
    rows = [row for batch in batches for row in batch.to_pylist()]
    assert len(rows) == 200
    assert all(row["image"] == (b"Hi" if int(row["id"][1:]) % 3 else None) for row in rows)


def test_a_blob_kept_outside_is_followed_only_where_that_is_allowed(graph, tmp_path, monkeypatch):
    (tmp_path / "far.bin").write_bytes(b"far")
    monkeypatch.setenv("OMNIGRAPH_EXTERNAL_BLOBS", tmp_path.as_uri())
    load(graph, thing("d", image=(tmp_path / "far.bin").as_uri()))
    found = scan(graph, "Thing", columns=["id", "image"]).to_pylist()
    assert {row["id"]: row["image"] for row in found}["d"] == b"far"
    monkeypatch.delenv("OMNIGRAPH_EXTERNAL_BLOBS")
    with pytest.raises(ExternalBlobRefused):
        scan(graph, "Thing", columns=["image"])
    assert len(scan(graph, "Thing")) == 4


def test_a_property_that_was_added_later_is_null_before(graph):
    graph.schema.apply(SCHEMA.replace("label: String?", "label: String?  late: I32?"))
    load(graph, box(8, late=1))
    for version, expected in ((None, [None, 1]), (2, [None])):
        table = scan(graph, "Box", version=version, columns=["late"])
        assert table.schema.types == [pa.int32()]
        assert sorted(table.column("late").to_pylist(), key=str, reverse=True) == expected
    assert ids(graph, "Box", version=2, where="late != 1") == []
    assert ids(graph, "Box", where="late = 1") == ["8"]


def test_a_scan_stays_at_its_snapshot(graph):
    waiting = reader(graph, "Thing", columns=["id"])
    load(graph, thing("d"))
    assert len(waiting.read_all()) == 3
    assert ids(graph, "Thing") == [*"abcd"]


# -- a stream -----------------------------------------------------------------------------------


def test_nothing_is_read_before_the_first_batch(graph, monkeypatch):
    opened = []
    tables = graph._core.parts.tables
    real = type(tables).open

    def noting(self, *place):
        opened.append(place)
        return real(self, *place)

    monkeypatch.setattr(type(tables), "open", noting)
    snapshot = graph._snapshot()
    snapshot._opened.clear()
    opened.clear()
    found = scan_type(snapshot, tables, "Near", where="weight > $w", params={"w": 0.1})
    assert opened == []
    assert found.schema.names[0] == "id"
    assert len(found.read_all()) == 1
    assert len(opened) == 1


def test_a_scan_gives_its_data_to_other_libraries(graph):
    again = pa.RecordBatchReader.from_stream(reader(graph, "Box"))
    assert again.read_all().to_pylist() == [{"id": "7", "label": "seven", "number": 7}]


def test_a_budget_ends_a_scan(graph):
    with pytest.raises(QueryBudgetExceeded, match="budget exceeded: rows"):
        scan(graph, "Thing", budget=QueryBudget(max_rows=2))
    assert len(scan(graph, "Thing", budget=QueryBudget(max_rows=3))) == 3
    with pytest.raises(QueryBudgetExceeded, match="budget exceeded: bytes"):
        scan(graph, "Thing", budget=QueryBudget(max_bytes=10))
    with pytest.raises(QueryBudgetExceeded, match="budget exceeded: seconds"):
        scan(graph, "Thing", budget=QueryBudget(timeout_s=0))
    cancel = CancelToken()
    waiting = reader(graph, "Thing", cancel=cancel)
    cancel.cancel()
    with pytest.raises(QueryCancelled):
        waiting.read_all()
    for scanned in (graph, graph.at("main")):
        with pytest.raises(QueryCancelled):
            scanned.scan("Thing", cancel=cancel).read_all()
        assert scanned.scan("Thing", cancel=CancelToken()).read_all().num_rows == 3


def test_the_time_between_batches_is_not_that_of_the_scan(graph, monkeypatch):
    clock = [0.0]
    monkeypatch.setattr("omnigraph.read.budget.time.monotonic", lambda: clock[0])
    found = reader(graph, "Thing", columns=["image"], budget=QueryBudget(timeout_s=5))
    clock[0] += 100
    for _batch in found:
        clock[0] += 100


# -- conditions ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("type_name", "where", "params", "expected"),
    [
        ("Thing", 'name = "a"', {}, ["a"]),
        ("Thing", "small >= $least", {"least": 2}, ["b"]),
        ("Thing", "small != $s", {"s": None}, []),
        ("Thing", "day = $d", {"d": dt.date(1970, 1, 2)}, ["a"]),
        ("Thing", "moment < $t", {"t": dt.datetime(1970, 1, 1, 1)}, ["a"]),
        ("Thing", "moment < now()", {}, ["a"]),
        ("Thing", 'level = "low"', {}, ["a"]),
        ("Thing", "level = $l", {"l": "high"}, []),
        ("Thing", "yes = true", {}, ["c"]),
        ("Thing", "large = $n", {"n": str(2**63 - 1)}, []),
        ("Near", 'from = "b"', {}, ["n2"]),
        ("Near", "to = $who", {"who": "b"}, ["n1"]),
        ("Near", "weight > 0.1", {}, ["n2"]),
        ("Box", "number = 7", {}, ["7"]),
        ("Box", "number = $n", {"n": 8}, []),
    ],
)
def test_a_condition_selects_rows(graph, type_name, where, params, expected):
    assert ids(graph, type_name, where=where, params=params) == expected


def test_a_bad_condition_is_shown_with_its_place(graph):
    with pytest.raises(ParseError) as caught:
        reader(graph, "Thing", where="small >")
    assert str(caught.value).startswith("<where>:1:8: parse error: expected an expression")
    assert "the end of the condition" in str(caught.value)
    with pytest.raises(ParseError, match="expected the end of the condition"):
        reader(graph, "Thing", where="small > 1 }")
    with pytest.raises(TypeCheckError) as wrong:
        reader(graph, "Thing", where="\nsmal = 1")
    assert wrong.value.diagnostics[0].render().splitlines() == [
        "<where>:2:1: type error: T11: type `Thing` has no property `smal`",
        "    2 | smal = 1",
        "      | ^^^^",
        "   hint: did you mean `small`?",
    ]


@pytest.mark.parametrize(
    ("type_name", "where"),
    [
        ("Thing", 'small = "a"'),
        ("Thing", "image = 1"),
        ("Thing", 'tags = "x"'),
        ("Thing", "place = 1"),
        ("Thing", 'level = "lwo"'),
        ("Thing", 'id = "a"'),
        ("Near", 'src = "a"'),
        ("Thing", "small = $__nanograph_now"),
        ("Thing", "small ="),
        ("Thing", ""),
    ],
)
def test_what_a_mutation_would_refuse_a_scan_refuses(graph, type_name, where):
    text = f"query q() {{ delete {type_name} where {where} }}"
    with pytest.raises(LanguageError) as mutation:
        graph.mutate(text)
    with pytest.raises(type(mutation.value)) as scanning:
        reader(graph, type_name, where=where)
    assert scanning.value.diagnostics[0].code == mutation.value.diagnostics[0].code


@pytest.mark.parametrize(
    ("where", "params", "message"),
    [
        ("small = $least", None, "parameter 'least' not provided"),
        ("small = $least", {"lest": 1}, "unknown parameter 'lest' (declared: least); did you mean `least`?"),
        ("small = $least", {"least": 1, "x": 1}, "unknown parameter 'x' (declared: least)"),
        ("small = 1", {"x": 1}, "unknown parameter 'x' (none is declared)"),
        (None, {"x": 1}, "unknown parameter 'x' (none is declared)"),
        ("small = $s", {"s": "many"}, "param 's': expected integer string, got 'many'"),
        ("small = $s", {"s": 1.5}, "param 's': expected integer number (I32), got a Python float"),
        ("day = $d", {"d": b"x"}, "param 'd': expected Date?, got a Python bytes"),
    ],
)  # fmt: skip
def test_a_parameter_has_the_type_of_its_property_and_must_be_given(graph, where, params, message):
    with pytest.raises(ParameterError) as caught:
        reader(graph, "Thing", where=where, params=params)
    assert str(caught.value) == message


# -- names --------------------------------------------------------------------------------------


def test_an_unknown_name_is_an_error_that_knows_better(graph):
    with pytest.raises(UnknownType) as no_type:
        reader(graph, "Thingy")
    assert str(no_type.value) == "unknown node or edge type 'Thingy'; did you mean `Thing`?"
    with pytest.raises(UnknownColumn) as no_column:
        reader(graph, "Thing", columns=["id", "smal"])
    assert str(no_column.value) == (
        "columns: type Thing has no column 'smal'; did you mean `small`?"
    )
    with pytest.raises(UnknownColumn, match="no column 'src'"):
        reader(graph, "Thing", columns=["src"])


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ({"type_name": None}, "type must be the name of a type"),
        ({"columns": "name"}, "columns must be a list of column names, not 'name'"),
        ({"columns": []}, "columns must name at least one column"),
        ({"columns": ["id", "id"]}, "columns must name 'id' once"),
        ({"where": 1}, "where must be the text of a condition"),
        ({"params": ["x"]}, "params must be a mapping"),
    ],
)
def test_an_argument_of_a_wrong_kind_is_named(graph, wanted, message):
    with pytest.raises(InputError, match=message):
        reader(graph, **{"type_name": "Thing", **wanted})


# -- views --------------------------------------------------------------------------------------


def test_a_hidden_name_does_not_exist(graph):
    view = ReadView(
        hidden_types=frozenset({"Box"}), hidden_properties=frozenset({("Thing", "small")})
    )
    with pytest.raises(UnknownType) as hidden:
        reader(graph, "Boxx", view=view)
    assert "did you mean" not in str(hidden.value)
    for name in ("Box", "Holds"):
        with pytest.raises(UnknownType):
            reader(graph, name, view=view)
    assert "small" not in scan(graph, "Thing", view=view).column_names
    with pytest.raises(UnknownColumn) as column:
        reader(graph, "Thing", columns=["smal"], view=view)
    assert "did you mean" not in str(column.value)
    with pytest.raises(TypeCheckError) as where:
        reader(graph, "Thing", where="small = 1", view=view)
    assert where.value.diagnostics[0].hint is None


def test_hidden_rows_and_their_edges_are_left_out(graph, monkeypatch):
    load(graph, edge("Near", "c", "a", id="n3"))
    view = ReadView(rows={"Thing": Not(IsNull("small"))})
    assert ids(graph, "Thing", view=view) == ["a", "b"]
    assert ids(graph, "Thing", view=view, where="yes = true") == []
    assert ids(graph, "Holds", view=view) == []
    for gathered in (entities.MIN_ENDPOINT_ROWS, 1):
        monkeypatch.setattr(entities, "MIN_ENDPOINT_ROWS", gathered)
        assert ids(graph, "Near", view=view) == ["n1"]
        assert scan(graph, "Near", view=view, columns=["weight"]).to_pylist() == [{"weight": None}]
    edges = ReadView(rows={"Near": Comparison("weight", ">", 0.0)})
    assert ids(graph, "Near", view=edges) == ["n2"]


def test_a_view_may_ask_for_what_it_hides(graph):
    view = ReadView(
        hidden_properties=frozenset({("Thing", "small")}),
        rows={"Thing": Comparison("small", ">", 1)},
    )
    found = scan(graph, "Thing", view=view)
    assert found.column("id").to_pylist() == ["b"]
    assert "small" not in found.column_names
    assert ids(graph, "Near", view=view) == []


# -- against mutations --------------------------------------------------------------------------

KINDS: dict[str, dict[str, str]] = {
    "Thing": {
        "name": "String", "small": "I32", "large": "U64", "half": "F32", "whole": "F64",
        "yes": "Bool", "day": "Date", "moment": "DateTime", "level": "String",
    },
    "Box": {"number": "I64", "label": "String"},
    "Near": {"from": "String", "to": "String", "since": "Date", "weight": "F64"},
    "Holds": {"from": "String", "to": "String"},
}  # fmt: skip
TEXTS = ["", "a", "b", "t7", "low", "high", "7", "-3", "it's", 'a"b', "ü"]
VALUES: dict[str, list[Any]] = {
    "String": TEXTS,
    "I32": [-(2**31), -1, 0, 1, 5, 2**31 - 1],
    "I64": [-(2**63), -3, 0, 7, 2**63 - 1],
    "U64": [0, 1, 5, 2**53 + 1],
    "F32": [-1.5, -0.0, 0.0, 0.1, 0.5, 1e30],
    "F64": [-1e300, -0.0, 0.0, 0.1, 0.5, 7.0],
    "Bool": [False, True],
    "Date": [dt.date(1, 1, 1), dt.date(1970, 1, 1), dt.date(2020, 2, 29), dt.date(9999, 12, 31)],
    "DateTime": [
        dt.datetime(1970, 1, 1),
        dt.datetime(2020, 2, 29, 12, 0, 0, 7000),
        dt.datetime(9999, 12, 31, tzinfo=dt.UTC),
    ],
}


NAMES = [*(text for text in TEXTS if text), *(f"n{number}" for number in range(30))]


@pytest.fixture(scope="module")
def many() -> Graph:
    """Rows with and without every value, in several fragments."""
    chance = random.Random(7)

    def data(type_name: str) -> dict[str, Any]:
        values = {}
        for name, kind in KINDS[type_name].items():
            choices = ["low", "high"] if name == "level" else VALUES[kind]
            value = chance.choice([None, *choices])
            if name not in ("name", "number", "from", "to"):
                values[name] = value.isoformat() if isinstance(value, dt.date) else value
        return values

    graph = init(f"memory://{uuid.uuid4().hex}", SCHEMA)
    for start in range(0, len(NAMES), 10):
        load(graph, *(thing(name, **data("Thing")) for name in NAMES[start : start + 10]))
    load(graph, *(box(number, **data("Box")) for number in VALUES["I64"]))
    for kind, sources in (("Near", NAMES), ("Holds", ["7", "-3"])):
        ends = [(chance.choice(sources), chance.choice(NAMES)) for _ in range(60)]
        load(graph, *(edge(kind, *pair, **data(kind)) for pair in ends))
    return graph


def deleted(graph: Graph, type_name: str, declared: str, where: str, given: Any) -> list[str]:
    """The ids of a type that a mutation would delete."""
    snapshot = graph._snapshot()
    query = f"query q({declared}) {{ delete {type_name} where {where} }}"
    plan = compile_query(Source("<query>", query), snapshot.catalog).mutation_plan()
    bound = bind_host_values(plan.parameters, given)
    prepared = prepare_mutation(
        plan, bound, snapshot, graph._core.parts.tables, MutationIds(), DocumentVectors()
    )
    kinds = {f"node:{type_name}", f"edge:{type_name}"}
    return sorted(
        id
        for write in prepared.change.writes
        if write.table_key in kinds
        for id in write.deletes.to_pylist()
    )


@st.composite
def conditions(draw: st.DrawFn) -> tuple[str, str, str, dict[str, Any]]:
    """A type, the declaration of a parameter for a mutation, a condition, and parameters."""
    type_name = draw(st.sampled_from([*KINDS]))
    name = draw(st.sampled_from([*KINDS[type_name]]))
    kind = KINDS[type_name][name]
    operator = draw(st.sampled_from(["=", "!=", "<", "<=", ">", ">="]))
    value = draw(st.sampled_from([None, *VALUES[kind]]))
    literal = literal_of(value)
    if literal is None or name == "level" or draw(st.booleans()):
        return type_name, f"$x: {kind}?", f"{name} {operator} $x", {"x": value}
    return type_name, "", f"{name} {operator} {literal}", {}


def literal_of(value: Any) -> str | None:
    """A value as a literal, if the language has one for it."""
    if isinstance(value, dt.datetime):
        return f'datetime("{value.isoformat()}")'
    if isinstance(value, dt.date):
        return f'date("{value.isoformat()}")'
    if isinstance(value, float):
        return f"{value:f}" if 0 <= value < 100 and str(value)[0] != "-" else None
    if isinstance(value, str | bool) or (isinstance(value, int) and value >= 0):
        return json.dumps(value, ensure_ascii=False)
    return None


@given(conditions())
def test_a_condition_finds_what_a_mutation_deletes(many, wanted):
    type_name, declared, where, params = wanted
    found = ids(many, type_name, where=where, params=params)
    assert found == deleted(many, type_name, declared, where, params)


def test_conditions_find_some_rows_and_not_others(many):
    assert ids(many, "Thing") == sorted(NAMES)
    assert 0 < len(ids(many, "Thing", where="small > 0")) < len(NAMES)
    assert ids(many, "Box", where="number < 0") == ["-3", str(-(2**63))]
