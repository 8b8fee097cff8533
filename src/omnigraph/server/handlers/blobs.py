"""The bytes of blobs, with ranges and conditions."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Final, NamedTuple

from omnigraph.api.graph_at import blob_location
from omnigraph.api.handle import newest_state
from omnigraph.errors import NotABlob, UnknownType
from omnigraph.graph.gate import Action
from omnigraph.server.call import Answer, Call, Stream, Write, branch_of
from omnigraph.server.problems import HttpProblem
from omnigraph.wire.errors import BlobRangeOutput

if TYPE_CHECKING:
    from omnigraph.api.graph_at import GraphAt

OCTETS: Final = "application/octet-stream"
_RANGE: Final = re.compile(r"bytes=(\d{0,18})-(\d{0,18})\Z")
_TAG: Final = re.compile(r'(W/)?"([^"]*)"')


def blob(call: Call) -> Answer | Stream:
    """The bytes of one blob, or a range of them."""
    state, type_name, entity_id, name = _selected(call)
    try:
        location = blob_location(state, type_name, entity_id, name)
    except (UnknownType, NotABlob) as error:
        raise HttpProblem(400, error.message, cause=error) from None
    about: dict[str, str] = {"Omnigraph-Snapshot-Id": state.commit_id}
    if location.uri is not None:
        if "range" in call.headers and not call.is_head:
            raise HttpProblem(500, "a range of an external blob cannot be read through the server")
        external = {"Location": location.uri, "Cache-Control": "no-store"}
        return Answer(content=b"", status=302, headers=about | external, media_type=OCTETS)
    found = location.open()
    about["ETag"] = tag = f'"{_tag(call.target.id, location.version, type_name, entity_id, name)}"'
    matching = call.headers.get("if-match")
    if matching is not None and not _matches(matching, tag, weakly=False):
        raise HttpProblem(
            412, "the blob is not the one that If-Match names", code="conflict", headers=about
        )
    unwanted = call.headers.get("if-none-match")
    if unwanted is not None and _matches(unwanted, tag, weakly=True):
        return Answer(content=b"", status=304, headers=about, media_type=OCTETS)
    about["Accept-Ranges"] = "bytes"
    whole = {"Content-Length": str(found.size)}
    if call.is_head:
        return Answer(content=b"", headers=about | whole, media_type=OCTETS)
    wanted = _wanted_range(call, tag, found.size, about)
    start, end = wanted or _Range(0, found.size)

    def produce(write: Write) -> None:
        for part in found.parts(start, end - start):
            write(part)

    if wanted is None:
        return Stream(produce, OCTETS, headers=about | whole)
    about["Content-Range"] = f"bytes {start}-{end - 1}/{found.size}"
    about["Content-Length"] = str(end - start)
    return Stream(produce, OCTETS, status=206, headers=about)


def _selected(call: Call) -> tuple[GraphAt, str, str, str]:
    """The state, type, id and property that the query string names."""
    call.only("entity", "type", "id", "property", "branch", "snapshot")
    kind = call.one("entity")
    type_name, entity_id, name = (_required(call, key) for key in _REQUIRED)
    if kind not in (None, "node", "edge"):
        raise HttpProblem(400, "query parameter 'entity' must be node or edge")
    branch, ref = call.one("branch"), call.one("snapshot")
    if branch is not None and ref is not None:
        raise HttpProblem(400, "specify branch or snapshot, not both")
    if ref is None:
        on = branch_of(branch)
        call.allow(Action.READ, on)
        state = newest_state(call.graph, on)
    else:
        state = call.graph.at(ref)
        call.allow(Action.READ, state.branch)
    types = state.catalog.nodes if kind == "node" else state.catalog.edges
    if kind is not None and type_name not in types:
        raise HttpProblem(400, f"unknown {kind} type '{type_name}'")
    return state, type_name, entity_id, name


_REQUIRED: Final = ("type", "id", "property")


def _required(call: Call, name: str) -> str:
    given = call.one(name)
    if given is None:
        raise HttpProblem(400, f"query parameter '{name}' is required")
    return given


def _tag(*decisive: str) -> str:
    """A hash of what decides the bytes: the graph, the table version, the row and the property."""
    text = "\n".join(decisive)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _matches(header: str, tag: str, *, weakly: bool) -> bool:
    """Whether a condition names the tag. A weak tag never matches strongly."""
    if header.strip() == "*":
        return True
    return any(f'"{value}"' == tag and (weakly or not weak) for weak, value in _TAG.findall(header))


class _Range(NamedTuple):
    start: int
    end: int


def _wanted_range(call: Call, tag: str, size: int, about: dict[str, str]) -> _Range | None:
    """The range to send; None for everything. Raises `HttpProblem` 416 for one past the end."""
    match = _RANGE.match(call.headers.get("range", "").strip())
    condition = call.headers.get("if-range")
    if match is None or (condition is not None and condition.strip() != tag):
        return None
    first, last = match.groups()
    if not first and not last:
        return None
    if first and last and int(last) < int(first):
        return None
    start = int(first) if first else max(0, size - int(last))
    end = min(size, int(last) + 1) if first and last else size
    if start >= size or start >= end:
        wanted = BlobRangeOutput(start=start, end=end if last else None, length=size)
        raise HttpProblem(
            416,
            f"the range begins past the end of the blob ({size} bytes)",
            headers=about | {"Content-Range": f"bytes */{size}"},
            details={"blob_range": wanted},
        )
    return _Range(start, end)
