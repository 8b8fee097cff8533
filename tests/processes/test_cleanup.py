"""A process that cleans up while another merges."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from omnigraph.engine.graph import init
from omnigraph.engine.graph import open as open_graph
from omnigraph.errors import BranchLocked
from omnigraph.testing.faults import Arm, PauseAcrossProcesses
from tests.behaviour.graphs import SCHEMA
from tests.processes.children import child
from tests.processes.conftest import Place

MERGED = "branch_merge.post_phase_b_pre_manifest_commit"


def test_nothing_is_cleaned_up_while_a_merge_into_a_branch_is_about_to_be_published(
    local_place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = init(local_place.uri, SCHEMA)
    graph.create_branch("f")
    graph.mutate('query q() { insert Person { name: "ada" } }', branch="f")
    graph.mutate('query q() { insert Person { name: "bo" } }')
    pause = PauseAcrossProcesses(tmp_path / "merging")
    uri = local_place.uri
    process = child(local_place, [Arm(MERGED, pause)], "merge_once", uri, "main", "f")
    pause.wait_until_reached()
    monkeypatch.setenv("OMNIGRAPH_LOCK_WAIT_MS", "0")
    impatient = open_graph(uri)
    with pytest.raises(BranchLocked, match="main"):
        impatient.cleanup(keep_versions=1, min_age=timedelta())
    pause.release()
    assert process.wait(60) == 0
    graph.mutate('query q() { insert Person { name: "cy" } }')
    impatient.cleanup(keep_versions=1, min_age=timedelta())
    assert graph.merge("f").outcome.value == "merged"
    query = "query q() { match { $p: Person } return { $p.name } order { $p.name } }"
    assert [row["p.name"] for row in graph.query(query).to_dicts()] == ["ada", "bo", "cy"]
