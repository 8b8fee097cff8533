"""`cluster plan|apply|status --server`, in this process against a server process."""

from __future__ import annotations

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import pytest

from tests.cluster.clusters import WIDER_QUERY, WIDER_SCHEMA
from tests.server.deploying import ROOT, TOKENS, declared, ready
from tests.server.serving import serving
from tests.server.test_deployments import slow_load


@pytest.fixture
def cluster(here, monkeypatch):
    monkeypatch.setenv("OMNIGRAPH_DURABILITY", "none")
    return declared(here / "cluster")


@pytest.fixture
def server(cluster, tmp_path):
    with serving(tmp_path, "--cluster", cluster.folder, env=TOKENS) as running:
        ready(running)
        yield running


class _Dropper(BaseHTTPRequestHandler):
    """Passes requests on with a token, and throws the answer to a deployment away."""

    address = ""
    seen: list[str]

    def _pass(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.seen.append(f"{self.command} {self.path}")
        given = {n: v for n, v in self.headers.items() if n.lower() not in ("host", "connection")}
        url = f"http://{self.address}{self.path}"
        answer = httpx.request(self.command, url, content=body, headers=given | ROOT, timeout=60)
        if self.command == "POST" and self.path == "/cluster/deployments":
            self.close_connection = True
            return
        self.send_response_only(answer.status_code)
        for name in ("omnigraph-http-api", "content-type"):
            if name in answer.headers:
                self.send_header(name, answer.headers[name])
        self.send_header("Content-Length", str(len(answer.content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.content)

    do_GET = do_POST = do_HEAD = _pass

    def log_message(self, *_):
        pass


@pytest.fixture
def proxy(server):
    """The address of a proxy, and the requests that it has seen."""
    seen: list[str] = []
    handler = type("Handler", (_Dropper,), {"address": server.address, "seen": seen})
    listener = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    listener.daemon_threads = True
    thread = threading.Thread(target=listener.serve_forever, args=(0.05,))
    thread.start()
    yield f"http://127.0.0.1:{listener.server_address[1]}", seen
    listener.shutdown()
    thread.join()
    listener.server_close()


@pytest.mark.acceptance("U-361", "U-369", "U-383")
def test_a_declaration_is_planned_and_deployed_through_a_server(cluster, server, proxy, cli):
    address, seen = proxy
    folder = ["--config", str(cluster.folder)]
    direct = ["--server", f"http://{server.address}"]
    cluster.write("team.pg", WIDER_SCHEMA)
    cluster.write("queries/people.gq", WIDER_QUERY)

    planned = cli("cluster", "plan", *folder, "--server", address, "--json")
    assert planned.code == 0, planned.err
    assert "POST /cluster/plan" in seen
    document = json.loads(planned.out)
    assert document["ok"] is True
    assert {one["resource"] for one in document["changes"]} == {
        "graph.alpha",
        "schema.alpha",
        "query.alpha.people",
    }
    local = cli("cluster", "plan", *folder, "--json")
    assert json.loads(local.out)["changes"] == document["changes"]

    denied = cli("cluster", "apply", *folder, *direct)
    assert denied.code == 1
    assert "missing bearer token" in denied.err

    # The answer is thrown away, the id that was printed before is asked for.
    lost = cli("cluster", "apply", *folder, "--server", address)
    assert lost.code == 0, lost.err
    deployment_id = lost.err.partition("deployment ")[2].split()[0]
    assert f"deployment {deployment_id}: complete" in lost.out
    assert "converged: yes; the server serves it" in lost.out
    assert seen.count("POST /cluster/deployments") == 1
    schema = server.get("/graphs/alpha/schema", headers=ROOT).json()["schema_source"]
    assert schema == WIDER_SCHEMA

    shown = cli(
        "cluster", "status", "--server", address, "--deployment-id", deployment_id, "--json"
    )
    assert json.loads(shown.out)["deployment"]["status"] == "complete"
    status = cli("cluster", "status", "--server", address)
    assert (status.code, "the server serves it" in status.out) == (0, True)
    nothing = cli("cluster", "plan", *folder, "--server", address)
    assert "no changes" in nothing.out


@pytest.mark.acceptance("U-369")
def test_waiting_for_a_deployment_is_up_to_the_caller(cluster, server, cli, monkeypatch):
    monkeypatch.setenv("OMNIGRAPH_BEARER_TOKEN", "t-root")
    given = ["--config", str(cluster.folder), "--server", f"http://{server.address}"]
    plain = cli("cluster", "apply", *given)
    assert (plain.code, "converged: yes" in plain.out) == (0, True), plain.err

    cluster.write("team.pg", WIDER_SCHEMA)
    loading = threading.Thread(target=slow_load, args=(server, 9))
    loading.start()
    time.sleep(0.7)
    late = cli("cluster", "apply", *given, "--timeout", "4")
    assert late.code == 5, (late.out, late.err)
    deployment_id = late.err.partition("deployment ")[2].split()[0]
    assert f"--deployment-id {deployment_id} --wait" in late.err
    waited = cli(
        "cluster",
        "status",
        *given[2:],
        "--deployment-id",
        deployment_id,
        "--wait",
        "--timeout",
        "60",
    )
    loading.join()
    assert (waited.code, "converged: yes" in waited.out) == (0, True), waited

    cluster.write("queries/people.gq", WIDER_QUERY)
    started = cli("cluster", "apply", *given, "--no-wait", "--json")
    assert started.code == 0, started.err
    assert json.loads(started.out)["in_progress"] is True
    deployment_id = started.err.partition("deployment ")[2].split()[0]
    repeated = cli("cluster", "apply", *given, "--deployment-id", deployment_id)
    assert repeated.code == 0, repeated.err

    cluster.write("team.pg", "node Person { name: String")
    broken = cli("cluster", "apply", *given)
    assert broken.code == 1
    assert "schema_parse_error" in broken.err
    refused = cli("cluster", "status", "--config", str(cluster.folder), "--wait")
    assert (refused.code, "--server" in refused.err) == (2, True)
