"""A server for a cluster that is deployed to over HTTP."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import httpx
import msgspec

from omnigraph.cluster.bundle import Bundle, capture
from omnigraph.cluster.documents import Diagnostics
from omnigraph.cluster.resources import read_desired
from tests.cluster.clusters import Cluster
from tests.server.serving import H, Server

TOKENS = {
    "OMNIGRAPH_SERVER_BEARER_TOKENS_JSON": '{"root":"t-root","amy":"t-amy","eve":"t-eve"}',
}
ROOT = {"Authorization": "Bearer t-root"} | H
AMY = {"Authorization": "Bearer t-amy"} | H
EVE = {"Authorization": "Bearer t-eve"} | H
NONCES = [f"01ARZ3NDEKTSV4RRFFQ69G5F{pair}" for pair in ("AV", "AW", "AX", "AY")]

DECLARED = """\
version: 1
graphs:
  alpha:
    schema: team.pg
    queries: queries/
  beta:
    schema: shop.pg
policies:
  staff:
    file: staff.yaml
    applies_to: [alpha, beta]
  server:
    file: server.yaml
    applies_to: [cluster]
"""
POLICY = """\
version: 1
groups:
  admins: [root]
  readers: [amy]
rules:
  - id: all
    allow: {actors: {group: admins}, actions: [read, change, invoke_query, export]}
  - id: branches
    allow: {actors: {group: admins}, actions: [schema_apply, branch_create, branch_delete]}
  - id: reads
    allow: {actors: {group: readers}, actions: [read]}
"""
SERVER_POLICY = """\
version: 1
groups:
  admins: [root, eve]
rules:
  - id: config
    allow: {actors: {group: admins}, actions: [config_manage, graph_list]}
"""
WITH_GAMMA = DECLARED.replace("policies:", "  gamma:\n    schema: shop.pg\npolicies:").replace(
    "[alpha, beta]", "[alpha, beta, gamma]"
)


def declared(folder: Path) -> Cluster:
    """A cluster of two graphs, applied; `root` may deploy, `eve` only asks the server."""
    made = Cluster(folder)
    made.write("staff.yaml", POLICY)
    made.write("server.yaml", SERVER_POLICY)
    made.declare(DECLARED)
    made.converge()
    return made


def captured(cluster: Cluster) -> dict[str, Any]:
    """The declaration as the client sends it."""
    found = Diagnostics()
    desired = read_desired(cluster.folder, found)
    assert desired is not None, [one.message for one in found]
    return as_json(capture(desired))


def as_json(bundle: Bundle) -> dict[str, Any]:
    document: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(bundle))
    return document


def ready(server: Server) -> None:
    """Return once no graph is being opened."""
    for _ in range(600):
        if server.get("/readyz").json()["loading_graph_count"] == 0:
            return
        time.sleep(0.05)
    raise AssertionError(server.log)


def next_id(server: Server, nonce: str = NONCES[0]) -> str:
    found = server.get("/cluster/deployments", headers=ROOT)
    assert found.status_code == 200, found.text
    status = found.json()["status"]
    return f"{status['ledger_id']}:{status['next_sequence']}:{nonce}"


def post(
    server: Server, bundle: dict[str, Any], deployment_id: str, headers: Any = ROOT
) -> httpx.Response:
    body = {"deployment_id": deployment_id, "deployment": bundle}
    return server.post("/cluster/deployments", body, headers=headers)


def outcome(server: Server, deployment_id: str, headers: Any = ROOT) -> dict[str, Any]:
    """The deployment once the server does not work on it any more."""
    for _ in range(1200):
        found = server.get(f"/cluster/deployments/{deployment_id}", headers=headers)
        assert found.status_code == 200, found.text
        document: dict[str, Any] = found.json()
        if not document["in_progress"]:
            return document
        time.sleep(0.05)
    raise AssertionError(server.log)


def deployed(server: Server, cluster: Cluster) -> dict[str, Any]:
    """Deploy what the directory declares; its result."""
    deployment_id = next_id(server)
    answer = post(server, captured(cluster), deployment_id)
    assert answer.status_code == 202, answer.text
    assert answer.json()["in_progress"] is True
    found = outcome(server, deployment_id)
    assert found["active"], server.log
    result: dict[str, Any] = found["deployment"]["result"]
    assert result["converged"]
    return result
