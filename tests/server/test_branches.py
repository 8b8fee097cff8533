"""Branches and merges over HTTP."""

from __future__ import annotations

import pytest


def set_born(server, branch, born, slug="ada"):
    done = server.mutate("set_born", {"slug": slug, "born": born}, branch=branch)
    assert done.status_code == 200, done.text
    return done.json()["graph_commit_id"]


@pytest.mark.acceptance("U-085")
def test_a_branch_exists_once(server):
    made = server.post("/branches", {"name": "twice"})
    assert made.status_code == 200
    assert made.json()["name"] == "twice"
    assert made.json()["from"] == "main"
    assert made.json()["actor_id"] is None
    again = server.post("/branches", {"name": "twice"})
    assert (again.status_code, again.json()["code"]) == (409, "conflict")
    assert server.post("/branches", {"name": "x", "from": "nope"}).status_code == 404


@pytest.mark.acceptance("U-086")
def test_a_name_with_a_slash_is_one_path_segment(server):
    server.branch("a/b")
    assert server.client.delete("/branches/a/b").status_code == 404
    deleted = server.client.delete("/branches/a%2Fb")
    assert deleted.status_code == 200
    assert deleted.json()["name"] == "a/b"
    assert "a/b" not in server.get("/branches").json()["branches"]


@pytest.mark.acceptance("U-087")
def test_branches_that_cannot_be_deleted(server):
    assert server.client.delete("/branches/nope").status_code == 404
    refused = server.client.delete("/branches/main")
    assert (refused.status_code, refused.json()["code"]) == (400, "bad_request")


@pytest.mark.parametrize(
    "name", ["../../etc", "__internal", "a//b", "a%2F..%2Fb", "x\0y", " ", "a\\b", ".hidden"]
)
def test_hostile_names_create_nothing(server, name):
    before = server.get("/branches").json()
    answer = server.post("/branches", {"name": name})
    assert answer.status_code in (200, 400), answer.text
    if answer.status_code == 200:
        path = "/branches/" + "".join(f"%{byte:02x}" for byte in name.encode())
        assert server.client.delete(path).status_code == 200
    assert server.get("/branches").json() == before


def test_encoded_traversal_in_a_path_is_a_name(server):
    for path in ("/branches/..%2F..%2Fmain", "/branches/%2e%2e", "/branches/%00", "/branches/%ff"):
        assert server.client.delete(path).status_code in (400, 404)
    assert server.get("/commits/..%2F..%2Fschema.pg").status_code in (400, 404)
    assert server.get("/entities/Author/..%2F..%2Fx").status_code == 404


@pytest.mark.acceptance("U-088")
def test_a_conflict_names_its_row(server):
    server.branch("ours")
    server.branch("theirs", "ours")
    set_born(server, "ours", 1)
    set_born(server, "theirs", 2)
    head = server.head("ours")
    refused = server.post("/branches/merge", {"source": "theirs", "target": "ours"})
    assert (refused.status_code, refused.json()["code"]) == (409, "conflict")
    assert refused.json()["error"].startswith("merge conflicts:")
    [conflict] = refused.json()["merge_conflicts"]
    assert conflict["table_key"] == "node:Author"
    assert conflict["row_id"] == "ada"
    assert conflict["kind"] == "divergent_update"
    assert server.head("ours") == head


@pytest.mark.acceptance("U-338")
def test_a_conflict_of_013_names_its_entity(server):
    server.branch("ours13")
    server.branch("theirs13", "ours13")
    set_born(server, "ours13", 1)
    set_born(server, "theirs13", 2)
    refused = server.post13("/branches/merge", {"source": "theirs13", "target": "ours13"})
    assert refused.status_code == 409
    [conflict] = refused.json()["merge_conflicts"]
    message = conflict.pop("message")
    assert "ada" in message or message
    assert conflict == {
        "entity_kind": "node",
        "type_name": "Author",
        "entity_id": "ada",
        "kind": "divergent_update",
    }


def test_a_dry_run_lists_conflicts_and_writes_nothing(server):
    server.branch("dry")
    server.branch("wet", "dry")
    set_born(server, "dry", 1)
    set_born(server, "wet", 2)
    head = server.head("dry")
    body = {"source": "wet", "target": "dry"}
    planned = server.post("/branches/merge", body | {"dry_run": True})
    assert planned.status_code == 200
    assert planned.json()["dry_run"] is True
    assert planned.json()["conflicts_total"] == 1
    assert server.head("dry") == head
    taken = [{"table_key": "node:Author", "row_id": "ada", "take": "theirs"}]
    merged = server.post("/branches/merge", body | {"resolutions": taken})
    assert merged.json()["outcome"] == "merged"
    found = server.read("by_slug", {"slug": "ada"}, branch="dry")
    assert found.json()["rows"] == [{"a.slug": "ada", "a.born": 2}]


def test_merges_that_are_not_possible(server):
    same = server.post("/branches/merge", {"source": "main"})
    assert same.status_code == 400
    assert server.post("/branches/merge", {"source": "nope"}).status_code == 404
    assert server.post("/branches/merge", {}).status_code == 422
    assert server.post("/branches/merge", {"source": "x", "strategy": "coin"}).status_code in (
        400,
        404,
    )


@pytest.mark.acceptance("U-318", "U-337")
def test_a_fast_forward_has_its_own_commit(server):
    server.branch("target")
    server.branch("ahead", "target")
    inserted = server.mutate("add_author", {"slug": "ff", "born": 1}, branch="ahead").json()
    merged = server.post13("/branches/merge", {"source": " ahead ", "target": "target"}).json()
    assert (merged["source"], merged["target"]) == ("ahead", "target")
    assert merged["outcome"] == "fast_forward"
    commit = merged["commit"]
    assert commit["graph_branch"] == "target"
    assert commit["merged_parent_commit_id"] == inserted["graph_commit_id"]
    assert commit["parent_commit_id"] is not None
    assert server.get13(f"/commits/{commit['graph_commit_id']}").json() == commit
    again = server.post13("/branches/merge", {"source": "ahead", "target": "target"}).json()
    assert (again["outcome"], again["commit"]) == ("already_up_to_date", None)
    assert "branch_deleted" not in again


@pytest.mark.acceptance("U-339", partly="a denied delete")
def test_the_source_is_deleted_if_asked_for(server):
    server.branch("gone")
    server.mutate("add_author", {"slug": "gone", "born": 1}, branch="gone")
    merged = server.post13("/branches/merge", {"source": "gone", "delete_branch": True})
    assert merged.json()["branch_deleted"] is True
    assert "branch_delete_error_details" not in merged.json()
    assert "gone" not in server.get("/branches").json()["branches"]


def test_a_delete_that_fails_does_not_undo_the_merge(server):
    server.branch("base")
    server.mutate("add_author", {"slug": "kept", "born": 1}, branch="base")
    server.branch("leaf", "base")
    server.mutate("add_author", {"slug": "leaf", "born": 1}, branch="leaf")
    merged = server.post13("/branches/merge", {"source": "base", "delete_branch": True})
    assert merged.status_code == 200
    if not merged.json()["branch_deleted"]:
        assert merged.json()["branch_delete_error_details"]["code"] == "conflict"
    assert "kept" in server.slugs()


def test_merge_statements_in_a_query_are_not_run_as_reads(server):
    head = server.head()
    refused = server.post13("/query", {"query": "branch delete x", "name": None})
    assert refused.status_code == 400
    assert server.head() == head
