"""SeaweedFS for the slow tests: an object store that keeps its objects on disk.

It answers races as a store in production does, where the quick one of the other tests holds one big
lock. Run as a module it serves on free ports of the loopback interface until its standard input is
closed, so that it never outlives the tests.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.error import URLError
from urllib.request import Request, urlopen

from tests.contract.objects.moto_server import BUCKET, ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

BINARY = Path(sys.executable).with_name("weed")
PATIENCE_SECONDS = 90
PORTS = ("master", "volume", "filer", "s3")


@contextmanager
def running_seaweed() -> Iterator[str]:
    """The address of a server with one empty bucket."""
    with (
        tempfile.TemporaryDirectory() as folder,
        subprocess.Popen(
            [sys.executable, "-m", "tests.contract.objects.seaweed_server", folder],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as process,
    ):
        assert process.stdin is not None
        assert process.stdout is not None
        endpoint = process.stdout.readline().strip()
        try:
            _make_bucket(endpoint)
            yield endpoint
        finally:
            process.stdin.close()
            process.wait(timeout=30)


def _make_bucket(endpoint: str) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            urlopen(Request(f"{endpoint}/{BUCKET}", method="PUT"), timeout=5).close()
            return
        except (URLError, OSError):
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)


def serve(folder: str) -> None:
    ports = _free_ports(2 * len(PORTS))
    arguments = [f"-{name}.port={port}" for name, port in zip(PORTS, ports, strict=False)]
    arguments += [
        f"-{name}.port.grpc={port}" for name, port in zip(PORTS, ports[len(PORTS) :], strict=True)
    ]
    command = [
        str(BINARY),
        "-logtostderr=true",
        "server",
        f"-dir={folder}",
        "-ip=127.0.0.1",
        "-ip.bind=127.0.0.1",
        # It would report home otherwise.
        "-master.telemetry=false",
        "-master.volumeSizeLimitMB=64",
        "-volume.max=50",
        "-filer",
        "-s3",
        f"-s3.config={_identities(folder)}",
        "-s3.port.iceberg=0",
        "-s3.port.lance=0",
        *arguments,
    ]
    with open(os.devnull, "wb") as nowhere:
        server = subprocess.Popen(command, stdin=nowhere, stdout=nowhere, stderr=nowhere)
    try:
        print(f"http://127.0.0.1:{ports[PORTS.index('s3')]}", flush=True)
        sys.stdin.read()
    finally:
        # Nothing it holds is needed any more, and an orderly end takes it half a minute.
        server.kill()
        server.wait()


def _identities(folder: str) -> str:
    """A file with those who may do everything: the tests, with and without their key."""
    everything = ["Admin", "Read", "Write", "List", "Tagging"]
    key = {"accessKey": "test", "secretKey": "test"}
    identities = [
        {"name": "tests", "credentials": [key], "actions": everything},
        {"name": "anonymous", "actions": everything},
    ]
    file = Path(folder) / "identities.json"
    file.write_text(json.dumps({"identities": identities}))
    return str(file)


def _free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for opened in sockets:
            opened.bind(("127.0.0.1", 0))
        return [opened.getsockname()[1] for opened in sockets]


if __name__ == "__main__":
    serve(sys.argv[1])
