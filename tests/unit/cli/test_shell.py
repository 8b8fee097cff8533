"""The shell without a terminal: piped input, dot commands, completion, when an input is complete."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from omnigraph.catalog.compile import compile_schema
from omnigraph.cli.shell.completion import Completions
from omnigraph.cli.shell.session import COMMANDS, is_complete
from omnigraph.cli.shell.words import query_words
from omnigraph.language.syntax import Source
from tests.unit.cli.conftest import LIBRARY_PG

Shell = Callable[..., str]


@pytest.fixture
def shell(cli, full) -> Shell:
    """Pipe text into the shell; what it printed."""

    def run(text: str, *options: str, code: int = 0) -> str:
        outcome = cli("shell", "G", *options, stdin=text.encode())
        assert (outcome.code, outcome.err) == (code, "")
        out: str = outcome.out
        return out

    return run


def test_a_query_may_be_whole_or_its_body_alone(shell):
    body = 'match { $a: Author { slug: "ada" } } return { $a.slug, $a.born }'
    whole = f"query ada() {{ {body} }}"
    assert shell(body).splitlines()[-1] == shell(whole).splitlines()[-1] == "ada    | 1815  "


def test_a_body_may_have_several_lines_and_ends_with_an_empty_one(shell):
    text = "match { $a: Author }\nreturn { $a.slug as slug }\norder { slug desc }\nlimit 1\n\n"
    out = shell(text + 'match { $b: Book { isbn: "b2" } }\nreturn { $b.title }\n')
    assert [line for line in out.splitlines() if "row" in line] == [
        "1 row from branch main via shell",
        "1 row from branch main via shell",
    ]
    assert "cy" in out
    assert "Engines" in out


@pytest.mark.parametrize(
    ("following", "said"),
    [
        (".branches", "* main"),
        (".branchs", "did you mean `.branches`?"),
        ('match { $b: Book { isbn: "b2" } } return { $b.title }', "Engines"),
        ('insert Author { slug: "dee" }', "changed main: 1 node, 0 edges"),
        ("branch list", "via branch list"),
    ],
)
def test_a_body_ends_where_another_input_begins(shell, following, said):
    out = shell(
        f"match {{ $a: Author }}\nreturn {{ $a.slug }}\nlimit 1\n{following}\n",
        code=int(following == ".branchs"),
    )
    assert out.splitlines()[0] == "1 row from branch main via shell"
    assert said in out.partition("row from")[2]


def test_a_mutation_is_a_commit_that_the_next_query_sees(shell):
    out = shell(
        'insert Author { slug: "dee", born: 1990 }\n'
        'match { $a: Author { slug: "dee" } } return { $a.born }\n'
    )
    assert "changed main: 1 node, 0 edges" in out
    assert "1990" in out


def test_an_error_points_into_what_was_entered_and_the_rest_runs(shell):
    out = shell('match { $a: Author { slugg: "ada" } }\nreturn { $a.slug }\n\n.branches\n', code=1)
    assert "<query>:1:22: type error" in out
    assert '    1 | match { $a: Author { slugg: "ada" } }' in out
    assert "did you mean `slug`?" in out
    assert out.endswith("* main\n")


def test_branches_are_listed_and_checked_out(cli, shell):
    assert cli("branch", "create", "draft", "--uri", "G").code == 0
    out = shell('.checkout draft\ninsert Author { slug: "x" }\n.branches\n.diff main\n.log 1\n')
    assert "on branch draft" in out
    assert "changed draft: 1 node" in out
    assert "  main\n* draft\n" in out
    assert "+ node:Author x" in out
    assert "branch=draft" in out
    assert cli("shell", "G", "--branch", "draft", stdin=b".branches\n").out.endswith("* draft\n")


def test_queries_of_a_file_run_with_parameters(shell):
    out = shell(".read lib.gq\n.run by_slug slug=ada\n.explain by_slug slug=ada\n.queries\n")
    assert "read 4 queries: by_slug, all_authors, add_author, set_born" in out
    assert "ada    | 1815" in out
    assert "by_slug on branch main" in out


def test_a_query_with_parameters_is_kept_until_it_is_run(shell):
    out = shell("query q($slug: String) { match { $a: Author { slug: $slug } } return { $a.born } }\n"
                ".run q slug=bob\n")  # fmt: skip
    assert "defined q; run it with `.run q slug=…`" in out
    assert "1970" in out


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (".brnches", "did you mean `.branches`?"),
        (".run nothing", "unknown query 'nothing'"),
        (".checkout nowhere", "nowhere"),
        (".schema Autor", "did you mean `Author`?"),
        (".format xml", "unknown format 'xml'"),
        (".timing maybe", ".timing takes on or off"),
        (".diff", ".diff takes FROM"),
        (".read nowhere.gq", "no such file"),
        (".run 'by", "no closing quotation"),
    ],
)
def test_a_wrong_command_says_what_it_takes(shell, text, said):
    assert said in shell(text + "\n", code=1)


def test_the_schema_and_one_type_are_shown(shell):
    assert shell(".schema\n").startswith("node Author {")
    assert shell(".schema Author\n") == "node Author\n    born: I32?\n    slug: String @key\n"
    assert shell(".schema Wrote\n") == "edge Wrote: Author -> Book\n    year: I32?\n"


def test_help_lists_every_command(shell):
    assert all(f"{name} " in shell(".help\n") for name in COMMANDS)


def test_json_is_the_document_of_query(shell):
    out = shell('match { $a: Author { slug: "ada" } } return { $a.slug }\n', "--json")
    assert json.loads(out)["rows"] == [{"a.slug": "ada"}]


def test_a_long_table_is_cut_and_other_formats_are_not(shell):
    people = " ".join(f'insert Author {{ slug: "p{number:03}" }}' for number in range(230))
    ask = "match { $a: Author } return { $a.slug }\n"
    out = shell(f"{people}\n\n{ask}\n.format csv\n{ask}")
    assert "… 33 more rows; `.format csv` shows all" in out
    assert out.count("\np") == 197 + 230


def test_quit_ends_and_what_follows_is_not_run(shell):
    assert shell(".quit\n.branches\n") == ""


def test_a_read_only_shell_refuses_mutations(shell):
    out = shell('insert Author { slug: "x" }\n', "--read-only", code=1)
    assert out.startswith("error[")


@pytest.mark.parametrize(
    ("text", "complete"),
    [
        ("match { $a: Author }", False),
        ("match { $a: Author } return { $a.slug }", True),
        ("match { $a: Author {", False),
        ('insert Author { slug: "a', False),
        ('insert Author { slug: "a" }', True),
        ("query q()", False),
        ("query q() { match { $a: A } return { $a.b }", False),
        ("query q() { match { $a: A } return { $a.b } }", True),
        ("match { ) } return { }", True),
        ("", True),
    ],
)
def test_an_input_is_complete_when_its_brackets_are_closed(text, complete):
    assert is_complete(text) is complete


# -- completion -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def completions() -> Completions:
    catalog = compile_schema(Source("library.pg", LIBRARY_PG))
    return Completions(lambda: catalog, lambda: ["main", "review/x"], lambda: ["by_slug"], COMMANDS)


@pytest.mark.parametrize(
    ("before", "offered"),
    [
        ("mat", "match"),
        ("match { $a: Au", "Author"),
        ("match { $a: Author { bo", "born"),
        ("match { $a: Author  $a wr", "wrote"),
        ("match { $a: Author } return { $a.sl", "slug"),
        ("match { $a: Author } return { $", "$a"),
        ("match { $b: Book } return { co", "count"),
        ("insert Wr", "Wrote"),
        ("insert Wrote { fr", "from"),
        ("update Author set { bo", "born"),
        ("delete Author where sl", "slug"),
        ("query q($a: Str", "String"),
        (".che", ".checkout"),
        (".checkout review", "review/x"),
        (".schema Bo", "Book"),
        (".run by", "by_slug"),
    ],
)
def test_what_may_be_written_is_offered(completions, before, offered):
    assert offered in [one.text for one in completions.at(before)[1]]


def test_properties_are_those_of_the_type_that_a_variable_has(completions):
    before = "match { $a: Author  $b: Book } return { $b."
    assert [one.text for one in completions.at(before)[1]] == ["isbn", "title"]


def test_what_is_written_already_is_not_offered(completions):
    assert completions.at("return") == ("return", [])


def test_the_words_are_those_of_the_language():
    from omnigraph.language.query.ast import AggregateFunction

    words = set(query_words())
    assert {"match", "return", "not", "insert", "update", "delete", "order", "limit"} <= words
    assert {"nearest", "bm25", "rrf"} <= words
    assert {one.value for one in AggregateFunction} <= words


def test_statements_run_as_they_are_entered(shell):
    out = shell(
        'branch create "a/b"\nbranch list\nbranch delete "a/b"\n'
        "set max_rows = 7; show max_rows;\n"
        "explain query q() { match { $a: Author } return { $a.slug } }\n"
    )
    assert "branch create: a/b\n" in out
    assert "2 rows from branch main via branch list" in out
    assert "branch delete: a/b\n" in out
    assert "7" in out
    assert "via explain" in out
