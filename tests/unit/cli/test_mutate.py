"""`omnigraph mutate`: its document, its lines, the ways to name a query, and failures.

What a mutation does to a graph is the business of the engine's own tests.
"""

from __future__ import annotations

import json

import pytest

from tests.unit.cli.conftest import Cli

ADD = ("mutate", "--query", "lib.gq", "--name", "add_author")
DEE = '{"slug": "dee", "born": 1990}'


def history(cli: Cli, uri: str) -> list[str]:
    return cli("commit", "list", uri).out.splitlines()


def authors(cli: Cli, uri: str) -> set[str]:
    lines = cli("export", "--type", "Author", uri).out.splitlines()
    return {json.loads(line)["data"]["slug"] for line in lines}


@pytest.mark.acceptance("U-019")
def test_the_document_of_a_mutation(cli, full):
    code, out, err = cli(*ADD, "--uri", full, "--params", DEE, "--json")
    assert (code, err) == (0, "")
    document = json.loads(out)
    head = history(cli, full)[-1].split()[0]
    assert document == {
        "branch": "main",
        "query_name": "add_author",
        "affected_nodes": 1,
        "affected_edges": 0,
        "actor_id": None,
        "commit": {
            "graph_commit_id": head,
            "graph_branch": None,
            "graph_manifest_version": 3,
            "parent_commit_id": document["parent_commit_id"],
            "merged_parent_commit_id": None,
            "actor_id": None,
            "created_at": document["commit"]["created_at"],
        },
        "graph_commit_id": head,
        "parent_commit_id": document["parent_commit_id"],
        "manifest_version": 3,
        "operation": "mutate",
        "counts": {"node:Author": {"inserted": 1, "updated": 0, "deleted": 0}},
    }
    assert authors(cli, full) == {"ada", "bob", "cy", "dee"}


@pytest.mark.acceptance("U-138")
def test_the_commit_of_a_mutation_shows_what_its_receipt_said(cli, full):
    done = json.loads(cli(*ADD, full, "--params", DEE, "--json").out)
    shown = cli("commit", "show", "--uri", full, done["graph_commit_id"], "--json")
    commit = json.loads(shown.out)
    assert commit["graph_commit_id"] == done["graph_commit_id"]
    assert commit["counts"] == done["counts"]
    assert commit["operation"] == done["operation"] == "mutate"


def test_the_lines_for_people_end_with_the_commit(cli, full):
    code, out, err = cli("--as", "ada", *ADD, full, "--params", DEE)
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        "changed main via add_author: 1 node, 0 edges",
        "actor_id: ada",
        f"commit {history(cli, full)[-1].split()[0]}",
    ]


@pytest.mark.acceptance("U-139")
def test_a_mutation_without_effect_makes_no_commit(cli, full):
    before = history(cli, full)
    set_born = ("mutate", "--query", "lib.gq", "--name", "set_born", full)
    code, out, _ = cli(*set_born, "--params", '{"slug": "nobody", "born": 1}', "--json")
    assert code == 0
    document = json.loads(out)
    assert (document["affected_nodes"], document["graph_commit_id"]) == (0, None)
    assert history(cli, full) == before
    lines = cli(*set_born, "--params", '{"slug": "nobody", "born": 1}').out.splitlines()
    assert lines == ["changed main via set_born: 0 nodes, 0 edges"]


@pytest.mark.acceptance("U-163")
def test_insert_and_delete_are_one_commit(cli, full):
    query = 'query q() { insert Author { slug: "dee" }  delete Author where slug = "bob" }'
    before = len(history(cli, full))
    code, out, _ = cli("mutate", full, "-e", query, "--json")
    assert code == 0
    document = json.loads(out)
    assert (document["affected_nodes"], document["affected_edges"]) == (2, 1)
    assert len(history(cli, full)) == before + 1
    assert authors(cli, full) == {"ada", "cy", "dee"}


@pytest.mark.acceptance("U-140", partly="no server")
def test_a_mutation_may_insist_on_the_head_it_knows(cli, full):
    head = history(cli, full)[-1].split()[0]
    assert cli(*ADD, full, "--params", DEE, "--expect-head", head).code == 0
    moved = history(cli, full)[-1].split()[0]
    code, out, err = cli(*ADD, full, "--params", DEE, "--expect-head", head)
    assert (code, out) == (1, "")
    assert head in err
    assert moved in err


