"""The upkeep of a graph."""

from __future__ import annotations

from omnigraph.engine.graph.handle import GraphHandle
from omnigraph.engine.maintain.repair import Repair, RepairOptions, RepairReport
from omnigraph.versioning.recovery.heal import RecoveryStatus


class Maintenance(GraphHandle):
    """What keeps a graph sound."""

    def recovery_status(self) -> RecoveryStatus:
        """Interrupted writes that wait to be settled, and those that only an operator can judge."""
        return self._recovery.status()

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
        self._writable("repair")
        options = RepairOptions(confirm, force, rollback)
        repair = Repair(
            self._tables,
            self._manifest,
            self._branches,
            self._locks,
            self._recovery,
            self._snapshot,
        )
        report = repair.run(self._branches.find(branch), self._schemas.contract(), options)
        if report.commit is not None and report.branch == self.branch:
            self.sync_branch(report.branch)
        return report
