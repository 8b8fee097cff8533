"""Writers that lost their lock and go on, and what the next holder makes of their work."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from omnigraph.api.graph import open as open_graph
from omnigraph.errors import (
    BranchLocked,
    BranchLockLost,
    CommitStateUnknown,
    HeadMoved,
    OperationFenced,
    StorageError,
    TableConflict,
    TableDrift,
    TableOvertaken,
)
from omnigraph.storage.stage import commit_staged, stage_append, stage_restore
from tests.behaviour.graphs import COMPANY, PERSON, Backstage
from tests.crash.recovery.situations import (
    ADD,
    AFTER_TABLE,
    AGE,
    BEFORE_PUBLISH,
    BEFORE_TABLE,
    EVERYBODY,
    HIRE,
    LosableLocks,
    Writer,
    ages,
    check_recovered,
    commit_of,
    drifted,
    head,
    ids,
    interrupted,
    kinds,
    of_another_process,
    raw_append,
    rows_like,
    sidecars,
    the_recovery,
    with_locks,
)
from tests.support.faults import Call, Fail, InjectedFault, Pause, armed

PUBLISH = "graph_publish.before_manifest_commit"
BRANCHES = pytest.mark.parametrize("branch", ["main", "feature"])


class Zombie:
    """A write of a handle whose lock is taken from it while it is paused at a fault point."""

    def __init__(self, graph, point, *, notices, first=1, branch="main"):
        self._locks = LosableLocks(graph, notices=notices)
        self._graph = graph
        self._handle = with_locks(graph, self._locks)
        self._point, self._first, self._branch = point, first, branch
        self._pause = Pause()

    def __enter__(self):
        self._trap = armed(self._point, self._pause, first=self._first, times=1)
        self._trap.__enter__()
        return self

    def __exit__(self, *details):
        self._pause.release()
        self._trap.__exit__(*details)

    def start(self, query, params, **options):
        self._writer = Writer(
            lambda: self._handle.mutate(query, params, branch=self._branch, **options)
        )
        self._pause.wait_until_reached()
        # The owner tells whether the writer may still live: here it is another process.
        of_another_process(self._graph)
        self._locks.lost.set()

    def resume(self):
        self._pause.release()
        return self._writer.result()


@pytest.mark.acceptance("S-166")
@BRANCHES
@pytest.mark.parametrize("notices", [True, False])
@pytest.mark.parametrize("first", [1, 2])
def test_a_writer_that_was_undone_does_not_get_through(graph, branch, notices, first):
    graph.branches.create("feature")
    with Zombie(graph, AFTER_TABLE, notices=notices, first=first, branch=branch) as zombie:
        zombie.start(HIRE, {"who": "Eve", "company": "Bolt"})
        graph.mutate(ADD, {"who": "Flo"}, branch=branch)
        assert kinds(graph, branch) == ["RolledBack"]
        with pytest.raises(BranchLockLost if notices else TableOvertaken) as caught:
            zombie.resume()
    if notices:
        assert "lost its write lease" in str(caught.value)
    graph.mutate(ADD, {"who": "Zoe"}, branch=branch)
    assert ids(graph, branch=branch) == [*EVERYBODY, "Flo", "Zoe"]
    assert ids(graph, COMPANY, branch) == ["Acme"]
    again = open_graph(graph.uri, branch=branch)
    again.mutate(HIRE, {"who": "Max", "company": "Core"})
    assert ids(again, COMPANY) == ["Acme", "Core"]
    check_recovered(again, "feature")


@pytest.mark.acceptance("S-166")
@pytest.mark.parametrize("point", [BEFORE_PUBLISH, PUBLISH])
def test_a_publish_after_the_undoing_is_fenced(graph, point):
    """All its tables were written; the next holder found one of them restored half-way."""
    with Zombie(graph, point, notices=False) as zombie:
        zombie.start(ADD, {"who": "Eve"})
        # Undone as by a holder that could not publish it: the outcome is what fences.
        other = open_graph(graph.uri, read_only=True)
        (name,) = sidecars(other)
        sidecar = graph._core.recovery.sidecars.read(name)
        assert sidecar is not None
        with graph._core.locks.hold(None, "recovery") as lock:
            graph._core.recovery.undo_own(sidecar, lock, StorageError("it failed"))
        assert kinds(graph) == ["RolledBack"]
        with pytest.raises(OperationFenced):
            zombie.resume()
    assert ids(graph) == EVERYBODY
    graph.mutate(ADD, {"who": "Flo"})
    assert ids(graph) == [*EVERYBODY, "Flo"]
    check_recovered(graph)


@pytest.mark.acceptance("S-167")
@BRANCHES
def test_a_commit_that_comes_too_late_is_taken_back_by_the_next_write(graph, branch):
    graph.branches.create("feature").mutate(ADD, {"who": "Fay"})
    before = ids(graph, branch=branch)
    with Zombie(graph, BEFORE_TABLE, notices=False, branch=branch) as zombie:
        zombie.start(ADD, {"who": "Eve"})
        operation = sidecars(graph)[0].removesuffix(".json")
        open_graph(graph.uri)
        assert kinds(graph, branch) == ["RolledBack"]
        with pytest.raises(OperationFenced):
            zombie.resume()
    late = head(graph, branch=branch).version
    pin = graph._snapshot(branch).entry(PERSON).version
    if late == pin:
        # The writer itself could still take it back; make the table as it would have left it.
        late = commit_of(graph, operation, "Eve", branch=branch)
    receipt = graph.mutate(ADD, {"who": "Flo"}, branch=branch).receipt
    assert kinds(graph, branch) == ["RolledBack", "LateCommitDiscarded"]
    recorded = graph.maintenance.recoveries(branch)[-1]
    assert recorded.audit.operation_id == operation
    (outcome,) = recorded.audit.outcomes
    assert (outcome.table_key, outcome.from_version, outcome.to_version) == (PERSON, late, pin)
    assert receipt.parent_commit_id == recorded.graph_commit_id
    assert ids(graph, branch=branch) == sorted([*before, "Flo"])
    check_recovered(graph, "feature")


@pytest.mark.acceptance("S-167")
def test_a_late_commit_on_a_fork_that_is_gone_does_not_matter(graph):
    graph.branches.create("feature")
    with Zombie(graph, BEFORE_TABLE, notices=False, branch="feature") as zombie:
        zombie.start(ADD, {"who": "Eve"})
        open_graph(graph.uri)
        with pytest.raises(OperationFenced):
            zombie.resume()
    graph.mutate(ADD, {"who": "Flo"}, branch="feature")
    assert ids(graph, branch="feature") == [*EVERYBODY, "Flo"]
    assert ids(graph) == EVERYBODY
    check_recovered(graph, "feature")


def test_late_commits_of_several_operations_are_taken_back_together(graph):
    for who in ("Eve", "Flo"):
        with Zombie(graph, BEFORE_TABLE, notices=True) as zombie:
            zombie.start(ADD, {"who": who})
            open_graph(graph.uri)
            with pytest.raises(BranchLocked):
                zombie.resume()
    first, second = (r.audit.operation_id for r in graph.maintenance.recoveries())
    commit_of(graph, first, "Eve")
    commit_of(graph, second, "Flo")
    graph.mutate(ADD, {"who": "Zoe"})
    assert ids(graph) == [*EVERYBODY, "Zoe"]
    check_recovered(graph)


def recovered_operation(graph):
    """The operation of a writer that lost its lock before it committed a table, and was undone."""
    with Zombie(graph, BEFORE_TABLE, notices=True) as zombie:
        zombie.start(ADD, {"who": "Eve"})
        open_graph(graph.uri)
        with pytest.raises(BranchLocked):
            zombie.resume()
    (recorded,) = graph.maintenance.recoveries()
    return recorded.audit.operation_id


def commit_late(graph):
    """A writer that lost its lock and was undone wakes up and commits its table all the same."""
    commit_of(graph, recovered_operation(graph), "Eve")


def test_an_update_that_meets_a_late_commit_takes_it_back_and_succeeds(graph):
    commit_late(graph)
    graph.mutate(AGE, {"who": "Bob", "age": 5})
    assert (ids(graph), ages(graph)["Bob"]) == (EVERYBODY, 5)
    assert kinds(graph) == ["RolledBack", "LateCommitDiscarded"]
    check_recovered(graph)


def test_a_late_commit_below_a_foreign_one_is_ordinary_drift(graph):
    commit_late(graph)
    raw_append(graph, "Mallory")
    with pytest.raises(TableDrift, match="a repair has to decide"):
        graph.mutate(ADD, {"who": "Flo"})


LATE = {
    "append": lambda table: stage_append(table, rows_like(table, ["Eve"])),
    "restore": lambda table: stage_restore(table, table.version),
}
"""What an operation that was recovered does to a table when its writer, or its recovery, goes on."""


@pytest.mark.parametrize("late", LATE)
@pytest.mark.parametrize("write", [(ADD, {"who": "Flo"}), (AGE, {"who": "Bob", "age": 5})])
@pytest.mark.parametrize("dies_at", [None, BEFORE_TABLE, AFTER_TABLE])
def test_a_late_commit_that_comes_between_the_steps_of_a_write_wedges_nothing(
    graph, late, write, dies_at
):
    operation = recovered_operation(graph)

    def come_late(hit):
        table = head(graph)
        commit_staged(table, LATE[late](table), operation_id=operation, writer_kind="Recovery")
        if dies_at == BEFORE_TABLE:
            raise InjectedFault(hit.name)

    with armed(BEFORE_TABLE, Call(come_late), times=1), ExitStack() as dying:
        if dies_at == AFTER_TABLE:
            dying.enter_context(armed(AFTER_TABLE, Fail(), times=1))
        with pytest.raises((InjectedFault, TableConflict, TableOvertaken)):
            graph.mutate(*write)
    if dies_at is None:
        assert sidecars(graph) == []
    of_another_process(graph)
    graph.mutate(ADD, {"who": "Zoe"})
    assert ids(graph) == [*EVERYBODY, "Zoe"]
    assert ages(graph)["Bob"] != 5
    check_recovered(graph)


@pytest.mark.parametrize(
    "point", ["recovery.post_table_restore_pre_publish", "recovery.before_publish"]
)
def test_a_crash_while_a_late_commit_is_taken_back_is_no_obstacle(graph, point):
    commit_late(graph)
    interrupted(point, lambda: graph.mutate(ADD, {"who": "Flo"}))
    assert list(drifted(graph)) == [PERSON]
    graph.mutate(ADD, {"who": "Flo"})
    assert ids(graph) == [*EVERYBODY, "Flo"]
    assert kinds(graph) == ["RolledBack", "LateCommitDiscarded"]
    check_recovered(graph)


@pytest.mark.acceptance("S-168")
@BRANCHES
@pytest.mark.parametrize("point", [BEFORE_PUBLISH, PUBLISH])
def test_a_writer_that_was_finished_by_recovery_gets_its_receipt(graph, branch, point):
    graph.branches.create("feature")
    with Zombie(graph, point, notices=False, branch=branch) as zombie:
        zombie.start(ADD, {"who": "Eve"})
        again = open_graph(graph.uri)
        recorded = the_recovery(again, "RolledForward", branch)
        commits = len(again.log(branch, reverse=True))
        result = zombie.resume()
    assert result.receipt.graph_commit_id == recorded.graph_commit_id
    assert len(graph.log(branch, reverse=True)) == commits
    assert ids(graph, branch=branch) == [*EVERYBODY, "Eve"]
    check_recovered(graph, "feature")


@pytest.mark.acceptance("S-168")
def test_a_writer_that_notices_stops_and_what_recovery_did_stands(graph):
    with Zombie(graph, PUBLISH, notices=True) as zombie:
        zombie.start(ADD, {"who": "Eve"})
        graph.mutate(ADD, {"who": "Flo"})
        with pytest.raises(CommitStateUnknown, match="lost its write lease") as caught:
            zombie.resume()
    assert ids(graph) == [*EVERYBODY, "Eve", "Flo"]
    repeated = graph.mutate(ADD, {"who": "Eve"}, idempotency_key=caught.value.idempotency_key)
    assert repeated.receipt.replayed
    the_recovery(graph, "RolledForward")
    check_recovered(graph)


@pytest.mark.parametrize("point", [BEFORE_TABLE, AFTER_TABLE, BEFORE_PUBLISH, PUBLISH])
def test_a_writer_that_notices_leaves_its_sidecar_to_the_next_holder(graph, point):
    """Nobody has taken the lock yet; but it is not the writer's any more."""
    with Zombie(graph, point, notices=True) as zombie:
        zombie.start(HIRE, {"who": "Eve", "company": "Bolt"})
        # Before the first table has moved there is nothing that anybody could complete.
        expected = BranchLocked if point == BEFORE_TABLE else CommitStateUnknown
        with pytest.raises(expected, match="lost its write lease"):
            zombie.resume()
    before = ids(graph)
    assert before == EVERYBODY
    graph.mutate(ADD, {"who": "Flo"})
    assert "Flo" in ids(graph)
    assert ("Eve" in ids(graph)) == ("Bolt" in ids(graph, COMPANY))
    check_recovered(graph)


@pytest.mark.acceptance("S-146")
@BRANCHES
def test_a_head_that_moved_during_the_publish_undoes_the_write(graph, branch):
    graph.branches.create("feature").mutate(ADD, {"who": "Fay"})
    before = ids(graph, branch=branch)
    expected = graph.head(branch).id
    with Zombie(graph, PUBLISH, notices=False, branch=branch) as zombie:
        zombie.start(ADD, {"who": "Eve"}, expected_head=expected)
        other = Backstage(graph.uri).publish(branch)
        with pytest.raises(HeadMoved) as caught:
            zombie.resume()
    assert (caught.value.expected, caught.value.actual) == (expected, other.graph_commit_id)
    assert ids(graph, branch=branch) == before
    check_recovered(graph, "feature")
    graph.mutate(ADD, {"who": "Flo"}, branch=branch)
    assert ids(graph, branch=branch) == sorted([*before, "Flo"])
