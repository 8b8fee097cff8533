"""Data on branches: a table is forked by the first write to it, and by nothing else."""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from omnigraph.api.graph import Graph, init
from omnigraph.api.graph import open as open_graph
from omnigraph.errors import BranchInUse, HeadMoved, LoadError
from omnigraph.storage.stage import commit_staged, stage_append
from omnigraph.versioning.snapshot import Snapshot
from tests.behaviour.graphs import COMPANY, KEYS, PERSON, SCHEMA, Backstage, pins
from tests.support.faults import Fail, FailStorage, InjectedFault, Pause, armed
from tests.support.receipts import receipt_of_commit

ADD = "query add($who: String) { insert Person { name: $who } }"


def people(names: Sequence[str]) -> str:
    return "".join(json.dumps({"type": "Person", "data": {"name": name}}) + "\n" for name in names)


SEED = people(["Alice", "Bob", "Cara", "Dan"]) + (
    '{"type": "Company", "data": {"name": "Acme"}}\n'
    '{"edge": "Knows", "from": "Alice", "to": "Bob"}\n'
    '{"edge": "WorksAt", "from": "Cara", "to": "Acme"}\n'
)
EVERYBODY = ["Alice", "Bob", "Cara", "Dan"]


@pytest.fixture
def graph(uri: str) -> Graph:
    """The standard graph with four people and some edges."""
    graph = init(uri, SCHEMA)
    graph.load(SEED.encode(), "append")
    return graph


@pytest.fixture
def backstage(graph: Graph) -> Backstage:
    return Backstage(graph.uri)


def names(graph: Graph, at: Snapshot | str | None = None) -> list[str]:
    """The people of a branch or a snapshot."""
    snapshot = at if isinstance(at, Snapshot) else graph._snapshot(at)
    table = snapshot.open(Backstage(graph.uri).tables, PERSON)
    return sorted(table.read(["id"]).column("id").to_pylist())


def owners(graph: Graph, branch: str) -> dict[str, str | None]:
    return {key: pin.branch for key, pin in pins(graph, branch).items()}


def forks(backstage: Backstage, graph: Graph, key: str = PERSON) -> set[str]:
    return set(backstage.tables.list_branches(graph._snapshot("main").entry(key).location))


# -- the first write -------------------------------------------------------------------------


@pytest.mark.acceptance("S-022")
def test_the_first_write_forks_its_table_and_leaves_main_alone(graph):
    before = graph._snapshot("main").to_json()
    feature = graph.branches.create("feature")
    feature.mutate(ADD, {"who": "Eve"})
    assert owners(graph, "feature") == dict.fromkeys(KEYS) | {PERSON: "feature"}
    assert names(graph, "feature") == [*EVERYBODY, "Eve"]
    assert graph._snapshot("main").to_json() == before
    assert names(graph, "main") == EVERYBODY
    (entry,) = [t for t in feature._snapshot().to_json()["tables"] if t["table_key"] == PERSON]
    assert entry["table_branch"] == "feature"


@pytest.mark.acceptance("S-023")
def test_a_branch_of_a_branch_reads_its_parent_and_forks_again(graph):
    graph.branches.create("feature").mutate(ADD, {"who": "Eve"})
    experiment = graph.branches.create("experiment", "feature")
    assert names(graph, "experiment") == [*EVERYBODY, "Eve"]
    assert owners(graph, "experiment")[PERSON] == "feature"
    experiment.mutate(ADD, {"who": "Flo"})
    assert owners(graph, "experiment")[PERSON] == "experiment"
    assert names(graph, "experiment") == [*EVERYBODY, "Eve", "Flo"]
    assert names(graph, "feature") == [*EVERYBODY, "Eve"]
    assert owners(graph, "feature")[PERSON] == "feature"


def test_writes_on_main_after_the_fork_do_not_reach_the_branch(graph):
    graph.branches.create("feature")
    graph.load(people(["Max"]).encode(), "merge")
    assert names(graph, "feature") == EVERYBODY
    graph.load(people(["Eve"]).encode(), "merge", branch="feature")
    assert names(graph, "feature") == [*EVERYBODY, "Eve"]
    assert names(graph, "main") == [*EVERYBODY, "Max"]


def test_a_branch_name_with_a_slash_and_one_without_own_different_tables(graph):
    for name in ("team", "team/x", "team_x"):
        graph.branches.create(name).load(people([f"of {name}"]).encode(), "merge")
    for name in ("team", "team/x", "team_x"):
        assert names(graph, name) == [*EVERYBODY, f"of {name}"]
    assert [owners(graph, name)[PERSON] for name in ("team", "team/x", "team_x")] == [
        "team",
        "team_sx",
        "team__x",
    ]
    tables = graph._snapshot("team/x").to_json()["tables"]
    assert {t["table_key"]: t["table_branch"] for t in tables}[PERSON] == "team/x"


