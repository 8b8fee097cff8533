"""The registry of stored queries: reading, checking, and who finds a query."""

from __future__ import annotations

from pathlib import Path

import pytest

from omnigraph.catalog.compile import compile_schema
from omnigraph.catalog.model import Catalog
from omnigraph.errors import (
    PolicyError,
    PolicyUndecided,
    StoredQueriesBroken,
    StoredQueriesInvalid,
    StoredQueryNotFound,
)
from omnigraph.graph.gate import Action, OpenGate, Request
from omnigraph.language.syntax import Source
from omnigraph.policy.gate import open_gate
from omnigraph.stored_queries.registry import QueryEntry, StoredQueries, read_registry

SCHEMA = "node Author { slug: String @key born: I32? face: Vector(3)? }"
QUERIES = """\
query by_slug($slug: String) { match { $a: Author { slug: $slug } } return { $a.born } }
query set_born($slug: String, $born: I32) { update Author set { born: $born } where slug = $slug }
query other() { match { $m: Missing } return { $m.id } }
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "lib.gq"
    path.write_text(QUERIES)
    return path


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return compile_schema(Source("s.pg", SCHEMA))


def invalid(*entries: QueryEntry) -> tuple[str, ...]:
    with pytest.raises(StoredQueriesInvalid) as caught:
        read_registry(entries)
    assert all(one.splitlines()[0] in str(caught.value) for one in caught.value.problems)
    return caught.value.problems


def test_a_query_is_found_with_the_whole_file_as_its_source(file):
    stored = read_registry([QueryEntry("set_born", file), QueryEntry("by_slug", file)])
    assert [query.name for query in stored] == ["by_slug", "set_born"]
    found = stored.find("set_born")
    assert found is not None
    assert (found.is_mutation, found.source) == (True, QUERIES)
    assert stored.find("other") is None
    assert len(StoredQueries()) == 0


@pytest.mark.acceptance("U-104", partly="the registry")
def test_the_key_is_the_name_of_a_query_in_the_file(file):
    (problem,) = invalid(QueryEntry("by_slugs", file))
    assert problem.startswith("query 'by_slugs': ")
    assert "must match the query symbol" in problem
    assert "did you mean `by_slug`?" in problem


@pytest.mark.acceptance("U-105", partly="the registry")
def test_exposed_queries_do_not_share_a_tool_name(file):
    entries = [QueryEntry("by_slug", file, tool_name="set_born"), QueryEntry("set_born", file)]
    assert invalid(*entries) == (
        "queries 'by_slug' and 'set_born' have the same tool name 'set_born'",
    )
    hidden = QueryEntry("by_slug", file, is_exposed=False, tool_name="set_born")
    assert len(read_registry([hidden, entries[1]])) == 2


def test_all_problems_are_collected(file, tmp_path):
    broken = tmp_path / "broken.gq"
    broken.write_text("query broken( {")
    empty = tmp_path / "empty.gq"
    empty.write_text("")
    problems = invalid(
        QueryEntry("gone", tmp_path / "gone.gq"),
        QueryEntry("broken", broken),
        QueryEntry("empty", empty),
        QueryEntry("unknown", file),
        QueryEntry("by_slug", file, tool_name="t"),
        QueryEntry("set_born", file, tool_name="t"),
    )
    assert len(problems) == 5
    assert "no such file" in problems[0]
    assert "broken.gq" in problems[1]
    assert "declares no query" in problems[2]


@pytest.mark.acceptance("U-104", partly="the schema check")
def test_every_query_that_does_not_fit_the_schema_is_named(file, catalog, tmp_path):
    more = tmp_path / "more.gq"
    more.write_text("query more() { match { $a: Author } return { $a.dead } }")
    stored = read_registry(
        [QueryEntry("other", file), QueryEntry("by_slug", file), QueryEntry("more", more)]
    )
    with pytest.raises(StoredQueriesBroken) as caught:
        stored.require_valid("lib", catalog)
    text = str(caught.value)
    assert "graph 'lib': 2 stored queries failed the schema check" in text
    assert "query 'other'" in text
    assert "Missing" in text
    assert "query 'more'" in text
    assert "by_slug" not in text


def test_unregistered_queries_of_a_file_are_not_checked(file, catalog):
    stored = read_registry([QueryEntry("by_slug", file)])
    assert stored.require_valid("lib", catalog).breakages == ()
    assert [text.split("(")[0] for text in stored.sources()] == ["query by_slug"]


def test_an_exposed_query_with_a_vector_is_advised_against(tmp_path, catalog):
    path = tmp_path / "v.gq"
    path.write_text(
        "query near($v: Vector(3)) "
        "{ match { $a: Author } return { $a.slug } order { nearest($a.face, $v) } limit 1 }"
    )
    (warning,) = read_registry([QueryEntry("near", path)]).check(catalog).warnings
    assert (warning.query, "$v" in warning.message) == ("near", True)
    hidden = read_registry([QueryEntry("near", path, is_exposed=False)])
    assert hidden.check(catalog).warnings == ()


# -- who finds a query ----------------------------------------------------------------------

POLICY = """
version: 1
groups: {callers: [ada], readers: [bob]}
rules:
  - {id: call, allow: {actors: {group: callers}, actions: [invoke_query]}}
  - {id: read, allow: {actors: {group: readers}, actions: [read]}}
"""


@pytest.mark.acceptance("U-107", partly="the registry")
def test_unknown_and_forbidden_look_alike(file):
    stored, gate = read_registry([QueryEntry("by_slug", file)]), open_gate(POLICY)
    assert stored.invocable("by_slug", "ada", gate).name == "by_slug"
    said = set()
    for name, actor in [("nope", "ada"), ("by_slug", "bob"), ("by_slug", "eve"), ("by_slug", None)]:
        with pytest.raises(StoredQueryNotFound) as caught:
            stored.invocable(name, actor, gate)
        assert caught.value.__cause__ is None
        said.add((str(caught.value), tuple(caught.value.args)))
    assert said == {("stored query not found", ("stored query not found",))}


def test_without_a_policy_everybody_invokes(file):
    stored = read_registry([QueryEntry("by_slug", file, is_exposed=False)])
    assert stored.invocable("by_slug", None, OpenGate()).name == "by_slug"


def test_a_policy_that_cannot_be_evaluated_is_not_hidden(file):
    class Failing:
        def check(self, request: Request) -> None:
            assert request == Request("ada", Action.INVOKE_QUERY)
            raise PolicyUndecided("invoke_query", "broken")

    class Denying:
        def check(self, request: Request) -> None:
            raise PolicyError("no")

    stored = read_registry([QueryEntry("by_slug", file)])
    with pytest.raises(PolicyUndecided):
        stored.invocable("by_slug", "ada", Failing())
    with pytest.raises(StoredQueryNotFound):
        stored.invocable("by_slug", "ada", Denying())
