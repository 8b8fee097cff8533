"""Which contract a request gets, and the errors that every path has."""

from __future__ import annotations

import time

import pytest

from tests.server.serving import LIB, H, library, serving

MISMATCH = "exactly one omnigraph-http-api header with value 0.13 is required"
READ = {"query": LIB, "name": "all_authors"}
WRITE = {"query": LIB, "name": "add_author", "params": {"slug": "no", "born": 1}}


@pytest.mark.acceptance("U-064", partly="a server with a policy")
@pytest.mark.acceptance("U-302")
def test_public_routes_are_stamped(server):
    for path in ("/healthz", "/readyz", "/openapi.json"):
        for method in ("GET", "HEAD"):
            found = server.client.request(method, path)
            assert found.status_code == 200, (method, path)
            assert found.headers["omnigraph-http-api"] == "0.13"
            assert (found.content == b"") == (method == "HEAD")
            assert int(found.headers["content-length"]) > 2
    assert server.get("/healthz").headers["cache-control"] == "no-store"
    wrong = server.get("/healthz", headers={"Omnigraph-Http-Api": "9"})
    assert wrong.status_code == 200


@pytest.mark.acceptance("U-301")
def test_answers_without_the_header_are_not_stamped(server):
    for response in (server.get("/snapshot"), server.get("/nope"), server.post("/query", READ)):
        assert "omnigraph-http-api" not in response.headers


@pytest.mark.acceptance("U-303", partly="304, 401, 403, 413, 429 and 500")
def test_every_answer_under_the_header_is_stamped(server):
    answers = {
        200: server.get13("/snapshot"),
        404: server.get("/no/such/path", headers=H),
        405: server.client.delete("/graphs/default/snapshot", headers=H),
        415: server.client.post("/graphs/default/query", content=b"{}", headers=H),
        400: server.post13("/query", {}),
    }
    for status, answer in answers.items():
        assert answer.status_code == status
        assert answer.headers["omnigraph-http-api"] == "0.13"
        assert answer.headers["vary"] == "Omnigraph-Http-Api"
    with server.client.stream("POST", "/graphs/default/export", json={}, headers=H) as stream:
        assert stream.headers["omnigraph-http-api"] == "0.13"


@pytest.mark.acceptance("U-304")
@pytest.mark.parametrize(
    "values", [["0.12"], [""], ["0.13", "0.13"], ["0.13, 0.13"], ["0.130"], ["v0.13"]]
)
def test_another_version_executes_nothing(server, values):
    head = server.head()
    headers = [("omnigraph-http-API", value) for value in values]
    for path in ("/graphs/default/mutate", "/mutate"):
        refused = server.post(path, WRITE, headers=headers)
        assert refused.status_code == 400
        assert refused.json() == {"error": MISMATCH, "code": "api_contract_mismatch"}
        assert refused.headers["omnigraph-http-api"] == "0.13"
    assert server.head() == head


@pytest.mark.acceptance("U-305", partly="a wrong token")
def test_the_version_is_checked_before_graph_and_body(server):
    wrong = {"Omnigraph-Http-Api": "0.12"}
    for path in ("/graphs/nope/mutate", "/graphs/default/mutate"):
        refused = server.client.post(path, content=b"{", headers=wrong)
        assert refused.json()["code"] == "api_contract_mismatch"


@pytest.mark.acceptance("U-307", "U-097")
def test_paths_of_a_server_for_one_graph(server):
    assert server.get13("/snapshot").status_code == 200
    assert server.get("/snapshot", headers=H).status_code == 404
    assert server.get("/graphs/x/snapshot", headers=H).status_code == 404
    assert server.get("/graphs/default/snapshot").status_code == 404
    for headers in ({}, H):
        listed = server.get("/graphs", headers=headers)
        assert listed.status_code == 405
        assert listed.json()["code"] == "method_not_allowed"


@pytest.mark.acceptance("U-308")
@pytest.mark.parametrize("path", ["/read", "/change", "/ingest", "/schema/apply"])
def test_old_routes_do_not_exist_under_the_header(server, path):
    assert server.post13(path, {}).status_code == 404


@pytest.mark.acceptance("U-309")
def test_the_version_in_health(server):
    new = server.get("/healthz", headers=H).json()
    old = server.get("/healthz").json()
    assert new["version"] == "0.13.0"
    assert new["source_version"] == f"omnigraph-py {old['version']}"
    assert old["status"] == new["status"] == "ok"
    assert old["internal_schema_version"] == new["internal_schema_version"] > 0


def test_readiness_counts_graphs(server):
    assert server.get("/readyz").json() == {
        "ready": True,
        "status": "serving",
        "served_graph_count": 1,
        "ready_graph_count": 1,
        "loading_graph_count": 0,
        "blocked_graph_count": 0,
        "state_revision": 0,
        "state_cas": None,
        "booted_serving_digest": None,
        "shutdown_grace_seconds": 25,
    }


def test_parts_that_need_an_issuer_are_answered(server):
    assert server.get("/.well-known/oauth-protected-resource", headers=H).status_code == 404
    assert server.get("/graphs/discovery", headers=H).status_code == 403


@pytest.mark.acceptance("U-137")
def test_runs_of_old_clients(server):
    assert server.get("/runs").json() == {"runs": []}
    for method, path in (
        ("GET", "/runs/x"),
        ("POST", "/runs/x/abort"),
        ("POST", "/runs/x/publish"),
    ):
        found = server.client.request(method, path)
        assert (found.status_code, found.json()["code"]) == (404, "not_found")
    assert "/runs" not in server.get("/openapi.json").json()["paths"]


def test_unknown_paths_and_methods_are_json(server):
    for method, path, status, code in [
        ("GET", "/", 404, "not_found"),
        ("GET", "//snapshot", 404, "not_found"),
        ("GET", "/snapshot/", 404, "not_found"),
        ("GET", "/query", 405, "method_not_allowed"),
        ("PUT", "/branches", 405, "method_not_allowed"),
        ("DELETE", "/branches/merge", 405, "method_not_allowed"),
        ("OPTIONS", "/query", 405, "method_not_allowed"),
    ]:
        answer = server.client.request(method, path)
        assert (answer.status_code, answer.json()["code"]) == (status, code), (method, path)
    assert server.get("/query").headers["allow"] == "POST"


@pytest.mark.acceptance("U-306")
def test_a_server_with_one_contract(tmp_path):
    root = library(tmp_path)
    with serving(tmp_path, root, "--unauthenticated", "--http-api", "0.13") as only:
        refused = only.get("/graphs/default/snapshot")
        assert refused.status_code == 400
        assert refused.json()["code"] == "api_contract_mismatch"
        assert only.get13("/snapshot").status_code == 200
        assert only.get("/healthz").status_code == 200
    with serving(tmp_path, root, "--unauthenticated", "--http-api", "0.7") as only:
        found = only.get("/snapshot", headers=H)
        assert "branch" in found.json()
        assert "omnigraph-http-api" not in found.headers
        assert "omnigraph-http-api" not in only.get("/healthz").headers


def test_small_answers_are_not_held_back(server):
    """A socket that waits for acknowledgements takes 40 ms for each answer."""
    server.get("/healthz")
    began = time.monotonic()
    for _ in range(100):
        server.get("/healthz")
    assert time.monotonic() - began < 3
