"""Find interrupted operations and recover them, branch by branch.

Steady state is one listing that finds nothing. The holder of a branch lock may treat every sidecar of
that branch as abandoned: its writer has finished, died or lost the lock.
Tests: tests/crash.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from omnigraph.errors import (
    BranchLocked,
    BranchNotFound,
    GraphMoved,
    OmnigraphError,
    StoreCallFailed,
    TableMissing,
)
from omnigraph.instruments import Event, Step, count, timed
from omnigraph.storage.indexes import damaged_indexes
from omnigraph.storage.objects import ObjectStore
from omnigraph.storage.table import Table
from omnigraph.storage.tables import TableStore
from omnigraph.versioning.branch_names import RETIRED_KEY, public_name
from omnigraph.versioning.branches import Branches
from omnigraph.versioning.commits import OperationId
from omnigraph.versioning.contract import StagedSchema, has_staging, is_staged
from omnigraph.versioning.ids import process_identity
from omnigraph.versioning.locks import HeldLock, WriterLocks
from omnigraph.versioning.manifest import Manifest, ManifestState
from omnigraph.versioning.recovery.sidecar import (
    Quarantined,
    Sidecar,
    Sidecars,
    UnreadableSidecar,
    WriterKind,
)
from omnigraph.versioning.rows import MANIFEST_PATH, PUBLISHED_OUTCOMES
from omnigraph.versioning.torn_manifests import damaged

if TYPE_CHECKING:
    from omnigraph.storage.torn import Torn
    from omnigraph.versioning.recovery.act import Actions
    from omnigraph.versioning.recovery.classify import Finding, RecoveryDecision

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RecoveryOutcome:
    """What a look at the sidecars of a branch came to."""

    resolved: int = 0
    quarantined: tuple[Quarantined, ...] = ()


@dataclass(frozen=True, slots=True)
class RecoveryStatus:
    """Sidecars that exist right now: those recovery can resolve, and those that need an operator."""

    pending: tuple[str, ...]
    quarantined: tuple[Quarantined, ...]

    def to_json(self) -> dict[str, Any]:
        return {
            "pending": list(self.pending),
            "quarantined": [found.to_json() for found in self.quarantined],
        }


class Recovery:
    """Recovery of one graph."""

    def __init__(
        self,
        tables: TableStore,
        objects: ObjectStore,
        manifest: Manifest,
        branches: Branches,
        locks: WriterLocks,
    ) -> None:
        self._tables = tables
        self._objects = objects
        self._manifest = manifest
        self._branches = branches
        self._locks = locks
        self.sidecars = Sidecars(objects)
        self._clean: set[str | None] = set()
        """Branches of which no sidecar was left when this process had their lock last."""
        self._read_last: set[str | None] = set()
        """Branches whose newest state was known by then."""
        self._unended: defaultdict[str | None, set[OperationId]] = defaultdict(set)
        """The operations of this process that have begun on a branch and not ended since it was last
        examined."""

    @cached_property
    def actions(self) -> Actions:
        """What rolls operations forward or back; imported only if one was interrupted."""
        from omnigraph.versioning.recovery.act import Actions

        return Actions(self._tables, self._objects, self._manifest, self.sidecars)

    # -- entry points -----------------------------------------------------------------------

    def recover(self, branch: str | None, *, wait_ms: int | None = None) -> RecoveryOutcome:
        """Recover a branch. Raises the error that prevents it.

        `wait_ms` is how long to wait for the branch's lock, as for `WriterLocks.hold`.
        """
        names = self.sidecars.names()
        if not names:
            return RecoveryOutcome()
        readable, quarantined = self._read(names)
        if branch not in self._homes(readable):
            for found in quarantined:
                _log.warning("a sidecar needs an operator's decision: %s", found.reason)
            return RecoveryOutcome(quarantined=tuple(quarantined))
        with self._locks.hold(branch, "recovery", wait_ms=wait_ms) as lock:
            return self.recover_locked(branch, lock)

    def recover_unless_busy(self, branch: str | None) -> RecoveryOutcome:
        """Recover a branch at the beginning of a write, unless another writer is at work there.

        A sidecar is then most likely that writer's. The write looks again when it has the lock,
        instead of waiting for the lock twice.
        """
        if self._locks.is_busy(branch):
            return RecoveryOutcome()
        try:
            return self.recover(branch, wait_ms=0)
        except BranchLocked:
            return RecoveryOutcome()

    def recover_everywhere(self) -> RecoveryOutcome:
        """Recover every branch; a sidecar whose writer is alive is left to it."""
        self._remove_torn_main()
        self._remove_torn_branches()
        resolved = 0
        quarantined: dict[str, Quarantined] = {}
        readable, unreadable = self._read(self.sidecars.names())
        # Recovery of main also reports unreadable sidecars.
        waiting = {*self._homes(readable), *([None] if unreadable else [])}
        for branch in sorted(waiting, key=lambda branch: (branch is not None, branch or "")):
            try:
                recovered = self.recover(branch)
            except BranchLocked as error:
                _log.warning("recovery on %s is left to its writer: %s", public_name(branch), error)
                continue
            except GraphMoved as error:
                _log.warning("could not recover a write to %s: %s", public_name(branch), error)
                continue
            resolved += recovered.resolved
            quarantined |= {found.name: found for found in recovered.quarantined}
        self._place_schema_files()
        return RecoveryOutcome(resolved, tuple(quarantined[name] for name in sorted(quarantined)))

    def recover_locked(self, branch: str | None, lock: HeldLock) -> RecoveryOutcome:
        """The same as `recover` for a caller that holds the branch's lock.

        If no other process had the lock since this one left the branch clean, it is still clean.
        """
        if lock.undisturbed and branch in self._clean:
            return RecoveryOutcome()
        resolved = 0
        names = self.sidecars.names()
        readable, quarantined = self._read(names)
        for sidecar, home in zip(readable, self._homes(readable), strict=True):
            if home != branch:
                continue
            with timed(Step.RECOVER):
                found = self._resolve(sidecar, branch, _operations(names), lock)
            count(Event.RECOVERY, "resolved" if found is None else "quarantined")
            if found is None:
                resolved += 1
            else:
                quarantined.append(found)
        for found in quarantined:
            _log.warning("sidecar %s needs an operator's decision: %s", found.name, found.reason)
        self._unended.pop(branch, None)
        if not resolved and not quarantined:
            self._clean.add(branch)
        return RecoveryOutcome(resolved, tuple(quarantined))

    def doubt(self, branch: str | None) -> None:
        """Examine a branch again under its next lock, even if no other process had the lock."""
        self._clean.discard(branch)
        self._read_last.discard(branch)

    def begin(self, sidecar: Sidecar) -> None:
        """Phase A of a write. A sidecar that could not be written must not stay either."""
        self.doubt(sidecar.physical)
        self._unended[sidecar.physical].add(sidecar.operation_id)
        try:
            self.sidecars.write(sidecar)
        except OmnigraphError:
            self._forget(sidecar)
            raise

    def end(self, sidecar: Sidecar) -> None:
        """Phase D. The outcome is recorded, so recovery removes what cannot be removed now.

        A later operation of the same turn may have been left to recovery; the branch is not clean then.
        """
        if self._forget(sidecar) and not self._unended[sidecar.physical]:
            self._clean.add(sidecar.physical)
            self._read_last.add(sidecar.physical)

    def _forget(self, sidecar: Sidecar) -> bool:
        try:
            self.actions.forget(sidecar)
        except OmnigraphError as error:
            _log.warning("could not delete sidecar %s; recovery will: %s", sidecar.name, error)
            return False
        self._unended[sidecar.physical].discard(sidecar.operation_id)
        return True

    def undo_own(self, sidecar: Sidecar, lock: HeldLock, cause: Exception) -> None:
        """Undo an operation of a live writer that failed with `cause`.

        Raises `CommitStateUnknown` if it cannot be undone now: the next writer of the branch may
        find everything in place and complete the operation.
        """
        from omnigraph.versioning.publish import unknown_outcome

        try:
            is_undone = self._undo(sidecar, lock)
        except OmnigraphError as error:
            _log.warning("operation %s is left to recovery: %s", sidecar.operation_id, error)
            is_undone = False
        if not is_undone:
            raise unknown_outcome(sidecar.draft, cause) from cause

    def _undo(self, sidecar: Sidecar, lock: HeldLock) -> bool:
        """Whether the operation is undone. It is not where a recovery has completed it already, or
        where an operator has to decide."""
        from omnigraph.versioning.recovery.classify import (
            Decision,
            RecoveryDecision,
            classify,
            decide,
            undo,
        )

        state = self.state(sidecar.physical)
        outcome = self._outcome(sidecar, sidecar.physical)
        if outcome is not None:
            self.actions.forget(sidecar)
            return outcome not in PUBLISHED_OUTCOMES
        findings = classify(self._tables, state, sidecar)
        ended = self._ended(findings, sidecar.physical)
        decision = decide(findings, (), ended)
        if not findings:
            decision = RecoveryDecision(Decision.UNTOUCHED, ())
        if decision.decision is Decision.ROLL_FORWARD:
            decision = undo(findings, ended)
        self._carry_out(sidecar, decision, lock)
        return decision.decision is not Decision.QUARANTINE

    def named_branches(self) -> frozenset[str]:
        """The storage names of branches that sidecars refer to, whether the branch exists or not.

        A new branch of such a name would be given what the old one's writer left.
        """
        readable, _ = self._read(self.sidecars.names())
        return frozenset(s.physical for s in readable if s.physical is not None)

    def interrupted_merges(self) -> tuple[str, ...]:
        """Sidecars of merges into any branch. None of them is alive while the caller holds the lock of main."""
        readable, _ = self._read(self.sidecars.names())
        return tuple(s.name for s in readable if s.writer_kind is WriterKind.BRANCH_MERGE)

    def waiting_on(self, branch: str | None) -> tuple[str, ...]:
        """Sidecars that recovery of the branch would resolve; not those left to an operator."""
        readable, _ = self._read(self.status().pending)
        homes = zip(readable, self._homes(readable), strict=True)
        return tuple(sidecar.name for sidecar, home in homes if home == branch)

    def status(self) -> RecoveryStatus:
        """Pending sidecars, classified without a lock: a sidecar of a live writer counts as pending."""
        from omnigraph.versioning.recovery.classify import Decision

        pending = []
        names = self.sidecars.names()
        readable, quarantined = self._read(names)
        for sidecar in readable:
            try:
                decision = self._decide(sidecar, _operations(names))
            except GraphMoved:
                decision = None
            except OmnigraphError:
                # Its writer may be done by now, and its branch written to by others, or deleted.
                if self.sidecars.read(sidecar.name) is None:
                    continue
                decision = self._decide(sidecar, _operations(names))
            if decision is None or decision.decision is not Decision.QUARANTINE:
                pending.append(sidecar.name)
            elif self.sidecars.read(sidecar.name) is not None:
                quarantined.append(Quarantined.unclear(sidecar, decision.reason))
        return RecoveryStatus(tuple(pending), tuple(quarantined))

    def state(self, branch: str | None, lock: HeldLock | None = None) -> ManifestState:
        """The state of a branch for a writer that holds its lock; a torn newest version goes.

        With the lock, what this process knew when it had the lock last is used if it still holds.
        Raises `BranchNotFound` also for one of which a deletion has left something: files after an
        interruption, or all of it, for merges to compare with.
        """
        if lock is not None and self.is_undisturbed(branch, lock):
            last = self._manifest.known_state(branch)
            if last is not None:
                return last
        if branch is not None:
            stored = self._tables.find_branch(MANIFEST_PATH, branch, self._objects)
            if stored is None or RETIRED_KEY in stored.metadata:
                raise BranchNotFound(public_name(branch))
        known = self._manifest.known_on_disk(branch)
        if known is None and lock is not None and lock.left is not None:
            self._manifest.take_over(branch, lock.left)
            known = self._manifest.known_on_disk(branch)
        state = self._repaired_state(branch) if known is None else known
        if lock is not None:
            self._read_last.add(branch)
        return state

    def is_undisturbed(self, branch: str | None, lock: HeldLock) -> bool:
        """Whether a branch is as this process has left it; asked under its lock."""
        return lock.undisturbed and branch in self._clean and branch in self._read_last

    def _repaired_state(self, branch: str | None) -> ManifestState:
        """The state of a branch as it is on the disk, after a torn newest version has gone.

        Damaged indexes of its manifest are built again.
        """
        from omnigraph.versioning.manifest_compaction import rebuild_damaged_indexes

        try:
            table = self._whole(branch)
        except TableMissing:
            raise
        except StoreCallFailed:
            if not self._remove_torn(MANIFEST_PATH, branch):
                raise
            table = self._whole(branch)
        return self._manifest.read(rebuild_damaged_indexes(table))

    def _whole(self, branch: str | None) -> Table:
        """The newest version of a branch's manifest, which can be read and lacks nothing."""
        from omnigraph.storage.torn import refuse_incomplete

        table = self._manifest.newest(branch)
        refuse_incomplete(table)
        self._manifest.read(table)
        self._manifest.refuse_lost(table)
        return table

    def head_of(self, location: str, branch: str | None) -> Table:
        """The newest version of a table's line, for a writer that holds the branch's lock."""
        try:
            return self._tables.open(location, branch)
        except TableMissing:
            raise
        except StoreCallFailed:
            if not self._remove_torn(location, branch):
                raise
            return self._tables.open(location, branch)

    def _place_schema_files(self) -> None:
        """Remove or put in place schema files that wait although no sidecar speaks of them."""
        if not has_staging(self._objects):
            return
        try:
            with self._locks.hold(None, "recovery", wait_ms=0):
                readable, unreadable = self._read(self.sidecars.names())
                if not unreadable and all(sidecar.schema is None for sidecar in readable):
                    self.actions.place_schema_files()
        except BranchLocked as error:
            _log.warning("staged schema files are left to their writer: %s", error)

    # -- one sidecar ------------------------------------------------------------------------

    def _resolve(
        self, sidecar: Sidecar, branch: str | None, pending: Collection[str], lock: HeldLock
    ) -> Quarantined | None:
        """Recover a sidecar; returns it if only an operator can decide."""
        from omnigraph.versioning.recovery.classify import Decision

        lock.check()
        if branch is not None:
            # Of a branch made at another address nothing may look torn, or be undone.
            with suppress(StoreCallFailed):
                self._manifest.newest(branch)
        if sidecar.physical != branch:
            self.state(branch)
            if not self._is_resolved(sidecar, branch):
                self.actions.discard_orphan(sidecar, lock.check)
            else:
                self.actions.forget(sidecar)
            return None
        if sidecar.is_shared:
            state = self.state(branch)
            if not self._is_resolved(sidecar, branch):
                self._remove_broken_runs(sidecar, state)
        else:
            for table in sidecar.tables:
                self._remove_torn(table.location, table.branch)
            self.state(branch)
        decision = self._decide(sidecar, pending)
        if decision is None:
            self.actions.forget(sidecar)
            return None
        if decision.decision is Decision.QUARANTINE:
            return Quarantined.unclear(sidecar, decision.reason)
        self._carry_out(sidecar, decision, lock)
        return None

    def _decide(self, sidecar: Sidecar, pending: Collection[str]) -> RecoveryDecision | None:
        """The decision on a sidecar; None when its operation is resolved."""
        from omnigraph.versioning.recovery.classify import (
            Decision,
            RecoveryDecision,
            classify,
            decide,
            undo,
        )

        if self._homes([sidecar]) != [sidecar.physical]:
            return RecoveryDecision(Decision.UNTOUCHED, ())
        if self._is_resolved(sidecar, sidecar.physical):
            return None
        state = self._manifest.current(sidecar.physical)
        findings = classify(self._tables, state, sidecar)
        ended = self._ended(findings, sidecar.physical)
        decision = decide(findings, pending, ended)
        is_complete = not sidecar.is_shared and self._has_schema(sidecar)
        if decision.decision is Decision.ROLL_FORWARD and not is_complete:
            return undo(decision.findings, {*pending, *ended})
        return decision

    def _ended(self, findings: Sequence[Finding], branch: str | None) -> set[str]:
        """The operations that moved tables besides an interrupted one and whose outcome is recorded."""
        from omnigraph.versioning.recovery.classify import ended_operations

        others = {name for finding in findings for name in finding.beyond if name is not None}
        return ended_operations(self._manifest, branch, others)

    def _has_schema(self, sidecar: Sidecar) -> bool:
        """Whether the files of the schema an operation leads to are complete, if it leads to one."""
        target = StagedSchema(sidecar.draft.schema_ir_hash, sidecar.draft.schema_ref)
        return sidecar.schema is None or is_staged(self._objects, target)

    def _carry_out(self, sidecar: Sidecar, decision: RecoveryDecision, lock: HeldLock) -> None:
        from omnigraph.versioning.recovery.classify import Decision

        match decision.decision:
            case Decision.ROLL_FORWARD:
                self.actions.roll_forward(sidecar, decision.findings, lock.check)
            case Decision.ROLL_BACK:
                self.actions.roll_back(sidecar, decision.findings, lock.check)
            case Decision.UNTOUCHED if sidecar.owner == process_identity():
                # Its writer was a thread of this process and is done: there is no writer to fence.
                self.actions.forget(sidecar)
            case Decision.UNTOUCHED:
                self.actions.discard(sidecar, decision.findings, lock.check)
            case Decision.QUARANTINE:
                _log.warning(
                    "sidecar %s needs an operator's decision: %s", sidecar.name, decision.reason
                )

    def _is_resolved(self, sidecar: Sidecar, branch: str | None) -> bool:
        return self._outcome(sidecar, branch) is not None

    def _outcome(self, sidecar: Sidecar, branch: str | None) -> str | None:
        """What became of an operation, as far as a branch tells."""
        table = self._manifest.open(branch)
        found = self._manifest.operation_outcome(table, sidecar.operation_id)
        return None if found is None else found[1]

    # -- which sidecars, of which branch ----------------------------------------------------

    def _read(self, names: Collection[str]) -> tuple[list[Sidecar], list[Quarantined]]:
        """The sidecars that still exist, oldest first, and the unreadable ones."""
        readable: list[Sidecar] = []
        unreadable: list[Quarantined] = []
        for name in names:
            try:
                sidecar = self.sidecars.read(name)
            except UnreadableSidecar as error:
                unreadable.append(Quarantined.unreadable(error))
                continue
            if sidecar is not None:
                readable.append(sidecar)
        return readable, unreadable

    def _homes(self, sidecars: Sequence[Sidecar]) -> list[str | None]:
        """The branch whose lock covers each sidecar: main for those of branches that are gone."""
        if not sidecars:
            return []
        refs = {ref.physical for ref in self._branches.list()}
        return [s.physical if s.physical in refs else None for s in sidecars]

    # -- torn versions ----------------------------------------------------------------------

    def _remove_torn_main(self) -> None:
        """Make main readable again after a power loss, whatever was being written then."""
        try:
            has_damage = bool(damaged_indexes(self._whole(None)))
        except TableMissing:
            raise
        except StoreCallFailed:
            with self._locks.hold(None, "recovery"):
                self._repaired_state(None)
            return
        if has_damage:
            # Nothing depends on indexes, so no caller waits for them.
            with suppress(BranchLocked), self._locks.hold(None, "recovery", wait_ms=0):
                self._repaired_state(None)

    def _remove_torn_branches(self) -> None:
        """Take away branches that were being made when the power went, so that nothing is in the way
        of making them again."""
        for name in sorted(self._tables.torn_branches(MANIFEST_PATH)):
            try:
                with self._locks.hold(name, "recovery") as lock:
                    if name in self._tables.torn_branches(MANIFEST_PATH):
                        _log.warning(
                            "removing branch %s, which was never completed", public_name(name)
                        )
                        lock.check()
                        self._tables.reclaim_branch(MANIFEST_PATH, name, self._objects)
            except BranchLocked as error:
                _log.warning("could not remove incomplete branch %s: %s", public_name(name), error)

    def _remove_broken_runs(self, sidecar: Sidecar, state: ManifestState) -> None:
        """Take away what a turn made of tables of which a power loss has torn some version.

        The versions of a turn are synced together, so any of them may be torn.
        """
        from omnigraph.versioning.recovery.classify import published_version

        for table in sidecar.tables:
            with suppress(TableMissing):
                known = state.tables.get(table.table_id)
                if known is not None and known.branch == table.branch:
                    kept = known.version
                else:
                    # The first version of a fork has the number of the version it was made from.
                    kept = published_version(state, table) - table.forks
                removed = self._tables.remove_broken_run(
                    table.location, table.branch, kept, self._objects
                )
                if removed:
                    _log.warning("removed torn versions %s of %s", removed, table.table_key)

    def _remove_torn(self, path: str, branch: str | None) -> bool:
        """Take away a newest version that was never acknowledged; whether there was one."""
        try:
            torn = self._tables.find_torn(path, branch)
        except TableMissing:
            return False
        if torn is None:
            return False
        self._refuse_acknowledged(torn)
        _log.warning("removing torn version %d of %s: %s", torn.version, path, torn.cause)
        self._tables.remove_torn(torn, self._objects)
        return True

    def _refuse_acknowledged(self, torn: Torn) -> None:
        """Raise `FileDamaged` for an incomplete version that was acknowledged."""
        path, branch = torn.line
        if torn.previous is None:
            return
        if path == MANIFEST_PATH:
            before = self._tables.open(MANIFEST_PATH, branch, torn.previous)
            self._manifest.refuse_acknowledged(torn, before)
            return
        state = self._manifest.current(branch)
        for table_id, entry in state.tables.items():
            is_of_line = (state.registered[table_id].location, entry.branch) == (path, branch)
            if is_of_line and entry.version >= torn.version:
                raise damaged(torn)


def _operations(names: Collection[str]) -> set[str]:
    """The operations of sidecars, by their names."""
    return {name.removesuffix(".json") for name in names}
