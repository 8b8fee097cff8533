"""The OpenAPI documents and the reference page say what the server does."""

from __future__ import annotations

from pathlib import Path

import pytest

from omnigraph.server.__main__ import page
from omnigraph.server.openapi import openapi_document
from omnigraph.server.routes import ROUTES, Scope
from tests.server.serving import H

PAGE = Path(__file__).parents[2] / "docs" / "user" / "http.md"

OPERATIONS = {
    "health", "listGraphs", "getSnapshot", "read", "query", "export", "change", "mutate",
    "list_queries", "invoke_query", "applySchema", "getSchema", "load", "ingest", "listBranches",
    "createBranch", "deleteBranch", "mergeBranches", "listCommits", "getCommit",
    "diff", "listChanges", "getStatus", "metrics",
}  # fmt: skip
TAGS = {
    "health",
    "management",
    "snapshots",
    "queries",
    "mutations",
    "schema",
    "branches",
    "commits",
}
COMPONENTS = {
    "BranchCreateRequest", "ReadOutput", "ErrorOutput", "ErrorCode", "LoadMode",
    "MergeConflictKindOutput", "ManifestConflictOutput", "SnapshotTableOutput",
    "IngestTableOutput", "ReadTargetOutput", "ParamKind",
}  # fmt: skip


def operations(document):
    return {
        (path, method): one
        for path, methods in document["paths"].items()
        for method, one in methods.items()
    }


@pytest.mark.acceptance("U-102")
def test_the_document_of_an_open_server(server):
    document = server.get("/openapi.json").json()
    assert document["openapi"] == "3.1.0"
    assert document["info"]["title"] == "Omnigraph API"
    assert document["info"]["version"] == server.get("/healthz").json()["version"]
    assert "securitySchemes" not in document["components"]
    found = operations(document)
    assert {one["operationId"] for one in found.values()} >= OPERATIONS
    assert {tag for one in found.values() for tag in one["tags"]} == TAGS
    assert all("security" not in one for one in found.values())
    deprecated = {one["operationId"] for one in found.values() if one.get("deprecated")}
    assert deprecated == {"read", "change", "ingest"}
    assert document["components"]["schemas"].keys() >= COMPONENTS
    bodies = {
        one["operationId"]: one["requestBody"]["required"]
        for one in found.values()
        if "requestBody" in one
    }
    assert {name for name, required in bodies.items() if not required} == {"invoke_query"}


@pytest.mark.acceptance("U-102")
def test_the_document_of_a_server_with_tokens():
    document = openapi_document(ROUTES, "0.7", is_multi=False, has_tokens=True)
    assert document["components"]["securitySchemes"] == {
        "bearer_token": {"type": "http", "scheme": "bearer"}
    }
    without = {one["operationId"] for one in operations(document).values() if "security" not in one}
    assert without == {"health", "ready"}


@pytest.mark.acceptance("U-102")
def test_the_document_of_several_graphs():
    document = openapi_document(ROUTES, "0.7", is_multi=True, has_tokens=True)
    ids = [one["operationId"] for one in operations(document).values()]
    assert len(ids) == len(set(ids))
    for (path, _), one in operations(document).items():
        is_graph = path.startswith("/graphs/{graph_id}/")
        assert one["operationId"].startswith("cluster_") == is_graph
        if is_graph:
            assert one["parameters"][0]["name"] == "graph_id"
    flat = {path for path in document["paths"] if not path.startswith("/graphs/{graph_id}/")}
    assert flat == {"/healthz", "/readyz", "/graphs", "/metrics", "/caller"}


@pytest.mark.acceptance("U-310")
def test_the_document_under_the_header(server):
    document = server.get("/openapi.json", headers=H).json()
    for (path, method), one in operations(document).items():
        named = {given["name"]: given for given in one.get("parameters", ())}
        is_public = path in ("/healthz", "/readyz", "/.well-known/oauth-protected-resource")
        assert ("omnigraph-http-api" in named) == (not is_public), (path, method)
        if not is_public:
            assert named["omnigraph-http-api"]["required"] is True
            assert named["omnigraph-http-api"]["schema"]["enum"] == ["0.13"]
    assert set(document["paths"]["/healthz"]) == {"get", "head"}
    assert "/graphs/{graph_id}/mutate/if-graph-commit" in document["paths"]
    assert not any(path.endswith(("/read", "/change", "/ingest")) for path in document["paths"])


def references(value):
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"].rpartition("/")[2]
        for one in value.values():
            yield from references(one)
    elif isinstance(value, list):
        for one in value:
            yield from references(one)


@pytest.mark.parametrize("version", ["0.7", "0.13"])
def test_every_reference_resolves(version):
    document = openapi_document(ROUTES, version, is_multi=False, has_tokens=False)
    assert set(references(document)) <= document["components"]["schemas"].keys()


def test_every_route_needs_a_token_or_is_public_on_purpose():
    public = {route.path for route in ROUTES if route.scope is Scope.PUBLIC}
    assert public == {"/healthz", "/readyz", "/.well-known/oauth-protected-resource"}


def test_every_writing_method_is_a_write_or_reads_on_purpose():
    reading = {route.path for route in ROUTES if route.method != "GET" and not route.is_write}
    assert reading == {
        "/query", "/read", "/explain", "/check", "/scan", "/schema/plan", "/export", "/diff",
        "/changes/baseline", "/cluster/plan",
        "/runs/{run_id}/abort", "/runs/{run_id}/publish",
    }  # fmt: skip


def test_the_page_is_what_the_routes_say():
    assert PAGE.read_text(encoding="utf-8") == page(), (
        "docs/user/http.md is stale; run: python -m omnigraph.server > docs/user/http.md"
    )
