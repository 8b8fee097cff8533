"""What a server writes to standard error."""

from __future__ import annotations

import json
import time

from tests.server.serving import LIB, library, serving

TOKENS = {"OMNIGRAPH_SERVER_BEARER_TOKENS_JSON": '{"amy": "secret-of-amy"}'}
AMY = {"Authorization": "Bearer secret-of-amy"}


def documents(server, logger, count=1):
    """The documents that a logger has written, once there are so many."""
    deadline = time.monotonic() + 10
    while True:
        found = [json.loads(line) for line in server.log.splitlines()]
        found = [one for one in found if one["logger"] == f"omnigraph.server{logger}"]
        if len(found) >= count:
            return found
        assert time.monotonic() < deadline, server.log
        time.sleep(0.02)


def test_json_logs_have_a_document_per_request_and_no_secret(graph_root, tmp_path):
    with serving(tmp_path, graph_root, "--log-format", "json", env=TOKENS) as server:
        body = {"query": LIB, "name": "by_slug", "params": {"slug": "hidden-value"}}
        answer = server.post("/query?x=hidden-value", body, headers=AMY)
        assert answer.status_code == 200
        server.post("/query", body, headers={"Authorization": "Bearer wrong-secret"})
        given = {**AMY, "X-Request-Id": "from-a-proxy.1"}
        assert (
            server.post("/query", body, headers=given).headers["x-request-id"] == "from-a-proxy.1"
        )
        odd = server.post("/query", body, headers={**AMY, "X-Request-Id": "a b"})
        assert odd.headers["x-request-id"] != "a b"
        first, second, third, _ = documents(server, ".access", 4)
    assert first["request_id"] == answer.headers["x-request-id"]
    known = {"method": "POST", "path": "/query", "route": "query", "status": 200, "actor": "amy"}
    known |= {"graph": "default", "branch": "main", "rows": 0, "level": "info"}
    assert known.items() <= first.items()
    assert 0 < first["seconds"] < 10
    assert (second["status"], "actor" in second) == (401, False)
    assert third["request_id"] == "from-a-proxy.1"
    for secret in ("secret-of-amy", "wrong-secret", "hidden-value"):
        assert secret not in server.log


def test_errors_of_a_request_have_its_id_and_the_stack(tmp_path):
    root = library(tmp_path)
    with serving(tmp_path, root, "--unauthenticated", "--log-format", "json") as server:
        for table in (root / "nodes").rglob("*.lance"):
            table.unlink() if table.is_file() else None
        answer = server.read("all_authors")
        if answer.status_code < 500:
            return
        [failed] = [one for one in documents(server, "") if one["level"] == "error"]
    assert failed["request_id"] == answer.headers["x-request-id"]
    assert "Traceback" in failed["exception"]


def test_slow_queries_are_logged_with_their_plan(graph_root, tmp_path):
    options = ("--unauthenticated", "--log-format", "json", "--slow-query-ms", "0")
    with serving(tmp_path, graph_root, *options) as server:
        assert server.read("by_slug", {"slug": "ada"}).status_code == 200
        assert server.post("/query", {"query": "query b() { nope }"}).status_code == 400
        slow, broken = documents(server, ".slow", 2)
        assert "omnigraph_slow_queries_total 2.0" in server.get("/metrics").text
    assert (slow["query"], slow["branch"], slow["rows"]) == ("by_slug", "main", 1)
    assert any("Author" in line for line in slow["plan"])
    assert "ada" not in json.dumps(slow)
    assert broken["plan"] == []


def test_a_plan_cannot_look_like_a_line_of_the_log(graph_root, tmp_path):
    options = ("--unauthenticated", "--slow-query-ms", "0")
    forged = (
        'query q() { match { $a: Author { slug: "x\\n2030-01-01 forged" } } return { $a.slug } }'
    )
    with serving(tmp_path, graph_root, *options) as server:
        assert server.post("/query", {"query": forged}).status_code == 200
        assert not any(line.startswith("2030") for line in server.log.splitlines())
