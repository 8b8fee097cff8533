"""The blobs of a graph."""

from __future__ import annotations

from omnigraph.engine.blobs import Blob, open_blob
from omnigraph.engine.graph.handle import GraphHandle
from omnigraph.errors import InputError


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
        if branch is not None and at is not None:
            raise InputError("a blob is of a branch or of a commit; give `branch` or `at`")
        snapshot = self.snapshot(branch) if at is None else self.at(at)
        return open_blob(snapshot, self._tables, type_name, id, property)

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
