"""Interrupted writes are finished or undone as a whole, once, and said so in the history."""

from __future__ import annotations

import pytest

from omnigraph.api.graph import init
from omnigraph.api.graph import open as open_graph
from omnigraph.limits import INDEX_MIN_ROWS
from omnigraph.storage.indexes import list_indexes
from tests.behaviour.graphs import COMPANY, PERSON, SCHEMA, Backstage, tree
from tests.crash.recovery.situations import (
    ADD,
    AFTER_TABLE,
    BEFORE_PUBLISH,
    EVERYBODY,
    HIRE,
    KNOWS,
    PUBLISHED,
    WITH_SIDECAR,
    WORKS_AT,
    ages,
    check_recovered,
    content,
    head,
    ids,
    interrupted,
    kinds,
    of_another_process,
    people,
    sidecars,
    the_recovery,
)
from tests.support.faults import Fail, InjectedFault, armed, recording
from tests.support.receipts import receipt_of_commit

HIRED = (
    people("Eve") + '{"type": "Company", "data": {"name": "Bolt"}}\n'
    '{"edge": "WorksAt", "from": "Eve", "to": "Bolt"}\n'
).encode()
THREE = [COMPANY, PERSON, WORKS_AT]


def reopen(graph):
    return open_graph(graph.uri)


def refresh(graph):
    graph.maintenance.recover()
    return graph


def write(graph):
    graph.mutate(ADD, {"who": "Zoe"})
    return graph


# -- finished --------------------------------------------------------------------------------


@pytest.mark.acceptance("S-065")
def test_opening_a_clean_graph_changes_nothing_and_looks_only_for_sidecars(local_graph, tmp_path):
    before = tree(tmp_path / "graph")
    # A probe for hard links comes and goes in the root, and nowhere else.
    del before["."]
    commits = len(local_graph.log(reverse=True))
    with recording() as record:
        opened = open_graph(local_graph.uri)
    assert record.count("recovery.sidecar_list") == 1
    assert record.count("lock.after_acquire") == 0
    assert {path: file for path, file in tree(tmp_path / "graph").items() if path != "."} == before
    assert (len(opened.log(reverse=True)), opened.maintenance.recoveries()) == (commits, [])


@pytest.mark.acceptance("S-066")
@pytest.mark.parametrize("point", [BEFORE_PUBLISH, "graph_publish.before_manifest_commit"])
def test_a_write_that_was_not_published_is_finished_at_open(graph, point):
    before = graph.head().id
    interrupted(point, lambda: graph.as_actor("act-1").mutate(ADD, {"who": "Eve"}, message="hello"))
    assert ids(graph) == EVERYBODY
    assert len(sidecars(graph)) == 1
    again = open_graph(graph.uri)
    assert ids(again) == [*EVERYBODY, "Eve"]
    recorded = the_recovery(again, "RolledForward")
    assert recorded.audit.for_actor == "act-1"
    assert recorded.audit.writer_kind == "Mutation"
    (outcome,) = recorded.audit.outcomes
    assert (outcome.table_key, outcome.to_version - outcome.from_version) == (PERSON, 1)
    commit = again.commit(recorded.graph_commit_id)
    assert commit.parents == (before,)
    assert commit.message == "hello"
    counts = receipt_of_commit(again, commit.id).to_json()["counts"]
    assert counts == {PERSON: {"inserted": 1, "updated": 0, "deleted": 0}}
    check_recovered(again)
    again.mutate(ADD, {"who": "Flo"})
    assert ids(again) == [*EVERYBODY, "Eve", "Flo"]
    state = again._snapshot().to_json()
    assert open_graph(graph.uri)._snapshot().to_json() == state
    assert kinds(again) == ["RolledForward"]


