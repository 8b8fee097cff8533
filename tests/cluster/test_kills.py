"""An apply that is killed at any of its steps: the next one finishes the work."""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cluster.clusters import (
    ONE_GRAPH,
    SCHEMA,
    TWO_GRAPHS,
    WIDER_QUERY,
    WIDER_SCHEMA,
    Cluster,
)
from tests.support.faults import ENVIRONMENT_VARIABLE, Arm, Kill, describe
from tests.support.fork_server import fork_server

PATIENCE_SECONDS = 120


def first_apply(cluster: Cluster) -> None:
    """Nothing is there yet."""


def change(cluster: Cluster) -> None:
    """A schema and the query that needs it have changed."""
    cluster.converge()
    cluster.write("team.pg", WIDER_SCHEMA)
    cluster.write("queries/people.gq", WIDER_QUERY)


def deletion(cluster: Cluster) -> None:
    """A graph is to be deleted, and an operator has approved it."""
    cluster.declare(TWO_GRAPHS)
    cluster.converge()
    cluster.declare(ONE_GRAPH)
    cluster.ok("approve", "graph.shop", "--as", "kim")


@dataclass(frozen=True)
class Scenario:
    """What an apply finds, and the steps at which it is killed."""

    prepare: Callable[[Cluster], None]
    points: tuple[str, ...]


ALWAYS = (
    "cluster.after_lock_created",
    "cluster.after_sweep",
    "cluster.after_sidecar",
    "cluster.before_state_write",
    "cluster.after_state_write",
    "cluster.after_sidecar_removed",
    "cluster.after_approvals",
)
SCENARIOS = {
    "first_apply": Scenario(
        first_apply,
        (
            *ALWAYS,
            "cluster.after_graph_create",
            "cluster.after_sidecar_note",
            "cluster.after_payload",
            "init.after_schema_pg_written",
            "init.after_schema_contract_written",
            "init.after_coordinator_init",
        ),
    ),
    "change": Scenario(
        change,
        (
            *ALWAYS,
            "cluster.after_schema_apply",
            "cluster.after_sidecar_note",
            "cluster.after_payload",
            "schema_apply.before_staging_write",
            "schema_apply.after_staging_write",
            "schema_apply.after_manifest_commit",
        ),
    ),
    "deletion": Scenario(deletion, (*ALWAYS, "cluster.after_graph_delete")),
}
KILLS = [(name, point) for name, scenario in SCENARIOS.items() for point in scenario.points]


def killed_at(cluster: Cluster, point: str) -> None:
    """Apply in a process that is killed when it reaches a step."""
    environment = {**os.environ, ENVIRONMENT_VARIABLE: describe([Arm(point, Kill())])}
    with tempfile.NamedTemporaryFile("r") as output:
        process = fork_server().start(
            "tests.cluster.dying:apply", [str(cluster.folder)], environment, output.name
        )
        try:
            code = process.wait(PATIENCE_SECONDS)
        finally:
            process.kill()
        assert code == -signal.SIGKILL, output.read()


def kill_and_apply_again(cluster: Cluster, name: str, point: str) -> None:
    """Kill an apply at a step, and apply until everything is as it is declared."""
    SCENARIOS[name].prepare(cluster)
    revision = cluster.ok("status")["state_observations"]["state_revision"]
    killed_at(cluster, point)

    held = cluster.run("apply")
    assert held.codes == ["state_lock_held"]
    assert cluster.ok("force-unlock", cluster.read("lock.json")["lock_id"])
    ran = cluster.run("apply")
    if "graph_create_incomplete" in ran.codes:
        # What an interrupted init left is only removed by an operator.
        assert point.startswith("init.")
        cluster.objects.delete_prefix("graphs/team.omni")
        ran = cluster.run("apply")
    assert (ran.code, ran.document["converged"]) == (0, True), ran.document["diagnostics"]

    assert cluster.listed("recoveries") == []
    assert cluster.schema() == (WIDER_SCHEMA if name == "change" else SCHEMA)
    assert cluster.has_graph("shop") is False
    state = cluster.state
    assert revision < state["state_revision"] <= revision + 3
    assert sorted(state["applied_revision"]["resources"]) == [
        "graph.team",
        "policy.staff",
        "query.team.people",
        "schema.team",
    ]
    for path in cluster.listed("approvals"):
        assert cluster.read(path.removeprefix("__cluster/"))["consumed_at"] is not None
    assert cluster.ok("plan")["changes"] == []
    statuses = cluster.ok("refresh")["resource_statuses"]
    assert {one["status"] for one in statuses.values()} == {"applied"}
    assert not cluster.run("apply").document["changes"]


@pytest.mark.parametrize(("name", "point"), KILLS)
def test_the_next_apply_finishes_what_a_killed_one_began(cluster, name, point):
    kill_and_apply_again(cluster, name, point)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "point"), KILLS)
def test_the_same_on_an_object_store(s3_cluster, name, point):
    kill_and_apply_again(s3_cluster, name, point)


def test_a_deletion_that_was_killed_is_finished_on_an_object_store(s3_cluster):
    kill_and_apply_again(s3_cluster, "deletion", "cluster.after_graph_delete")


def test_of_many_processes_that_apply_at_once_each_converges_or_fails_clearly(any_cluster):
    with tempfile.TemporaryDirectory() as folder:
        outputs = [f"{folder}/{number}" for number in range(4)]
        for output in outputs:
            open(output, "w").close()
        processes = [
            fork_server().start(
                "tests.cluster.dying:apply", [str(any_cluster.folder)], dict(os.environ), output
            )
            for output in outputs
        ]
        codes = [process.wait(PATIENCE_SECONDS) for process in processes]
        texts = [Path(output).read_text() for output in outputs]
    assert 0 in codes, texts
    for code, text in zip(codes, texts, strict=True):
        if code == 0:
            assert "converged: yes" in text
        else:
            assert "state_lock_held" in text
    assert any_cluster.state["state_revision"] == 1
    assert any_cluster.listed("recoveries") == []
    assert not any_cluster.objects.exists("__cluster/lock.json")
    assert any_cluster.ok("plan")["changes"] == []
