"""Connections that do not behave: half-open, slow, endless, malformed, pipelined."""

from __future__ import annotations

import json
import re
import socket
import time

import pytest

from tests.server.serving import LIB, serving

JSON = b"Content-Type: application/json\r\n"
READ = json.dumps({"query": LIB, "name": "all_authors"}).encode()
HEALTH = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
LAST = b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
IMPATIENT = (
    "import sys; from omnigraph.server import connections, command;"
    "connections.HEAD_SECONDS = connections.UNREAD_BODY_SECONDS = 0.5;"
    "sys.exit(command.run(sys.argv[1:]))"
)


def connect(server):
    host, port = server.address.split(":")
    return socket.create_connection((host, int(port)), timeout=20)


def exchange(server, sent, seconds=20):
    """What comes back, and whether the connection was closed."""
    with connect(server) as raw:
        received = b""
        try:
            raw.sendall(sent)
            raw.settimeout(seconds)
            while part := raw.recv(65_536):
                received += part
        except TimeoutError:
            return received, False
        except (ConnectionResetError, BrokenPipeError):
            return received, True
        return received, True


def statuses(received):
    return [int(code) for code in re.findall(rb"HTTP/1\.1 (\d{3})", received)]


def post(*headers, body=READ, path=b"/query"):
    head = b"".join(b"%s\r\n" % header for header in headers)
    return b"POST %s HTTP/1.1\r\nHost: x\r\n%s%s\r\n%s" % (path, JSON, head, body)


SMUGGLED = b"0\r\n\r\n" + HEALTH


@pytest.mark.parametrize(
    "sent",
    [
        post(b"Content-Length: 4", b"Transfer-Encoding: chunked", body=SMUGGLED),
        post(b"Transfer-Encoding: chunked", b"Content-Length: 4", body=SMUGGLED),
        post(b"Content-Length: 2", b"Content-Length: 40", body=b"{}" + HEALTH),
        post(b"Content-Length: 2, 2", body=b"{}" + HEALTH),
        post(b"Content-Length: +2", body=b"{}" + HEALTH),
        post(b"Content-Length: 0x2", body=b"{}" + HEALTH),
        post(b"Content-Length: -1", body=HEALTH),
        post(b"Content-Length: 18446744073709551618", body=b"{}" + HEALTH),
        post(b"Transfer-Encoding: xchunked", body=SMUGGLED),
        post(b"Transfer-Encoding : chunked", body=SMUGGLED),
        post(b"Transfer-Encoding: chunked", b"Transfer-Encoding: identity", body=SMUGGLED),
        post(b"Transfer-Encoding: chunked", body=b"zz\r\n{}\r\n" + SMUGGLED),
        post(b"Transfer-Encoding: chunked", body=b"-1\r\n{}\r\n" + SMUGGLED),
        post(b"Transfer-Encoding: chunked", body=b"f" * 20 + b"\r\n{}\r\n" + SMUGGLED),
        post(b"Transfer-Encoding: chunked", body=b"1\r\n{}\r\n" + SMUGGLED),
        b"GET /healthz HTTP/1.1\nHost: x\n\n",
        b"GET /healthz HTTP/1.1\r\nHost: x\r\nA: b\r\n c\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: x\r\nA: b\0c\r\n\r\n",
        b"GET /\x1b[31m HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /\xff\xfe HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /a b HTTP/1.1\r\nHost: x\r\n\r\n",
        b"get /healthz HTTP/1.1\r\nHost: x\r\n\r\n",
        b"CONNECT 127.0.0.1:80 HTTP/1.1\r\nHost: x\r\n\r\n" + HEALTH,
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    ],
)
def test_ambiguous_requests_are_refused_and_nothing_after_them_is_read(server, sent):
    received, is_closed = exchange(server, sent)
    assert is_closed
    assert set(statuses(received)) <= {400}
    assert b'"status":"ok"' not in received
    if received:
        document = json.loads(received.rpartition(b"\r\n\r\n")[2])
        assert document["code"] == "bad_request"


def test_a_request_for_another_protocol_ends_the_connection(server):
    length = b"Content-Length: %d" % len(HEALTH)
    for protocol in (b"websocket", b"h2c", b"TLS/1.2"):
        upgrade = post(b"Connection: Upgrade", b"Upgrade: " + protocol, length, body=HEALTH)
        received, is_closed = exchange(server, upgrade)
        assert is_closed
        assert statuses(received) == [400]
        assert b'"status":"ok"' not in received


def test_trailers_are_not_headers(server):
    chunk = b"%x\r\n%s\r\n0\r\n" % (len(READ), READ)
    for trailer in (b"Omnigraph-Http-Api: 0.12", b"Content-Encoding: gzip", b"Host: y"):
        body = chunk + trailer + b"\r\n\r\n"
        sent = post(b"Connection: close", b"Transfer-Encoding: chunked", body=body)
        received, _ = exchange(server, sent)
        assert statuses(received) == [200], trailer


