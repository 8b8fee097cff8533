"""A reader of an export that pauses: the export waits, and the server does not read ahead.

What an export takes is what sorting takes, `limits.SORTED_BYTES` a few times over, however large the table is.
"""

from __future__ import annotations

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


def exported(server, pause_seconds, most_bytes):
    """Read an export with a pause after its first bytes; the number of its lines and of its bytes."""
    host, port = server.address.split(":")
    head = (
        "POST /export HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        "Connection: close\r\nContent-Length: 2\r\n\r\n{}"
    )
    before = resident_bytes(server.process)
    with socket.create_connection((host, int(port)), timeout=120) as raw:
        raw.sendall(head.encode())
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
        assert exported(server, 2, 192 * MIB)[0] == 6000


@pytest.mark.slow
@pytest.mark.acceptance("U-335")
def test_a_large_export_waits_a_minute_for_its_reader(tmp_path):
    root = pages(tmp_path, 25_000, 4000)
    with serving(tmp_path, root, "--unauthenticated", command=COMMAND) as server:
        lines, size = exported(server, 60, 640 * MIB)
    assert (lines, size > 100 * 10**6) == (25_000, True)
