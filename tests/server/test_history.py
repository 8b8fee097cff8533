"""Commits, schema, snapshot, status, diffs and entities over HTTP."""

from __future__ import annotations

import pytest

from tests.server.serving import SCHEMA, library, lines, serving


def test_the_snapshot_lists_tables(server):
    document = server.get("/snapshot").json()
    assert document["branch"] == "main"
    keys = [table["table_key"] for table in document["tables"]]
    assert keys == ["edge:Cites", "edge:Wrote", "node:Author", "node:Book"]
    authors = document["tables"][2]
    assert authors["row_count"] == len(server.slugs())
    assert set(authors) == {"table_key", "table_path", "table_version", "table_branch", "row_count"}
    new = server.get13("/snapshot").json()
    assert new["graph_branch"] == "main"
    assert new["graph_manifest_version"] == document["manifest_version"]
    assert new["datasets"][2] == {
        "entity_kind": "node",
        "type_name": "Author",
        "entity_count": authors["row_count"],
        "dataset_path": authors["table_path"],
        "published_dataset_version": authors["table_version"],
        "native_dataset_branch": None,
    }
    assert server.get("/snapshot?branch=nope").status_code == 404
    assert server.get("/snapshot?branch=").status_code == 400


def test_the_schema(server):
    assert server.get("/schema").json() == {"schema_source": SCHEMA}
    new = server.get13("/schema").json()
    assert new["system_columns"] == {"id": "id", "src": "src", "dst": "dst"}


@pytest.mark.acceptance("U-094")
def test_an_unknown_commit(server):
    for get in (server.get, server.get13):
        refused = get("/commits/bogus")
        assert (refused.status_code, refused.json()["code"]) == (404, "not_found")
        assert "bogus" in refused.json()["error"]


@pytest.mark.acceptance("U-340")
def test_the_order_of_commits(server):
    server.mutate("add_author", {"slug": "order", "born": 1})
    old = [one["graph_commit_id"] for one in server.get("/commits").json()["commits"]]
    new = [one["graph_commit_id"] for one in server.get13("/commits").json()["commits"]]
    assert len(old) >= 3
    assert new == old[::-1]
    assert new[0] == server.head()
    versions = [one["manifest_version"] for one in server.get("/commits").json()["commits"]]
    assert versions == sorted(versions)
    one = server.get(f"/commits/{new[0]}").json()
    assert one["operation"] == "mutate"
    assert one["counts"] == {"node:Author": {"inserted": 1, "updated": 0, "deleted": 0}}
    assert server.get("/commits?branch=nope").status_code == 404


@pytest.mark.acceptance("U-147", partly="the command")
def test_a_diff_between_branches(server):
    server.branch("feature")
    server.mutate("add_author", {"slug": "dee", "born": 1990}, branch="feature")
    server.mutate("set_born", {"slug": "ada", "born": 1}, branch="feature")
    found = server.post("/diff", {"from": "main", "to": "feature", "rows": True}).json()
    assert [(one["id"], one["op"]) for one in found["changes"]] == [
        ("ada", "update"),
        ("dee", "insert"),
    ]
    assert found["changes"][0]["before"]["born"] == 1815
    assert found["stats"]["inserts"] == 1
    first = server.post("/diff", {"from": "main", "to": "feature", "limit": 1}).json()
    assert [one["id"] for one in first["changes"]] == ["ada"]
    cursor = {"cursor": first["next_cursor"]}
    rest = server.post("/diff", {"from": "main", "to": "feature"} | cursor).json()
    assert [one["id"] for one in rest["changes"]] == ["dee"]
    assert rest["next_cursor"] is None
    assert server.post("/diff", {"from": "main", "to": "nope"}).status_code == 404
    assert server.post("/diff", {"from": "main", "to": "main", "cursor": "?"}).status_code == 400
    assert server.post("/diff", {"from": "main"}).status_code == 422


