"""Merging branches: outcomes, what is written and published, who decides conflicts."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from omnigraph.engine.compare import changes
from omnigraph.engine.graph import Graph, init
from omnigraph.engine.graph import open as open_graph
from omnigraph.engine.merge import scratch
from omnigraph.engine.merge.plan import MergePlanner
from omnigraph.errors import (
    CommitBranchGone,
    ExternalBlobRefused,
    HeadMoved,
    InputError,
    InvalidBranchName,
    MergeConflicts,
    OmnigraphError,
    ReadOnlyHandle,
)
from omnigraph.faults import InjectedFault
from omnigraph.testing.faults import Fail, armed
from tests.behaviour.graphs import COMPANY, PERSON, SCHEMA, pins
from tests.behaviour.merging import (
    add,
    ages,
    conflicts,
    edge,
    exported,
    lines,
    person,
    remove,
    set_age,
)

MERGED = "branch_merge.post_phase_b_pre_manifest_commit"
ROW_VERSIONS = ["id", "_rowid", "_row_created_at_version", "_row_last_updated_at_version"]


@pytest.fixture
def graph(memory_uri: str) -> Graph:
    """Four people, two of whom know each other, and a branch `feature`."""
    graph = init(memory_uri, SCHEMA)
    rows = [person("Alice", age=30), person("Bob", age=40), person("Carol"), person("Dan")]
    graph.load(lines(*rows, edge("Knows", "Bob", "Carol", id="k1")), "append")
    graph.create_branch("feature")
    return graph


def row_versions(graph: Graph, table_key: str, branch: str = "main") -> dict[str, tuple[int, ...]]:
    rows = graph.snapshot(branch).open(graph._tables, table_key).read(ROW_VERSIONS).to_pylist()
    return {row["id"]: tuple(row[name] for name in ROW_VERSIONS[1:]) for row in rows}


# -- outcomes --------------------------------------------------------------------------------


@pytest.mark.acceptance("S-097")
def test_a_branch_on_which_nothing_happened_is_merged_already(graph):
    add(graph, "main", "Eve")
    before = graph.head()
    done = graph.merge("feature")
    assert (done.outcome.value, done.receipt.graph_commit_id) == ("already_up_to_date", None)
    assert (graph.head(), done.receipt.parent_commit_id) == (before, before)


@pytest.mark.acceptance("S-098")
def test_what_only_the_source_changed_is_a_fast_forward_with_two_parents(graph):
    add(graph, "feature", "Eve")
    target, source = graph.head(), graph.head("feature")
    done = graph.merge("feature", actor="ada", message="review done")
    commit = graph.commit(graph.head())
    assert done.outcome.value == "fast_forward"
    assert commit.parents == (target, source)
    assert (commit.draft.actor_id, commit.draft.message) == ("ada", "review done")
    assert commit.draft.operation.value == "merge"
    assert graph.merge("feature").outcome.value == "already_up_to_date"
    assert graph.head() == commit.graph_commit_id


@pytest.mark.acceptance("S-099")
def test_rows_that_a_merge_does_not_change_stay_as_they_are_stored(graph):
    set_age(graph, "feature", "Alice", 31)
    set_age(graph, "main", "Bob", 41)
    before = row_versions(graph, PERSON)
    assert graph.merge("feature").outcome.value == "merged"
    assert ages(graph) == {"Alice": 31, "Bob": 41, "Carol": None, "Dan": None}
    after = row_versions(graph, PERSON)
    assert {name for name in after if after[name] != before[name]} == {"Alice"}
    assert after["Alice"][:2] == before["Alice"][:2]


@pytest.mark.acceptance("S-100")
def test_the_same_change_on_both_sides_writes_nothing_and_is_one_commit(graph):
    set_age(graph, "feature", "Alice", 31)
    set_age(graph, "main", "Alice", 31)
    before, versions = pins(graph), len(graph.commits())
    done = graph.merge("feature")
    assert (done.outcome.value, dict(done.receipt.counts)) == ("merged", {})
    assert (pins(graph), len(graph.commits())) == (before, versions + 1)


@pytest.mark.acceptance("S-101")
def test_a_null_that_became_an_empty_text_is_a_change(memory_uri):
    graph = init(memory_uri, "node Note { slug: String @key  text: String? }\n")
    graph.load(b'{"type": "Note", "data": {"slug": "a"}}', "append")
    graph.create_branch("feature")
    graph.mutate('query q() { update Note set { text: "" } where slug = "a" }', branch="feature")
    graph.load(b'{"type": "Note", "data": {"slug": "b"}}', "append")
    graph.merge("feature")
    assert [row["data"]["text"] for row in exported(graph)] == ["", None]


@pytest.mark.acceptance("S-102")
def test_edits_that_cancel_out_leave_their_table_alone(graph):
    text = 'query q() { insert Knows { from: "Alice", to: "Dan" } }'
    graph.mutate(text, branch="feature")
    graph.mutate('query q() { delete Knows where from = "Alice" }', branch="feature")
    add(graph, "main", "Eve")
    before = pins(graph)
    assert graph.merge("feature").outcome.value == "merged"
    assert pins(graph) == before


@pytest.mark.acceptance("S-103")
def test_merging_back_brings_the_other_side(graph):
    for number in range(5):
        set_age(graph, "feature", "Alice", number)
    set_age(graph, "main", "Bob", 7)
    assert graph.merge("feature").outcome.value == "merged"
    assert graph.merge("main", "feature").outcome.value == "fast_forward"
    assert (
        ages(graph, "feature") == ages(graph) == {"Alice": 4, "Bob": 7, "Carol": None, "Dan": None}
    )


@pytest.mark.acceptance("S-108")
def test_a_merge_into_a_branch_leaves_main_alone(graph):
    graph.create_branch("other")
    add(graph, "feature", "Eve")
    add(graph, "other", "Fay")
    before = graph.snapshot("main").to_json()
    graph.merge("feature", "other")
    assert {"Eve", "Fay"} <= ages(graph, "other").keys()
    assert graph.snapshot("other").entry(PERSON).branch == "other"
    assert graph.snapshot("main").to_json() == before


@pytest.mark.acceptance("S-178")
def test_a_change_of_main_joins_the_table_the_branch_has_of_its_own(graph):
    add(graph, "feature", "Eve")
    set_age(graph, "main", "Bob", 41)
    graph.merge("main", "feature")
    assert graph.snapshot("feature").entry(PERSON).branch == "feature"
    assert ages(graph, "feature") == {
        "Alice": 30, "Bob": 41, "Carol": None, "Dan": None, "Eve": None
    }  # fmt: skip


def test_a_branch_that_never_wrote_a_table_takes_it_from_main_as_it_is(graph):
    add(graph, "feature", "Eve")
    graph.load(b'{"type": "Company", "data": {"name": "Acme"}}', "append")
    done = graph.merge("main", "feature")
    assert pins(graph, "feature")[COMPANY] == pins(graph)[COMPANY]
    assert done.receipt.counts[COMPANY].to_json() == {"inserted": 1, "updated": 0, "deleted": 0}
    assert [row["data"]["name"] for row in exported(graph, "feature", "Company")] == ["Acme"]


@pytest.mark.acceptance("S-177")
def test_upserts_and_deletes_of_a_table_are_one_commit_of_it(graph):
    add(graph, "feature", "Eve")
    set_age(graph, "feature", "Alice", 31)
    remove(graph, "feature", "Dan")
    set_age(graph, "main", "Bob", 41)
    before, source, target = pins(graph), graph.head("feature"), graph.head()
    done = graph.merge("feature")
    assert pins(graph)[PERSON].version == before[PERSON].version + 1
    assert done.receipt.counts[PERSON].to_json() == {"inserted": 1, "updated": 1, "deleted": 1}
    assert graph.commit(graph.head()).parents == (target, source)


@pytest.mark.acceptance("S-112")
def test_a_branch_is_not_merged_into_itself_nor_an_internal_one_at_all(graph):
    with pytest.raises(InputError, match="distinct source and target"):
        graph.merge("main", "main")
    with pytest.raises(InvalidBranchName, match="internal system ref"):
        graph.merge("__schema_apply_lock__")
    with pytest.raises(InvalidBranchName, match="internal system ref"):
        graph.merge("feature", "__schema_apply_lock__")


@pytest.mark.acceptance("S-147", partly="merges only")
def test_the_receipt_of_a_merge_can_be_had_again(graph):
    add(graph, "feature", "Eve")
    receipt = graph.merge("feature", actor="ada").receipt
    assert receipt.graph_commit_id == graph.head()
    assert receipt.manifest_version == graph.snapshot().version
    assert graph.receipt_of(receipt.graph_commit_id).to_json() == receipt.to_json()


# -- history ---------------------------------------------------------------------------------


@pytest.mark.acceptance("S-187")
def test_ancestry_outlives_the_branch_it_came_from(graph):
    graph.create_branch("other")
    set_age(graph, "feature", "Alice", 31)
    lost = graph.head("feature")
    graph.merge("feature")
    graph.merge("feature", "other")
    graph.delete_branch("feature")
    assert graph.commit(lost).branch == "feature"
    with pytest.raises(CommitBranchGone):
        graph.snapshot_of(lost)
    assert lost in [commit.graph_commit_id for commit in graph.ancestry()]
    assert lost not in [commit.graph_commit_id for commit in graph.commits()]
    assert graph.merge("other").outcome.value == "merged"
    assert graph.merge("other").outcome.value == "already_up_to_date"


def test_a_later_merge_starts_from_the_last_one(graph):
    set_age(graph, "feature", "Alice", 31)
    graph.merge("feature")
    set_age(graph, "feature", "Alice", 32)
    set_age(graph, "main", "Bob", 41)
    graph.merge("feature")
    assert ages(graph)["Alice"] == 32


def test_branches_that_merged_each_other_crosswise_have_their_merge_in_common(graph):
    set_age(graph, "main", "Alice", 31)
    set_age(graph, "feature", "Bob", 41)
    graph.create_branch("as-main-was")
    graph.merge("feature")
    graph.merge("as-main-was", "feature")
    # Both had both changes when they went on: only one has changed each of the two since.
    set_age(graph, "main", "Alice", 32)
    set_age(graph, "feature", "Bob", 42)
    assert graph.merge("feature").outcome.value == "merged"
    assert ages(graph) == {"Alice": 32, "Bob": 42, "Carol": None, "Dan": None}


def test_a_change_taken_back_after_a_crosswise_merge_is_a_change(graph):
    set_age(graph, "main", "Alice", 31)
    set_age(graph, "feature", "Bob", 41)
    graph.create_branch("as-main-was")
    graph.merge("feature")
    graph.merge("as-main-was", "feature")
    set_age(graph, "main", "Alice", 30)
    set_age(graph, "feature", "Alice", 33)
    assert conflicts(lambda: graph.merge("feature")) == [(PERSON, "Alice", "divergent_update")]


@pytest.mark.parametrize(("source", "target"), [("feature", "main"), ("main", "feature")])
def test_ancestors_that_disagree_leave_the_row_to_whoever_merges(graph, source, target):
    set_age(graph, "main", "Alice", 31)
    set_age(graph, "feature", "Alice", 41)
    graph.create_branch("as-main-was")
    graph.merge("feature", strategy="ours")
    graph.merge("as-main-was", "feature", strategy="ours")
    found = conflicts(lambda: graph.merge(source, target))
    assert found == [(PERSON, "Alice", "divergent_update")]
    graph.merge(source, target, strategy="theirs")
    assert ages(graph, target)["Alice"] == ages(graph, source)["Alice"]


# -- conflicts and who decides them ----------------------------------------------------------


def test_every_conflict_is_told_with_all_three_states(graph):
    set_age(graph, "feature", "Alice", 31)
    remove(graph, "feature", "Dan")
    add(graph, "feature", "Eve")
    set_age(graph, "main", "Alice", 32)
    set_age(graph, "main", "Dan", 7)
    graph.load(person("Eve", age=5).encode(), "append")
    before = graph.snapshot().to_json()
    with pytest.raises(MergeConflicts) as refused:
        graph.merge("feature")
    told = [(c.row_id, c.kind, c.base, c.ours, c.theirs) for c in refused.value.conflicts]
    assert told == [
        ("Alice", "divergent_update", _row("Alice", 30), _row("Alice", 32), _row("Alice", 31)),
        ("Dan", "delete_vs_update", _row("Dan", None), _row("Dan", 7), None),
        ("Eve", "divergent_insert", None, _row("Eve", 5), _row("Eve", None)),
    ]
    assert str(refused.value).startswith("merge conflicts: node:Person:Alice (divergent_update);")
    assert graph.snapshot().to_json() == before


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
    "words",
    [
        {"strategy": "mine"},
        {"strategy": {"Robot": "ours"}},
        {"strategy": {"Person.height": "ours"}, "granularity": "property"},
        {"strategy": {"Person.age": "ours"}},
        {"granularity": "cell"},
        {"resolutions": [{"table_key": PERSON, "row_id": "Alice"}]},
        {"resolutions": [{"table_key": "node:Robot", "row_id": "x", "take": "ours"}]},
        {"resolutions": [{"table_key": PERSON, "row_id": None, "take": "ours"}]},
    ],
)
def test_choices_that_mean_nothing_are_refused(contested, words):
    with pytest.raises(InputError):
        contested.merge("feature", **words)


NOTES = "node Note { slug: String @key  title: String?  tags: [String]?  rank: F64? }\n"


def _note(graph: Graph, branch: str, **data: object) -> None:
    record = {"type": "Note", "data": {"slug": "a", **data}}
    graph.load(json.dumps(record).encode(), "merge", branch=branch)


@pytest.fixture
def notes(memory_uri: str) -> Graph:
    graph = init(memory_uri, NOTES)
    _note(graph, "main", title="t", tags=["x"], rank=1.5)
    graph.create_branch("feature")
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
    before = contested.head()
    done = contested.merge("feature", dry_run=True)
    assert [c.row_id for c in done.conflicts] == ["Alice", "Bob"]
    assert (done.outcome.value, done.receipt.graph_commit_id) == ("merged", None)
    assert contested.head() == before
    would = contested.merge("feature", dry_run=True, strategy="theirs")
    made = contested.merge("feature", strategy="theirs")
    assert (dict(would.receipt.counts), would.conflicts) == (dict(made.receipt.counts), ())


def test_a_merge_of_many_rows_waits_in_files_that_it_removes(graph, tmp_path, monkeypatch):
    monkeypatch.setattr(scratch, "MERGE_MEMORY_BYTES", 0)
    monkeypatch.setattr(changes, "COMPARED_ROWS", 2)
    monkeypatch.setenv(scratch.STAGING_DIR, str(tmp_path))
    newcomers = [person(f"p{number}", age=number) for number in range(9)]
    graph.load(lines(*newcomers, person("Alice", age=31)), branch="feature")
    set_age(graph, "main", "Bob", 41)
    graph.merge("feature")
    assert len(ages(graph)) == 13
    assert (ages(graph)["Alice"], ages(graph)["Bob"], ages(graph)["p8"]) == (31, 41, 8)
    assert list(tmp_path.iterdir()) == []


# -- rules that only both sides together break ------------------------------------------------


@pytest.mark.acceptance("S-104")
def test_a_unique_value_on_both_sides_is_a_conflict(memory_uri):
    graph = init(memory_uri, "node Person { name: String @key  email: String? @unique }\n")
    graph.load(lines(person("Alice"), person("Bob")), "append")
    graph.create_branch("feature")
    graph.load(person("Alice", email="x@y").encode(), branch="feature")
    graph.load(person("Bob", email="x@y").encode())
    with pytest.raises(MergeConflicts) as refused:
        graph.merge("feature")
    [conflict] = refused.value.conflicts
    assert (conflict.row_id, conflict.kind) == ("Bob", "unique_violation")
    assert conflict.message == "'Alice' and 'Bob' share Person.email 'x@y'"


EMPLOYERS = """
node Person { name: String @key }
node Company { name: String @key }
edge WorksAt: Person -> Company @card(0..1)
"""


@pytest.mark.acceptance("S-104")
def test_an_employer_from_each_side_is_one_too_many(memory_uri):
    graph = init(memory_uri, EMPLOYERS)
    firms = [json.dumps({"type": "Company", "data": {"name": name}}) for name in ("A", "B")]
    graph.load(lines(person("Alice"), *firms), "append")
    graph.create_branch("feature")
    graph.load(edge("WorksAt", "Alice", "A").encode(), branch="feature")
    graph.load(edge("WorksAt", "Alice", "B").encode())
    found = conflicts(lambda: graph.merge("feature"))
    assert found == [("edge:WorksAt", None, "cardinality_violation")]


@pytest.mark.acceptance("S-105")
def test_pairs_that_share_a_source_are_different_pairs(memory_uri):
    schema = (
        "node Person { name: String @key }\nedge Knows: Person -> Person { @unique(src, dst) }\n"
    )
    graph = init(memory_uri, schema)
    graph.load(lines(*map(person, ["Alice", "Bob", "Carol"])), "append")
    graph.create_branch("feature")
    graph.load(edge("Knows", "Alice", "Bob").encode(), branch="feature")
    graph.load(edge("Knows", "Alice", "Carol").encode())
    graph.merge("feature")
    assert len(exported(graph, "main", "Knows")) == 2


@pytest.mark.acceptance("S-175")
def test_the_same_identified_edge_on_both_sides_is_one_edge(memory_uri):
    edges = "edge Knows: Person -> Person { since: I32?  @unique(src, dst) }\n"
    graph = init(memory_uri, f"node Person {{ name: String @key }}\n{edges}")
    graph.load(lines(person("Alice"), person("Bob")), "append")
    graph.create_branch("feature")
    graph.load(edge("Knows", "Alice", "Bob", since=1).encode(), branch="feature")
    graph.load(edge("Knows", "Alice", "Bob", since=1).encode())
    assert graph.merge("feature").outcome.value == "merged"
    assert len(exported(graph, "main", "Knows")) == 1
    graph.load(edge("Knows", "Bob", "Alice", since=1).encode(), branch="feature")
    graph.load(edge("Knows", "Bob", "Alice", since=2).encode())
    found = conflicts(lambda: graph.merge("feature"))
    assert found == [("edge:Knows", '["Bob","Alice"]', "divergent_insert")]


@pytest.mark.acceptance("S-176")
def test_edges_without_identity_are_all_kept(graph):
    for branch in ("feature", "main"):
        graph.load(edge("Knows", "Alice", "Bob").encode(), branch=branch)
    graph.merge("feature")
    found = [row for row in exported(graph, "main", "Knows") if row["from"] == "Alice"]
    assert len(found) == 2


def test_an_edge_whose_node_the_other_side_removed_is_an_orphan(graph):
    graph.load(edge("Knows", "Alice", "Dan", id="k2").encode(), branch="feature")
    remove(graph, "main", "Dan")
    remove(graph, "feature", "Bob")
    graph.load(edge("Knows", "Bob", "Alice", id="k3").encode())
    assert conflicts(lambda: graph.merge("feature")) == [
        ("edge:Knows", "k2", "orphan_edge"),
        ("edge:Knows", "k3", "orphan_edge"),
    ]


def test_what_was_wrong_on_one_side_alone_is_not_the_merge_s_business(graph):
    # An overwrite of the people leaves the edge between two of them dangling on the branch.
    graph.load(person("Alice", age=1).encode(), "overwrite", branch="feature")
    assert graph.merge("feature").outcome.value == "fast_forward"
    assert (ages(graph), len(exported(graph, "main", "Knows"))) == ({"Alice": 1}, 1)


# -- searching, blobs, vectors ---------------------------------------------------------------


@pytest.mark.acceptance("S-106")
def test_merged_texts_are_found(memory_uri):
    graph = init(memory_uri, "node Note { slug: String @key  text: String @index }\n")
    rows = [{"slug": str(n), "text": f"number {n}"} for n in range(20)]
    graph.load(lines(*(json.dumps({"type": "Note", "data": row}) for row in rows)), "append")
    graph.create_branch("feature")
    change = 'query q() {{ update Note set {{ text: "{}" }} where slug = "{}" }}'
    graph.mutate(change.format("a purple owl", "3"), branch="feature")
    graph.mutate(change.format("an orange fox", "4"))
    graph.merge("feature")
    query = "query q($w: String) { match { $n: Note  search($n.text, $w) } return { $n.slug } }"
    assert graph.query(query, w="purple").to_dicts() == [{"n.slug": "3"}]
    assert graph.query(query, w="orange").to_dicts() == [{"n.slug": "4"}]


def test_blobs_and_vectors_come_along(memory_uri):
    graph = init(memory_uri, "node Doc { slug: String @key  file: Blob?  vec: Vector(2)? }\n")

    def doc(slug: str, data: str, vec: list[float]) -> bytes:
        row = {"slug": slug, "file": f"base64:{data}", "vec": vec}
        return json.dumps({"type": "Doc", "data": row}).encode()

    graph.load(doc("a", "YQ==", [1, 2]), "append")
    graph.create_branch("feature")
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
@pytest.mark.acceptance("S-190", partly="merges only")
def test_a_blob_kept_elsewhere_is_merged_where_that_is_allowed(local_uri, tmp_path, monkeypatch):
    picture = tmp_path / "pictures" / "owl.png"
    picture.parent.mkdir()
    picture.write_bytes(b"an owl")
    monkeypatch.setenv("OMNIGRAPH_EXTERNAL_BLOBS", str(picture.parent))
    graph = init(local_uri, "node Doc { slug: String @key  file: Blob? }\n")
    graph.create_branch("feature")
    record = {"type": "Doc", "data": {"slug": "a", "file": picture.as_uri()}}
    graph.load(json.dumps(record).encode(), "append", branch="feature")
    monkeypatch.delenv("OMNIGRAPH_EXTERNAL_BLOBS")
    before = graph.head()
    with pytest.raises(ExternalBlobRefused):
        graph.merge("feature")
    assert graph.head() == before
    monkeypatch.setenv("OMNIGRAPH_EXTERNAL_BLOBS", str(picture.parent))
    graph.merge("feature")
    assert graph.read_blob("Doc", "a", "file") == b"an owl"


# -- accidents and others at work ------------------------------------------------------------


@pytest.mark.acceptance("S-109")
@pytest.mark.parametrize("target", ["main", "other"])
def test_a_merge_that_died_before_its_publish_is_finished_with_both_parents(local_uri, target):
    graph = init(local_uri, SCHEMA)
    graph.load(lines(person("Alice", age=30), person("Bob")), "append")
    graph.create_branch("feature")
    graph.create_branch("other")
    set_age(graph, "feature", "Alice", 31)
    set_age(graph, target, "Bob", 41)
    parents = (graph.head(target), graph.head("feature"))
    with armed(MERGED, Fail()), pytest.raises(InjectedFault):
        graph.merge("feature", target)
    again = open_graph(local_uri)
    commit = again.commit(again.head(target))
    assert (commit.parents, commit.draft.operation.value) == (parents, "recovery")
    assert ages(again, target) == {"Alice": 31, "Bob": 41}
    assert again.merge("feature", target).outcome.value == "already_up_to_date"
    again.delete_branch("feature")
    assert again.commit(parents[1]).graph_commit_id == parents[1]


def _apply_schema(graph: Graph) -> None:
    graph.delete_branch("feature")
    graph.apply_schema(SCHEMA.replace("age: I32?", "age: I32?  nick: String?"))


@pytest.mark.acceptance("S-069")
@pytest.mark.parametrize(
    "write",
    [
        lambda graph: set_age(graph, "main", "Eve", 7),
        lambda graph: graph.merge("feature"),
        _apply_schema,
    ],
    ids=["mutation", "merge", "schema apply"],
)
def test_whoever_writes_next_settles_what_was_interrupted_first(graph, write):
    set_age(graph, "feature", "Alice", 31)
    with armed("mutation.post_finalize_pre_publisher", Fail()), pytest.raises(InjectedFault):
        add(graph, "main", "Eve")
    write(graph)
    assert "Eve" in ages(graph)
    [recovered] = graph.recoveries()
    assert recovered.audit.kind.value == "RolledForward"


def test_a_merge_settles_what_was_interrupted_on_its_source_too(graph):
    with armed("mutation.post_finalize_pre_publisher", Fail()), pytest.raises(InjectedFault):
        add(graph, "feature", "Eve")
    graph.merge("feature")
    assert "Eve" in ages(graph)
    assert graph.recovery_status().pending == ()


@pytest.mark.acceptance("S-081")
@pytest.mark.parametrize(
    "write",
    [lambda graph: graph.load(person("Alice", age=31).encode()), lambda g: g.merge("feature")],
    ids=["load", "merge"],
)
def test_a_write_whose_intent_cannot_be_written_changes_nothing(graph, write):
    set_age(graph, "feature", "Alice", 31)
    before = graph.snapshot().to_json()
    with armed("recovery.sidecar_write", Fail(), times=1), pytest.raises(OmnigraphError):
        write(graph)
    assert (graph.snapshot().to_json(), graph.recovery_status().pending) == (before, ())
    write(graph)
    assert ages(graph)["Alice"] == 31


def test_a_target_that_moves_meanwhile_is_merged_as_it_is_then(graph, monkeypatch):
    set_age(graph, "feature", "Alice", 31)
    plan = MergePlanner.plan
    planned: list[object] = []

    def plan_slowly(planner, *states):
        found = plan(planner, *states)
        planned.append(found)
        if len(planned) == 1:
            set_age(open_graph(graph.uri), "main", "Bob", 41)
        return found

    monkeypatch.setattr(MergePlanner, "plan", plan_slowly)
    assert graph.merge("feature").outcome.value == "merged"
    assert (len(planned), ages(graph)["Alice"], ages(graph)["Bob"]) == (2, 31, 41)


def test_a_merge_that_somebody_else_makes_meanwhile_is_not_made_twice(graph, monkeypatch):
    set_age(graph, "feature", "Alice", 31)
    plan = MergePlanner.plan

    def plan_slowly(planner, *states):
        found = plan(planner, *states)
        monkeypatch.setattr(MergePlanner, "plan", plan)
        open_graph(graph.uri).merge("feature")
        return found

    monkeypatch.setattr(MergePlanner, "plan", plan_slowly)
    commits = len(graph.commits())
    assert graph.merge("feature").outcome.value == "already_up_to_date"
    assert len(graph.commits()) == commits + 1


def test_a_merge_can_insist_on_the_head_of_its_target(graph):
    add(graph, "feature", "Eve")
    before = graph.head()
    add(graph, "main", "Fay")
    with pytest.raises(HeadMoved):
        graph.merge("feature", expected_head=before)
    graph.merge("feature", expected_head=graph.head())


def test_a_graph_open_for_reading_is_not_merged(local_uri):
    init(local_uri, SCHEMA).create_branch("feature")
    with pytest.raises(ReadOnlyHandle):
        open_graph(local_uri, read_only=True).merge("feature")


@pytest.mark.acceptance("S-111")
def test_merges_into_two_targets_at_once_are_both_right(graph):
    graph.create_branch("other")
    set_age(graph, "feature", "Alice", 31)
    set_age(graph, "main", "Bob", 41)
    set_age(graph, "other", "Bob", 42)
    with ThreadPoolExecutor(2) as pool:
        done = list(pool.map(lambda into: graph.merge("feature", into), ["main", "other"]))
    assert [result.outcome.value for result in done] == ["merged", "merged"]
    assert (ages(graph)["Alice"], ages(graph)["Bob"]) == (31, 41)
    assert (ages(graph, "other")["Alice"], ages(graph, "other")["Bob"]) == (31, 42)
