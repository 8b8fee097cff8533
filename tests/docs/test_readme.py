"""The README is true: its Python and shell sessions run as they stand."""

from __future__ import annotations

import ast
import json
import shlex
from contextlib import chdir
from typing import Any

import pytest

from omnigraph.cli.main import main
from tests.docs.markdown import ROOT, Page

README = Page(ROOT / "README.md")
NOTE = {"type": "Note", "data": {"slug": "n1", "text": "Pump 2 fails in cold water"}}
ADA = {"type": "Person", "data": {"email": "ada@x.org", "name": "Ada"}}
BO = {"type": "Person", "data": {"email": "bo@x.org", "name": "Bo"}}
WROTE = {"edge": "Wrote", "from": "ada@x.org", "to": "n1"}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with the files that the README names, and vectors that need no provider."""
    monkeypatch.setenv("OMNIGRAPH_EMBEDDINGS_MOCK", "1")
    [schema], [queries] = README.blocks("pg"), README.blocks("gq")
    (tmp_path / "team.pg").write_text(schema)
    (tmp_path / "team.gq").write_text(queries)
    (tmp_path / "seed.jsonl").write_text("\n".join(map(json.dumps, [ADA, NOTE, WROTE])))
    (tmp_path / "june.jsonl").write_text(json.dumps(BO))
    with chdir(tmp_path):
        yield tmp_path


def test_the_python_session_runs_and_its_comments_are_true(folder):
    [code] = README.blocks("python")
    seen: dict[str, Any] = {}
    scope: dict[str, Any] = {}
    for statement in ast.parse(code).body:
        if isinstance(statement, ast.Expr):
            text = ast.unparse(statement)
            seen[text.split("(")[0]] = eval(compile(text, "README.md", "eval"), scope)
        else:
            exec(compile(ast.unparse(statement), "README.md", "exec"), scope)
    assert seen["graph.query"].to_pylist() == [
        {"n.slug": "n1", "n.text": "Pump 2 fails in cold water"}
    ]
    assert seen["graph.diff"].stats()["inserts"] == 1
    assert seen["graph.at"] is None
    assert scope["graph"].get("Person", "bo@x.org") is not None


def test_the_shell_session_runs(folder, capsys):
    commands = [
        line
        for block in README.blocks("sh")
        for line in block.splitlines()
        if line.startswith("omnigraph ")
    ]
    assert len(commands) == 7
    for command in commands:
        program, *arguments = shlex.split(command)
        assert (program, main(arguments)) == ("omnigraph", 0), command
    assert "Pump 2 fails in cold water" in capsys.readouterr().out
