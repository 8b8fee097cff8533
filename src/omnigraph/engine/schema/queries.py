"""Queries that have to go on working under another schema.

Tests: tests/behaviour/test_schema_apply.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from omnigraph.catalog.model import Catalog
from omnigraph.errors import BrokenQuery, QueriesBroken
from omnigraph.language.syntax import Source
from omnigraph.plan.lint import lint_queries


def refuse_broken_queries(sources: Sequence[Source], catalog: Catalog) -> None:
    """Check all queries of all sources. Raises `QueriesBroken`, which lists those that do not fit."""
    broken = [query for source in sources for query in _broken(source, catalog)]
    if broken:
        raise QueriesBroken(broken)


def _broken(source: Source, catalog: Catalog) -> Iterator[BrokenQuery]:
    report = lint_queries(source, catalog)
    for finding in report.findings:
        if finding.severity == "error" and finding.diagnostic is not None:
            yield BrokenQuery(None, finding.diagnostic)
    for result in report.results:
        if result.diagnostic is not None:
            yield BrokenQuery(result.name, result.diagnostic)
