"""The branches and tags of a remote graph, and the calls that combine branches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from omnigraph.api.arguments import text_argument
from omnigraph.client import documents
from omnigraph.client.addresses import path_segment
from omnigraph.client.handle import RemoteHandle, keyed, new_key, refuse_engine, write_fields
from omnigraph.client.transport import Write
from omnigraph.diagnostics import with_hint
from omnigraph.errors import BranchInUse, InputError, NotFoundError
from omnigraph.versioning.branch_names import MAIN
from omnigraph.wire import documents07 as v07

if TYPE_CHECKING:
    from omnigraph.api.protocol import GraphProtocol
    from omnigraph.history.refs import Ref
    from omnigraph.history.tags import Tag
    from omnigraph.merge.merger import AppliedCommit, MergeResult
    from omnigraph.progress import Progress
    from omnigraph.spark.choice import EngineArgument


class RemoteMerges(RemoteHandle):
    """Calls that combine branches of a graph behind a server, each as one commit."""

    def merge(
        self,
        source: Ref,
        into: str | None = None,
        *,
        strategy: str | Mapping[str, str] = "fail",
        granularity: str = "row",
        resolutions: Iterable[Mapping[str, Any]] = (),
        dry_run: bool = False,
        delete_source: bool = False,
        message: str | None = None,
        expected_head: Ref | None = None,
        idempotency_key: str | None = None,
        engine: EngineArgument = "auto",
        progress: Progress | None = None,
    ) -> MergeResult:
        """Merge a branch, or an earlier state of one, into a branch: the bound one by default."""
        from omnigraph.merge.resolution import ConflictResolution

        refuse_engine(engine)
        decided = [dict(one) for one in resolutions]
        ConflictResolution.parse(strategy, granularity, tuple(decided))
        target = self._branch if into is None else text_argument("into", into)
        if source == target:
            raise InputError("a merge needs distinct source and target branches")
        named = self._ref("source", source)
        if delete_source:
            _refuse_bound(self, named)
        body = {
            "source": named,
            "target": target,
            "strategy": strategy if isinstance(strategy, str) else dict(strategy),
            "granularity": granularity,
            "resolutions": decided,
            "dry_run": dry_run,
            "delete_source": delete_source,
            **write_fields(message, expected_head),
        }
        write = keyed(new_key(idempotency_key))
        reply = self._call("POST", "/branches/merge", body=body, write=write)
        return documents.merge_of(reply.json(v07.BranchMergeOutput))

    def revert(
        self,
        ref: Ref,
        *,
        branch: str | None = None,
        dry_run: bool = False,
        message: str | None = None,
        expected_head: Ref | None = None,
        idempotency_key: str | None = None,
        engine: EngineArgument = "auto",
        progress: Progress | None = None,
    ) -> AppliedCommit:
        """Undo a commit's changes as a new commit; for a merge, what it changed on its branch."""
        refuse_engine(engine)
        body = {"branch": self._on(branch), "dry_run": dry_run}
        return self._apply("/revert", body, ref, message, expected_head, idempotency_key)

    def cherry_pick(
        self,
        ref: Ref,
        *,
        branch: str | None = None,
        dry_run: bool = False,
        message: str | None = None,
        expected_head: Ref | None = None,
        idempotency_key: str | None = None,
        engine: EngineArgument = "auto",
        progress: Progress | None = None,
    ) -> AppliedCommit:
        """Apply a commit's changes to another branch as a new commit."""
        refuse_engine(engine)
        body = {"branch": self._on(branch), "dry_run": dry_run}
        return self._apply("/cherry-pick", body, ref, message, expected_head, idempotency_key)

    def _apply(
        self,
        path: str,
        body: dict[str, Any],
        ref: Ref,
        message: str | None,
        expected_head: Ref | None,
        idempotency_key: str | None,
    ) -> AppliedCommit:
        self._transport  # noqa: B018 - a closed handle is refused at once
        sent = body | {"ref": self._ref("ref", ref)} | write_fields(message, expected_head)
        reply = self._call("POST", path, body=sent, write=keyed(new_key(idempotency_key)))
        return documents.applied_of(reply.json(v07.AppliedCommitOutput))

    @property
    def branches(self) -> RemoteBranches:
        """The branches of the graph."""
        return RemoteBranches(self)

    @property
    def tags(self) -> RemoteTags:
        """The tags of the graph."""
        return RemoteTags(self)


