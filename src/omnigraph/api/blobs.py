"""The blobs of a graph: bytes that are too large for query results."""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph.api.handle import GraphHandle

if TYPE_CHECKING:
    from omnigraph.history.refs import Ref
    from omnigraph.read.entities import Blob


class HasBlobs(GraphHandle):
    """A handle with the group `blobs`."""

    @property
    def blobs(self) -> Blobs:
        """The blobs of the graph.

        >>> graph.blobs.read("Person", "ada@x.org", "photo")
        b'a portrait'
        """
        return Blobs(self)


class Blobs:
    """Reads the blobs of a graph."""

    def __init__(self, graph: HasBlobs) -> None:
        self._graph = graph

    def __repr__(self) -> str:
        return f"<blobs of {self._graph!r}>"

    def open(
        self,
        type: str,
        id: str,
        property: str,
        *,
        branch: str | None = None,
        at: Ref | None = None,
    ) -> Blob:
        """One blob: its size, and its bytes in parts. Raises `EntityNotFound` or `BlobMissing`.

        >>> graph.blobs.open("Person", "ada@x.org", "photo").size
        10
        """
        return self._graph._state(branch, at).blobs.open(type, id, property)

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
        """The bytes of one blob, or a part of them. Raises `BlobRangeError` past its end.

        >>> graph.blobs.read("Person", "ada@x.org", "photo", length=1)
        b'a'
        """
        return self.open(type, id, property, branch=branch, at=at).read(offset, length)
