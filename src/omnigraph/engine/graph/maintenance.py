"""The upkeep of a graph."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from omnigraph.engine.gate import Action, Request
from omnigraph.engine.graph.handle import GraphHandle
from omnigraph.limits import CLEANUP_MIN_AGE_SECONDS
from omnigraph.progress import SILENT, Progress
from omnigraph.versioning.branch_names import MAIN

if TYPE_CHECKING:
    from omnigraph.engine.maintain.cleanup import CleanupReport
    from omnigraph.engine.maintain.index_report import IndexReport
    from omnigraph.engine.maintain.optimize import OptimizeReport
    from omnigraph.engine.maintain.repair import RepairReport
    from omnigraph.engine.maintain.status import GraphStatus
    from omnigraph.versioning.recovery.heal import RecoveryStatus


class Maintenance(GraphHandle):
    """What keeps a graph sound."""

    def recovery_status(self) -> RecoveryStatus:
        """Interrupted writes that wait to be settled, and those that only an operator can judge."""
        return self._recovery.status()

    def status(self, branch: str | None = None) -> GraphStatus:
        """How a branch is stored, what indexes and vectors it has, and what should be seen to."""
        from omnigraph.engine.maintain.orphans import abandoned_scratch
        from omnigraph.engine.maintain.status import GraphStatus, MovedBranch, table_statuses
        from omnigraph.versioning.locks import held_leases

        snapshot = self.snapshot(branch)
        return GraphStatus(
            uri=self.uri,
            snapshot=snapshot,
            branches=len(self._branches.list()),
            moved=tuple(MovedBranch(m.branch, m.made_at) for m in self._branches.moved()),
            tables=table_statuses(snapshot, self._tables, self._texts),
            recovery=self._recovery.status(),
            leases=tuple(held_leases(self._objects)),
            scratch=tuple(abandoned_scratch(self._objects)),
            cached_bytes=self._reader.cached_bytes,
        )

    def wait_for_upkeep(self) -> None:
        """Return when nothing that this handle has written is being folded any more.

        After many small writes a type is stored in fewer pieces, in the background and as a commit of
        its own. Wait for that before you copy or remove the files of a graph; a process that ends
        does so by itself.
        """
        self._writer.folding.wait()

    def ensure_indices(
        self,
        branch: str | None = None,
        *,
        actor: str | None = None,
        progress: Progress = SILENT,
    ) -> IndexReport:
        """Make the indexes the schema asks for where they are missing, as one commit or as none.

        What a branch only reads from main is left alone. Every index is a stage that
        `progress` is told about.
        """
        from omnigraph.engine.maintain.indexes import Indexing

        self._writable("ensure_indices")
        contract = self._schemas.contract()
        ref = self._ref(branch)
        self._gate.check(Request(actor, Action.CHANGE, branch=ref.public))
        indexing = Indexing(self._parts, self._writer)
        self._recover(ref)
        return indexing.run(ref, contract, actor=actor, progress=progress)

    def optimize(self, *, actor: str | None = None) -> OptimizeReport:
        """Store the rows of main in fewer, fuller pieces and bring indexes up to date.

        One commit, or none if there is nothing to do. No row, id or answer changes. Raises
        `RecoveryPending` while an interrupted write waits to be settled.
        """
        from omnigraph.engine.maintain.optimize import Optimizing

        self._writable("optimize")
        self._gate.check(Request(actor, Action.CHANGE, branch=MAIN))
        optimizing = Optimizing(self._parts)
        return optimizing.run(self._branches.find(MAIN), self._schemas.contract(), actor=actor)

    def cleanup(
        self,
        *,
        keep_versions: int | None = None,
        older_than: timedelta | None = None,
        min_age: timedelta = timedelta(seconds=CLEANUP_MIN_AGE_SECONDS),
        dry_run: bool = False,
        actor: str | None = None,
    ) -> CleanupReport:
        """Remove what is stored of the past of main, so that it cannot be read any more.

        Versions of a table go that are not among the newest `keep_versions` and older than
        `older_than`; at least one of the two is needed. What was replaced less than `min_age` ago
        stays in any case, because it may be read just now, and so does what a branch reads or a
        merge would compare with. With `dry_run` nothing is removed. Raises `RecoveryPending`.
        """
        from omnigraph.engine.maintain.cleanup import Cleanup, CleanupPolicy

        policy = CleanupPolicy(keep_versions, older_than, min_age)
        self._writable("cleanup")
        self._gate.check(Request(actor, Action.CHANGE, branch=MAIN))
        self._schemas.contract()
        cleanup = Cleanup(self._parts)
        return cleanup.run(policy, dry_run=dry_run)

    def repair(
        self,
        branch: str = "main",
        *,
        confirm: bool = False,
        force: bool = False,
        rollback: bool = False,
    ) -> RepairReport:
        """Look at tables of a branch that moved without a commit and, if told to, decide about them.

        Without `confirm` nothing is changed. Raises `RecoveryPending` while an interrupted write
        of the branch waits to be settled.
        """
        from omnigraph.engine.maintain.repair import Repair, RepairOptions

        self._writable("repair")
        options = RepairOptions(confirm, force, rollback)
        repair = Repair(self._parts)
        report = repair.run(self._branches.find(branch), self._schemas.contract(), options)
        if report.commit is not None and report.branch == self.branch:
            self.sync_branch(report.branch)
        return report
