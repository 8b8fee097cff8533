"""The commits of a graph, and single entities as they were."""

from __future__ import annotations

from typing import Any

from omnigraph.engine.commit_selection import CommitOrTime, CommitSelection
from omnigraph.engine.graph.handle import GraphHandle
from omnigraph.engine.receipts import Receipt, receipt_of
from omnigraph.engine.refs import Ref, find_commit
from omnigraph.versioning.ancestry import newest_first
from omnigraph.versioning.audit import RecordedAudit
from omnigraph.versioning.commits import CommitRecord


class History(GraphHandle):
    """What happened to a graph."""

    def commits(
        self,
        branch: str | None = None,
        *,
        actor: str | None = None,
        operation: str | None = None,
        since: CommitOrTime | None = None,
        until: CommitOrTime | None = None,
        limit: int | None = None,
        newest_first: bool = False,
    ) -> list[CommitRecord]:
        """The commits visible on a branch, oldest first unless asked otherwise.

        `since` and `until` are commits or moments, and are part of what is listed.
        """
        wanted = CommitSelection(actor, operation, since, until, limit, newest_first)
        return wanted.of(self._manifest.commits(self._ref(branch).physical))

    def commit(self, ref: Ref) -> CommitRecord:
        """One commit, from whichever branch has it. Raises `CommitNotFound`.

        A commit that a merge has brought along is found after its own branch was deleted.
        """
        return find_commit(self._parts, self._bound, ref)

    def ancestry(self, branch: str | None = None) -> list[CommitRecord]:
        """Everything a branch descends from, merged commits too, each after its descendants."""
        state = self._manifest.current(self._ref(branch).physical)
        own, brought = self._manifest.told_commits(state.branch, state.sequence)
        known = {commit.graph_commit_id: commit for commit in (*brought, *own)}
        return newest_first(known, state.head)

    def receipt_of(self, ref: Ref) -> Receipt:
        """The receipt the write that made a commit returned."""
        return receipt_of(self.commit(ref), self.catalog)

    def recoveries(self, branch: str | None = None) -> list[RecordedAudit]:
        """What recovery has done on a branch, oldest first."""
        return self._manifest.audits(self._ref(branch).physical)

    def entity_at(self, table_key: str, id: str, version: int) -> dict[str, Any] | None:
        """One entity of the bound branch as commit number `version` left it, or None."""
        return self.at(version).entity(table_key, id)

    def entity_at_target(self, target: Ref, table_key: str, id: str) -> dict[str, Any] | None:
        """One entity at a version, a commit or the head of a branch, or None; see `GraphAt.entity`."""
        return self.at(target).entity(table_key, id)
