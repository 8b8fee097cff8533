"""A reader of an export that pauses: the export waits, and the server does not read ahead.

What an export takes is what sorting takes, `limits.SORTED_BYTES` a few times over, however large the table is.
"""

from __future__ import annotations

import contextlib
import socket
import time
from pathlib import Path

import pytest

import omnigraph as og
from tests.server.serving import COMMAND, serving

SCHEMA = "node Page { slug: String @key  text: String }\n"
MIB = 1_048_576


def resident_bytes(process):
    status = Path(f"/proc/{process.pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) * 1024


def export_from(server):
    """A connection that has asked for an export and read nothing of it."""
    host, port = server.address.split(":")
    head = (
        "POST /export HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        "Connection: close\r\nContent-Length: 2\r\n\r\n{}"
    )
    raw = socket.create_connection((host, int(port)), timeout=120)
    raw.sendall(head.encode())
    return raw


def exported(server, pause_seconds, most_bytes):
    """Read an export with a pause after its first bytes; the number of its lines and of its bytes."""
    before = resident_bytes(server.process)
    with export_from(server) as raw:
        received = raw.recv(1000)
        time.sleep(pause_seconds / 2)
        between = resident_bytes(server.process)
        time.sleep(pause_seconds / 2)
        assert resident_bytes(server.process) < between + 16 * MIB
        assert server.get("/healthz").status_code == 200
        while part := raw.recv(MIB):
            received += part
            assert resident_bytes(server.process) < before + most_bytes
    answer, _, chunks = received.partition(b"\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 200")
    assert chunks.endswith(b"0\r\n\r\n")
    return chunks.count(b'{"type":"Page"'), len(chunks)


def pages(folder, rows, text_bytes):
    root = folder / "pages.omni"
    text = "".join(chr(97 + n % 26) for n in range(text_bytes))
    with og.init(root, schema=SCHEMA) as graph:
        for first in range(0, rows, 5000):
            numbers = range(first, min(rows, first + 5000))
            graph.upsert("Page", [{"slug": f"p{n:06}", "text": text} for n in numbers])
    return root


@pytest.mark.acceptance("U-335", partly="a pause of two seconds in 24 MB")
def test_an_export_waits_for_its_reader(tmp_path):
    root = pages(tmp_path, 6000, 4000)
    with serving(tmp_path, root, "--unauthenticated", command=COMMAND) as server:
        assert exported(server, 2, 160 * MIB)[0] == 6000


def test_a_client_that_stops_reading_is_cut_off(tmp_path):
    root = pages(tmp_path, 6000, 4000)
    options = ("--unauthenticated", "--reader-timeout-seconds", "1")
    with serving(tmp_path, root, *options) as server:
        with export_from(server) as raw:
            deadline = time.monotonic() + 30
            while "client read nothing for" not in server.log:
                assert time.monotonic() < deadline
                time.sleep(0.05)
            raw.settimeout(10)
            received = 0
            with contextlib.suppress(ConnectionResetError):
                while part := raw.recv(MIB):
                    received += len(part)
        assert received < 24 * 10**6
        assert "Traceback" not in server.log
        # Nothing of the export holds up the end of the server.
        began = time.monotonic()
        assert server.stop() == 0
        assert time.monotonic() - began < 10


def test_a_client_that_reads_slowly_is_not_cut_off(tmp_path):
    root = pages(tmp_path, 1500, 4000)
    options = ("--unauthenticated", "--reader-timeout-seconds", "2")
    received = b""
    with serving(tmp_path, root, *options) as server, export_from(server) as raw:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
        while part := raw.recv(200_000):
            received += part
            time.sleep(0.05)
    assert received.endswith(b"0\r\n\r\n")
    assert len(received) > 1500 * 4000


@pytest.mark.slow
@pytest.mark.acceptance("U-335")
def test_a_large_export_waits_a_minute_for_its_reader(tmp_path):
    root = pages(tmp_path, 25_000, 4000)
    with serving(tmp_path, root, "--unauthenticated", command=COMMAND) as server:
        lines, size = exported(server, 60, 384 * MIB)
    assert (lines, size > 100 * 10**6) == (25_000, True)
