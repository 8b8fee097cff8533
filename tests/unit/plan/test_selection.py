"""Which query of a file is run, and what is remembered about it."""

from __future__ import annotations

import pytest

from omnigraph.errors import ParseError, QuerySelectionError, TypeCheckError
from omnigraph.language.syntax import Source
from omnigraph.plan.compile import QueryCompiler, compile_query
from tests.unit.plan.compiling import W

FILE = Source(
    "q.gq",
    """
query all() @description("everybody") @instruction("cheap") { match { $m: Maker } return { $m } }
query broken() { match { $m: Nope } return { $m } }
query drop($h: String) { delete Maker where handle = $h }
""",
)


def test_a_query_is_picked_by_name():
    assert compile_query(FILE, W, "drop").name == "drop"
    assert compile_query(FILE, W, "all").read_plan().name == "all"


def test_the_only_query_needs_no_name():
    assert compile_query(Source("q", "query q() { delete Maker where age = 1 }"), W).name == "q"


def test_several_queries_need_a_name():
    with pytest.raises(
        QuerySelectionError, match="query file contains multiple queries; pass --name"
    ):
        compile_query(FILE, W)


def test_the_names_that_there_are_are_listed():
    text = "\n".join(f"query q{n}() {{ delete Maker where age = {n} }}" for n in range(10))
    with pytest.raises(QuerySelectionError) as error:
        compile_query(Source("q", text), W)
    listed = "q0, q1, q2, q3, q4, q5, q6, q7 and 2 more"
    assert str(error.value) == f"query file contains multiple queries; pass --name ({listed})"
    with pytest.raises(QuerySelectionError) as error:
        compile_query(Source("q", "query few() { delete Maker where age = 1 }"), W, "all")
    assert str(error.value) == "query 'all' not found; the file has few"


def test_no_query_at_all_is_an_error():
    with pytest.raises(QuerySelectionError):
        compile_query(Source("q", "// nothing here"), W)


@pytest.mark.parametrize("text", [FILE.text, "", "query q() { delete Maker where age = 1 }"])
def test_an_unknown_name_is_an_error(text):
    with pytest.raises(QuerySelectionError, match="query 'nobody' not found"):
        compile_query(Source("q", text), W, "nobody")


def test_only_the_chosen_query_is_checked_against_the_schema():
    compile_query(FILE, W, "all")
    with pytest.raises(TypeCheckError):
        compile_query(FILE, W, "broken")


def test_the_whole_file_must_parse():
    with pytest.raises(ParseError):
        compile_query(Source("q", f"{FILE.text} query"), W, "all")


def test_a_mutation_is_no_read_and_a_read_no_mutation():
    with pytest.raises(QuerySelectionError, match="drop"):
        compile_query(FILE, W, "drop").read_plan()
    with pytest.raises(QuerySelectionError, match="all"):
        compile_query(FILE, W, "all").mutation_plan()


def test_notes_are_kept_and_do_not_change_the_plan():
    noted = compile_query(FILE, W, "all")
    assert (noted.query.note("description"), noted.query.note("instruction")) == (
        "everybody",
        "cheap",
    )
    plain = compile_query(Source("q", "query all() { match { $m: Maker } return { $m } }"), W)
    assert (plain.query.note("description"), plain.query.note("instruction")) == (None, None)
    assert plain.plan == noted.plan


# -- compiling again ----------------------------------------------------------------------------


def test_the_same_text_is_compiled_once():
    compiler = QueryCompiler(W)
    first = compiler.compile(FILE, "all")
    assert compiler.compile(Source(FILE.name, FILE.text), "all") is first
    assert compiler.compile(FILE, "drop") is not first
    assert first == compile_query(FILE, W, "all")


def test_an_error_is_not_remembered_under_another_file_name():
    compiler = QueryCompiler(W)
    for name in ("a.gq", "b.gq"):
        with pytest.raises(TypeCheckError, match=rf"^{name}:3:30: "):
            compiler.compile(Source(name, FILE.text), "broken")


def test_the_least_recently_used_is_forgotten_first():
    compiler = QueryCompiler(W, capacity=2)
    sources = [Source("q", f"query q() {{ delete Maker where age = {n} }}") for n in range(3)]
    first = compiler.compile(sources[0])
    second = compiler.compile(sources[1])
    assert compiler.compile(sources[0]) is first
    compiler.compile(sources[2])
    assert compiler.compile(sources[0]) is first
    assert compiler.compile(sources[1]) is not second
