"""How a server ends, and what becomes of clients that leave."""

from __future__ import annotations

import json
import signal
import socket
import threading
import time

import pytest

import omnigraph as og
from tests.server.serving import COMMAND, library, serving

ROWS = 60_000
DATA = "".join(f'{{"type":"Author","data":{{"slug":"big{n}","born":{n}}}}}\n' for n in range(ROWS))


def send_load(server, branch=None):
    """Send a load and do not wait for its answer."""
    body = json.dumps({"data": DATA, "branch": branch}).encode()
    host, port = server.address.split(":")
    raw = socket.create_connection((host, int(port)), timeout=60)
    head = (
        "POST /load HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    raw.sendall(head.encode() + body)
    return raw


def running_writes(server):
    text = server.get("/metrics").text
    return float(text.partition('omnigraph_inflight{kind="write"} ')[2].partition("\n")[0])


def wait_for(condition, seconds=30):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.acceptance("U-358")
def test_a_signal_lets_running_writes_finish(tmp_path):
    root = library(tmp_path)
    with serving(tmp_path, root, "--unauthenticated", command=COMMAND) as server:
        with send_load(server) as raw:
            wait_for(lambda: running_writes(server) == 1)
            server.process.send_signal(signal.SIGTERM)
            wait_for(lambda: "shutting down" in server.log)
            ready = server.get("/readyz")
            assert (ready.status_code, ready.json()["status"]) == (503, "draining")
            refused = server.read("all_authors")
            assert refused.status_code == 503
            assert server.get("/healthz").status_code == 200
            assert raw.recv(64).startswith(b"HTTP/1.1 200")
        assert server.process.wait(timeout=30) == 0
    with og.open(root) as graph:
        assert len(list(graph.log())) == 3


@pytest.mark.acceptance("U-358")
def test_the_grace_time_ends(tmp_path):
    root = library(tmp_path)
    options = ("--unauthenticated", "--shutdown-grace-seconds", "0")
    with serving(tmp_path, root, *options, command=COMMAND) as server, send_load(server):
        wait_for(lambda: running_writes(server) == 1)
        assert server.stop() == 2
    with og.open(root) as graph:
        graph.upsert("Author", [{"slug": "after", "born": 1}])
        assert graph.get("Author", "after") is not None


@pytest.mark.acceptance("U-333")
def test_a_load_lands_although_its_client_has_gone(server):
    server.branch("left")
    head = server.head("left")
    with send_load(server, "left"):
        wait_for(lambda: running_writes(server) == 1)
    wait_for(lambda: running_writes(server) == 0)
    assert server.head("left") != head
    assert len(server.slugs("left")) == 3 + ROWS


def test_a_read_ends_when_its_client_goes(server):
    server.branch("many")
    server.post("/load", {"data": DATA, "branch": "many"})
    slow = "query q() { match { $a: Author $b: Author $c: Book } return { count($a) as n } }"
    body = json.dumps({"query": slow, "branch": "many"}).encode()
    host, port = server.address.split(":")
    began = time.monotonic()
    with socket.create_connection((host, int(port)), timeout=60) as raw:
        head = (
            "POST /query HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        raw.sendall(head.encode() + body)
        time.sleep(0.3)
    assert server.read("all_authors").status_code == 200
    assert time.monotonic() - began < 30


def test_a_reader_that_pauses_gets_the_whole_export(server):
    server.branch("paused")
    server.post("/load", {"data": DATA, "branch": "paused"})
    with server.client.stream("POST", "/export", json={"branch": "paused"}) as stream:
        parts = stream.iter_bytes()
        received = len(next(parts))
        time.sleep(1)
        text = sum(part.count(b"\n") for part in parts)
    assert received > 0
    assert text > ROWS - 10_000


def test_a_reader_that_leaves_frees_its_thread(server):
    for _ in range(40):
        with server.client.stream("POST", "/export", json={}) as stream:
            assert stream.status_code == 200
    done = threading.Event()
    found = []

    def read():
        found.append(server.post("/export", {}).status_code)
        done.set()

    threading.Thread(target=read).start()
    assert done.wait(20)
    assert found == [200]
