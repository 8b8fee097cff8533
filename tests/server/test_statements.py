"""Branch statements in place of a query."""

from __future__ import annotations

import pytest

from omnigraph.server.problems import HttpProblem
from omnigraph.server.statements import BranchStatement, branch_statement


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("branch list", BranchStatement("list")),
        (" // all\nbranch\tlist ;\n", BranchStatement("list")),
        ("branch create x", BranchStatement("create", "x")),
        ('branch create "a/b" from main;', BranchStatement("create", "a/b", "main")),
        ("/* gone */ branch delete x", BranchStatement("delete", "x")),
        ('branch merge x into "y z"', BranchStatement("merge", "x", "y z")),
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
    with pytest.raises(HttpProblem):
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