def test_old_versions_of_a_branch_stay_readable(graph):
    feature = graph.branches.create("feature")
    for name in ("Eve", "Flo"):
        feature.load(people([name]).encode(), "merge")
    assert names(graph, feature.at(2)._snapshot) == EVERYBODY
    assert names(graph, feature.at(3)._snapshot) == [*EVERYBODY, "Eve"]
    assert names(graph, feature.at(4)._snapshot) == [*EVERYBODY, "Eve", "Flo"]
    assert names(graph, graph.at(feature.log(reverse=True)[2].id)._snapshot) == [
        *EVERYBODY,
        "Eve",
    ]


@pytest.mark.acceptance("S-019")
def test_a_snapshot_keeps_its_rows_while_branches_go_on(graph):
    old = graph._snapshot()
    graph.mutate(ADD, {"who": "Eve"})
    graph.branches.create("feature").load(people(["Flo"]).encode(), "merge")
    assert (old.version, names(graph, old)) == (2, EVERYBODY)


def test_another_handle_reads_new_rows_without_refresh(graph):
    other = open_graph(graph.uri)
    assert names(other) == EVERYBODY
    graph.load(people(["Eve"]).encode(), "merge")
    assert names(other) == [*EVERYBODY, "Eve"]


@pytest.mark.acceptance("S-035")
@pytest.mark.parametrize("operation", ["load", "mutate"])
def test_a_write_is_one_commit_with_actor_message_and_counts(graph, operation):
    before = graph.head().id
    handle = graph.as_actor("act-1")
    if operation == "load":
        receipt = handle.load(people(["Eve"]).encode(), "merge", message="one more").receipt
    else:
        receipt = handle.mutate(ADD, {"who": "Eve"}, message="one more").receipt
    (made,) = graph.log(actor="act-1")
    assert made.id == graph.head().id == receipt.graph_commit_id
    assert made.parents == (before,) == (receipt.parent_commit_id,)
    assert (made.operation, made.message) == (operation, "one more")
    assert receipt.to_json() == receipt_of_commit(graph, graph.head().id).to_json()
    assert receipt.to_json()["counts"] == {PERSON: {"inserted": 1, "updated": 0, "deleted": 0}}


@pytest.mark.acceptance("S-145", partly="over HTTP, which tests/server has")
@pytest.mark.parametrize("branch", ["main", "feature"])
def test_a_write_that_expects_another_head_leaves_nothing(graph, branch):
    graph.branches.create("feature")
    head = graph.head(branch).id
    graph.load(people(["Eve"]).encode(), "merge", branch=branch, expected_head=head)
    before = graph._snapshot(branch).to_json()
    with pytest.raises(HeadMoved) as caught:
        graph.load(people(["Flo"]).encode(), "merge", branch=branch, expected_head=head)
    assert (caught.value.branch, caught.value.expected) == (branch, head)
    assert caught.value.actual == graph.head(branch).id
    assert graph._snapshot(branch).to_json() == before
    assert not Backstage(graph.uri).objects.list_dir("__recovery")
    graph.load(
        people(["Flo"]).encode(), "merge", branch=branch, expected_head=graph.head(branch).id
    )
    assert names(graph, branch) == [*EVERYBODY, "Eve", "Flo"]


@pytest.mark.acceptance("S-033")
def test_two_first_writers_of_a_branch_come_one_after_the_other(graph):
    """The lock is held around a fork, so the second writer waits instead of losing."""
    graph.branches.create("feature")
    one, two = (open_graph(graph.uri, branch="feature") for _ in range(2))
    pause = Pause()
    with armed("fork.before_classify", pause, times=1), ThreadPoolExecutor(2) as pool:
        first = pool.submit(one.load, people(["Eve"]).encode(), "merge")
        pause.wait_until_reached()
        second = pool.submit(two.load, people(["Flo"]).encode(), "merge")
        with pytest.raises(TimeoutError):
            second.result(timeout=0.3)
        pause.release()
        first.result(timeout=30)
        second.result(timeout=30)
    assert names(graph, "feature") == [*EVERYBODY, "Eve", "Flo"]


# -- what is left behind ---------------------------------------------------------------------


