"""The commits of a graph, and single entities as they were."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from omnigraph.engine.graph.handle import GraphHandle
from omnigraph.errors import CommitBranchGone
from omnigraph.versioning.commits import CommitId, CommitRecord

if TYPE_CHECKING:
    from omnigraph.engine.commit_selection import CommitOrTime
    from omnigraph.engine.receipts import Receipt
    from omnigraph.versioning.audit import RecordedAudit


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
        from omnigraph.engine.commit_selection import CommitSelection

        wanted = CommitSelection(actor, operation, since, until, limit, newest_first)
        return wanted.of(self._manifest.commits(self._ref(branch).physical))

    def commit(self, commit_id: str) -> CommitRecord:
        """One commit, from whichever branch has it. Raises `CommitNotFound`.

        A commit that a merge has brought along is found after its own branch was deleted.
        """
        try:
            return self._locate(CommitId(commit_id))[0]
        except CommitBranchGone:
            found = self._brought(CommitId(commit_id), self._branches.list())
            if found is None:
                raise
            return found

    def ancestry(self, branch: str | None = None) -> list[CommitRecord]:
        """Everything a branch descends from, merged commits too, each after its descendants."""
        from omnigraph.versioning.ancestry import newest_first as in_order

        state = self._manifest.current(self._ref(branch).physical)
        own, brought = self._manifest.told_commits(state.branch, state.sequence)
        known = {commit.graph_commit_id: commit for commit in (*brought, *own)}
        return in_order(known, state.head)

    def receipt_of(self, commit_id: str) -> Receipt:
        """The receipt the write that made a commit returned."""
        from omnigraph.engine.receipts import receipt_of

        return receipt_of(self.commit(commit_id), self.catalog)

    def recoveries(self, branch: str | None = None) -> list[RecordedAudit]:
        """What recovery has done on a branch, oldest first."""
        return self._manifest.audits(self._ref(branch).physical)

    def entity_at(self, table_key: str, id: str, version: int) -> dict[str, Any] | None:
        """One entity of the bound branch as commit number `version` left it, or None."""
        return self.at(version).entity(table_key, id)

    def entity_at_target(self, target: str | int, table_key: str, id: str) -> dict[str, Any] | None:
        """One entity at a version, a commit or the head of a branch, or None; see `GraphAt.entity`."""
        return self.at(target).entity(table_key, id)
