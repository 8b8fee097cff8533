"""Source text from pages and from the registry, put through the real compiler."""

from __future__ import annotations

from omnigraph.catalog.compile import build_declared, check_reserved_names, compile_schema
from omnigraph.catalog.migrate.plan import plan_migration
from omnigraph.catalog.migrate.report import refuse_unsupported
from omnigraph.catalog.model import Catalog
from omnigraph.errors import LanguageError, UnsupportedMigration
from omnigraph.language.query.parse import parse_queries
from omnigraph.language.syntax import Source
from omnigraph.plan.check_read import check_read
from omnigraph.plan.compile import compile_checked
from omnigraph.plan.lint import lint_queries

ACCEPTED = "// accepted: "
"""In an example of a schema change, the comment that holds the schema the change starts from."""


def codes_of(text: str, expected: str, catalog: Catalog) -> set[str]:
    """The codes a text gets in the part of the compiler that reports the expected one."""
    if expected.startswith("OG-"):
        accepted, _, desired = text.partition("\n")
        return migration_codes(accepted.removeprefix(ACCEPTED), desired)
    if expected.startswith("S"):
        return schema_codes(text)
    if expected == "Q000" or expected.startswith("L"):
        return {finding.code for finding in lint_queries(Source("q.gq", text), catalog).findings}
    if expected == "T35":
        return read_checker_codes(text, catalog)
    return query_codes(text, catalog)


def schema_codes(text: str) -> set[str]:
    source = Source("s.pg", text)
    try:
        compile_schema(source)
        check_reserved_names(source)
    except LanguageError as error:
        return {diagnostic.code for diagnostic in error.diagnostics}
    return set()


def query_codes(text: str, catalog: Catalog) -> set[str]:
    """The codes of all queries in the text."""
    source = Source("q.gq", text)
    codes = set()
    try:
        queries = parse_queries(source).queries
    except LanguageError as error:
        return {error.diagnostic.code}
    for query in queries:
        try:
            compile_checked(source, catalog, query)
        except LanguageError as error:
            codes.add(error.diagnostic.code)
    return codes


def read_checker_codes(text: str, catalog: Catalog) -> set[str]:
    """As `query_codes`, for a program that takes every query for a read."""
    source = Source("q.gq", text)
    (query,) = parse_queries(source).queries
    try:
        check_read(source, catalog, query)
    except LanguageError as error:
        return {error.diagnostic.code}
    return set()


def migration_codes(accepted: str, desired: str) -> set[str]:
    """The code of the first change that cannot be made, if there is one."""
    target = Source("desired.pg", desired)
    plan = plan_migration(build_declared(Source("accepted.pg", accepted)), build_declared(target))
    try:
        refuse_unsupported(plan, target)
    except UnsupportedMigration as error:
        return {error.diagnostic.code if error.diagnostic else error.code}
    return set()
