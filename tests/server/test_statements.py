"""Branch statements in place of a query."""

from __future__ import annotations

import pytest

from omnigraph.api.statements import branch_statement
from omnigraph.errors import ParseError
from omnigraph.language.query.file_statements import BranchAction, BranchStatement


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("branch list", BranchStatement(BranchAction.LIST)),
        (" // all\nbranch\tlist ;\n", BranchStatement(BranchAction.LIST)),
        ("branch create x", BranchStatement(BranchAction.CREATE, "x")),
        ('branch create "a/b" from main;', BranchStatement(BranchAction.CREATE, "a/b", "main")),
        ("/* gone */ branch delete x", BranchStatement(BranchAction.DELETE, "x")),
        ('branch merge x into "y z"', BranchStatement(BranchAction.MERGE, "x", "y z")),
        ("query branch() { match { $a: A } return { $a } }", None),
        ("branches", None),
        ("", None),
    ],
)
def test_a_statement_is_recognised(text, found):
    assert branch_statement(text) == found


@pytest.mark.parametrize(
    "text",
    ["branch", "branch drop x", "branch create", "branch create a/b", "branch list query q() {}",
     'branch create "a', "branch delete x y", "branch list; branch list", "branch create x into y"],
)  # fmt: skip
def test_a_broken_statement_is_refused(text):
    with pytest.raises(ParseError):
        branch_statement(text)


@pytest.mark.acceptance("U-321")
def test_branches_as_rows(server):
    server.branch("one")
    found = server.post13("/query", {"query": "branch list"}).json()
    assert found["columns"] == ["name"]
    assert {"name": "one"} in found["rows"]
    assert found["rows"] == sorted(found["rows"], key=lambda row: row["name"])
    assert server.post13("/mutate", {"query": "branch list"}).status_code == 400
    for name, value in (("branch", "main"), ("name", "q"), ("params", {}), ("snapshot", "x")):
        assert server.post13("/query", {"query": "branch list", name: value}).status_code == 400
    assert server.post("/query", {"query": "branch list"}).status_code == 400


@pytest.mark.acceptance("U-322")
def test_branch_statements_as_mutations(server):
    made = server.post13("/mutate", {"query": 'branch create "x/y"'}).json()
    assert made["outcome"] == {"kind": "created", "name": "x/y", "from": "main"}
    assert (made["branch"], made["query_name"]) == ("x/y", "branch create")
    assert (made["commit"], made["affected_nodes"], made["affected_edges"]) == (None, 0, 0)
    inserted = server.mutate("add_author", {"slug": "stm", "born": 1}, branch="x/y").json()
    merged = server.post13("/mutate", {"query": 'branch merge "x/y" into main'}).json()
    assert merged["outcome"] == {
        "kind": "merged",
        "source": "x/y",
        "target": "main",
        "merge": "fast_forward",
    }
    assert merged["commit"]["merged_parent_commit_id"] == inserted["graph_commit_id"]
    listed = server.get13(f"/commits/{merged['commit']['graph_commit_id']}").json()
    assert merged["commit"] == listed
    gone = server.post13("/mutate", {"query": 'branch delete "x/y"'}).json()
    assert gone["outcome"] == {"kind": "deleted", "name": "x/y"}
    assert gone["commit"] is None
    assert server.post13("/mutate", {"query": "branch delete nope"}).status_code == 404
    assert server.post13("/mutate", {"query": "branch create x", "branch": "y"}).status_code == 400
    assert server.post13("/query", {"query": "branch create x"}).status_code == 400
    conditional = server.post13(
        "/mutate/if-graph-commit", {"query": "branch create x"}, omnigraph_if_graph_commit="01X"
    )
    assert conditional.status_code == 400
    assert "x" not in server.get("/branches").json()["branches"]


def test_a_broken_statement_says_where(server):
    for post in (server.post, server.post13):
        answer = post("/mutate", {"query": "branch crate x"})
        assert answer.status_code == 400
        (found,) = answer.json()["diagnostics"]
        assert (found["column"], found["hint"]) == (8, "did you mean `create`?")


def test_a_repeated_merge_statement_returns_its_first_outcome(server):
    server.branch("keyed")
    server.mutate("add_author", {"slug": "keyed", "born": 1}, branch="keyed")
    body = {"query": "branch merge keyed"}
    first = server.post13("/mutate", body, idempotency_key="merge-once").json()
    server.mutate("add_author", {"slug": "keyed-2", "born": 1}, branch="keyed")
    again = server.post13("/mutate", body, idempotency_key="merge-once").json()
    assert again["commit"] == first["commit"]
    assert server.post13("/mutate", body).json()["commit"] != first["commit"]
