"""The blobs of a remote graph, read in ranges."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from omnigraph.api.arguments import text_argument
from omnigraph.client.handle import RemoteHandle
from omnigraph.errors import EmbeddedOnly, UnexpectedAnswer

if TYPE_CHECKING:
    from omnigraph.history.refs import Ref
    from omnigraph.read.entities import Blob


@dataclass(frozen=True, slots=True)
class _ServedBlob:
    """A blob on the server, of a state that never changes."""

    graph: RemoteHandle
    query: tuple[tuple[str, str], ...]
    tag: str

    def read(self, offset: int, length: int) -> bytes:
        """A part that lies within the blob."""
        headers = {"Range": f"bytes={offset}-{offset + length - 1}", "If-Match": self.tag}
        reply = self.graph._call("GET", "/blob", query=self.query, headers=headers, accept="*/*")
        if reply.status != 206 or len(reply.content) != length:
            raise UnexpectedAnswer(reply.server, "the answer is not the wanted range", reply.status)
        return reply.content


def open_served(graph: RemoteHandle, target: Mapping[str, str], *names: object) -> Blob:
    """One blob: its size, and its bytes in parts."""
    from omnigraph.read.entities import Blob

    type, id, property = (
        text_argument(name, value)
        for name, value in zip(("type", "id", "property"), names, strict=True)
    )
    asked = (("type", type), ("id", id), ("property", property))
    query = (*asked, *target.items())
    reply = graph._call("HEAD", "/blob", query=query, accept="*/*", passes=range(300, 600))
    if reply.status >= 400:
        # The answer to HEAD has no body that would say what is wrong.
        reply = graph._call("GET", "/blob", query=query, accept="*/*", passes=(302,))
    if reply.status == 302:
        raise EmbeddedOnly("reading an external blob", f"read {reply.headers.get('location')}")
    # A later range is one of the same state, whatever was committed since.
    state = (("snapshot", reply.headers["omnigraph-snapshot-id"]),)
    served: Any = _ServedBlob(graph, (*asked, *state), reply.headers["etag"])
    return Blob(int(reply.headers["content-length"]), None, served)


class RemoteBlobs:
    """Reads the blobs of a graph behind a server."""

    def __init__(self, graph: RemoteHandle) -> None:
        self._graph = graph

    def __repr__(self) -> str:
        return f"<blobs of {self._graph!r}>"

    def open(
        self, type: str, id: str, property: str, *, branch: str | None = None, at: Ref | None = None
    ) -> Blob:
        """One blob: its size, and its bytes in parts. Raises `EntityNotFound` or `BlobMissing`."""
        return open_served(self._graph, self._graph._target(branch, at), type, id, property)

    def read(
        self,
        type: str,
        id: str,
        property: str,
        *,
        offset: int = 0,
        length: int | None = None,
        branch: str | None = None,
        at: Ref | None = None,
    ) -> bytes:
        """The bytes of one blob, or a part of them. Raises `BlobRangeError` past its end."""
        return self.open(type, id, property, branch=branch, at=at).read(offset, length)


class RemoteBlobsAt:
    """The blobs of a graph behind a server at one commit."""

    def __init__(self, graph: RemoteHandle, target: Mapping[str, str]) -> None:
        self._graph = graph
        self._target = target

    def __repr__(self) -> str:
        return f"<blobs of {self._graph!r} at {self._target['snapshot']}>"

    def open(self, type: str, id: str, property: str) -> Blob:
        """One blob: its size, and its bytes in parts."""
        return open_served(self._graph, self._target, type, id, property)

    def read(
        self, type: str, id: str, property: str, *, offset: int = 0, length: int | None = None
    ) -> bytes:
        """The bytes of one blob, or a part of them."""
        return self.open(type, id, property).read(offset, length)
