"""`omnigraph repair`."""

from __future__ import annotations

import json
from pathlib import Path

import lance
import pytest

import omnigraph as og

KEYS = ["edge:Cites", "edge:Wrote", "node:Author", "node:Book"]


def authors(uri: str, branch: str | None = None) -> lance.LanceDataset:
    """The table of the authors, behind the graph's back."""
    graph = og.open(uri, read_only=True)
    entry = graph._snapshot(branch).entry("node:Author")
    path = Path(uri, entry.location)
    return lance.dataset(str(path if entry.branch is None else path / "tree" / entry.branch))


@pytest.fixture
def drifted(full: str) -> str:
    authors(full).delete("slug = 'cy'")
    return full


@pytest.mark.acceptance("U-045")
def test_a_clean_graph_has_nothing_to_repair(cli, full):
    code, out, err = cli("repair", "--json", full)
    assert (code, err) == (0, "")
    document = json.loads(out)
    assert document["uri"] == full
    assert (document["confirm"], document["force"]) == (False, False)
    assert document["manifest_version"] is None
    tables = document["tables"]
    assert sorted(table["table_key"] for table in tables) == KEYS
    for table in tables:
        assert (table["classification"], table["action"]) == ("no_drift", "no_op")
        assert table["manifest_version"] == table["lance_head_version"]
        assert (table["operations"], table["error"]) == ([], None)
    code, out, err = cli("repair", full)
    assert (code, err) == (0, "")
    assert out.splitlines()[0] == f"repair {full} — preview mode, 4 tables"
    assert "--confirm" not in out


@pytest.mark.acceptance("U-046")
@pytest.mark.parametrize(
    "options", [["--force"], ["--rollback"], ["--confirm", "--rollback"], ["--force", "--json"]]
)
def test_an_option_without_the_one_it_needs_is_a_usage_error(cli, full, options):
    code, out, err = cli("repair", *options, full)
    assert (code, out) == (2, "")
    assert "--confirm" in err


def test_a_preview_shows_the_drift_and_how_to_go_on(cli, drifted):
    pin = authors(drifted).version - 1
    code, out, err = cli("repair", drifted)
    assert (code, err) == (0, "")
    (line,) = [line for line in out.splitlines() if line.startswith("node:Author")]
    assert line == f"node:Author  preview  suspicious  {pin} → {pin + 1}  [delete]"
    assert "--confirm" in out.splitlines()[-1]
    assert authors(drifted).version == pin + 1


@pytest.mark.acceptance("S-127")
@pytest.mark.parametrize("form", [[], ["--json"]])
def test_a_refused_table_is_printed_and_ends_in_an_error(cli, drifted, form):
    before = len(og.open(drifted).log(reverse=True))
    code, out, err = cli("repair", "--confirm", *form, drifted)
    assert code == 1
    assert "repair refused 1 " in err
    if form:
        document = json.loads(out)
        actions = {t["table_key"]: t["action"] for t in document["tables"]}
        assert actions == dict.fromkeys(KEYS, "no_op") | {"node:Author": "refused"}
        assert (document["confirm"], document["manifest_version"]) == (True, None)
    else:
        assert out.splitlines()[0].endswith("— confirm mode, 4 tables")
        assert "node:Author  refused  suspicious" in out
    assert len(og.open(drifted).log(reverse=True)) == before
    code, out, err = cli("repair", "--confirm", "--force", *form, drifted)
    assert (code, err) == (0, "")
    last = og.open(drifted).log(reverse=True)[-1]
    assert last.actor == "omnigraph:repair:force"
    if form:
        document = json.loads(out)
        assert document["manifest_version"] == last.number
        assert document["graph_commit_id"] == last.id
    else:
        assert out.splitlines()[-1] == f"commit {last.id}"
    assert cli("load", drifted, "--mode", "merge", "--data", "library.jsonl").code == 0


def test_a_rollback_brings_the_rows_back(cli, drifted):
    assert cli("repair", "--confirm", "--force", "--rollback", drifted).code == 0
    assert authors(drifted).count_rows() == 3
    assert cli("repair", "--confirm", drifted).code == 0


def test_a_branch_is_repaired_by_name(cli, full):
    cli(
        "load",
        full,
        "--mode",
        "merge",
        "--data",
        "library.jsonl",
        "--branch",
        "d",
        "--from",
        "main",
    )
    table = authors(full, "d")
    table.delete("slug = 'cy'")
    assert cli("repair", full).out.count("preview  ") == 0
    code, out, _ = cli("repair", "--branch", "d", "--confirm", "--force", "--json", full)
    assert code == 0
    document = json.loads(out)
    assert document["branch"] == "d"
    assert {t["table_key"]: t["action"] for t in document["tables"]}["node:Author"] == "forced"


def test_a_quarantined_sidecar_is_named_until_it_is_removed(cli, full):
    name = "01KV8Z6M3Q9V2X4T7B5N0C1D2E.json"
    folder = Path(full, "__recovery")
    folder.mkdir(exist_ok=True)
    (folder / name).write_text("{")
    code, out, _ = cli("repair", full)
    assert code == 0
    assert f"quarantined sidecar {name}" in out
    assert "--confirm" in out.splitlines()[-1]
    document = json.loads(cli("repair", "--confirm", "--json", full).out)
    assert [found["name"] for found in document["quarantined"]] == [name]
    assert document["removed_sidecars"] == []
    assert (folder / name).exists()
    code, out, _ = cli("repair", "--confirm", "--force", full)
    assert code == 0
    assert f"removed sidecar {name}" in out
    assert not (folder / name).exists()


@pytest.mark.parametrize("arguments", [["nowhere"], ["G", "--branch", "nope"]])
def test_a_graph_or_branch_that_is_not_there_is_an_error(cli, full, arguments):
    code, out, err = cli("repair", *arguments)
    assert (code, out) == (1, "")
    assert err