@pytest.mark.acceptance("U-020")
def test_a_bad_parameter_is_named_and_changes_nothing(cli, full):
    before = history(cli, full)
    code, out, err = cli(*ADD, full, "--params", '{"slug": "dee", "born": "x"}')
    assert (code, out) == (1, "")
    assert "param 'born'" in err
    assert history(cli, full) == before


def test_an_undeclared_parameter_is_refused_as_a_bad_one(cli, full):
    before = history(cli, full)
    code, out, err = cli(*ADD, full, "--params", '{"slug": "dee", "borm": 1970}')
    assert (code, out) == (1, "")
    assert "unknown parameter 'borm' (declared: slug, born); did you mean `born`?" in err
    assert "--params and --params-file take a JSON object" in err
    assert history(cli, full) == before


def test_the_old_spelling_still_works(cli, full):
    code, out, err = cli("change", *ADD[1:], full, "--params", DEE)
    assert code == 0
    assert out.startswith("changed main via add_author")
    assert err == "warning: `omnigraph change` is deprecated; use `omnigraph mutate` instead\n"


def test_parameters_may_come_from_a_file(cli, full, library):
    (library / "p.json").write_text(DEE)
    assert cli(*ADD, full, "--params-file", "p.json").code == 0
    assert "dee" in authors(cli, full)


def test_a_mutation_goes_to_the_branch_that_is_named(cli, full):
    cli("branch", "create", "--uri", full, "draft")
    out = cli(*ADD, full, "--branch", "draft", "--params", DEE, "-m", "one more").out
    assert out.startswith("changed draft via add_author")
    assert "dee" not in authors(cli, full)


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        ((), 1, "exactly one of --query, --query-string, or --alias must be provided"),
        (("-e", " "), 1, "must not be empty"),
        (("--query", "lib.gq", "-e", "query q() {}"), 2, "exclusive"),
        (("--query", "gone.gq"), 1, "query file 'gone.gq' not found"),
        (("--query", "lib.gq"), 1, "multiple queries; pass --name"),
        (("--query", "lib.gq", "--name", "nope"), 1, "query 'nope' not found"),
        (("--query", "lib.gq", "--name", "by_slug"), 1, "run it with `query`"),
        (("--query", "lib.gq", "--name", "add_author"), 1, "'slug' not provided"),
        ((*ADD[1:], "--params", "[]"), 1, "params JSON must be an object"),
        ((*ADD[1:], "--params", "{"), 1, "not JSON"),
        ((*ADD[1:], "--params-file", "gone.json"), 1, "gone.json"),
        ((*ADD[1:], "--params", "{}", "--params-file", "p.json"), 2, "exclusive"),
        ((*ADD[1:], "--uri", "G"), 2, "given twice"),
    ],
)
def test_a_query_that_cannot_be_run_says_why(cli, full, options, code, message):
    outcome = cli("mutate", full, *options)
    assert (outcome.code, outcome.out) == (code, "")
    assert message in outcome.err


def test_a_row_that_breaks_a_rule_is_told_in_one_line(cli, full):
    query = 'query q() { insert Wrote { from: "zed", to: "b1" } }'
    assert cli("mutate", full, "-e", query) == (
        1,
        "",
        "error[OG-D-002]: edge Wrote: src 'zed' not found in Author\n",
    )


def test_a_key_makes_a_repeated_call_harmless(cli, full):
    keyed = (*ADD, full, "--params", DEE, "--idempotency-key", "form-7")
    first = cli(*keyed, "--json")
    code, out, err = cli(*keyed, "--json")
    assert (first.code, code) == (0, 0)
    assert json.loads(out) == {**json.loads(first.out), "replayed": True}
    assert "an earlier call with this idempotency key made the commit" in err
    other = cli(*ADD, full, "--params", '{"slug": "eli", "born": 1}', "--idempotency-key", "form-7")
    assert other.code == 1
    assert "idempotency key 'form-7' was already used" in other.err


def test_a_reserved_actor_is_refused(cli, full):
    code, _, err = cli("--as", "omnigraph:recovery", *ADD, full, "--params", DEE)
    assert code == 1
    assert "is reserved" in err
