"""Several processes publish at once: the history stays linear, gapless and complete."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pytest

from omnigraph.api.graph import Graph, init
from omnigraph.api.graph import open as open_graph
from omnigraph.versioning.ids import new_ulid
from tests.behaviour.graphs import COMPANY, PERSON, SCHEMA, Backstage
from tests.processes.working import Published


def check_history(graph: Graph, branch: str, made: Sequence[Published]) -> None:
    """Every commit that a process was told about is there, in one line, and nothing else."""
    commits = graph.log(branch, reverse=True)
    assert [commit.number for commit in commits] == list(range(1, len(commits) + 1))
    assert [commit.parents for commit in commits] == [
        (),
        *((commit.id,) for commit in commits[:-1]),
    ]
    own = [commit for commit in commits if commit.operation != "init"]
    on_branch = [(id, sequence) for name, id, sequence in made if name == branch]
    assert sorted(on_branch) == sorted((c.id, c.number) for c in own)
    assert graph.head(branch).id == commits[-1].id
    for commit in commits[:: max(1, len(commits) // 5)]:
        assert graph.at(commit.id)._snapshot.version == commit.number


def check_rows(uri: str, branch: str | None) -> None:
    """No key twice, and for every commit exactly one row of its operation."""
    rows = Backstage(uri).rows(branch)
    keys = [row["object_id"] for row in rows]
    assert len(keys) == len(set(keys))
    kinds = [row["object_type"] for row in rows]
    assert kinds.count("graph_commit") == kinds.count("operation")


@pytest.mark.parametrize("times", [7, pytest.param(15, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("processes", "locked"), [(4, False), (2, True)])
def test_processes_publish_to_one_branch(local_place, run, processes, locked, times):
    graph = init(local_place.uri, SCHEMA)
    results = run(
        local_place,
        [
            ("publish_many", local_place.uri, ["main"] * times, locked, f"act-{number}")
            for number in range(processes)
        ],
    )
    made = [published for result in results for published in result]
    assert len(made) == times * processes
    for result in results:
        assert result == sorted(result, key=lambda published: published[2])
    check_history(graph, "main", made)
    check_history(open_graph(local_place.uri), "main", made)
    check_rows(local_place.uri, None)
    for number in range(processes):
        assert len(graph.log(actor=f"act-{number}", reverse=True)) == times


def test_processes_publish_to_branches_of_their_own(local_place, run):
    graph = init(local_place.uri, SCHEMA)
    names = [f"team/{number}" for number in range(4)]
    for name in names:
        graph.branches.create(name)
    results = run(
        local_place, [("publish_many", local_place.uri, [name] * 8, False, name) for name in names]
    )
    for name, made in zip(names, results, strict=True):
        assert [sequence for _, _, sequence in made] == list(range(2, 10))
        check_history(graph, name, made)
    assert graph._snapshot("main").version == 1


def test_processes_publish_to_shared_branches_in_turn(local_place, run):
    graph = init(local_place.uri, SCHEMA)
    graph.branches.create("feature")
    plans = [["main", "feature"] * 4, ["feature", "main"] * 4]
    results = run(
        local_place,
        [("publish_many", local_place.uri, plan, False, "act") for plan in plans],
    )
    made = [published for result in results for published in result]
    for name in ("main", "feature"):
        check_history(graph, name, made)


def test_a_reader_never_sees_a_hole_while_others_publish(local_place, run):
    init(local_place.uri, SCHEMA)
    works = [("publish_many", local_place.uri, ["main"] * 12, False, "act")] * 2
    *_, seen = run(local_place, [*works, ("watch", local_place.uri, "main", 25)])
    assert seen == sorted(seen)
    assert seen[-1] == 25


@pytest.mark.acceptance("S-188")
@pytest.mark.parametrize("rounds", [1, pytest.param(3, marks=pytest.mark.slow)])
def test_one_operation_published_by_four_processes_is_one_commit(local_place, run, rounds):
    graph = init(local_place.uri, SCHEMA)
    for round in range(rounds):
        operation = new_ulid()
        results = run(local_place, [("publish_operation", local_place.uri, operation)] * 4)
        assert len(set(results)) == 1
        assert graph._snapshot().version == 2 + round
        assert graph.head().id == results[0]


@pytest.mark.acceptance("S-155")
def test_one_load_made_by_several_processes_is_one_commit(place, run):
    graph = init(place.uri, SCHEMA)
    for round in range(2):
        graph.load({"Person": pa.table({"name": pa.array([], pa.utf8())})}, "overwrite")
        before = graph._snapshot().version
        results = run(place, [("load_once", place.uri, f"job-{round}")] * 2)
        assert len({commit for commit, _ in results}) == 1
        assert sorted(replayed for _, replayed in results) == [False, True]
        assert graph._snapshot().version == before + 1
        assert graph._snapshot().entry(PERSON).row_count == 1
        other = b'{"type": "Person", "data": {"name": "zoe"}}'
        again = graph.load(other, "append", load_id=f"job-{round}")
        assert (again.replayed, again.receipt.graph_commit_id) == (True, results[0][0])


@pytest.mark.parametrize("processes", [3, pytest.param(4, marks=pytest.mark.slow)])
@pytest.mark.parametrize("types", [("Person",), ("Person", "Company")])
def test_processes_load_into_one_type_and_into_different_ones(place, run, types, processes):
    graph = init(place.uri, SCHEMA)
    rows = 6 if place.uri.startswith("/") else 2
    plans = [[types[number % len(types)]] * rows for number in range(processes)]
    results = run(place, [("load_many", place.uri, plan, f"p{n}-") for n, plan in enumerate(plans)])
    check_history(graph, "main", [published for result in results for published in result])
    backstage = Backstage(place.uri)
    stored = {
        name
        for key in (PERSON, COMPANY)
        for name in graph._snapshot()
        .open(backstage.tables, key)
        .read(["id"])
        .column("id")
        .to_pylist()
    }
    assert stored == {f"p{process}-{row}" for process in range(processes) for row in range(rows)}
    for entry in graph._snapshot().entries.values():
        assert backstage.tables.open(entry.location).version == entry.version
    assert backstage.objects.list_dir("__recovery") == []


@pytest.mark.parametrize("branches", [["main"] * 4, ["main", "feature"]])
def test_processes_publish_on_an_object_store(object_place, run, branches):
    graph = init(object_place.uri, SCHEMA)
    graph.branches.create("feature")
    results = run(
        object_place,
        [
            ("publish_many", object_place.uri, branches, False, f"act-{number}")
            for number in range(2)
        ],
    )
    made = [published for result in results for published in result]
    for name in set(branches):
        check_history(graph, name, made)
        check_rows(object_place.uri, None if name == "main" else name)


@pytest.mark.acceptance("S-188")
def test_one_operation_published_by_four_processes_on_an_object_store_is_one_commit(
    object_place, run
):
    graph = init(object_place.uri, SCHEMA)
    operation = new_ulid()
    results = run(object_place, [("publish_operation", object_place.uri, operation)] * 4)
    assert len(set(results)) == 1
    assert [commit.id for commit in graph.log(reverse=True)[1:]] == [results[0]]


@pytest.mark.slow
@pytest.mark.parametrize("locked", [False, True])
def test_processes_publish_long_enough_to_compact_many_times(local_place, run, locked):
    graph = init(local_place.uri, SCHEMA)
    results = run(
        local_place,
        [
            ("publish_many", local_place.uri, ["main"] * 150, locked, f"act-{number}")
            for number in range(4)
        ],
    )
    made = [published for result in results for published in result]
    assert len(made) == 600
    check_history(graph, "main", made)
    check_history(open_graph(local_place.uri), "main", made)
    check_rows(local_place.uri, None)


@pytest.mark.slow
def test_four_processes_publish_on_an_object_store(object_place, run):
    graph = init(object_place.uri, SCHEMA)
    results = run(
        object_place,
        [("publish_many", object_place.uri, ["main"] * 30, False, "act") for _ in range(4)],
    )
    made = [published for result in results for published in result]
    assert len(made) == 120
    check_history(graph, "main", made)
    check_rows(object_place.uri, None)
