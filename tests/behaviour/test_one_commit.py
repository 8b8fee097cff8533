"""One query is one commit: what it leaves in the tables, and how it meets other writers."""

from __future__ import annotations

import threading

import pytest

from omnigraph.api.graph import init
from omnigraph.api.graph import open as open_graph
from omnigraph.errors import HeadMoved, MutationError
from tests.behaviour.graphs import COMPANY, KEYS, PERSON, Backstage, pins
from tests.crash.recovery.situations import (
    ADD,
    AGE,
    EVERYBODY,
    KNOWS,
    WORKS_AT,
    ages,
    check_recovered,
    content,
    head,
    ids,
    new_graph,
    sidecars,
)
from tests.support.faults import Call, armed
from tests.support.receipts import receipt_of_commit

UNIQUE = "node Person { name: String @key  email: String? @unique }\n"


@pytest.fixture
def graph(uri):
    return new_graph(uri)


def run(graph, statements, **options):
    return graph.mutate(f"query q() {{ {statements} }}", **options)


def moved(graph, before):
    """By how many versions each table moved since; those that did not are left out."""
    return {
        key: pin.version - before[key].version
        for key, pin in pins(graph).items()
        if pin != before[key]
    }


def ends(graph, key):
    rows = graph._snapshot().open(graph._core.tables, key).read(["src", "dst"]).to_pylist()
    return sorted((row["src"], row["dst"]) for row in rows)


# -- one query -------------------------------------------------------------------------------


@pytest.mark.acceptance("S-043")
def test_a_node_and_its_edge_appear_together(graph):
    before, commits = pins(graph), len(graph.log(reverse=True))
    run(graph, 'insert Person { name: "Eve" } insert Knows { from: "Alice", to: "Eve" }')
    assert moved(graph, before) == {PERSON: 1, KNOWS: 1}
    assert len(graph.log(reverse=True)) == commits + 1
    assert ("Alice", "Eve") in ends(graph, KNOWS)


@pytest.mark.acceptance("S-044")
def test_a_statement_that_fails_takes_the_others_with_it(graph):
    before = graph._snapshot().to_json()
    heads = {key: head(graph, key).version for key in KEYS}
    with pytest.raises(MutationError, match="Nobody"):
        run(graph, 'insert Person { name: "Eve" } insert Knows { from: "Eve", to: "Nobody" }')
    assert graph._snapshot().to_json() == before
    assert {key: head(graph, key).version for key in KEYS} == heads
    assert sidecars(graph) == []
    run(graph, 'insert Person { name: "Eve" }')
    assert ids(graph) == [*EVERYBODY, "Eve"]


@pytest.mark.acceptance("S-045")
def test_a_mixed_query_moves_each_table_once(graph):
    before, commits = pins(graph), len(graph.log(reverse=True))
    done = run(
        graph,
        'insert Person { name: "Bo" } update Person set { age: 30 } where name = "Alice"'
        ' insert Knows { from: "Alice", to: "Bo" } delete Person where name = "Cara"',
    )
    assert moved(graph, before) == {PERSON: 1, KNOWS: 1, WORKS_AT: 1}
    assert len(graph.log(reverse=True)) == commits + 1
    found = {k: (c.inserted, c.updated, c.deleted) for k, c in done.receipt.counts.items()}
    assert found == {PERSON: (1, 1, 1), KNOWS: (1, 0, 0), WORKS_AT: (0, 0, 1)}
    assert (done.affected_nodes, done.affected_edges) == (3, 2)
    assert ages(graph) == {"Alice": 30, "Bo": None, "Bob": None, "Dan": None}
    assert ends(graph, KNOWS) == [("Alice", "Bo"), ("Alice", "Bob")]
    check_recovered(graph)


@pytest.mark.acceptance("S-046")
def test_a_row_inserted_and_updated_is_one_version(graph):
    before = pins(graph)
    run(graph, 'insert Person { name: "Eve" } update Person set { age: 9 } where name = "Eve"')
    assert moved(graph, before) == {PERSON: 1}
    assert ages(graph)["Eve"] == 9


@pytest.mark.acceptance("S-047")
def test_an_update_does_not_match_what_an_earlier_one_changed(graph):
    run(graph, 'update Person set { age: 40 } where name = "Bob"')
    done = run(
        graph,
        "update Person set { age: 20 } where age > 30 update Person set { age: 99 } where age > 30",
    )
    assert (done.affected_nodes, ages(graph)["Bob"]) == (1, 20)


