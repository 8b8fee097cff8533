"""Which versions of a table belong to an interrupted write, and what that makes of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from omnigraph.api.graph import open as open_graph
from omnigraph.errors import CommitStateUnknown, RecoveryQuarantined, TableOvertaken
from omnigraph.storage.stage import commit_staged, stage_restore
from omnigraph.versioning.ids import new_ulid
from tests.behaviour.graphs import COMPANY, PERSON
from tests.crash.recovery.situations import (
    ADD,
    AFTER_TABLE,
    BEFORE_PUBLISH,
    BEFORE_TABLE,
    EVERYBODY,
    HIRE,
    check_recovered,
    commit_of,
    content,
    drifted,
    head,
    ids,
    interrupted,
    kinds,
    raw_append,
    raw_compaction,
    raw_delete,
    read_sidecar,
    sidecar_for,
    sidecars,
    write_sidecar,
)
from tests.support.faults import Call, armed


def pinned(graph, key=PERSON):
    return graph._snapshot("main").entry(key).version


# -- two writes on one table -----------------------------------------------------------------


@pytest.mark.acceptance("S-077")
def test_two_writes_on_one_table_are_finished_in_order(graph):
    base = pinned(graph)
    first, second = sorted([new_ulid(), new_ulid()])
    assert commit_of(graph, first, "Eve") == base + 1
    assert commit_of(graph, second, "Flo") == base + 2
    sidecar_for(graph, operation_id=first, expected=base)
    sidecar_for(graph, operation_id=second, expected=base + 1)
    again = open_graph(graph.uri)
    assert kinds(again) == ["RolledForward", "RolledForward"]
    assert [r.audit.operation_id for r in again.maintenance.recoveries()] == [first, second]
    assert (pinned(again), head(again).version) == (base + 2, base + 2)
    assert ids(again) == [*EVERYBODY, "Eve", "Flo"]
    check_recovered(again)


def stacked(graph):
    """Two writes on one table, the older of which never wrote its other table."""
    base, company = pinned(graph), pinned(graph, COMPANY)
    first, second = sorted([new_ulid(), new_ulid()])
    commit_of(graph, first, "Eve")
    commit_of(graph, second, "Flo")
    name = sidecar_for(graph, operation_id=first, expected=base)
    document = read_sidecar(graph, name)
    entry = graph._snapshot().entry(COMPANY)
    (person,) = document["tables"]
    other = {"table_key": COMPANY, "table_id": entry.table_id, "table_path": entry.location}
    write_sidecar(
        graph,
        name,
        {**document, "tables": [person, {**person, **other, "expected_version": company}]},
    )
    sidecar_for(graph, operation_id=second, expected=base + 1)
    return first, second


def test_undoing_a_write_takes_the_unfinished_ones_on_top_of_it_along(graph):
    first, second = stacked(graph)
    assert f"{first}.json" in graph._core.recovery.status().pending
    again = open_graph(graph.uri)
    assert {r.audit.operation_id: r.audit.kind.value for r in again.maintenance.recoveries()} == {
        first: "RolledBack",
        second: "RolledBack",
    }
    assert ids(again) == EVERYBODY
    check_recovered(again)
    again.mutate(ADD, {"who": "Zoe"})
    assert ids(again) == [*EVERYBODY, "Zoe"]


def test_a_crash_while_undoing_two_writes_is_no_obstacle(graph):
    stacked(graph)
    interrupted("recovery.post_table_restore_pre_publish", lambda: open_graph(graph.uri))
    again = open_graph(graph.uri)
    assert ids(again) == EVERYBODY
    check_recovered(again)
    again.mutate(ADD, {"who": "Zoe"})
    assert ids(again) == [*EVERYBODY, "Zoe"]


# -- whose version it is ---------------------------------------------------------------------


@pytest.mark.acceptance("S-172")
@pytest.mark.parametrize("other", ["another operation", "no operation"])
def test_a_version_of_another_writer_is_not_taken_for_the_own_one(graph, other):
    interrupted(BEFORE_TABLE, lambda: graph.mutate(ADD, {"who": "Eve"}))
    (name,) = sidecars(graph)
    if other == "another operation":
        commit_of(graph, new_ulid(), "Mallory")
    else:
        raw_append(graph, "Mallory")
    again = open_graph(graph.uri)
    assert again.maintenance.recoveries() == []
    assert ids(again) == EVERYBODY
    (found,) = again._core.recovery.status().quarantined
    assert found.name == name
    with pytest.raises(RecoveryQuarantined, match=name):
        again.mutate(ADD, {"who": "Flo"})
    assert sidecars(again) == [name]


@pytest.mark.acceptance("S-171")
def test_a_commit_that_landed_behind_a_foreign_one_is_left_to_an_operator(graph):
    base = pinned(graph)
    append = Call(lambda _hit: raw_append(graph, "Mallory"))
    with armed(BEFORE_TABLE, append, times=1), pytest.raises(CommitStateUnknown) as caught:
        graph.mutate(ADD, {"who": "Eve"})
    assert isinstance(caught.value.__cause__, TableOvertaken)
    (name,) = sidecars(graph)
    assert head(graph).version == base + 2
    again = open_graph(graph.uri)
    assert ids(again) == EVERYBODY
    (found,) = again._core.recovery.status().quarantined
    assert (found.name, found.branch) == (name, None)
    assert PERSON in found.reason
    with pytest.raises(RecoveryQuarantined, match=name):
        again.mutate(ADD, {"who": "Flo"})
    (table,) = [t for t in again.maintenance.repair().tables if t.table_key == PERSON]
    assert (table.published, table.found) == (base, base + 2)
    assert len(table.operations) == 2
    assert table.action.value == "preview"
    assert sidecars(again) == [name]


def test_what_lies_on_top_of_a_finished_write_is_not_published_with_it(graph):
    base = pinned(graph)
    interrupted(BEFORE_PUBLISH, lambda: graph.mutate(ADD, {"who": "Eve"}))
    raw_append(graph, "Mallory")
    again = open_graph(graph.uri)
    assert ids(again) == [*EVERYBODY, "Eve"]
    assert kinds(again) == ["RolledForward"]
    assert drifted(again) == {PERSON: (base + 1, base + 2)}
    assert sidecars(again) == []


def test_a_write_that_would_have_to_be_undone_below_a_foreign_version_is_quarantined(graph):
    interrupted(AFTER_TABLE, lambda: graph.mutate(HIRE, {"who": "Eve", "company": "Bolt"}), first=1)
    (moved,) = drifted(graph)
    raw_delete(graph, "nobody", key=moved)
    before = content(graph)
    again = open_graph(graph.uri)
    assert content(again) == before
    assert [q.name for q in again._core.recovery.status().quarantined] == sidecars(again)
    assert again.maintenance.recoveries() == []


def test_a_write_of_an_older_base_is_undone(graph):
    base = pinned(graph)
    graph.mutate(ADD, {"who": "Flo"})
    operation = new_ulid()
    commit_of(graph, operation, "Eve")
    sidecar_for(graph, operation_id=operation, expected=base)
    again = open_graph(graph.uri)
    assert kinds(again) == ["RolledBack"]
    assert ids(again) == [*EVERYBODY, "Flo"]
    again.mutate(ADD, {"who": "Gil"})
    assert ids(again) == [*EVERYBODY, "Flo", "Gil"]
    check_recovered(again)


def test_a_write_that_landed_on_one_to_be_finished_is_undone(graph):
    """It began without knowing of the other, which is not published until recovery finishes it."""
    base = pinned(graph)
    first, second = sorted([new_ulid(), new_ulid()])
    commit_of(graph, first, "Eve")
    commit_of(graph, second, "Flo")
    for operation in (first, second):
        sidecar_for(graph, operation_id=operation, expected=base)
    again = open_graph(graph.uri)
    assert kinds(again) == ["RolledForward", "RolledBack"]
    assert ids(again) == [*EVERYBODY, "Eve"]
    check_recovered(again)


# -- operations of one turn ------------------------------------------------------------------


def test_the_end_of_one_operation_does_not_hide_another_left_to_recovery(graph):
    """A turn has made one write and left the next one to recovery; then it removes the sidecar of the
    first. Whoever has the lock next must look for sidecars although nobody had it meanwhile."""
    interrupted(AFTER_TABLE, lambda: graph.mutate(ADD, {"who": "Eve"}))
    recovery = graph._core.recovery
    left = recovery.sidecars.read(sidecars(graph)[0])
    made = replace(left, draft=replace(left.draft, operation_id=new_ulid()))
    recovery.begin(made)
    recovery.end(made)
    assert len(sidecars(graph)) == 1
    with graph._core.locks.hold(None, "load") as held:
        recovery.recover_locked(None, replace(held, undisturbed=True))
    assert kinds(graph) == ["RolledForward"]
    assert ids(graph) == [*EVERYBODY, "Eve"]
    check_recovered(graph)


# -- operations that carry no id -------------------------------------------------------------


def test_an_index_without_an_id_counts_as_part_of_the_write_before_it(graph):
    base = pinned(graph)
    interrupted(BEFORE_PUBLISH, lambda: graph.mutate(ADD, {"who": "Eve"}))
    head(graph).writable_handle().create_scalar_index("name", "BTREE")
    again = open_graph(graph.uri)
    assert (pinned(again), head(again).version) == (base + 2, base + 2)
    assert ids(again) == [*EVERYBODY, "Eve"]
    check_recovered(again)


def test_a_compaction_belongs_to_an_optimize_and_to_no_other_writer(graph):
    graph.mutate(ADD, {"who": "Eve"})
    base = pinned(graph)
    raw_compaction(graph)
    moved = head(graph).version
    assert moved > base
    name = sidecar_for(graph, operation_id=new_ulid(), expected=base)
    assert [q.name for q in open_graph(graph.uri)._core.recovery.status().quarantined] == [name]
    document = read_sidecar(graph, name)
    (table,) = document["tables"]
    optimize = {**document, "writer_kind": "Optimize", "tables": [{**table, "data_commits": 0}]}
    write_sidecar(graph, name, optimize)
    again = open_graph(graph.uri)
    assert kinds(again) == ["RolledForward"]
    assert pinned(again) == moved
    assert ids(again) == [*EVERYBODY, "Eve"]
    check_recovered(again)


def test_a_half_undone_write_is_not_finished_any_more(graph):
    interrupted(BEFORE_PUBLISH, lambda: graph.mutate(ADD, {"who": "Eve"}))
    (name,) = sidecars(graph)
    table = head(graph)
    commit_staged(
        table,
        stage_restore(table, pinned(graph)),
        operation_id=name.removesuffix(".json"),
        writer_kind="Recovery",
    )
    again = open_graph(graph.uri)
    assert kinds(again) == ["RolledBack"]
    assert ids(again) == EVERYBODY
    check_recovered(again)
