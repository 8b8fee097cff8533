"""The maintenance of a graph: status, compaction, cleanup, verification, repair."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from omnigraph.api.handle import GraphHandle
from omnigraph.graph.gate import Action
from omnigraph.versioning.branch_names import MAIN

if TYPE_CHECKING:
    from collections.abc import Iterable

    from omnigraph.maintenance.cleanup import CleanupReport
    from omnigraph.maintenance.indexes import IndexReport
    from omnigraph.maintenance.optimize import OptimizeReport
    from omnigraph.maintenance.repair import RepairReport
    from omnigraph.maintenance.status import GraphStatus
    from omnigraph.maintenance.verify_report import VerifyReport
    from omnigraph.progress import Progress
    from omnigraph.versioning.audit import RecordedAudit


class HasMaintenance(GraphHandle):
    """A handle with the group `maintenance`."""

    @property
    def maintenance(self) -> Maintenance:
        """The maintenance calls of the graph.

        >>> graph.maintenance.verify().ok
        True
        """
        return Maintenance(self)


class Maintenance:
    """Keeps a graph small, quick and sound."""

    def __init__(self, graph: HasMaintenance) -> None:
        self._graph = graph

    def __repr__(self) -> str:
        return f"<maintenance of {self._graph!r}>"

    def status(self, branch: str | None = None) -> GraphStatus:
        """Sizes, index and embedding coverage, pending recoveries, and recommended actions.

        >>> graph.maintenance.status().advice
        ()
        """
        from omnigraph.maintenance.status import graph_status

        core = self._graph._core
        snapshot = core.snapshot(self._graph._ref(branch))
        return graph_status(core.parts, snapshot, core.reader.cached_bytes, self._graph._view)

    def verify(
        self, branches: Iterable[str] | None = None, *, progress: Progress | None = None
    ) -> VerifyReport:
        """Check every row against the schema and every reference against its file.

        Reads everything and changes nothing. `branches` limits the check; without it all branches
        are checked.

        >>> graph.maintenance.verify().problems
        ()
        """
        from omnigraph.api.arguments import names_argument
        from omnigraph.maintenance.verify import verify_graph
        from omnigraph.progress import SILENT

        self._graph._require_whole("verify a graph")
        core = self._graph._core
        wanted = None if branches is None else names_argument("branches", branches)
        return verify_graph(core.parts, branches=wanted, progress=progress or SILENT)

    def optimize(self) -> OptimizeReport:
        """Compact the tables of main and refresh their indexes, as one commit or none.

        No row changes. Raises `RecoveryPending` while an interrupted write waits for recovery.

        >>> graph.maintenance.optimize()
        <OptimizeReport 4 tables: ...>
        """
        from omnigraph.maintenance.optimize import Optimizing

        handle = self._graph
        core = handle._writable("optimize")
        handle._allow(Action.CHANGE, MAIN)
        handle._require_whole("optimize")
        optimizing = Optimizing(core.parts)
        return optimizing.run(core.find_branch(MAIN), core.contract(), actor=handle.actor)

    def cleanup(
        self,
        *,
        keep_versions: int | None = None,
        older_than: timedelta | None = None,
        min_age: timedelta | None = None,
        dry_run: bool = False,
    ) -> CleanupReport:
        """Delete old versions of main, so that they cannot be read any more.

        Deletes table versions that are not among the newest `keep_versions` and are older than
        `older_than`; at least one of the two is needed. Versions replaced less than `min_age` ago
        stay, and so do those that a branch, a tag or a merge base needs. Raises `RecoveryPending`.

        >>> graph.maintenance.cleanup(keep_versions=10, dry_run=True)
        <CleanupReport: would remove 0 versions of ...>
        """
        from omnigraph.maintenance.cleanup import MIN_AGE, Cleanup, CleanupPolicy

        handle = self._graph
        policy = CleanupPolicy(keep_versions, older_than, MIN_AGE if min_age is None else min_age)
        core = handle._writable("cleanup")
        handle._allow(Action.CHANGE, MAIN)
        handle._require_whole("clean up")
        core.contract()
        return Cleanup(core.parts).run(policy, dry_run=dry_run)

    def repair(
        self,
        branch: str | None = None,
        *,
        confirm: bool = False,
        force: bool = False,
        rollback: bool = False,
    ) -> RepairReport:
        """Inspect tables that changed without a commit and, with `confirm`, resolve them.

        `force` accepts changes that match no known operation; with `rollback` it discards them.
        Raises `RecoveryPending` while an interrupted write of the branch waits for recovery.

        >>> graph.maintenance.repair()
        <RepairReport main: ...>
        """
        from omnigraph.maintenance.repair import Repair, RepairOptions

        handle = self._graph
        core = handle._writable("repair")
        handle._require_whole("repair")
        options, ref = RepairOptions(confirm, force, rollback), handle._ref(branch)
        if confirm:
            handle._allow(Action.CHANGE, ref.public)
        return Repair(core.parts).run(ref, core.contract(), options)

    def ensure_indexes(
        self, branch: str | None = None, *, progress: Progress | None = None
    ) -> IndexReport:
        """Build the indexes that the schema asks for and a branch lacks, as one commit or none.

        >>> graph.maintenance.ensure_indexes()
        <IndexReport 4 tables: ...>
        """
        from omnigraph.maintenance.indexes import Indexing
        from omnigraph.progress import SILENT

        handle = self._graph
        core = handle._writable("ensure_indices")
        contract = core.contract()
        ref = handle._ref(branch)
        handle._allow(Action.CHANGE, ref.public)
        handle._require_whole("build indexes")
        indexing = Indexing(core.parts, core.writer)
        handle._recover(ref)
        return indexing.run(ref, contract, actor=handle.actor, progress=progress or SILENT)

    def recover(self) -> None:
        """Complete or undo interrupted writes on all branches now.

        Every write does so for its own branch, and so does opening a graph.

        >>> graph.maintenance.recover()
        """
        self._graph._writable("recover").recovery.recover_everywhere()

    def recoveries(self, branch: str | None = None) -> list[RecordedAudit]:
        """What recovery has done on a branch, oldest first.

        >>> graph.maintenance.recoveries()
        []
        """
        self._graph._require_whole("list recoveries")
        ref = self._graph._ref(branch)
        return self._graph._core.manifest.audits(ref.physical)

    def wait(self) -> None:
        """Wait for background compaction, for instance before copying the files of a graph.

        >>> graph.maintenance.wait()
        """
        self._graph._core.wait_for_compaction()
