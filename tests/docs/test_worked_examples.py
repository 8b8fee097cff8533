"""The worked examples and the notebook run as they stand, and say what they promise."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
from contextlib import chdir
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.catalog.compile import compile_schema
from omnigraph.language.format import format_queries, format_schema
from omnigraph.plan.lint import lint_queries
from omnigraph.read.source_files import read_source
from tests.docs.markdown import ROOT

EXAMPLES = ROOT / "examples"
FOLDERS = ["agents", "memory", "packages"]


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The examples, where they may make graphs."""
    shutil.copytree(EXAMPLES, tmp_path / "examples")
    return tmp_path / "examples"


def run(command: list[str], folder: Path) -> str:
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    kept = {name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ}
    done = subprocess.run(
        command,
        cwd=folder,
        env={"PATH": programs, "LANG": "C.UTF-8", "HOME": str(folder), **kept},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("folder", FOLDERS)
def test_schema_and_queries_are_without_findings_and_laid_out(folder):
    schema = read_source(EXAMPLES / folder / "schema.pg")
    queries = read_source(EXAMPLES / folder / "queries.gq")
    report = lint_queries(queries, compile_schema(schema))
    assert [one.error for one in report.results if one.error] == []
    assert not report.findings
    assert format_schema(schema) == schema.text
    assert format_queries(queries) == queries.text


def test_the_memory_recalls_by_meaning_and_reviews_a_decision(copy):
    out = run([sys.executable, "memory.py"], copy / "memory")
    recalled, team, experts, review, in_force = out.split("\n\n")
    assert recalled.splitlines()[4].startswith("Which seals to order")
    assert "Supplier review" in recalled
    assert "Supplier review" not in team
    assert experts.splitlines()[4].split() == ["Ada", "|", "2"]
    assert "3 inserts, 0 updates, 0 deletes" in review
    assert in_force.index("everywhere") < in_force.index("pump 2")


def test_the_packages_are_asked_and_the_cause_is_found(copy):
    out = run(["bash", "packages.sh"], copy / "packages")
    assert "11 rows from branch main via needs" in out
    assert "8 rows from branch what-if via needs" in out
    assert "certs | 1" in out
    [found] = [line for line in out.splitlines() if line.startswith("the assertion fails since")]
    assert found.endswith("actor=ada -4 cleo left")


def test_agents_write_on_their_branches_and_a_reviewer_decides(copy):
    out = run([sys.executable, "agents.py"], copy / "agents")
    assert "registry: knew it already: Aster Labs is led by Noor Haddad." in out
    for name in ("press", "registry", "forum"):
        assert f"{name} proposes, on agent/{name}/" in out
    assert out.count("Harbor Foods: employees 395 → 4") == 2
    merged = re.findall(r"^merged (\w+): (\w+)$", out, re.MULTILINE)
    assert merged == [("press", "fast_forward"), ("registry", "merged"), ("forum", "merged")]
    assert "Harbor Foods: main has 410, registry 425" in out
    reverted, harbor = out.partition("Reverted:\n")[2].split("\n\n")
    assert [line.split()[0] for line in reverted.splitlines()] == ["180", "12000", "180"]
    assert reverted.splitlines()[-1].endswith("rita     nobody else says so")
    numbers = re.findall(r"^ +(\d+)  Tom Vance", harbor, re.MULTILINE)
    assert numbers == ["395", "410", "425"]
    assert "2 rows from branch main via evidence" in harbor


def test_the_agent_of_the_demo_writes_to_a_branch_of_its_own(copy):
    folder = copy / "archive"
    article = {"slug": "article-42", "title": "A", "body": "B", "section": "culture"}
    row = {"type": "Article", "data": article | {"published": "2024-01-01"}}
    with og.init(folder / "archive.omni", schema=folder / "schema.pg") as graph:
        graph.load([row], "append")
        out = run([sys.executable, "agent.py", "archive.omni"], folder)
        [branch] = re.findall(
            r"^mutate: wrote to the branch (agent/archivist/\w+)$", out, re.MULTILINE
        )
        assert "query: [{'title': 'A', 'section': 'culture'}]" in out
        assert "diff: [('update', 'article-42')]" in out
        assert branch in graph.branches
        graph.merge(branch)
        merged = graph.get("Article", "article-42")
        assert merged is not None
        assert merged["title"] == "What the agent calls it"


def shown(value: Any) -> str:
    """What a notebook shows of a value, without a network or a kernel."""
    for name in ("_repr_svg_", "_repr_html_"):
        if (method := getattr(value, name, None)) is not None:
            return str(method())
    return repr(value)


def test_the_notebook_runs_and_its_pictures_need_no_network(copy):
    notebook = json.loads((copy / "packages" / "notebook.ipynb").read_text(encoding="utf-8"))
    scope: dict[str, Any] = {}
    outputs = []
    with chdir(copy / "packages"):
        for cell in notebook["cells"]:
            assert not cell.get("outputs")
            if cell["cell_type"] != "code":
                continue
            *body, last = ast.parse("".join(cell["source"])).body
            exec(compile(ast.Module(body, []), "notebook", "exec"), scope)
            if isinstance(last, ast.Expr):
                value = eval(compile(ast.Expression(last.value), "notebook", "eval"), scope)
                outputs.append(shown(value))
            else:
                exec(compile(ast.Module([last], []), "notebook", "exec"), scope)
    pictures = [one for one in outputs if one.startswith("<svg")]
    assert len(pictures) == 3
    for picture in pictures:
        assert picture.replace("http://www.w3.org/2000/svg", "").count("://") == 0
        assert "<script" not in picture
    assert any("'webkit', 'http-core', 'sockets'" in one for one in outputs)
    assert "welcome, fay" in pictures[-1]
