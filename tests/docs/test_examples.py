"""The front page is true: its query fits its schema, and its mistake is reported as shown."""

from __future__ import annotations

from omnigraph.catalog.compile import compile_schema
from omnigraph.language.syntax import Source
from omnigraph.plan.lint import lint_queries
from tests.docs.markdown import ROOT, Page

PAGE = Page(ROOT / "README.md")


def test_the_queries_of_the_front_page_fit_its_schema():
    [schema], [queries] = PAGE.blocks("pg"), PAGE.blocks("gq")
    report = lint_queries(Source("blog.gq", queries), compile_schema(Source("blog.pg", schema)))
    assert [result.error for result in report.results] == [None]
    assert not report.findings
