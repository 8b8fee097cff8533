"""An S3-compatible server for tests, in a process of its own.

Run as a module it serves on a free port of the loopback interface, prints the address, and ends when
its standard input is closed, so that it never outlives the tests.
"""

from __future__ import annotations

import asyncio
import io
import os
import subprocess
import sys
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote_to_bytes
from urllib.request import Request, urlopen

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from wsgiref.types import WSGIApplication, WSGIEnvironment

ROOT = Path(__file__).parents[3]
BUCKET = "graphs"
PAGE = 10
"""How many objects a listing gives at once."""


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


async def serve() -> None:
    from moto.moto_server.werkzeug_app import create_backend_app

    # A listed object costs this server a quarter of a millisecond, and who looks for the newest
    # version needs the first page only.
    os.environ["MOTO_S3_DEFAULT_MAX_KEYS"] = str(PAGE)
    store = create_backend_app("s3")
    server = await asyncio.start_server(
        lambda reader, writer: _converse(store, reader, writer), "127.0.0.1", 0
    )
    host, port = server.sockets[0].getsockname()
    print(f"http://{host}:{port}", flush=True)
    await asyncio.to_thread(sys.stdin.read)


async def _converse(
    store: WSGIApplication, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """Answer the requests of one connection until it is closed.

    The store itself is called by one thread, request after request: it looks whether the condition
    of a write holds and then writes, with nothing in between that would keep others out.
    """
    with suppress(asyncio.IncompleteReadError, ConnectionError):
        while True:
            request = await _request(reader, writer)
            # In one piece: asyncio of Python 3.12.1 never stops sending an empty one.
            writer.write(b"".join(_answer(store, request)))
            await writer.drain()
    writer.close()


async def _request(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> WSGIEnvironment:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    line, *fields = head.removesuffix("\r\n\r\n").split("\r\n")
    method, target, protocol = line.split(" ")
    path, _, query = target.partition("?")
    headers = {
        name.upper().replace("-", "_"): value.strip()
        for name, _, value in (field.partition(":") for field in fields)
    }
    if headers.get("EXPECT", "").lower() == "100-continue":
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    if headers.get("TRANSFER_ENCODING", "").lower() == "chunked":
        body = b"".join([chunk async for chunk in _chunks(reader)])
    else:
        body = await reader.readexactly(int(headers.get("CONTENT_LENGTH", 0)))
    host, _, port = headers["HOST"].partition(":")
    return {
        **{f"HTTP_{k}": v for k, v in headers.items() if not k.startswith("CONTENT_")},
        "REQUEST_METHOD": method,
        "SCRIPT_NAME": "",
        "PATH_INFO": unquote_to_bytes(path).decode("latin-1"),
        "QUERY_STRING": query,
        "REQUEST_URI": target,
        "RAW_URI": target,
        "CONTENT_TYPE": headers.get("CONTENT_TYPE", ""),
        "CONTENT_LENGTH": str(len(body)),
        "SERVER_NAME": host,
        "SERVER_PORT": port,
        "SERVER_PROTOCOL": protocol,
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": "http",
        "wsgi.input": io.BytesIO(body),
        "wsgi.input_terminated": True,
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": False,
        "wsgi.multiprocess": False,
        "wsgi.run_once": False,
    }


async def _chunks(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    while size := int((await reader.readline()).split(b";")[0], 16):
        yield await reader.readexactly(size)
        await reader.readline()
    while (await reader.readline()).strip():
        pass


def _answer(store: WSGIApplication, request: WSGIEnvironment) -> list[bytes]:
    begun: list[tuple[str, list[tuple[str, str]]]] = []

    def begin(status: str, headers: list[tuple[str, str]], _error: object = None) -> Any:
        begun.append((status, headers))

    content = b"".join(store(request, begin))
    status, headers = begun[-1]
    if not any(name.lower() == "content-length" for name, _ in headers):
        headers.append(("Content-Length", str(len(content))))
    lines = [f"HTTP/1.1 {status}", *(f"{name}: {value}" for name, value in headers), "", ""]
    return ["\r\n".join(lines).encode("latin-1"), content]


if __name__ == "__main__":
    asyncio.run(serve())
