"""Routes beyond both contracts: commits applied elsewhere, tags, scans, filters, plans."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tests.server.serving import LIB, H

AUTHOR = {"query": LIB, "name": "add_author", "params": {"slug": "new", "born": 1}}


@pytest.mark.parametrize("contract", ["0.7", "0.13"])
def test_a_commit_is_picked_and_reverted_elsewhere(server, contract):
    prefix, headers = ("", {}) if contract == "0.7" else ("/graphs/default", H)
    source, target = (server.branch(f"{side}{contract}") for side in ("from", "to"))
    made = server.post("/mutate", AUTHOR | {"branch": source}).json()["graph_commit_id"]
    body = {"ref": made, "branch": target, "message": "picked"}
    picked = server.post(f"{prefix}/cherry-pick", body, headers=headers)
    assert picked.status_code == 200, picked.text
    document = picked.json()
    assert (document["branch"], document["source_commit_id"]) == (target, made)
    assert document["counts"] == {"node:Author": {"inserted": 1, "updated": 0, "deleted": 0}}
    assert "new" in server.slugs(target)
    body = {"ref": document["graph_commit_id"], "branch": target, "dry_run": True}
    dry = server.post(f"{prefix}/revert", body, headers=headers).json()
    assert (dry["dry_run"], dry["conflicts"], dry["graph_commit_id"]) == (True, [], None)
    reverted = server.post(f"{prefix}/revert", body | {"dry_run": False}, headers=headers)
    assert reverted.json()["operation"] == "revert"
    assert "new" not in server.slugs(target)
    reset = server.post(f"{prefix}/branches/{target}/reset", {"ref": source}, headers=headers)
    assert reset.json()["source_commit_id"] == made
    assert "new" in server.slugs(target)


def test_an_idempotency_key_repeats_nothing(server):
    branch = server.branch("keyed")
    made = server.post("/mutate", AUTHOR | {"branch": branch}).json()["graph_commit_id"]
    key = {"Idempotency-Key": "revert-once"}
    first, again = (
        server.post("/revert", {"ref": made, "branch": branch}, headers=key).json()
        for _ in range(2)
    )
    assert again["graph_commit_id"] == first["graph_commit_id"]
    assert again["replayed"] is True


def test_a_tag_is_created_listed_and_deleted(server):
    made = server.post("/tags", {"name": "v1"})
    assert made.status_code == 200, made.text
    assert made.json()["graph_commit_id"] == server.head()
    assert server.post("/tags", {"name": "v1"}).status_code == 409
    assert "v1" in [tag["name"] for tag in server.get("/tags").json()["tags"]]
    assert server.client.delete("/tags/v1").json()["name"] == "v1"
    assert server.client.delete("/tags/v1").status_code == 404
    assert server.post("/tags", {"name": "v 1"}).status_code == 400
    assert server.post("/tags", {"name": "v1", "ref": "nope"}).status_code == 404


def test_a_scan_is_an_arrow_stream(server):
    found = server.post("/scan", {"type": "Author", "columns": ["slug"], "where": "born = 1815"})
    assert found.headers["content-type"] == "application/vnd.apache.arrow.stream"
    with pa.ipc.open_stream(found.content) as stream:
        assert stream.read_all().to_pylist() == [{"slug": "ada"}]
    assert server.post("/scan", {"type": "Nobody"}).status_code == 404
    assert server.post("/scan", {"type": "Author", "columns": ["x"]}).status_code == 404
    assert server.post("/scan", {"type": "Author", "where": "x ="}).status_code == 400
    both = {"type": "Author", "branch": "main", "snapshot": "main"}
    assert server.post("/scan", both).status_code == 400


def test_a_budget_lowers_the_limits_of_the_server(server):
    body = {"query": LIB, "name": "all_authors", "budget": {"max_rows": 1}}
    refused = server.post("/query", body)
    assert (refused.status_code, refused.json()["exception"]["type"]) == (
        400,
        "QueryBudgetExceeded",
    )
    body["budget"] = {"max_rows": 2**60, "max_bytes": None, "timeout_s": 1e6}
    assert server.post("/query", body).status_code == 200


def test_commits_are_filtered(server):
    def ids(**query):
        found = server.get("/commits", params=query)
        assert found.status_code == 200, found.text
        return [one["graph_commit_id"] for one in found.json()["commits"]]

    everything = ids()
    assert ids(limit=1) == everything[-1:]
    assert ids(limit=1, reverse="true") == everything[:1]
    assert ids(number=1) == everything[:1]
    assert ids(operation="init") == everything[:1]
    assert ids(since=everything[-1]) == everything[-1:]
    assert ids(until="@0") == []
    assert ids(actor="nobody") == []
    assert server.get("/commits", params={"limit": "x"}).status_code == 400
    assert server.get("/commits", params={"number": "999"}).status_code == 404


def test_a_plan_changes_nothing(server):
    source = server.get("/schema").json()["schema_source"]
    plan = server.post("/schema/plan", {"schema_source": source + "\nnode City { n: I32 @key }"})
    assert plan.json() == {
        "supported": True,
        "step_count": 1,
        "steps": [{"kind": "add_type", "type_kind": "node", "name": "City"}],
    }
    assert server.get("/schema").json()["schema_source"] == source
    assert server.post("/schema/plan", {"schema_source": "node {"}).status_code == 400


def test_the_caller_of_an_open_server_is_nobody(server):
    assert server.get("/caller").json() == {"actor_id": None}


@pytest.mark.parametrize(
    "body",
    [
        {"typed_params": {"slug": {"@date": "x"}}},
        {"typed_params": {"slug": "ada"}, "params": {"slug": "ada"}},
    ],
)
def test_typed_parameters_that_are_not_valid_are_refused(server, body):
    found = server.post("/query", {"query": LIB, "name": "by_slug"} | body)
    assert found.status_code == 400


@pytest.mark.parametrize("content", [b"", b"{}", b"\x81\xa5parts\xc0", b"\xc1"])
def test_a_load_of_broken_parts_is_refused(server, content):
    before = server.head()
    headers = {"Content-Type": "application/msgpack"}
    found = server.client.post("/load/parts", content=content, headers=headers)
    assert found.status_code == 400
    assert server.head() == before
