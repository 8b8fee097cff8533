"""The blobs of a graph."""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph.engine.graph.handle import GraphHandle

if TYPE_CHECKING:
    from omnigraph.engine.blobs import Blob


class Blobs(GraphHandle):
    """Bytes that are too many for a query result."""

    def open_blob(
        self,
        type_name: str,
        id: str,
        property: str,
        *,
        branch: str | None = None,
        at: str | int | None = None,
    ) -> Blob:
        """One blob of a node or edge: its size, and its bytes in parts.

        `at` is a version, a commit or a branch, as for `Graph.at`; without it the newest state.
        """
        return self._seen(branch, at).open_blob(type_name, id, property)

    def read_blob(
        self,
        type_name: str,
        id: str,
        property: str,
        *,
        offset: int = 0,
        length: int | None = None,
        branch: str | None = None,
        at: str | int | None = None,
    ) -> bytes:
        """The bytes of one blob, or a part of them."""
        return self.open_blob(type_name, id, property, branch=branch, at=at).read(offset, length)