@pytest.mark.acceptance("S-066")
def test_table_versions_commit_and_audit_of_a_recovery_appear_in_one_version(local_graph):
    interrupted(BEFORE_PUBLISH, lambda: local_graph.mutate(ADD, {"who": "Eve"}))
    backstage = Backstage(local_graph.uri)
    before = backstage.rows()
    known = backstage.tables.open("__manifest").version
    opened = open_graph(local_graph.uri)
    sequence = opened._snapshot().version
    assert backstage.tables.open("__manifest").version == known + 1
    new = [row for row in backstage.rows() if row not in before]
    assert sorted(row["object_type"] for row in new) == [
        "graph_commit",
        "operation",
        "recovery_audit",
        "table_version",
    ]
    assert {row["commit_seq"] for row in new} == {sequence}


@pytest.mark.acceptance("S-067")
def test_refresh_finishes_a_write_too(graph):
    interrupted(BEFORE_PUBLISH, lambda: graph.as_actor("act-1").mutate(ADD, {"who": "Eve"}))
    graph.maintenance.recover()
    assert ids(graph) == [*EVERYBODY, "Eve"]
    assert the_recovery(graph, "RolledForward").audit.for_actor == "act-1"
    check_recovered(graph)
    graph.mutate(ADD, {"who": "Flo"})
    assert ids(graph) == [*EVERYBODY, "Eve", "Flo"]


@pytest.mark.acceptance("S-068")
def test_the_next_load_finishes_a_load_of_three_types(graph):
    interrupted(BEFORE_PUBLISH, lambda: graph.load(HIRED, "merge", load_id="L1"))
    graph.load(people("Flo").encode(), "merge")
    assert ids(graph) == [*EVERYBODY, "Eve", "Flo"]
    assert ids(graph, COMPANY) == ["Acme", "Bolt"]
    assert len(ids(graph, WORKS_AT)) == 2
    recorded = the_recovery(graph, "RolledForward")
    assert sorted(o.table_key for o in recorded.audit.outcomes) == sorted(THREE)
    assert recorded.audit.writer_kind == "Load"
    check_recovered(graph)
    # The load of that id has been made, if by recovery: it is not made again.
    again = graph.load(HIRED, "merge", load_id="L1")
    assert again.replayed
    assert again.receipt.graph_commit_id == recorded.graph_commit_id


def test_the_next_mutation_sees_what_it_finished(graph):
    interrupted(BEFORE_PUBLISH, lambda: graph.mutate(ADD, {"who": "Eve"}))
    graph.mutate('query q() { update Person set { age: 7 } where name = "Eve" }')
    assert ages(graph)["Eve"] == 7
    assert kinds(graph) == ["RolledForward"]
    check_recovered(graph)


@pytest.mark.acceptance("S-070", "S-078")
@pytest.mark.parametrize("recover_by", [reopen, refresh])
def test_recovery_of_a_branch_stays_on_it(graph, recover_by):
    feature = graph.branches.create("feature")
    feature.mutate(ADD, {"who": "Flo"})
    graph.mutate(ADD, {"who": "Max"})
    graph.mutate(ADD, {"who": "Moe"})
    main, parent = graph._snapshot("main").to_json(), graph.head("feature").id
    interrupted(BEFORE_PUBLISH, lambda: feature.mutate(ADD, {"who": "Eve"}))
    again = recover_by(graph)
    assert ids(again, branch="feature") == [*EVERYBODY, "Eve", "Flo"]
    assert again._snapshot("main").to_json() == main
    recorded = the_recovery(again, "RolledForward", "feature")
    assert again.commit(recorded.graph_commit_id).parents == (parent,)
    assert again.maintenance.recoveries("main") == []
    check_recovered(again, "feature")


@pytest.mark.acceptance("S-078")
@pytest.mark.parametrize("recover_by", [reopen, refresh])
def test_the_first_write_of_a_branch_is_finished_with_its_fork(graph, recover_by):
    feature = graph.branches.create("feature")
    interrupted(BEFORE_PUBLISH, lambda: feature.mutate(HIRE, {"who": "Eve", "company": "Bolt"}))
    again = recover_by(graph)
    assert ids(again, branch="feature") == [*EVERYBODY, "Eve"]
    assert ids(again, COMPANY, "feature") == ["Acme", "Bolt"]
    assert again._snapshot("feature").entry(PERSON).branch == "feature"
    assert ids(again) == EVERYBODY
    check_recovered(again, "feature")


