"""Several processes create one graph, control its branches and die."""

from __future__ import annotations

import signal

import pytest

from omnigraph.api.graph import init
from omnigraph.api.graph import open as open_graph
from omnigraph.versioning.contract import CONTRACT_FILES
from tests.behaviour.graphs import SCHEMA, Backstage
from tests.processes.children import child
from tests.support.faults import Arm, Kill

# -- creating the graph ----------------------------------------------------------------------


@pytest.mark.acceptance("S-004")
@pytest.mark.parametrize("rounds", [1, pytest.param(3, marks=pytest.mark.slow)])
@pytest.mark.parametrize("store", ["local", "s3"])
def test_of_several_inits_in_processes_exactly_one_succeeds(request, run, store, rounds):
    place = request.getfixturevalue(f"{store}_place")
    for round in range(rounds):
        uri = f"{place.uri}/{round}"
        schemas = [SCHEMA + f"node Mine{n} {{ name: String @key }}\n" for n in range(4)]
        won = run(place, [("init_graph", uri, schema) for schema in schemas])
        assert sorted(won) == [False, False, False, True]
        graph = open_graph(uri)
        assert graph.schema.source == schemas[won.index(True)]
        assert graph._snapshot().version == 1
        assert len(graph._snapshot().entries) == 5
        assert all(Backstage(uri).objects.exists(name) for name in CONTRACT_FILES)


# -- branches --------------------------------------------------------------------------------


@pytest.mark.parametrize("branches", [3, pytest.param(6, marks=pytest.mark.slow)])
def test_of_several_creates_and_deletes_in_processes_exactly_one_succeeds(
    local_place, run, branches
):
    graph = init(local_place.uri, SCHEMA)
    graph.branches.create("other")
    Backstage(local_place.uri).publish("other")
    names = [f"race/{number}" for number in range(branches)]
    sources = ["main", "other", "main", "other"]
    made = run(
        local_place, [("create_branches", local_place.uri, names, source) for source in sources]
    )
    assert sorted(name for won in made for name in won) == names
    assert list(graph.branches) == ["main", "other", *names]
    for won, source in zip(made, sources, strict=True):
        for name in won:
            assert graph.head(name).id == graph.head(source).id
    deleted = run(local_place, [("delete_branches", local_place.uri, names)] * 4)
    assert sorted(name for won in deleted for name in won) == names
    assert list(graph.branches) == ["main", "other"]


# -- processes that die ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("point", "version"),
    [
        ("graph_publish.before_manifest_commit", 1),
        ("graph_publish.after_manifest_commit", 2),
    ],
)
def test_a_publisher_that_is_killed_leaves_all_or_nothing(local_place, point, version):
    graph = init(local_place.uri, SCHEMA)
    killed = child(
        local_place, [Arm(point, Kill())], "publish_many", local_place.uri, ["main"], True, "act"
    )
    assert killed.wait(60) == -signal.SIGKILL
    assert graph._snapshot().version == version
    assert Backstage(local_place.uri).publish().sequence == version + 1
    assert open_graph(local_place.uri)._snapshot().version == version + 1


@pytest.mark.parametrize(
    ("point", "listed"),
    [
        ("branch_create.before_manifest_branch_create", ["main"]),
        ("lock.after_acquire", ["main"]),
    ],
)
def test_a_process_killed_while_it_makes_a_branch_blocks_no_writer(local_place, point, listed):
    graph = init(local_place.uri, SCHEMA)
    killed = child(
        local_place, [Arm(point, Kill())], "create_branches", local_place.uri, ["x"], "main"
    )
    assert killed.wait(60) == -signal.SIGKILL
    assert list(graph.branches) == listed
    graph.branches.create("x")
    assert list(graph.branches) == ["main", "x"]


@pytest.mark.acceptance("S-003")
@pytest.mark.parametrize("point", ["init.after_schema_pg_written", "init.after_schema_contract_written"])  # fmt: skip
def test_a_process_killed_while_it_creates_a_graph_leaves_what_force_overcomes(local_place, point):
    killed = child(local_place, [Arm(point, Kill())], "init_graph", local_place.uri, SCHEMA)
    assert killed.wait(60) == -signal.SIGKILL
    assert init(local_place.uri, SCHEMA, force=True)._snapshot().version == 1
