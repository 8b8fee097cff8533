"""Rows that come together in a merge: conflicts and who decides them, blobs and vectors, many rows."""

from __future__ import annotations

import json

import pytest

from omnigraph.api.graph import Graph, init
from omnigraph.diff import changes
from omnigraph.errors import (
    ExternalBlobRefused,
    InputError,
    LoadError,
    MergeConflicts,
)
from omnigraph.merge import rows as merged_rows
from tests.behaviour.graphs import PERSON
from tests.behaviour.merging import (
    add,
    ages,
    conflicts,
    exported,
    four_people,
    lines,
    person,
    remove,
    set_age,
)


@pytest.fixture
def graph(memory_uri: str) -> Graph:
    return four_people(memory_uri)


def test_every_conflict_is_told_with_all_three_states(graph):
    set_age(graph, "feature", "Alice", 31)
    remove(graph, "feature", "Dan")
    add(graph, "feature", "Eve")
    set_age(graph, "main", "Alice", 32)
    set_age(graph, "main", "Dan", 7)
    graph.load(person("Eve", age=5).encode(), "append")
    before = graph._snapshot().to_json()
    with pytest.raises(MergeConflicts) as refused:
        graph.merge("feature")
    reported = [(c.row_id, c.kind, c.base, c.ours, c.theirs) for c in refused.value.conflicts]
    assert reported == [
        ("Alice", "divergent_update", _row("Alice", 30), _row("Alice", 32), _row("Alice", 31)),
        ("Dan", "delete_vs_update", _row("Dan", None), _row("Dan", 7), None),
        ("Eve", "divergent_insert", None, _row("Eve", 5), _row("Eve", None)),
    ]
    assert str(refused.value).startswith("merge conflicts: node:Person:Alice (divergent_update);")
    assert graph._snapshot().to_json() == before


def _row(name: str, age: int | None) -> dict[str, object]:
    return {"id": name, "name": name, "age": age}


@pytest.fixture
def contested(graph: Graph) -> Graph:
    """Alice changed on both sides, Bob deleted by the branch and changed on main."""
    set_age(graph, "feature", "Alice", 31)
    set_age(graph, "main", "Alice", 32)
    graph.mutate('query q() { delete Knows where from = "Bob" }')
    remove(graph, "feature", "Bob")
    set_age(graph, "main", "Bob", 42)
    return graph


@pytest.mark.parametrize(
    ("strategy", "alice", "bob"), [("ours", 32, 42), ("theirs", 31, None), ({"Person": "ours"}, 32, 42)]
)  # fmt: skip
def test_a_strategy_decides_what_both_sides_changed(contested, strategy, alice, bob):
    contested.merge("feature", strategy=strategy)
    found = ages(contested)
    assert (found["Alice"], found.get("Bob")) == (alice, bob)


def test_a_resolution_decides_one_row_and_may_take_what_was_there_before(contested):
    words = [
        {"table_key": PERSON, "row_id": "Alice", "take": "base"},
        {"table_key": PERSON, "row_id": "Bob", "take": "theirs"},
    ]
    contested.merge("feature", resolutions=words)
    assert ages(contested) == {"Alice": 30, "Carol": None, "Dan": None}


def test_what_no_resolution_decides_stays_a_conflict(contested):
    words = [{"table_key": PERSON, "row_id": "Alice", "take": "ours"}]
    found = conflicts(lambda: contested.merge("feature", resolutions=words))
    assert found == [(PERSON, "Bob", "delete_vs_update")]


def test_a_resolution_that_was_not_needed_is_a_warning(graph):
    add(graph, "feature", "Eve")
    words = [{"table_key": PERSON, "row_id": "Eve", "take": "ours"}]
    [warning] = graph.merge("feature", resolutions=words).receipt.warnings
    assert (warning.code, warning.count) == ("unused_resolution", 1)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"strategy": "mine"}, "strategy 'mine' is unknown"),
        ({"strategy": {"Robot": "ours"}}, "unknown type 'Robot'"),
        (
            {"strategy": {"Person.height": "ours"}, "granularity": "property"},
            "unknown property 'Person.height'",
        ),
        ({"strategy": {"Person.age": "ours"}}, "needs granularity 'property'"),
        ({"granularity": "cell"}, "granularity 'cell' is unknown"),
        ({"resolutions": [{"table_key": PERSON, "row_id": "Alice"}]}, "take 'None' is unknown"),
        (
            {"resolutions": [{"table_key": "node:Robot", "row_id": "x", "take": "ours"}]},
            "unknown table 'node:Robot'",
        ),
        (
            {"resolutions": [{"table_key": PERSON, "row_id": None, "take": "ours"}]},
            "needs the table_key and the row_id",
        ),
    ],
)
def test_choices_that_mean_nothing_are_refused(contested, words, message):
    with pytest.raises(InputError, match=message):
        contested.merge("feature", **words)


NOTES = "node Note { slug: String @key  title: String?  tags: [String]?  rank: F64? }\n"


def _note(graph: Graph, branch: str, **data: object) -> None:
    record = {"type": "Note", "data": {"slug": "a", **data}}
    graph.load(json.dumps(record).encode(), "merge", branch=branch)


@pytest.fixture
def notes(memory_uri: str) -> Graph:
    graph = init(memory_uri, NOTES)
    _note(graph, "main", title="t", tags=["x"], rank=1.5)
    graph.branches.create("feature")
    return graph


def test_updates_of_different_properties_go_together_if_told_to(notes):
    _note(notes, "feature", title="new", tags=["x"], rank=1.5)
    _note(notes, "main", title="t", tags=["x", "y"], rank=1.5)
    assert conflicts(lambda: notes.merge("feature")) == [("node:Note", "a", "divergent_update")]
    notes.merge("feature", granularity="property")
    [row] = exported(notes)
    assert row["data"] == {"id": "a", "slug": "a", "title": "new", "tags": ["x", "y"], "rank": 1.5}


