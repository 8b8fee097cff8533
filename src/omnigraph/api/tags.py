"""The tags of a graph: names for commits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from omnigraph.api.arguments import text_argument
from omnigraph.api.handle import GraphHandle
from omnigraph.diagnostics import with_hint
from omnigraph.errors import NotFoundError
from omnigraph.graph.gate import Action
from omnigraph.versioning.branch_names import MAIN

if TYPE_CHECKING:
    from omnigraph.history.refs import Ref
    from omnigraph.history.tags import Tag


class HasTags(GraphHandle):
    """A handle with the group `tags`."""

    @property
    def tags(self) -> Tags:
        """The tags of the graph.

        >>> list(graph.tags)
        []
        """
        return Tags(self)


class Tags:
    """Names for commits. A tag is a ref, and cleanup keeps its commit readable.

    Iterating gives the names; `tags["name"]` is the tag.

    >>> _ = graph.tags.create("before-import")
    >>> "before-import" in graph.tags, graph.tags["before-import"].number
    (True, 2)
    """

    def __init__(self, graph: HasTags) -> None:
        self._graph = graph

    def _all(self) -> dict[str, Tag]:
        from omnigraph.history.tags import list_tags

        return {tag.name: tag for tag in list_tags(self._graph._core.parts)}

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def __contains__(self, name: object) -> bool:
        return name in self._all()

    def __getitem__(self, name: str) -> Tag:
        found = self._all()
        if name not in found:
            raise NotFoundError(with_hint(f"tag '{name}' not found", name, found))
        return found[name]

    def __repr__(self) -> str:
        names = list(self._all())
        shown = ", ".join(names[:10]) + (", …" if len(names) > 10 else "")
        return f"<{len(names)} tags: {shown}>" if names else "<0 tags>"

    def all(self) -> list[Tag]:
        """All tags by name.

        >>> graph.tags.all()
        []
        """
        return list(self._all().values())

    def create(self, name: str, ref: Ref | None = None) -> Tag:
        """Name a commit: that of `ref`, or the head of the bound branch.

        Raises `ConflictError` if the name is taken, `HistoryRemoved` if cleanup deleted the state.

        >>> graph.tags.create("v1", "main~1")
        <Tag v1: commit ... #1 on main>
        """
        from omnigraph.history.tags import create_tag

        handle = self._graph
        core, new_name = handle._writable("create a tag"), text_argument("name", name)
        wanted = handle.branch if ref is None else ref
        handle._allow(Action.CHANGE, MAIN)
        return create_tag(
            core.parts, new_name, core.resolve_ref(wanted, handle._bound, "ref"), handle.actor
        )

    def delete(self, name: str) -> None:
        """Delete a tag. Its commit stays until a cleanup that does not keep it.

        >>> _ = graph.tags.create("v1")
        >>> graph.tags.delete("v1")
        """
        from omnigraph.history.tags import delete_tag

        handle = self._graph
        core, old_name = handle._writable("delete a tag"), text_argument("name", name)
        handle._allow(Action.CHANGE, MAIN)
        delete_tag(core.parts, old_name)
