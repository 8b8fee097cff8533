"""The explorer: a page with its script and styles. Anyone may fetch them; they contain no data.

The files are built from `explorer/` at the root of the repository. What the page shows it asks of the routes
of contract 0.13, with the token that it is given. Tests: tests/server/test_explorer.py, tests/browser.
"""

from __future__ import annotations

import gzip
import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from omnigraph.server.call import Answer, Call
from omnigraph.server.problems import HttpProblem
from omnigraph.server.routes import Route, Scope

PATH: Final = "/explore"
FOLDER: Final = Path(__file__).parent / "page"
MEDIA_TYPES: Final = {
    "index.html": "text/html; charset=utf-8",
    "app.js": "text/javascript; charset=utf-8",
    "layout.js": "text/javascript; charset=utf-8",
    "app.css": "text/css; charset=utf-8",
    "icon.svg": "image/svg+xml",
}
"""The files there are. Nothing else of the folder is sent."""

CONTENT_SECURITY_POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "worker-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
_HEADERS: Final = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-cache",
    "Vary": "Accept-Encoding",
}


@dataclass(frozen=True, slots=True)
class _File:
    content: bytes
    compressed: bytes
    tag: str


@cache
def _read(name: str) -> _File:
    content = (FOLDER / name).read_bytes()
    digest = hashlib.sha256(content).hexdigest()[:32]
    return _File(content, gzip.compress(content, 9, mtime=0), digest)


def page(call: Call) -> Answer:
    """The page itself."""
    return _answer(call, "index.html")


def asset(call: Call) -> Answer:
    """A file that the page loads."""
    name = call.path["file"]
    if name not in MEDIA_TYPES or name == "index.html":
        raise HttpProblem(404, "not found")
    return _answer(call, name)


def _answer(call: Call, name: str) -> Answer:
    found = _read(name)
    is_compressed = "gzip" in call.headers.get("accept-encoding", "")
    tag = f'"{found.tag}{"-gzip" if is_compressed else ""}"'
    headers = _HEADERS | {"ETag": tag}
    if call.headers.get("if-none-match") == tag:
        return Answer(content=b"", status=304, headers=headers, media_type=MEDIA_TYPES[name])
    if is_compressed:
        headers["Content-Encoding"] = "gzip"
    content = found.compressed if is_compressed else found.content
    return Answer(content=content, headers=headers, media_type=MEDIA_TYPES[name])


EXPLORER: Final = (
    Route(
        "GET", PATH, "explorer", "health", page, media="text/html",
        scope=Scope.PUBLIC, is_documented=False, action="none",
    ),
    Route(
        "GET", f"{PATH}/{{file}}", "explorerFile", "health", asset, media="text/javascript",
        scope=Scope.PUBLIC, is_documented=False, action="none",
    ),
)  # fmt: skip
"""The routes of the page. They are no part of a contract."""