@pytest.mark.acceptance("U-148", partly="the command")
def test_changes_after_a_cursor(server):
    server.branch("feed")
    everything = server.get("/changes?branch=feed").json()
    assert everything["commits"][0]["operation"] == "init"
    assert everything["at_head"] is True
    server.mutate("add_author", {"slug": "fed", "born": 1}, branch="feed")
    cursor = everything["next_cursor"]
    found = server.get(f"/changes?branch=feed&since={cursor}&rows=true").json()
    [commit] = found["commits"]
    assert [one["id"] for one in commit["changes"]] == ["fed"]
    assert commit["changes"][0]["after"]["born"] == 1
    nothing = server.get(f"/changes?branch=feed&since={found['next_cursor']}").json()
    assert (nothing["commits"], nothing["next_cursor"]) == ([], found["next_cursor"])
    for bad in ("since=c1.x", "limit=0", "limit=x", "rows=maybe", "branch=a&branch=b"):
        assert server.get(f"/changes?{bad}").status_code == 400, bad


@pytest.mark.acceptance("U-149", partly="the command")
def test_the_status(server):
    document = server.get("/status").json()
    assert document["recovery"]["pending"] == 0
    rows = {table["table_key"]: table["rows"] for table in document["tables"]}
    assert rows["node:Book"] == 2
    assert server.get("/status?branch=nope").status_code == 404


def test_one_entity_and_its_history(server):
    server.branch("life")
    server.mutate("set_born", {"slug": "bob", "born": 1}, branch="life")
    found = server.get("/entities/Author/bob?branch=life").json()
    assert found["properties"] == {"slug": "bob", "born": 1}
    assert found["graph_commit_id"] == server.head("life")
    history = server.get("/entities/Author/bob/history?branch=life").json()["changes"]
    assert [one["op"] for one in history] == ["insert", "update"]
    assert history[1]["before"]["born"] == 1970
    [edge] = lines(server.post("/export", {"type_names": ["Cites"]}))
    found = server.get(f"/entities/Cites/{edge['data']['id']}").json()
    assert found["endpoints"] == {"from": "b2", "to": "b1"}
    assert server.get("/entities/Author/nobody").status_code == 404
    assert server.get("/entities/Nope/x").status_code == 404
    assert server.get("/entities/Author/ada?branch=main&snapshot=x").status_code == 400


@pytest.mark.acceptance("U-161", partly="a server with tokens")
def test_metrics(server):
    server.get("/snapshot")
    found = server.get("/metrics")
    assert found.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert 'omnigraph_requests_total{route="getSnapshot",status="200"}' in found.text
    assert "omnigraph_request_seconds_bucket" in found.text
    assert "omnigraph_open_graphs 1" in found.text
    assert "omnigraph_http_api" not in found.headers
    assert 'graph="' not in found.text


@pytest.mark.acceptance("U-095")
def test_schema_changes(tmp_path):
    with serving(tmp_path, library(tmp_path), "--unauthenticated") as server:
        same = server.post("/schema/apply", {"schema_source": SCHEMA}).json()
        assert (same["supported"], same["applied"], same["step_count"]) == (True, False, 0)
        wider = SCHEMA.replace("born: I32?", "born: I32?\n    nickname: String?")
        refused = server.post(
            "/schema/apply", {"schema_source": SCHEMA.replace("born: I32?", "born: Bool?")}
        )
        assert (refused.status_code, refused.json()["code"]) == (400, "bad_request")
        assert server.post("/schema/apply", {"schema_source": "node"}).status_code == 400
        assert server.post("/schema/apply", {"schema_source": "x.pg"}).status_code == 400
        server.branch("other")
        busy = server.post("/schema/apply", {"schema_source": wider})
        assert (busy.status_code, busy.json()["code"]) == (409, "conflict")
        assert server.client.delete("/branches/other").status_code == 200
        done = server.post("/schema/apply", {"schema_source": wider}).json()
        assert (done["applied"], done["steps"][0]["kind"]) == (True, "add_property")
        assert server.get("/schema").json()["schema_source"] == wider