@pytest.mark.acceptance("S-071")
def test_an_overwrite_is_finished_with_the_new_content(graph):
    interrupted(BEFORE_PUBLISH, lambda: graph.load(HIRED, "overwrite", cascade=True))
    again = open_graph(graph.uri)
    assert (ids(again), ids(again, COMPANY)) == (["Eve"], ["Bolt"])
    assert (len(ids(again, WORKS_AT)), ids(again, KNOWS)) == (1, [])
    assert kinds(again) == ["RolledForward"]
    check_recovered(again)


@pytest.mark.acceptance("S-072")
def test_indexes_built_before_the_crash_are_part_of_what_is_finished(uri):
    graph = init(uri, SCHEMA)
    many = [f"p{number}" for number in range(INDEX_MIN_ROWS)]
    interrupted(BEFORE_PUBLISH, lambda: graph.load(people(*many).encode(), "append"))
    moved = head(graph).version
    assert moved > graph._snapshot().entry(PERSON).version + 1
    again = open_graph(uri)
    assert again._snapshot().entry(PERSON).version == moved
    assert ids(again) == sorted(many)
    assert list_indexes(again._snapshot().open(again._core.tables, PERSON))
    check_recovered(again)


@pytest.mark.acceptance("S-090")
def test_a_published_write_is_kept_as_it_is(graph):
    interrupted(PUBLISHED, lambda: graph.as_actor("act-1").mutate(ADD, {"who": "Eve"}))
    assert ids(graph) == [*EVERYBODY, "Eve"]
    assert len(sidecars(graph)) == 1
    commits = [c.id for c in graph.log(reverse=True)]
    again = open_graph(graph.uri)
    assert [c.id for c in again.log(reverse=True)] == commits
    assert again.log(reverse=True)[-1].actor == "act-1"
    assert again.maintenance.recoveries() == []
    check_recovered(again)


@pytest.mark.acceptance("S-091")
def test_a_sidecar_of_main_is_classified_against_main_by_a_handle_of_a_branch(graph):
    feature = graph.branches.create("feature")
    feature.mutate(ADD, {"who": "Flo"})
    feature.mutate(ADD, {"who": "Fay"})
    interrupted(BEFORE_PUBLISH, lambda: graph.mutate(ADD, {"who": "Eve"}))
    feature.mutate(ADD, {"who": "Fred"})
    # The branch was written; main's sidecar is main's business and waits.
    assert len(sidecars(graph)) == 1
    feature.mutate(ADD, {"who": "Max"}, branch="main")
    assert ids(graph) == [*EVERYBODY, "Eve", "Max"]
    assert kinds(graph) == ["RolledForward"]
    assert feature.maintenance.recoveries() == []
    check_recovered(graph, "feature")


# -- undone ----------------------------------------------------------------------------------


@pytest.mark.acceptance("S-073")
@pytest.mark.parametrize("tables", [1, 2])
def test_a_load_that_wrote_some_of_its_tables_is_undone_at_open(graph, tables):
    before = content(graph)
    interrupted(AFTER_TABLE, lambda: graph.as_actor("act-1").load(HIRED, "merge"), first=tables)
    again = open_graph(graph.uri)
    assert content(again) == before
    recorded = the_recovery(again, "RolledBack")
    assert recorded.audit.for_actor == "act-1"
    assert len(recorded.audit.outcomes) == tables
    for outcome in recorded.audit.outcomes:
        assert outcome.from_version > outcome.to_version
    assert receipt_of_commit(again, recorded.graph_commit_id).counts == {}
    check_recovered(again)
    again.load(HIRED, "merge")
    assert ids(again) == [*EVERYBODY, "Eve"]