@pytest.mark.acceptance("S-029")
@pytest.mark.parametrize("point", ["mutation.pre_table_commit", "mutation.post_table_commit"])
def test_a_fork_left_by_a_failed_first_write_is_reclaimed(graph, backstage, point):
    feature = graph.branches.create("feature")
    company = '{"type": "Company", "data": {"name": "Acme"}}\n'
    with armed(point, Fail(), times=1), pytest.raises(InjectedFault):
        feature.load((company + people(["Eve"])).encode(), "merge")
    assert forks(backstage, graph, "node:Company") == {"feature"}
    assert owners(graph, "feature")["node:Company"] is None
    assert names(graph, "feature") == EVERYBODY
    feature.load((company + people(["Flo"])).encode(), "merge")
    assert names(graph, "feature") == [*EVERYBODY, "Flo"]
    assert owners(graph, "feature")["node:Company"] == "feature"
    assert owners(graph, "feature")[PERSON] == "feature"


def test_a_write_that_fails_its_checks_forks_nothing(graph, backstage):
    feature = graph.branches.create("feature")
    dangling = '{"edge": "Knows", "from": "Alice", "to": "Nobody"}\n'
    with pytest.raises(LoadError):
        feature.load((people(["Eve"]) + dangling).encode(), "merge")
    assert forks(backstage, graph) == set()
    feature.load(people(["Eve"]).encode(), "merge")
    assert names(graph, "feature") == [*EVERYBODY, "Eve"]


def test_a_fork_left_by_a_deleted_branch_is_reclaimed_by_the_next_write(graph, backstage):
    graph.branches.create("feature").load(people(["Eve"]).encode(), "merge")
    with armed("branch_delete.before_table_cleanup", FailStorage()) as record:
        graph.branches.delete("feature")
    assert record.count() == 1
    assert list(graph.branches) == ["main"]
    assert forks(backstage, graph) == {"feature"}
    again = graph.branches.create("feature")
    assert names(graph, "feature") == EVERYBODY
    again.load(people(["Flo"]).encode(), "merge")
    assert names(graph, "feature") == [*EVERYBODY, "Flo"]


def test_deleting_a_branch_removes_the_forks_it_owns(graph, backstage):
    feature = graph.branches.create("feature")
    feature.load(
        (people(["Eve"]) + '{"type": "Company", "data": {"name": "Bolt"}}\n').encode(), "merge"
    )
    assert forks(backstage, graph) == forks(backstage, graph, COMPANY) == {"feature"}
    graph.branches.delete("feature")
    assert forks(backstage, graph) == forks(backstage, graph, COMPANY) == set()
    assert names(graph) == EVERYBODY


@pytest.mark.acceptance("S-026")
def test_a_branch_beside_one_below_it_is_written_deleted_and_made_again(graph, backstage):
    def stored():
        return {str(ref.public): ref.physical for ref in backstage.branches.list()}

    for name in ("team", "team/x"):
        graph.branches.create(name).load(people([f"loaded by {name}"]).encode(), "merge")
        graph.mutate(ADD, {"who": f"of {name}"}, branch=name)
    assert stored() == {"main": None, "team": "team", "team/x": "team_sx"}
    below = names(graph, "team/x")
    graph.branches.delete("team")
    assert names(graph, "team/x") == below == [*EVERYBODY, "loaded by team/x", "of team/x"]
    graph.branches.create("team").mutate(ADD, {"who": "of the new team"})
    assert names(graph, "team") == [*EVERYBODY, "of the new team"]
    assert names(graph, "team/x") == below
    assert stored()["team"] in ("team", "team_i2")


@pytest.mark.acceptance("S-031")
def test_a_branch_whose_tables_another_branch_reads_is_kept(graph):
    graph.branches.create("feature").load(people(["Eve"]).encode(), "merge")
    graph.branches.create("experiment", "feature").load(people(["Flo"]).encode(), "merge")
    with pytest.raises(BranchInUse, match="still depends on it"):
        graph.branches.delete("feature")
    assert names(graph, "experiment") == [*EVERYBODY, "Eve", "Flo"]


def test_a_zombie_of_a_table_is_no_part_of_the_branch_made_again(graph, backstage):
    graph.branches.create("feature").load(people(["Eve"]).encode(), "merge")
    entry = graph._snapshot("feature").entry(PERSON)
    stale = backstage.tables.open(entry.location, entry.branch)
    late = stage_append(stale, stale.read())
    graph.branches.delete("feature")
    commit_staged(stale, late, operation_id="late", writer_kind="Load")
    assert backstage.tables.zombie_branches(entry.location) == {"feature"}
    graph.branches.create("feature").load(people(["Flo"]).encode(), "merge")
    assert names(graph, "feature") == [*EVERYBODY, "Flo"]
