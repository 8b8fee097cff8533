"""Addresses of servers, tokens and names in paths, checked before anything is sent.

Tests: tests/unit/client/test_transport.py.
"""

from __future__ import annotations

from urllib.parse import quote, urlsplit

from omnigraph.errors import InputError


def parsed_address(url: str) -> tuple[str, str, int, str]:
    """Scheme, host, port and path prefix. Raises `InputError`."""
    if not isinstance(url, str):
        raise InputError("url must be a string such as 'https://host:8080'")
    try:
        parts = urlsplit(url.strip())
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port, parts = None, None, urlsplit("")
    if parts.username is not None or parts.password is not None:
        raise InputError("url must not contain a user or password; pass token")
    if parts.scheme not in ("http", "https") or not host or parts.query or parts.fragment:
        raise InputError(f"url must be an address such as 'https://host:8080', not '{url}'")
    if not (url.isascii() and url.isprintable()) or " " in url:
        raise InputError("url must be printable ASCII text without spaces")
    usual = 443 if parts.scheme == "https" else 80
    return parts.scheme, host, usual if port is None else port, parts.path.rstrip("/")


def checked_token(token: object) -> str | None:
    """A token that can be sent in a header. Raises `InputError`."""
    if token is None:
        return None
    if not isinstance(token, str) or not token:
        raise InputError("token must be text that is not empty")
    if not (token.isascii() and token.isprintable()) or " " in token:
        raise InputError("token must be printable ASCII text without spaces")
    return token


def path_segment(text: str) -> str:
    """A name as one segment of a path."""
    return quote(text, safe="")
