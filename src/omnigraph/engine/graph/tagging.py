"""Tags of a graph: names for commits that are to stay readable."""

from __future__ import annotations

from omnigraph.engine.gate import Action, Request
from omnigraph.engine.graph.handle import GraphHandle
from omnigraph.engine.refs import Ref
from omnigraph.engine.tags import Tag, create_tag, delete_tag, list_tags


class Tagging(GraphHandle):
    """Tags, which keep commits from being cleaned up."""

    def tags(self) -> list[Tag]:
        """All tags by name."""
        return list_tags(self._parts)

    def create_tag(self, name: str, ref: Ref | None = None, *, actor: str | None = None) -> Tag:
        """Keep a commit readable under a name; without a ref the newest one of the bound branch.

        Raises `CommitNotFound`, or `HistoryRemoved` when it is too late.
        """
        self._writable("tag a commit")
        target = self._resolve(self.branch if ref is None else ref, "ref")
        self._gate.check(Request(actor, Action.CHANGE, branch=target.branch.public))
        return create_tag(self._parts, name, target, actor)

    def delete_tag(self, name: str, *, actor: str | None = None) -> None:
        """Let a tagged commit go with the next cleanup. Raises `TagNotFound`."""
        self._writable("delete a tag")
        self._gate.check(Request(actor, Action.CHANGE, branch=self.branch))
        delete_tag(self._parts, name)