@pytest.mark.acceptance("S-074")
@pytest.mark.parametrize("branch", ["main", "feature", "fresh"])
def test_the_next_write_of_the_same_handle_undoes_it(graph, branch):
    graph.branches.create("feature").load(
        HIRED.replace(b"Eve", b"Fay").replace(b"Bolt", b"Core"), "merge"
    )
    graph.branches.create("fresh")
    handle = open_graph(graph.uri, branch=branch)
    before = content(graph, branch)
    interrupted(AFTER_TABLE, lambda: handle.load(HIRED, "merge"))
    handle.mutate(ADD, {"who": "Zoe"})
    assert content(graph, branch) == before | {PERSON: sorted([*before[PERSON], "Zoe"])}
    the_recovery(graph, "RolledBack", branch)
    check_recovered(graph, "feature", "fresh")


@pytest.mark.acceptance("S-075")
@pytest.mark.parametrize("times", [1, 2])
def test_a_crash_during_the_undoing_is_undone_as_well(graph, times):
    before = content(graph)
    interrupted(AFTER_TABLE, lambda: graph.load(HIRED, "merge"), first=2)
    for _ in range(times):
        interrupted("recovery.post_table_restore_pre_publish", lambda: open_graph(graph.uri))
        assert len(sidecars(graph)) == 1
        assert content(open_graph(graph.uri, read_only=True)) == before
    again = open_graph(graph.uri)
    the_recovery(again, "RolledBack")
    open_graph(graph.uri)
    the_recovery(again, "RolledBack")
    assert content(again) == before
    check_recovered(again)
    again.load(HIRED, "merge")
    assert ids(again) == [*EVERYBODY, "Eve"]


@pytest.mark.acceptance("S-084")
def test_a_recovery_that_could_not_be_published_is_made_by_the_next_write(graph):
    interrupted(BEFORE_PUBLISH, lambda: graph.mutate(ADD, {"who": "Eve"}))
    with armed("recovery.before_publish", Fail(), times=1), pytest.raises(InjectedFault):
        graph.mutate(ADD, {"who": "Flo"})
    assert ids(graph) == EVERYBODY
    assert len(sidecars(graph)) == 1
    graph.mutate(ADD, {"who": "Flo"})
    assert ids(graph) == [*EVERYBODY, "Eve", "Flo"]
    the_recovery(graph, "RolledForward")
    check_recovered(graph)


# -- nothing happened ------------------------------------------------------------------------


@pytest.mark.acceptance("S-089")
@pytest.mark.parametrize("recover_by", [reopen, refresh, write])
def test_a_write_that_moved_nothing_is_forgotten_by_its_own_process(graph, recover_by):
    interrupted(WITH_SIDECAR, lambda: graph.mutate(ADD, {"who": "Eve"}))
    before = len(graph.log(reverse=True))
    again = recover_by(graph)
    assert again.maintenance.recoveries() == []
    assert len(again.log(reverse=True)) == before + (recover_by is write)
    assert "Eve" not in ids(again)
    again.maintenance.optimize()
    check_recovered(again)


@pytest.mark.acceptance("S-089")
@pytest.mark.parametrize("branch", ["main", "feature"])
@pytest.mark.parametrize("point", [WITH_SIDECAR, "mutation.pre_table_commit"])
def test_a_write_of_another_process_that_moved_nothing_is_fenced(graph, branch, point):
    graph.branches.create("feature")
    handle = open_graph(graph.uri, branch=branch)
    interrupted(point, lambda: handle.mutate(ADD, {"who": "Eve"}))
    of_another_process(graph)
    operation = sidecars(graph)[0].removesuffix(".json")
    handle.mutate(ADD, {"who": "Flo"})
    recorded = the_recovery(graph, "RolledBack", branch)
    assert (recorded.audit.outcomes, recorded.audit.operation_id) == ((), operation)
    outcome = graph._core.manifest.operation_outcome(
        graph._core.manifest.open(graph._ref(branch).physical), operation
    )
    assert outcome == (recorded.graph_commit_id, "discarded")
    assert ids(graph, branch=branch) == [*EVERYBODY, "Flo"]
    check_recovered(graph, "feature")