@pytest.mark.acceptance("S-048")
@pytest.mark.parametrize(
    "statement",
    ['update Person set { age: 1 } where name = "Nobody"', 'delete Knows where from = "Dan"'],
)
def test_a_query_without_effect_is_no_commit(graph, statement):
    before = graph._snapshot().to_json()
    heads = {key: head(graph, key).version for key in KEYS}
    done = run(graph, statement)
    assert (done.affected_nodes, done.affected_edges) == (0, 0)
    assert done.receipt.graph_commit_id is None
    assert graph._snapshot().to_json() == before
    assert {key: head(graph, key).version for key in KEYS} == heads
    assert sidecars(graph) == []


@pytest.mark.acceptance("S-049")
def test_an_edge_table_without_matching_rows_does_not_move(graph):
    before = pins(graph)
    run(graph, 'delete Person where name = "Dan"')
    assert moved(graph, before) == {PERSON: 1}
    assert head(graph, KNOWS).version == before[KNOWS].version


@pytest.mark.acceptance("S-058")
def test_a_unique_value_of_a_committed_row_cannot_be_inserted_again(uri):
    graph = init(uri, UNIQUE)
    run(graph, 'insert Person { name: "a", email: "x" }')
    with pytest.raises(MutationError, match="email"):
        run(graph, 'insert Person { name: "b", email: "x" }')
    assert ids(graph) == ["a"]
    run(graph, 'insert Person { name: "a", email: "x" } insert Person { name: "b" }')
    assert ids(graph) == ["a", "b"]


@pytest.mark.acceptance("S-149")
def test_an_inserted_and_deleted_node_leaves_no_trace(graph):
    before = graph._snapshot().to_json()
    done = run(graph, 'insert Person { name: "Eve" } delete Person where name = "Eve"')
    assert done.receipt.graph_commit_id is None
    assert graph._snapshot().to_json() == before


@pytest.mark.acceptance("S-149")
def test_a_deleted_and_inserted_key_is_one_changed_row(graph):
    before, commits = pins(graph), len(graph.log(reverse=True))
    done = run(graph, 'delete Person where name = "Dan" insert Person { name: "Dan", age: 3 }')
    assert moved(graph, before) == {PERSON: 1}
    assert len(graph.log(reverse=True)) == commits + 1
    counts = done.receipt.counts[PERSON]
    assert (counts.inserted, counts.updated, counts.deleted) == (0, 1, 0)
    assert ages(graph)["Dan"] == 3


@pytest.mark.acceptance("S-150")
def test_an_edge_to_a_node_deleted_before_is_refused(graph):
    before = graph._snapshot().to_json()
    with pytest.raises(MutationError, match="Dan"):
        run(graph, 'delete Person where name = "Dan" insert Knows { from: "Alice", to: "Dan" }')
    assert graph._snapshot().to_json() == before


@pytest.mark.acceptance("S-151")
def test_deleting_a_node_takes_a_new_edge_along(graph):
    before = ends(graph, KNOWS)
    run(graph, 'insert Knows { from: "Dan", to: "Alice" } delete Person where name = "Dan"')
    assert ends(graph, KNOWS) == before
    assert ids(graph) == ["Alice", "Bob", "Cara"]


@pytest.mark.acceptance("S-152")
def test_upserts_and_deletes_are_one_update_with_the_operation_and_old_row_ids(graph):
    table, before = head(graph), graph.head().id
    old = {row["id"]: row["_rowid"] for row in table.read(["id"], with_row_ids=True).to_pylist()}
    done = run(
        graph,
        'update Person set { age: 1 } where name = "Bob" delete Person where name = "Cara"'
        ' insert Person { name: "Eve" }',
    )
    newest = head(graph)
    assert newest.version == table.version + 1
    record = newest.record()
    assert (record.operation, record.operation_id) == ("update", done.receipt.operation_id)
    new = {row["id"]: row["_rowid"] for row in newest.read(["id"], with_row_ids=True).to_pylist()}
    assert {name: new[name] for name in ("Alice", "Bob", "Dan")} == {
        name: old[name] for name in ("Alice", "Bob", "Dan")
    }
    assert new["Eve"] not in old.values()
    changes = graph.diff(before, "main", types=["Person"]).to_arrow().to_pylist()
    assert {(row["id"], row["op"]) for row in changes} == {
        ("Bob", "update"),
        ("Cara", "delete"),
        ("Eve", "insert"),
    }


# -- other writers ---------------------------------------------------------------------------


