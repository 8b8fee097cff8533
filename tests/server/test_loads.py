"""Loads and exports over HTTP."""

from __future__ import annotations

import json

import pytest

import omnigraph as og
from tests.server.serving import SCHEMA, H, lines

NEW = '{"type":"Author","data":{"slug":"new","born":1}}\n'


def ndjson(server, content, query="", **headers):
    given = H | {"Content-Type": "application/x-ndjson"} | headers
    return server.client.post(f"/graphs/default/load/ndjson{query}", content=content, headers=given)


@pytest.mark.acceptance("U-083")
def test_a_load_into_a_missing_branch_needs_its_source(server):
    refused = server.post("/load", {"data": NEW, "branch": "made"})
    assert refused.status_code == 404
    assert "made" in refused.json()["error"]
    assert "from" in refused.json()["error"]
    assert "made" not in server.get("/branches").json()["branches"]
    done = server.post("/load", {"data": NEW, "branch": "made", "from": "main"}).json()
    assert done["branch_created"] is True
    assert done["base_branch"] == "main"
    assert done["mode"] == "merge"
    assert done["tables"] == [{"table_key": "node:Author", "rows_loaded": 1}]
    assert done["actor_id"] is None


@pytest.mark.acceptance("U-084")
def test_an_existing_branch_needs_no_source(server):
    server.branch("there")
    done = server.post("/load", {"data": NEW, "branch": "there", "from": "nonexistent"})
    assert done.status_code == 200
    assert done.json()["branch_created"] is False
    assert done.json()["base_branch"] == "nonexistent"


@pytest.mark.acceptance("U-143")
def test_bad_records_are_all_named(server):
    data = NEW + '{"type":"Author","data":{"slug":"x","born":"old"}}\n{"type":"Nope","data":{}}\n'
    refused = server.post("/load", {"data": data})
    assert refused.status_code == 400
    body = refused.json()
    assert body["load_errors_total"] == 2
    assert [one["record"] for one in body["load_errors"]] == [2, 3]
    assert all(one["code"] for one in body["load_errors"])
    assert "new" not in server.slugs()


def test_the_old_load_route_is_deprecated(server):
    server.branch("old")
    done = server.post("/ingest", {"data": NEW, "branch": "old"})
    assert done.status_code == 200
    assert done.headers["deprecation"] == "true"
    assert done.headers["link"] == '</load>; rel="successor-version"'


def test_a_repeated_load_id_returns_the_first_receipt(server):
    server.branch("repeated")
    body = {"data": NEW, "branch": "repeated", "load_id": "j1"}
    first, again = server.post("/load", body).json(), server.post("/load", body).json()
    assert again["graph_commit_id"] == first["graph_commit_id"]
    assert (first["replayed"], again["replayed"]) == (False, True)
    other = server.post("/load", body | {"mode": "append"})
    assert other.status_code == 409
    assert "already used" in other.json()["error"]
    both = server.post("/load", body, headers={"Idempotency-Key": "other"})
    assert both.status_code == 400


@pytest.mark.parametrize(
    "body",
    [{}, {"data": 7}, {"data": NEW, "mode": "sideways"}, {"data": NEW, "max_errors": 0}],
)
def test_a_load_body_of_the_wrong_shape(server, body):
    assert server.post("/load", body).status_code == 422
    assert server.post13("/load", body).status_code == 400


@pytest.mark.acceptance("U-328")
def test_an_append_of_an_existing_id_names_it(server):
    data = '{"type":"Author","data":{"slug":"ada","born":1}}\n'
    refused = server.post13("/load", {"data": data, "mode": "append"})
    assert refused.status_code == 409
    assert refused.json()["code"] == "conflict"
    assert refused.json()["key_conflict"] == {
        "entity_kind": "node",
        "type_name": "Author",
        "entity_id": "ada",
    }


@pytest.mark.acceptance("U-318", "U-329")
def test_lines_are_one_commit(server):
    server.branch("lines")
    before = server.head("lines")
    content = (
        '\n{"type":"Book","id":"b9","data":{"isbn":"b9","title":"Nine"}}\n\r\n'
        '{"type":"Author","data":{"slug":"zed"}}\n'
        '{"edge":"Wrote","from":"zed","to":"b9"}\n'
        '{"edge":"Cites","id":"c9","from":"b9","to":"b1","data":{}}'
    )
    done = ndjson(server, content.encode(), "?branch=lines")
    assert done.status_code == 200, done.text
    body = done.json()
    assert body["nodes"] == [
        {"name": "Author", "entities_loaded": 1},
        {"name": "Book", "entities_loaded": 1},
    ]
    assert body["edges"] == [
        {"name": "Cites", "entities_loaded": 1},
        {"name": "Wrote", "entities_loaded": 1},
    ]
    assert body["total_entities"] == 4
    assert body["embedding_generation"] is None
    assert "uri" not in body
    assert body["commit"]["parent_commit_id"] == before
    assert body["commit"] == server.get13(f"/commits/{server.head('lines')}").json()


def test_an_empty_batch_commits_nothing(server):
    done = ndjson(server, b"\n\n")
    assert done.status_code == 200
    assert done.json()["commit"] is None
    assert done.json()["total_entities"] == 0


