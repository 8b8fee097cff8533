"""An S3-compatible server for tests, in a process of its own.

Run as a module it serves on a free port of the loopback interface, prints the address, and ends when
its standard input is closed, so that it never outlives the tests.
"""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.request import Request, urlopen

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[3]
BUCKET = "graphs"


def environment_for(endpoint: str) -> dict[str, str]:
    """The variables under which the product talks to a test server."""
    return {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
    }


@contextmanager
def running_server() -> Iterator[str]:
    """The address of a server with one empty bucket."""
    with subprocess.Popen(
        [sys.executable, "-m", "tests.contract.objects.moto_server"],
        cwd=ROOT,
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        lines = (line.strip() for line in process.stdout)
        endpoint = next(line for line in lines if line.startswith("http://"))
        urlopen(Request(f"{endpoint}/{BUCKET}", method="PUT")).close()
        try:
            yield endpoint
        finally:
            process.stdin.close()
            process.wait(timeout=30)


def serve() -> None:
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    print(f"http://{host}:{port}", flush=True)
    sys.stdin.read()
    server.stop()


if __name__ == "__main__":
    serve()
