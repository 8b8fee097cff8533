"""The schemas and queries shown on the pages are accepted by the compiler."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from omnigraph.catalog.compile import compile_schema
from omnigraph.language.span import Source
from omnigraph.plan.lint import lint_queries
from tests.docs.markdown import ROOT, Page, pages

WITH_SCHEMA = [page for page in pages() if page.blocks("pg")]
WITH_QUERY = [page for page in pages() if page.blocks("gq")]


def schema_of(page: Page) -> Source:
    """All schema blocks of a page form one schema."""
    return Source(page.name, "\n".join(page.blocks("pg")))


@pytest.mark.parametrize("page", WITH_SCHEMA, ids=lambda page: page.name)
def test_the_schema_of_a_page_compiles(page):
    compile_schema(schema_of(page))


@pytest.mark.parametrize("page", WITH_QUERY, ids=lambda page: page.name)
def test_the_queries_of_a_page_fit_its_schema(page):
    catalog = compile_schema(schema_of(page))
    for block in page.blocks("gq"):
        report = lint_queries(Source(page.name, block), catalog)
        assert [result.error for result in report.results if result.error] == []
        assert report.status == "ok"


def test_the_mistake_on_the_front_page_is_reported_as_shown(tmp_path):
    page = Page(ROOT / "README.md")
    (tmp_path / "blog.pg").write_text(page.blocks("pg")[0] + "\n")
    misspelt = page.blocks("gq")[0].replace("$a.published >=", "$a.publised >=")
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
    assert result.stdout.startswith(page.blocks("text")[0] + "\n")


def test_the_front_page_shows_a_schema_and_a_query():
    assert "README.md" in {page.name for page in WITH_SCHEMA}
    assert "README.md" in {page.name for page in WITH_QUERY}
