"""Graph URIs: which store a graph is in, how its files are named, and how to reach an S3 store.

A root is normalised once, when a graph is opened. From then on two spellings of one location are the
same text for the adapter and for Lance, independent of the working directory. S3 options come from the
environment; the adapter and Lance get the same ones, so they always use the same server.
Tests: tests/contract/objects/test_uris.py, test_remote.py.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal
from urllib.parse import unquote

from omnigraph.errors import InputError, StoreCallFailed
from omnigraph.settings import read_settings

RootKind = Literal["local", "s3", "memory"]

_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_BUCKET: Final = re.compile(r"[A-Za-z0-9._-]+")
_MEMORY_NAME: Final = re.compile(r"[\w.-]+(/[\w.-]+)*", re.ASCII)
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
"""What bytes that are no UTF-8 become in a path."""
_TEMPORARY: Final = re.compile(r"#[0-9]+\Z")


@dataclass(frozen=True, slots=True)
class GraphRoot:
    """The place that holds one graph, in its normal form. Made by `normalise_root`."""

    uri: str
    kind: RootKind

    def __post_init__(self) -> None:
        if _normal_form(self.uri) != (self.uri, self.kind):
            raise ValueError(f"'{self.uri}' is not the normal form of a {self.kind} root")

    def join(self, relative: str) -> str:
        """The address of something inside the graph."""
        tail = relative.strip("/")
        return f"{self.uri.rstrip('/')}/{tail}" if tail else self.uri

    @property
    def identity(self) -> str:
        """Equal for two roots that are the same place, even when reached through symbolic links."""
        return os.path.realpath(self.uri) if self.kind == "local" else self.uri

    @property
    def bucket_and_prefix(self) -> tuple[str, str]:
        """An `s3` root in two parts; the prefix is empty when the graph has a bucket for itself."""
        bucket, _, prefix = self.uri.removeprefix("s3://").partition("/")
        return bucket, prefix


def normalise_root(uri: str) -> GraphRoot:
    """Read an address: a path, `file://…`, `s3://bucket/prefix` or, for tests, `memory://name`.

    Raises `InputError` for one that cannot be used, and `StoreCallFailed` for `s3://` without a
    bucket.
    """
    return GraphRoot(*_normal_form(uri))


def normalise_path(relative: str) -> str:
    """A path inside a graph without `.`, `..` and superfluous slashes; empty for the root itself.

    Raises `ValueError` for a path that leads out of the root or that no object may have.
    """
    segments: list[str] = []
    for segment in relative.split("/"):
        if segment == "..":
            if not segments:
                raise ValueError("the path is outside the graph")
            segments.pop()
        elif not is_addressable(segment):
            raise ValueError(f"'{segment}' is not a valid object name")
        elif segment not in ("", "."):
            segments.append(segment)
    return "/".join(segments)


def is_addressable(name: str) -> bool:
    """False for control characters, and for `name#123`, which is how unfinished files are called."""
    return not _CONTROL.search(name) and not _TEMPORARY.search(name)


def _normal_form(uri: str) -> tuple[str, RootKind]:
    if not uri or _CONTROL.search(uri):
        raise InputError(f"{uri!r} is not a valid graph URI; use a path, file:// or s3://")
    scheme = _SCHEME.match(uri)
    if scheme is None:
        return _local_path(uri), "local"
    rest = uri[scheme.end() :]
    match scheme[1]:
        case "file":
            return _local_path(_decoded(uri, rest)), "local"
        case "s3":
            return _s3_uri(uri.rstrip("/"), rest.rstrip("/")), "s3"
        case "memory" | "shared-memory":
            return _memory_uri(uri, rest.rstrip("/")), "memory"
        case other:
            raise InputError(
                f"'{uri}': graphs are not kept at {other}:// addresses; "
                "use a path, file:// or s3://"
            )


def _local_path(path: str) -> str:
    """Absolute and normalised by its text alone, so that Lance and the adapter always agree."""
    # POSIX lets two leading slashes mean something else than one; here they never do.
    absolute = re.sub(r"\A//+", "/", os.path.abspath(path))
    # Lance takes what follows for the query of a URL, and the graph would lie in two places.
    if "?" in absolute:
        raise InputError(f"'{absolute}': the path of a graph may not contain a question mark")
    if _SURROGATE.search(absolute):
        raise InputError(f"{absolute!r}: the path of a graph must be UTF-8")
    return absolute


def _decoded(uri: str, rest: str) -> str:
    host, slash, path = rest.partition("/")
    if host not in ("", "localhost") or not slash:
        raise InputError(f"'{uri}': write a file address as file:///path/to/graph")
    try:
        decoded = unquote(slash + path, errors="strict")
    except UnicodeDecodeError:
        raise InputError(f"'{uri}' does not decode to UTF-8") from None
    if _CONTROL.search(decoded):
        raise InputError(f"'{uri}' contains control characters")
    return decoded


def _s3_uri(uri: str, rest: str) -> str:
    bucket, _, prefix = rest.partition("/")
    if not bucket:
        raise StoreCallFailed("address", uri, "it names no bucket")
    if not _BUCKET.fullmatch(bucket):
        raise InputError(f"'{uri}': '{bucket}' is not a valid bucket name")
    # Lance reads the address as a URL: it cuts at `?` and `#`, decodes `%41` and resolves dots. The
    # adapter would take the same text literally, and the graph would lie in two places.
    if re.search(r"[%?#\\]", prefix) or (prefix and {"", ".", ".."} & set(prefix.split("/"))):
        raise InputError(
            f"'{uri}': the prefix of a graph may contain neither empty parts, '.' and '..' "
            "nor the characters % ? # \\"
        )
    return f"s3://{rest}"


def _memory_uri(uri: str, name: str) -> str:
    if not _MEMORY_NAME.fullmatch(name):
        raise InputError(f"'{uri}': name the graph, as in memory://name")
    # The scheme under which Lance shares its memory between all handles of a process.
    return f"shared-memory://{name}"


_TRUTHY: Final = frozenset({"1", "true", "TRUE", "True", "yes", "YES", "on", "ON"})


_SHARED_OPTIONS: Final = (
    "aws_region",
    "aws_access_key_id",
    "aws_secret_access_key",
    "aws_session_token",
)


def s3_options(environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """How to reach the store, from the `AWS_*` variables. Lance takes the same options."""
    settings = read_settings(environment)
    given = {option: getattr(settings, option) for option in _SHARED_OPTIONS}
    options: dict[str, str] = {option: text for option, text in given.items() if text is not None}
    endpoint = settings.aws_endpoint_url_s3 or settings.aws_endpoint_url
    if endpoint:
        options["aws_endpoint"] = endpoint.rstrip("/")
    if (endpoint or "").startswith("http://") or settings.aws_allow_http in _TRUTHY:
        options["allow_http"] = "true"
    if settings.aws_s3_force_path_style in _TRUTHY:
        options["aws_virtual_hosted_style_request"] = "false"
    return options
