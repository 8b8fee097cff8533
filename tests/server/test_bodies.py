"""Bodies that are too large, too slow, compressed, nested or no JSON."""

from __future__ import annotations

import gzip
import json
import socket
import time

import pytest

from tests.server.serving import LIB, H, serving

MIB = 1_048_576
READ = {"query": LIB, "name": "all_authors"}
LINES = {"Content-Type": "application/x-ndjson"}


def posted(server, path, content, **headers):
    given = {"Content-Type": "application/json"} | {
        name.replace("_", "-"): value for name, value in headers.items()
    }
    return server.client.post(path, content=content, headers=given)


@pytest.mark.acceptance("U-081")
def test_bodies_that_are_not_what_they_should_be(server):
    for response, status in [
        (posted(server, "/query", b"{"), 400),
        (posted(server, "/query", b""), 400),
        (server.client.post("/query", content=json.dumps(READ).encode()), 415),
        (posted(server, "/query", b"{}", Content_Type="text/plain"), 415),
        (posted(server, "/query", b"{}"), 422),
        (posted(server, "/query", b"[]"), 422),
        (posted(server, "/query", b'{"query": null}'), 422),
        (posted(server, "/query", b'\xff\xfe{"query": "x"}'), 400),
        (posted(server, "/query", b'{"query": "\xff"}'), 400),
    ]:
        assert response.status_code == status
        assert response.json()["error"]
        assert response.json()["code"] == "bad_request"
    assert (
        posted(server, "/query", json.dumps(READ), Content_Type="application/x+json").status_code
        == 200
    )
    charset = "application/json; charset=utf-8"
    assert posted(server, "/query", json.dumps(READ), Content_Type=charset).status_code == 200
    assert posted(server, "/query", json.dumps(READ | {"unknown": 1})).status_code == 200


@pytest.mark.acceptance("U-082", "U-331")
def test_bodies_that_are_too_large(server):
    big = json.dumps(READ | {"padding": "x" * int(1.1 * MIB)}).encode()
    refused = posted(server, "/query", big)
    assert (refused.status_code, refused.json()["code"]) == (413, "bad_request")
    huge = b'{"data":"' + b"x" * (33 * MIB) + b'"}'
    assert posted(server, "/load", huge).status_code == 413
    path = "/graphs/default/load/ndjson"
    refused = server.client.post(path, content=b"\n" * (33 * MIB), headers=H | LINES)
    assert refused.status_code == 413
    assert refused.headers["omnigraph-http-api"] == "0.13"
    assert refused.json()["resource_limit"]["limit"] == 32 * MIB
    fits = json.dumps(READ | {"padding": "x" * (MIB // 2)}).encode()
    assert posted(server, "/query", fits).status_code == 200


def test_a_body_without_a_length_is_limited_too(server):
    def endless():
        for _ in range(64):
            yield b"x" * 65_536

    refused = server.client.post(
        "/query", content=endless(), headers={"Content-Type": "application/json"}
    )
    assert refused.status_code == 413


def test_a_length_that_is_a_lie_is_refused_at_once(server):
    host, port = server.address.split(":")
    with socket.create_connection((host, int(port)), timeout=10) as raw:
        raw.sendall(
            b"POST /load HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
            b"Content-Length: 99999999999\r\n\r\n{"
        )
        assert raw.recv(64).startswith(b"HTTP/1.1 413")


def test_compressed_bodies_are_refused(server):
    bomb = gzip.compress(b"x" * 10_000_000)
    refused = posted(server, "/query", bomb, Content_Encoding="gzip")
    assert refused.status_code == 415
    assert "compressed" in refused.json()["error"]


def test_deep_json_is_an_error_and_no_crash(server):
    for content in (
        b"[" * 100_000,
        b'{"query":"x","params":' + b'{"a":' * 50_000,
        b'{"query":"x","params":{"a":' + b"[" * 20_000 + b"]" * 20_000 + b"}}",
    ):
        assert posted(server, "/query", content).status_code in (400, 422)
    deep = b'{"type":"Author","data":{"slug":' + b"[" * 50_000 + b"]" * 50_000 + b"}}"
    refused = server.client.post("/graphs/default/load/ndjson", content=deep, headers=H | LINES)
    assert refused.status_code == 400
    query = (
        "query q() { match { $a: Author } return { " + "(" * 20_000 + "1" + ")" * 20_000 + " } }"
    )
    assert server.post("/query", {"query": query}).status_code == 400
    assert server.get("/healthz").status_code == 200


def test_a_malformed_query_string(server):
    for text in ("%ff=1", "branch", "a=1&" * 300 + "b=1", "branch=%ff"):
        answer = server.get(f"/snapshot?{text}")
        assert answer.status_code == 400, text
        assert answer.json()["code"] == "bad_request"


def test_malformed_http_ends_the_connection_only(server):
    host, port = server.address.split(":")
    for sent in (
        b"\0\0\0\0\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nA b\r\n\r\n",
    ):
        with socket.create_connection((host, int(port)), timeout=10) as raw:
            raw.sendall(sent)
            raw.settimeout(2)
            assert b"200 OK" not in raw.recv(200)
    assert server.get("/healthz").status_code == 200


def test_a_slow_body_ends_in_time(graph_root, tmp_path):
    options = ("--unauthenticated", "--body-timeout-seconds", "0.5")
    with serving(tmp_path, graph_root, *options) as server:
        host, port = server.address.split(":")
        with socket.create_connection((host, int(port)), timeout=10) as raw:
            raw.sendall(
                b"POST /query HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                b"Content-Length: 50\r\n\r\n"
            )
            began = time.monotonic()
            for byte in b'{"query"':
                raw.sendall(bytes([byte]))
                time.sleep(0.1)
                raw.setblocking(False)
                try:
                    answer = raw.recv(64)
                    break
                except BlockingIOError:
                    raw.setblocking(True)
            else:
                raw.setblocking(True)
                answer = raw.recv(64)
            assert answer.startswith(b"HTTP/1.1 408")
            assert time.monotonic() - began < 5
        assert server.get("/healthz").status_code == 200