def _refuse_bound(graph: RemoteHandle, name: str) -> None:
    if name == graph.branch and name != MAIN:
        raise BranchInUse(name, "cannot delete currently active branch")


class RemoteBranches:
    """The branches of a graph behind a server; iterating gives their names, `main` first."""

    def __init__(self, graph: RemoteMerges) -> None:
        self._graph = graph

    def _names(self) -> list[str]:
        found = self._graph._get("/branches", v07.BranchListOutput).branches
        return sorted(found, key=lambda name: (name != MAIN, name))

    def __iter__(self) -> Iterator[str]:
        return iter(self._names())

    def __len__(self) -> int:
        return len(self._names())

    def __contains__(self, name: object) -> bool:
        return name in self._names()

    def __repr__(self) -> str:
        names = self._names()
        shown = ", ".join(names[:10]) + (", …" if len(names) > 10 else "")
        return f"<{len(names)} branches: {shown}>"

    def create(self, name: str, source: Ref | None = None) -> GraphProtocol:
        """Create a branch and return a handle on it. Copies no data."""
        graph = self._graph
        new_name = text_argument("name", name)
        origin = graph.branch if source is None else graph._ref("source", source)
        graph._call("POST", "/branches", body={"name": new_name, "from": origin}, write=Write())
        made: Any = graph._with(new_name)
        return made  # type: ignore[no-any-return]  # RemoteGraph, which is defined above this module

    def delete(self, name: str) -> None:
        """Delete a branch. Raises `BranchInUse` if other branches or a tag depend on it."""
        old_name = text_argument("name", name)
        self._graph._transport  # noqa: B018 - a closed handle is refused at once
        _refuse_bound(self._graph, old_name)
        self._graph._call("DELETE", f"/branches/{path_segment(old_name)}", write=Write())

    def reset(
        self,
        name: str,
        ref: Ref,
        *,
        dry_run: bool = False,
        message: str | None = None,
        expected_head: Ref | None = None,
        idempotency_key: str | None = None,
        engine: EngineArgument = "auto",
        progress: Progress | None = None,
    ) -> AppliedCommit:
        """Give a branch the rows of another state, as a new commit. Its history stays."""
        refuse_engine(engine)
        path = f"/branches/{path_segment(text_argument('name', name))}/reset"
        body = {"dry_run": dry_run}
        return self._graph._apply(path, body, ref, message, expected_head, idempotency_key)


class RemoteTags:
    """The tags of a graph behind a server; iterating gives the names."""

    def __init__(self, graph: RemoteMerges) -> None:
        self._graph = graph

    def _all(self) -> dict[str, Tag]:
        found = self._graph._get("/tags", v07.TagListOutput).tags
        return {tag.name: documents.tag_of(tag) for tag in found}

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
        """All tags by name."""
        return list(self._all().values())

    def create(self, name: str, ref: Ref | None = None) -> Tag:
        """Name a commit: that of `ref`, or the head of the bound branch."""
        graph = self._graph
        new_name = text_argument("name", name)
        wanted = graph.branch if ref is None else graph._ref("ref", ref)
        body = {"name": new_name, "ref": wanted}
        return documents.tag_of(
            graph._call("POST", "/tags", body=body, write=Write()).json(v07.TagOutput)
        )

    def delete(self, name: str) -> None:
        """Delete a tag. Its commit stays until a cleanup that does not keep it."""
        old_name = text_argument("name", name)
        self._graph._call("DELETE", f"/tags/{path_segment(old_name)}", write=Write())
