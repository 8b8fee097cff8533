"""Files whose ids are known are passed over by look-ups, and no row is missed by it."""

from __future__ import annotations

import tempfile
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph.storage import lineage
from omnigraph.storage import scan as scanning
from omnigraph.storage import table as tables_module
from omnigraph.storage.compact import compact_with_indexes
from omnigraph.storage.delta import stage_delta
from omnigraph.storage.durability import Durability
from omnigraph.storage.filters import And, Comparison, In, Not, Or
from omnigraph.storage.indexes import list_indexes, stage_btree_index
from omnigraph.storage.lineage import KnownValues, Lineage, asks_for_values
from omnigraph.storage.tables import TableStore
from omnigraph.storage.uris import normalise_root
from tests.storage.tables.rows import PEOPLE, commit, make, people

if TYPE_CHECKING:
    from omnigraph.storage.table import Table

NOTHING = PEOPLE.empty_table()
NAMES = "abcdef"

changes = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.sets(st.sampled_from(NAMES), min_size=1, max_size=2)),
        st.tuples(st.just("delete"), st.sets(st.sampled_from(NAMES), min_size=1, max_size=2)),
        st.tuples(st.sampled_from(["index", "compact", "branch", "main"]), st.just(set())),
    ),
    min_size=4,
    max_size=14,
)


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Which fragments scans are told to read."""
    told: list[Any] = []

    def note(dataset: Any, lineage: Lineage, wanted: scanning.Scan) -> pa.RecordBatchReader:
        told.append(wanted.fragment_ids)
        return scanning.scan(dataset, lineage, wanted)

    monkeypatch.setattr(tables_module, "scan", note)
    return told


def in_fragments(store: TableStore, fragments: int) -> Table:
    table = make(store, ada=1, bo=2)
    for number in range(fragments):
        table = commit(table, stage_delta(table, people(**{f"p{number}": number}), []))
    return table


def test_a_look_up_reads_the_files_in_which_the_id_may_be(store, read):
    table = in_fragments(store, 6)
    found = table.read(["id", "age"], Comparison("id", "=", "p3")).to_pylist()
    assert found == [{"id": "p3", "age": 3}]
    assert read == [[0, 4]]
    assert table.read(["id"], Comparison("id", "=", "zoe")).num_rows == 0
    assert read[1:] == [[0]]


def test_others_know_nothing_and_read_everything(store, root, read):
    in_fragments(store, 6)
    table = TableStore(root, Durability.NONE).open("nodes/people")
    assert table.read(["id"], Comparison("id", "=", "p3")).num_rows == 1
    assert read == [None]


def test_an_id_is_found_in_an_earlier_version_after_it_was_deleted(store):
    table = in_fragments(store, 6)
    later = commit(table, stage_delta(table, NOTHING, ["p3"]))
    wanted = Comparison("id", "=", "p3")
    assert later.read(["id"], wanted).num_rows == 0
    assert store.open("nodes/people", None, table.version).read(["id"], wanted).num_rows == 1


def test_a_limited_number_of_files_is_remembered(monkeypatch):
    monkeypatch.setattr(lineage, "KNOWN_FILES", 2)
    known = KnownValues()
    for name in "xyz":
        known.learn(name, people(**{name: 1}))
    wanted = Comparison("id", "=", "w")
    assert [known.may_match(name, wanted) for name in "xyz"] == [True, False, False]
    known.learn("many", people(**{f"p{n}": n for n in range(1000)}))
    assert known.may_match("many", wanted)


def test_new_ids_are_looked_up_without_reading_files_that_were_asked_often(store, monkeypatch):
    table = make(store, **{f"p{n}": n for n in range(1500)})
    looked_up: list[Any] = []

    def note(*given: Any) -> pa.Table:
        looked_up.append(given)
        return scanning.lookup(*given)

    monkeypatch.setattr(tables_module, "lookup", note)
    for number in range(20):
        assert table.lookup(pa.array([f"new{number}"])).num_rows == 0
    assert len(looked_up) == 8
    assert table.lookup(pa.array(["p7"])).to_pylist() == [{"id": "p7"}]
    assert table.lookup(pa.array(["new"]), ["id", "age"]).num_rows == 0
    assert table.read(["id"], Comparison("id", "=", "new")).num_rows == 0
    later = commit(table, stage_delta(table, people(new=1), ["p7"]))
    assert later.lookup(pa.array(["p7", "new"])).to_pylist() == [{"id": "new"}]
    assert table.lookup(pa.array(["p7"])).num_rows == 1


def test_files_with_deleted_rows_are_not_learnt(store):
    first = make(store, **{f"p{n}": n for n in range(20)})
    later = commit(first, stage_delta(first, NOTHING, ["p7"]))
    for number in range(20):
        assert later.lookup(pa.array([f"new{number}"])).num_rows == 0
    assert first.lookup(pa.array(["p7"])).num_rows == 1
    assert later.lookup(pa.array(["p7"])).num_rows == 0


def test_hashes_of_ids_take_a_limited_amount_of_memory(monkeypatch):
    monkeypatch.setattr(lineage, "KNOWN_IDS_BYTES", 8 * 25)
    known = KnownValues()
    for name in "xyz":
        known.learn_ids(name, pa.chunked_array([[f"{name}{n}" for n in range(10)]]))
    wanted = In("id", ("w", "v"))
    assert [known.may_match(name, wanted) for name in "xyz"] == [True, False, False]
    assert known.may_match("z", Comparison("id", "=", "z3"))
    assert known.may_match("z", Comparison("src", "=", "w"))


def test_numbers_are_left_to_the_store(store):
    numbered = pa.schema([pa.field("id", pa.utf8(), nullable=False), pa.field("src", pa.float32())])
    table = store.create("nodes/numbered", numbered)
    for number in range(6):
        rows = pa.table({"id": [str(number)], "src": [0.1]}, schema=numbered)
        table = commit(table, stage_delta(table, rows, []))
    assert table.read(["id"], Comparison("src", "=", 0.1)).num_rows == 6
    assert table.read(["id"], Comparison("id", "=", "3")).num_rows == 1


ID, SRC, DST = (Comparison(column, "=", "a") for column in ("id", "src", "dst"))
OLD = Comparison("age", ">", 60)


@pytest.mark.parametrize(
    ("filter", "passes_over", "asks"),
    [
        (ID, True, True),
        (Comparison("id", "=", "e1"), False, True),
        (In("id", ("a", "e1")), False, True),
        (In("dst", ("a", "c")), True, True),
        (And((OLD, ID)), True, True),
        (Or((SRC, DST)), True, True),
        (Or((SRC, Comparison("dst", "=", "y"))), False, True),
        (Or((ID, OLD)), False, False),
        (Not(ID), False, False),
        (Comparison("id", ">", "a"), False, False),
        (OLD, False, False),
        (None, False, False),
    ],
)
def test_what_a_filter_lets_a_look_up_pass_over(filter, passes_over, asks):
    known = KnownValues()
    known.learn("file", pa.table({"id": ["e1"], "src": ["x"], "dst": ["y"], "age": [1]}))
    assert asks_for_values(filter) == asks
    assert filter is None or known.may_match("file", filter) != passes_over
    assert filter is None or known.may_match("another", filter)


@settings(max_examples=25)
@given(changes, st.sets(st.sampled_from(NAMES), min_size=1, max_size=3))
def test_look_ups_find_the_same_with_and_without_what_is_known(history, asked):
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables_module, "_MIN_SKIPPED_FRAGMENTS", 1)
        root = normalise_root(f"{folder}/graph")
        store = TableStore(root, Durability.NONE)
        lines: dict[str | None, Table] = {None: make(store, a=0, b=0)}
        states, on = [lines[None]], None
        for age, (does, names) in enumerate(history):
            table = lines[on]
            match does:
                case "put":
                    table = commit(
                        table, stage_delta(table, people(**dict.fromkeys(names, age)), [])
                    )
                case "delete":
                    staged = stage_delta(table, NOTHING, sorted(names))
                    table = table if staged is None else commit(table, staged)
                case "index":
                    staged = None if list_indexes(table) else stage_btree_index(table, "id")
                    table = table if staged is None else commit(table, staged)
                case "compact":
                    table = compact_with_indexes(table)
                case "branch":
                    on = "side"
                    table = lines.get(on) or store.create_branch(
                        "nodes/people", on, source_branch=None, source_version=lines[None].version
                    )
                case _:
                    on, table = None, lines[None]
            lines[on] = table
            states.append(table)
        other = TableStore(root, Durability.NONE)
        ids = sorted(asked)
        for state in states:
            plain = other.open("nodes/people", state.branch, state.version)
            for wanted in (Comparison("id", "=", ids[0]), In("id", tuple(ids))):
                ours, theirs = state.read(["id", "age"], wanted), plain.read(["id", "age"], wanted)
                assert sorted(map(str, ours.to_pylist())) == sorted(map(str, theirs.to_pylist()))
            found = state.lookup(pa.array(ids), ["id", "age"]).to_pylist()
            assert sorted(map(str, found)) == sorted(
                map(str, plain.lookup(pa.array(ids), ["id", "age"]).to_pylist())
            )