def test_pipelined_requests_are_answered_in_order(server):
    length = b"Content-Length: %d" % len(READ)
    sent = HEALTH + post(length) + b"GET /nope HTTP/1.1\r\nHost: x\r\n\r\n" + LAST
    received, _ = exchange(server, sent)
    assert statuses(received) == [200, 200, 404, 200]
    received, _ = exchange(server, HEALTH * 499 + LAST)
    assert statuses(received) == [200] * 500


def test_headers_are_limited(server):
    for sent in (
        b"GET /healthz HTTP/1.1\r\nHost: x\r\nA: " + b"x" * 100_000,
        b"GET /healthz HTTP/1.1\r\nHost: x\r\n" + b"A: x\r\n" * 20_000,
        b"GET /" + b"x" * 100_000,
        post(b"Transfer-Encoding: chunked", body=b"0\r\nA: " + b"x" * 100_000),
        post(b"Transfer-Encoding: chunked", body=b"2;x=" + b"x" * 100_000),
    ):
        received, is_closed = exchange(server, sent)
        assert is_closed
        assert set(statuses(received)) <= {400, 413, 431}
    fits = b"GET /healthz HTTP/1.1\r\nConnection: close\r\nA: " + b"x" * 50_000 + b"\r\n\r\n"
    assert statuses(exchange(server, fits)[0]) == [200]
    body = b'{"padding":"' + b"x" * 500_000 + b'",' + READ[1:]
    large = post(b"Connection: close", b"Content-Length: %d" % len(body), body=body)
    assert statuses(exchange(server, large)[0]) == [200]


def test_half_open_connections_block_nobody(server):
    opened = [connect(server) for _ in range(500)]
    try:
        for number, raw in enumerate(opened):
            raw.sendall((b"", b"G", b"GET /healthz HTTP/1.1\r\nA: ", post()[:60])[number % 4])
        began = time.monotonic()
        assert server.get("/healthz").status_code == 200
        assert len(server.slugs()) == 3
        assert time.monotonic() - began < 10
    finally:
        for raw in opened:
            raw.close()


def test_connections_that_send_nothing_more_are_closed(graph_root, tmp_path):
    options = ("--unauthenticated", "--body-timeout-seconds", "0.5")
    with serving(tmp_path, graph_root, *options, command=("-c", IMPATIENT)) as server:
        for sent, expected in (
            (b"", []),
            (b"GET /healthz HTTP/1.1\r\nHost: x\r\n", [408]),
            (HEALTH + b"GET /hea", [200, 408]),
            (post(b"Content-Length: 50", body=b"{"), [408]),
            # The answer does not need the body, which never comes to its end.
            (post(b"Content-Length: 50", path=b"/nope", body=b"{"), [404]),
        ):
            received, is_closed = exchange(server, sent)
            assert is_closed, sent
            assert statuses(received) == expected, sent
        assert server.get("/healthz").status_code == 200


@pytest.mark.parametrize("method", ["OPTIONS", "TRACE", "PUT", "PATCH", "PROPFIND"])
def test_other_methods_are_not_allowed_and_echo_nothing(server, method):
    for path in ("/healthz", "/query", "/branches", "/branches/main", "/export"):
        secret = {"Authorization": "Bearer secret", "X-Probe": "echo"}
        answer = server.client.request(method, path, headers=secret)
        assert answer.status_code == 405
        assert answer.headers["allow"]
        assert "secret" not in answer.text + str(answer.headers)
        assert "echo" not in answer.text + str(answer.headers)
        assert not [name for name in answer.headers if name.startswith("access-control")]


def test_a_head_request_has_the_headers_of_get_and_no_body(server):
    for path in ("/healthz", "/snapshot", "/branches", "/schema", "/openapi.json", "/commits"):
        request = f"HEAD {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
        received, _ = exchange(server, request.encode())
        head, _, body = received.partition(b"\r\n\r\n")
        assert statuses(head) == [200], path
        assert body == b"", path
        [length] = re.findall(rb"content-length: (\d+)", head)
        assert int(length) == len(server.get(path).content), path
    assert server.client.head("/query").status_code == 405


def test_a_log_line_is_one_request(server):
    before = server.log.count("\n")
    paths = ["/%0d%0aFORGED", "/a%0aFORGED", "/%1b%5b31m", "/branches/x%0D%0AFORGED", "/%e2%80%a8"]
    for path in paths:
        request = f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
        exchange(server, request.encode())
    deadline = time.monotonic() + 10
    while server.log.count("\n") < before + len(paths):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    written = server.log.splitlines()[before:]
    assert len(written) == len(paths)
    assert all(" INFO omnigraph.server.access GET " in line for line in written)
    assert "\x1b" not in server.log
    assert not any(line.startswith("FORGED") for line in written)
