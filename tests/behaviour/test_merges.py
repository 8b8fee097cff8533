"""Merging branches: outcomes, and what is written and published."""

from __future__ import annotations

import pytest

from omnigraph.api.graph import Graph, init
from omnigraph.errors import (
    BranchInUse,
    InputError,
    InvalidBranchName,
)
from tests.behaviour.graphs import COMPANY, PERSON, pins
from tests.behaviour.merging import (
    add,
    ages,
    exported,
    four_people,
    remove,
    set_age,
)
from tests.support.faults import Call, armed
from tests.support.receipts import receipt_of_commit

ROW_VERSIONS = ["id", "_rowid", "_row_created_at_version", "_row_last_updated_at_version"]


@pytest.fixture
def graph(memory_uri: str) -> Graph:
    return four_people(memory_uri)


def row_versions(graph: Graph, table_key: str, branch: str = "main") -> dict[str, tuple[int, ...]]:
    rows = (
        graph._snapshot(branch).open(graph._core.tables, table_key).read(ROW_VERSIONS).to_pylist()
    )
    return {row["id"]: tuple(row[name] for name in ROW_VERSIONS[1:]) for row in rows}


@pytest.mark.acceptance("S-097")
def test_a_branch_on_which_nothing_happened_is_merged_already(graph):
    add(graph, "main", "Eve")
    before = graph.head().id
    done = graph.merge("feature")
    assert (done.outcome.value, done.receipt.graph_commit_id) == ("already_up_to_date", None)
    assert (graph.head().id, done.receipt.parent_commit_id) == (before, before)


@pytest.mark.acceptance("S-098")
def test_what_only_the_source_changed_is_a_fast_forward_with_two_parents(graph):
    add(graph, "feature", "Eve")
    target, source = graph.head().id, graph.head("feature").id
    done = graph.as_actor("ada").merge("feature", message="review done")
    commit = graph.commit(graph.head().id)
    assert done.outcome.value == "fast_forward"
    assert commit.parents == (target, source)
    assert (commit.actor, commit.message) == ("ada", "review done")
    assert commit.operation == "merge"
    assert graph.merge("feature").outcome.value == "already_up_to_date"
    assert graph.head().id == commit.id


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
    before, versions = pins(graph), len(graph.log(reverse=True))
    done = graph.merge("feature")
    assert (done.outcome.value, dict(done.receipt.counts)) == ("merged", {})
    assert (pins(graph), len(graph.log(reverse=True))) == (before, versions + 1)


@pytest.mark.acceptance("S-101")
def test_a_null_that_became_an_empty_text_is_a_change(memory_uri):
    graph = init(memory_uri, "node Note { slug: String @key  text: String? }\n")
    graph.load(b'{"type": "Note", "data": {"slug": "a"}}', "append")
    graph.branches.create("feature")
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
    graph.branches.create("other")
    add(graph, "feature", "Eve")
    add(graph, "other", "Fay")
    before = graph._snapshot("main").to_json()
    graph.merge("feature", "other")
    assert {"Eve", "Fay"} <= ages(graph, "other").keys()
    assert graph._snapshot("other").entry(PERSON).branch == "other"
    assert graph._snapshot("main").to_json() == before


@pytest.mark.acceptance("S-178")
def test_a_change_of_main_joins_the_table_the_branch_has_of_its_own(graph):
    add(graph, "feature", "Eve")
    set_age(graph, "main", "Bob", 41)
    graph.merge("main", "feature")
    assert graph._snapshot("feature").entry(PERSON).branch == "feature"
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
    before, source, target = pins(graph), graph.head("feature").id, graph.head().id
    done = graph.merge("feature")
    assert pins(graph)[PERSON].version == before[PERSON].version + 1
    assert done.receipt.counts[PERSON].to_json() == {"inserted": 1, "updated": 1, "deleted": 1}
    assert graph.commit(graph.head().id).parents == (target, source)


@pytest.mark.acceptance("S-112")
def test_a_branch_is_not_merged_into_itself_nor_an_internal_one_at_all(graph):
    with pytest.raises(InputError, match="distinct source and target"):
        graph.merge("main", "main")
    with pytest.raises(InvalidBranchName, match="internal system ref"):
        graph.merge("__schema_apply_lock__")
    with pytest.raises(InvalidBranchName, match="internal system ref"):
        graph.merge("feature", "__schema_apply_lock__")


def test_the_receipt_of_a_merge_can_be_had_again(graph):
    add(graph, "feature", "Eve")
    receipt = graph.as_actor("ada").merge("feature").receipt
    assert receipt.graph_commit_id == graph.head().id
    assert receipt.manifest_version == graph._snapshot().version
    assert receipt_of_commit(graph, receipt.graph_commit_id).to_json() == receipt.to_json()


def test_the_source_is_deleted_after_its_merge_if_asked(graph):
    add(graph, "feature", "Eve")
    done = graph.merge("feature", delete_source=True)
    assert (done.outcome.value, done.receipt.warnings) == ("fast_forward", ())
    assert list(graph.branches) == ["main"]
    assert "Eve" in ages(graph)


def test_a_dry_run_deletes_nothing(graph):
    add(graph, "feature", "Eve")
    graph.merge("feature", delete_source=True, dry_run=True)
    assert list(graph.branches) == ["main", "feature"]


def test_a_source_that_has_to_stay_is_refused_before_the_merge(graph):
    add(graph, "feature", "Eve")
    before = graph.head().id
    graph.tags.create("v1", "feature")
    with pytest.raises(BranchInUse, match="v1"):
        graph.merge("feature", delete_source=True)
    with pytest.raises(BranchInUse, match="currently active"):
        graph.checkout("feature").merge("feature", "main", delete_source=True)
    with pytest.raises(InputError, match="needs a branch"):
        graph.merge(graph.head("feature"), delete_source=True)
    assert graph.head().id == before


def test_a_source_that_moves_during_its_merge_keeps_what_was_not_merged(graph):
    add(graph, "feature", "Eve")
    merged = Call(lambda _hit: add(graph, "feature", "Zoe"))
    with armed("branch_merge.post_phase_b_pre_manifest_commit", merged):
        done = graph.merge("feature", delete_source=True)
    assert [warning.code for warning in done.receipt.warnings] == ["source_kept"]
    assert list(graph.branches) == ["main", "feature"]
    assert "Zoe" in ages(graph, "feature")
    assert "Zoe" not in ages(graph)


def test_a_replayed_merge_deletes_nothing(graph):
    add(graph, "feature", "Eve")
    graph.merge("feature", idempotency_key="k")
    add(graph, "feature", "Zoe")
    again = graph.merge("feature", idempotency_key="k", delete_source=True)
    assert again.receipt.replayed
    assert "Zoe" in ages(graph, "feature")