@pytest.mark.acceptance("U-330")
@pytest.mark.parametrize(
    "line",
    [
        '{"type":"Author","data":{"slug":"s"},"extra":1}',
        '{"type":"Author","type":"Author","data":{"slug":"s"}}',
        '{"type":"Author","data":{"slug":"s","slug":"t"}}',
        '{"type":"Author","id":"s","data":{"slug":"s","id":"s"}}',
        '{"type":"Author","id":7,"data":{"slug":"s"}}',
        '{"type":"Author","data":{"slug":"s","colour":"red"}}',
        '{"edge":"Wrote","to":"b1"}',
        '{"edge":"Wrote","from":"ada","to":7}',
        '{"type":"Author","from":"ada","data":{"slug":"s"}}',
        '{"type":"Author","data":[]}',
        '{"data":{}}',
        "[]",
        "{",
        '{"type":"Author","data":{"slug":"s","born":NaN}}',
        '{"type":"Author","data":{"slug":"s"}} {}',
        '{"type":"Nope"}',
    ],
)
def test_lines_are_strict(server, line):
    head = server.head()
    content = f"{NEW}\n{line}\n".encode()
    refused = ndjson(server, content)
    assert refused.status_code == 400, refused.text
    assert "line 3" in refused.text or '"line":3' in refused.text, refused.text
    assert server.head() == head


@pytest.mark.acceptance("U-331", partly="33 MiB is in test_bodies.py")
def test_the_line_route_takes_only_lines(server):
    assert ndjson(server, NEW.encode(), **{"Content-Type": "application/json"}).status_code == 415
    assert ndjson(server, NEW.encode(), "?foo=1").status_code == 400
    assert ndjson(server, NEW.encode(), "?mode=sideways").status_code == 400
    assert ndjson(server, NEW.encode(), "?branch=main&branch=x").status_code == 400


@pytest.mark.acceptance("U-332")
def test_a_missing_branch_at_the_line_route(server):
    assert ndjson(server, NEW.encode(), "?branch=n1").status_code == 404
    done = ndjson(server, NEW.encode(), "?branch=n1&from=main")
    assert done.json()["branch_created"] is True
    assert done.json()["base_branch"] == "main"


# -- exports --------------------------------------------------------------------------------


@pytest.mark.acceptance("U-093")
def test_an_export_is_a_stream_of_lines(server):
    found = server.post("/export", {"type_names": ["Author"]})
    assert found.headers["content-type"] == "application/x-ndjson; charset=utf-8"
    assert found.headers.get("transfer-encoding") == "chunked"
    assert found.text.endswith("\n")
    records = lines(found)
    assert {record["type"] for record in records} == {"Author"}
    assert records[0] == {"type": "Author", "data": {"id": "ada", "born": 1815, "slug": "ada"}}
    assert [record["data"]["id"] for record in records] == sorted(server.slugs())


def test_edges_come_first_and_filters_add_up(server):
    everything = lines(server.post("/export", {}))
    assert "edge" in everything[0]
    assert "type" in everything[-1]
    some = lines(server.post("/export", {"type_names": ["Cites"], "table_keys": ["node:Book"]}))
    assert [one.get("edge") or one["type"] for one in some] == ["Cites", "Book", "Book"]


@pytest.mark.acceptance("U-334")
def test_an_export_of_013_loads_again(server, tmp_path):
    found = server.post13("/export", {})
    records = lines(found)
    [cy] = [one for one in records if one.get("id") == "cy"]
    assert cy == {"type": "Author", "id": "cy", "data": {"slug": "cy"}}
    [cites] = [one for one in records if one.get("edge") == "Cites"]
    assert list(cites) == ["edge", "id", "from", "to", "data"]
    with og.init(tmp_path / "copy.omni", schema=SCHEMA) as graph:
        strict = "".join(
            json.dumps(one | {"data": {"id": one.pop("id"), **one["data"]}}) + "\n"
            for one in records
        )
        graph.load(strict.encode(), "overwrite")
        out = tmp_path / "copy.jsonl"
        graph.export(out)
    assert out.read_text() == server.post("/export", {}).text


@pytest.mark.acceptance("U-336")
def test_an_export_is_refused_before_its_first_byte(server):
    for post in (server.post, server.post13):
        refused = post("/export", {"type_names": ["Nope"]})
        assert refused.status_code == 400
        assert "unknown export type" in refused.json()["error"]
        assert post("/export", {"branch": "nope"}).status_code == 404
    assert server.post("/export", {"table_keys": ["node:Nope"]}).status_code == 400
    assert server.post("/export", {"type_names": None}).status_code == 422


def test_both_places_of_an_id_are_accepted_by_a_load(server):
    server.branch("ids")
    data = '{"type":"Book","id":"i1","data":{"isbn":"i1","title":"T"}}\n'
    for post in (server.post, server.post13):
        done = post("/load", {"data": data, "branch": "ids"})
        assert done.status_code == 200, done.text
    assert server.get("/entities/Book/i1?branch=ids").status_code == 200