def test_a_property_changed_on_both_sides_can_have_a_strategy_of_its_own(notes):
    _note(notes, "feature", title="theirs", tags=["theirs"], rank=1.5)
    _note(notes, "main", title="ours", tags=["ours"], rank=2.5)
    with pytest.raises(MergeConflicts, match="node:Note:a") as refused:
        notes.merge("feature", granularity="property")
    assert refused.value.conflicts[0].message.endswith("of tags, title")
    strategy = {"*": "theirs", "Note.title": "ours"}
    notes.merge("feature", granularity="property", strategy=strategy)
    [row] = exported(notes)
    assert (row["data"]["title"], row["data"]["tags"], row["data"]["rank"]) == (
        "ours",
        ["theirs"],
        2.5,
    )


def test_a_dry_run_tells_everything_and_changes_nothing(contested):
    before = contested.head().id
    done = contested.merge("feature", dry_run=True)
    assert [c.row_id for c in done.conflicts] == ["Alice", "Bob"]
    assert (done.outcome.value, done.receipt.graph_commit_id) == ("conflicts", None)
    assert contested.head().id == before
    would = contested.merge("feature", dry_run=True, strategy="theirs")
    made = contested.merge("feature", strategy="theirs")
    assert (dict(would.receipt.counts), would.conflicts) == (dict(made.receipt.counts), ())


def test_a_merge_of_many_rows_waits_in_files_that_it_removes(graph, tmp_path, monkeypatch):
    monkeypatch.setattr(merged_rows, "MERGE_MEMORY_BYTES", 0)
    monkeypatch.setattr(changes, "COMPARED_ROWS", 2)
    monkeypatch.setenv("OMNIGRAPH_MERGE_STAGING_DIR", str(tmp_path))
    newcomers = [person(f"p{number}", age=number) for number in range(9)]
    graph.load(lines(*newcomers, person("Alice", age=31)), "merge", branch="feature")
    set_age(graph, "main", "Bob", 41)
    graph.merge("feature")
    assert len(ages(graph)) == 13
    assert (ages(graph)["Alice"], ages(graph)["Bob"], ages(graph)["p8"]) == (31, 41, 8)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.acceptance("S-106")
def test_merged_texts_are_found(memory_uri):
    graph = init(memory_uri, "node Note { slug: String @key  text: String @index }\n")
    rows = [{"slug": str(n), "text": f"number {n}"} for n in range(20)]
    graph.load(lines(*(json.dumps({"type": "Note", "data": row}) for row in rows)), "append")
    graph.branches.create("feature")
    change = 'query q() {{ update Note set {{ text: "{}" }} where slug = "{}" }}'
    graph.mutate(change.format("a purple owl", "3"), branch="feature")
    graph.mutate(change.format("an orange fox", "4"))
    graph.merge("feature")
    query = "query q($w: String) { match { $n: Note  search($n.text, $w) } return { $n.slug } }"
    assert graph.query(query, {"w": "purple"}).to_dicts() == [{"n.slug": "3"}]
    assert graph.query(query, {"w": "orange"}).to_dicts() == [{"n.slug": "4"}]


def test_blobs_and_vectors_come_along(memory_uri):
    graph = init(memory_uri, "node Doc { slug: String @key  file: Blob?  vec: Vector(2)? }\n")

    def doc(slug: str, data: str, vec: list[float]) -> bytes:
        row = {"slug": slug, "file": f"base64:{data}", "vec": vec}
        return json.dumps({"type": "Doc", "data": row}).encode()

    graph.load(doc("a", "YQ==", [1, 2]), "append")
    graph.branches.create("feature")
    graph.load(doc("b", "Yg==", [3, 4]), "append", branch="feature")
    graph.load(doc("a", "YWE=", [1, 2]), "merge", branch="feature")
    graph.load(doc("c", "Yw==", [5, 6]), "append")
    graph.merge("feature")
    found = {row["data"]["slug"]: row["data"] for row in exported(graph)}
    assert {slug: (row["file"], row["vec"]) for slug, row in found.items()} == {
        "a": ("base64:YWE=", [1, 2]),
        "b": ("base64:Yg==", [3, 4]),
        "c": ("base64:Yw==", [5, 6]),
    }
    assert graph.merge("feature").outcome.value == "already_up_to_date"


@pytest.mark.acceptance("S-107")
@pytest.mark.acceptance("S-190")
def test_a_blob_kept_elsewhere_is_merged_where_that_is_allowed(local_uri, tmp_path, monkeypatch):
    picture = tmp_path / "pictures" / "owl.png"
    picture.parent.mkdir()
    picture.write_bytes(b"an owl")
    monkeypatch.setenv("OMNIGRAPH_EXTERNAL_BLOBS", str(picture.parent))
    graph = init(local_uri, "node Doc { slug: String @key  file: Blob? }\n")
    graph.branches.create("feature")
    record = {"type": "Doc", "data": {"slug": "a", "file": picture.as_uri()}}
    graph.load(json.dumps(record).encode(), "append", branch="feature")
    monkeypatch.delenv("OMNIGRAPH_EXTERNAL_BLOBS")
    before = graph.head().id
    with pytest.raises(LoadError, match="is not under a base"):
        graph.load(json.dumps(record).encode(), "merge")
    with pytest.raises(ExternalBlobRefused):
        graph.merge("feature")
    assert graph.head().id == before
    monkeypatch.setenv("OMNIGRAPH_EXTERNAL_BLOBS", str(picture.parent))
    graph.merge("feature")
    assert graph.blobs.read("Doc", "a", "file") == b"an owl"