@pytest.mark.acceptance("S-050")
def test_a_stale_handle_still_inserts(graph):
    other = open_graph(graph.uri)
    graph.mutate(ADD, {"who": "Eve"})
    other.mutate(ADD, {"who": "Flo"})
    assert ids(graph) == ids(other) == [*EVERYBODY, "Eve", "Flo"]


@pytest.mark.acceptance("S-051")
def test_a_handle_updates_what_others_have_written_since(graph):
    other = open_graph(graph.uri)
    graph.mutate(ADD, {"who": "Eve"})
    graph.mutate(AGE, {"who": "Bob", "age": 4})
    other.mutate(AGE, {"who": "Bob", "age": 5})
    assert (ids(graph), ages(graph)["Bob"]) == ([*EVERYBODY, "Eve"], 5)


@pytest.mark.acceptance("S-052")
def test_two_updates_of_a_row_at_once_both_succeed_and_the_last_commit_stands(graph):
    handles = [open_graph(graph.uri) for _ in range(2)]
    # Both have looked before either holds the lock.
    meeting = threading.Barrier(2)
    wait = threading.local()
    made: dict[str, int] = {}

    def update(number):
        receipt = handles[number].mutate(AGE, {"who": "Bob", "age": number}).receipt
        made[receipt.graph_commit_id] = number

    def meet(_hit):
        if not getattr(wait, "met", False):
            wait.met = True
            meeting.wait(30)

    with armed("recovery.sidecar_list", Call(meet)):
        threads = [threading.Thread(target=update, args=(number,)) for number in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(made) == 2
    assert ages(graph)["Bob"] == made[graph.head().id]
    check_recovered(graph)


@pytest.mark.acceptance("S-145", partly="over HTTP, which tests/server has")
@pytest.mark.parametrize("branch", ["main", "feature"])
def test_a_mutation_that_expects_another_head_leaves_nothing(graph, branch):
    graph.branches.create("feature")
    expected = graph.head(branch).id
    graph.mutate(ADD, {"who": "Eve"}, branch=branch, expected_head=expected)
    before = content(graph, branch)
    with pytest.raises(HeadMoved) as caught:
        graph.mutate(ADD, {"who": "Flo"}, branch=branch, expected_head=expected)
    assert (caught.value.expected, caught.value.actual) == (expected, graph.head(branch).id)
    assert content(graph, branch) == before
    check_recovered(graph, "feature")


@pytest.mark.acceptance("S-135")
def test_a_mutation_that_fails_on_a_branch_forks_nothing(graph):
    feature = graph.branches.create("feature")
    with pytest.raises(MutationError):
        run(feature, 'insert Person { name: "Eve" } insert Knows { from: "Eve", to: "Nobody" }')
    location = graph._snapshot().entry(PERSON).location
    assert Backstage(graph.uri).tables.list_branches(location) == {}
    run(feature, 'insert Person { name: "Eve" }')
    assert ids(graph, branch="feature") == [*EVERYBODY, "Eve"]


@pytest.mark.acceptance("S-143")
def test_a_mutation_appears_in_one_version_of_the_manifest(graph):
    backstage = Backstage(graph.uri)
    known, before = backstage.tables.open("__manifest").version, backstage.rows()
    run(graph, 'insert Person { name: "Eve" } insert Company { name: "Bolt" }')
    assert backstage.tables.open("__manifest").version == known + 1
    new = [row["object_type"] for row in backstage.rows() if row not in before]
    assert sorted(new) == ["graph_commit", "operation", "table_version", "table_version"]
    assert ids(graph, COMPANY) == ["Acme", "Bolt"]


def test_the_receipt_of_a_mutation_is_kept_with_its_commit(graph):
    parent = graph.head().id
    done = run(graph.as_actor("act-1"), 'insert Person { name: "Eve" }', message="hi").receipt
    assert (done.actor_id, graph.head().actor, graph.head().message) == ("act-1", "act-1", "hi")
    assert (done.graph_commit_id, done.parent_commit_id) == (graph.head().id, parent)
    assert done.manifest_version == graph._snapshot().version
    assert done.to_json() == receipt_of_commit(graph, done.graph_commit_id).to_json()
    assert done.to_json()["counts"] == {PERSON: {"inserted": 1, "updated": 0, "deleted": 0}}
    nothing = run(graph, 'delete Person where name = "Nobody"').receipt
    assert (nothing.graph_commit_id, nothing.manifest_version) == (None, done.manifest_version)
