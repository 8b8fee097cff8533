"""`omnigraph verify`."""

from __future__ import annotations

import json
from pathlib import Path

import lance
import pytest

import omnigraph as og


@pytest.fixture
def damaged(full: str) -> str:
    """The library without the file of its books."""
    entry = og.open(full, read_only=True)._snapshot().entry("node:Book")
    (file,) = Path(full, entry.location, "data").glob("*.lance")
    file.unlink()
    return full


def test_a_sound_graph_is_ok(cli, full):
    code, out, err = cli("verify", full)
    assert (code, err) == (0, "")
    assert out == f"verify {full} — 1 branch, 4 tables, 8 rows, {_files(cli, full)} files: ok\n"


def _files(cli, uri: str) -> int:
    files: int = json.loads(cli("verify", uri, "--json").out)["files"]
    return files


def test_the_document_has_what_was_checked(cli, full):
    code, out, err = cli("verify", "--json", full)
    assert (code, err) == (0, "")
    document = json.loads(out)
    assert document == {
        "uri": full,
        "ok": True,
        "branches": ["main"],
        "tables": 4,
        "rows": 8,
        "files": document["files"],
        "problems": [],
    }


def test_problems_are_printed_and_the_exit_code_is_1(cli, damaged):
    code, out, err = cli("verify", damaged)
    assert (code, err) == (1, "")
    first, problem, example = out.splitlines()
    assert first.endswith(": 1 problem")
    assert problem == "damaged_file  node:Book on branch main: 1 file missing or damaged"
    assert example.startswith("    '")
    assert example.endswith("cannot be used: it is missing")
    code, out, err = cli("verify", "--json", damaged)
    assert (code, err) == (1, "")
    document = json.loads(out)
    assert document["ok"] is False
    (found,) = document["problems"]
    assert (found["kind"], found["branch"], found["table_key"], found["count"]) == (
        "damaged_file",
        "main",
        "node:Book",
        1,
    )


def test_of_many_examples_the_first_are_printed(cli, full):
    graph = og.open(full)
    entry = graph._snapshot().entry("node:Author")
    for name in ("ada", "bob", "cy"):
        cli("load", full, "--mode", "append", "--data", _edges(full, name))
    lance.dataset(str(Path(full, entry.location))).delete("true")
    assert cli("repair", full, "--confirm", "--force").code == 0
    out = cli("verify", full).out.splitlines()
    (start,) = [number for number, line in enumerate(out) if line.startswith("dangling_edge")]
    assert "8 endpoints of edges that no node has" in out[start]
    assert all(line.startswith("    edge Wrote: src") for line in out[start + 1 : start + 6])
    assert out[start + 6] == "    and 3 more"


def _edges(full: str, name: str) -> Path:
    path = Path(full).with_name(f"{name}.jsonl")
    edges = [{"edge": "Wrote", "from": name, "to": book} for book in ("b1", "b2")]
    path.write_text("".join(json.dumps(edge) + "\n" for edge in edges))
    return path


def test_named_branches_are_checked(cli, damaged):
    for name in ("one", "two"):
        assert cli("branch", "create", name, "--uri", damaged).code == 0
    code, out, _ = cli("verify", damaged, "--branch", "one", "--branch", "two", "--json")
    assert code == 1
    document = json.loads(out)
    assert document["branches"] == ["one", "two"]
    assert [problem["branch"] for problem in document["problems"]] == ["one"]


@pytest.mark.parametrize("arguments", [["nowhere"], ["G", "--branch", "nope"]])
def test_a_graph_or_branch_that_is_not_there_is_an_error(cli, full, arguments):
    code, out, err = cli("verify", *arguments)
    assert (code, out) == (1, "")
    assert err.startswith("error[OG-N-")
