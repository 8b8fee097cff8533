"""The front page is true: its query fits its schema, and its mistake is reported as shown."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from omnigraph.catalog.compile import compile_schema
from omnigraph.language.span import Source
from omnigraph.plan.lint import lint_queries
from tests.docs.markdown import ROOT, Page

PAGE = Page(ROOT / "README.md")


def test_the_queries_of_the_front_page_fit_its_schema():
    [schema], [queries] = PAGE.blocks("pg"), PAGE.blocks("gq")
    report = lint_queries(Source("blog.gq", queries), compile_schema(Source("blog.pg", schema)))
    assert [result.error for result in report.results] == [None]
    assert not report.findings


def test_the_mistake_on_the_front_page_is_reported_as_shown(tmp_path):
    (tmp_path / "blog.pg").write_text(PAGE.blocks("pg")[0] + "\n")
    misspelt = PAGE.blocks("gq")[0].replace("$a.published >=", "$a.publised >=")
    (tmp_path / "blog.gq").write_text(misspelt + "\n")
    command = Path(sys.executable).with_name("omnigraph")
    result = subprocess.run(
        [command, "lint", "--schema", "blog.pg", "--query", "blog.gq"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 1
    assert result.stdout.startswith(PAGE.blocks("text")[0] + "\n")
