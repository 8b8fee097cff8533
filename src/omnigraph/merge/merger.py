"""Merge, cherry-pick, revert and reset: each is a three-way merge committed to one branch.

A merge applies the source's changes since the merge base, a cherry-pick the changes of one commit, a
revert their inverse, and a reset the changes from the branch head to another state.
Tests: tests/behaviour/test_merge*.py, tests/behaviour/test_reverts.py, tests/behaviour/test_resets.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import Enum

from omnigraph.commit.change import Change
from omnigraph.commit.keys import KeyedRequest
from omnigraph.commit.writer import AlreadyWritten, TableWriter, WriteRequest
from omnigraph.diagnostics import counted
from omnigraph.errors import (
    BranchNotFound,
    ConflictError,
    InputError,
    MergeConflict,
    OmnigraphError,
    SchemaMoved,
)
from omnigraph.graph.parts import GraphParts
from omnigraph.history.commits import (
    Receipt,
    WriteResult,
    new_draft,
    nothing_done,
    receipt_of,
    short_id,
)
from omnigraph.history.refs import ResolvedRef, refuse_other_schema
from omnigraph.merge.plan import MergePlan, MergePlanner
from omnigraph.merge.resolution import ConflictResolution
from omnigraph.merge.table_merge import GraphState, remove_files
from omnigraph.progress import SILENT, Progress
from omnigraph.spark.choice import AUTO, EngineChoice
from omnigraph.versioning.ancestry import CommitLocation, KnownCommits, Tip, commits_since_fork
from omnigraph.versioning.branches import BranchRef
from omnigraph.versioning.commits import (
    CommitDraft,
    CommitId,
    CommitRecord,
    OperationKind,
    Warning,
)
from omnigraph.versioning.contract import SchemaContract
from omnigraph.versioning.manifest import ManifestState
from omnigraph.versioning.recovery.sidecar import Quarantined, WriterKind
from omnigraph.versioning.retention import removed_tables
from omnigraph.versioning.snapshot import Snapshot


class MergeOutcome(Enum):
    ALREADY_UP_TO_DATE = "already_up_to_date"
    FAST_FORWARD = "fast_forward"
    MERGED = "merged"
    CONFLICTS = "conflicts"
    """Of a dry run only: the merge would fail."""


@dataclass(frozen=True, slots=True)
class MergeOptions:
    """How a merge resolves conflicts, what its commit records, and the head it expects."""

    resolution: ConflictResolution
    request: KeyedRequest
    actor: str | None = None
    message: str | None = None
    expected_head: CommitId | None = None
    dry_run: bool = False
    engine: EngineChoice = AUTO
    progress: Progress = SILENT


@dataclass(frozen=True, slots=True, repr=False)
class MergeResult(WriteResult):
    """The outcome of a merge. Only a dry run has conflicts; it has no commit."""

    receipt: Receipt
    source: str
    target: str
    outcome: MergeOutcome
    dry_run: bool = False
    source_commit_id: CommitId | None = None
    """The source's commit that was merged."""
    conflicts: tuple[MergeConflict, ...] = ()
    """At most 10,000."""
    conflicts_total: int = 0

    def __repr__(self) -> str:
        found = f", {counted(self.conflicts_total, 'conflict')}" if self.conflicts_total else ""
        what = f"{self.source} into {self.target}, {self.outcome.value}{found}"
        return f"<MergeResult {what}, dry run>" if self.dry_run else self._repr_with(what)


@dataclass(frozen=True, slots=True, repr=False)
class AppliedCommit(WriteResult):
    """The outcome of a revert, cherry-pick or reset. `source_commit_id` is the commit it applied."""

    receipt: Receipt
    branch: str
    source_commit_id: CommitId
    dry_run: bool = False
    conflicts: tuple[MergeConflict, ...] = ()
    conflicts_total: int = 0

    def __repr__(self) -> str:
        found = f", {counted(self.conflicts_total, 'conflict')}" if self.conflicts_total else ""
        what = f"of {short_id(self.source_commit_id)}{found}"
        return f"<AppliedCommit {what}, dry run>" if self.dry_run else self._repr_with(what)


@dataclass(frozen=True, slots=True)
class _Attempt:
    """A plan for one state of the target. A target that moves needs another attempt."""

    plan: MergePlan
    checked: Snapshot
    base: CommitId | None = None
    """The merge base; of a cherry-pick, revert or reset, the applied commit."""
    ancestors: tuple[CommitRecord, ...] = ()


@dataclass(frozen=True, slots=True)
class _Done:
    """The receipt of an operation and, of a dry run, its conflicts."""

    receipt: Receipt
    base: CommitId | None
    conflicts: tuple[MergeConflict, ...] = ()
    conflicts_total: int = 0


class _UpToDate(Exception):
    """The target has the source's commit already."""


_Plan = Callable[[MergePlanner, Snapshot], _Attempt]
"""Plans an operation on a state of the target."""


@dataclass(frozen=True, slots=True)
class Merger:
    """One operation on a branch, with the schema and the quarantined sidecars it found."""

    parts: GraphParts
    writer: TableWriter
    branch: BranchRef
    contract: SchemaContract
    options: MergeOptions
    quarantined: tuple[Quarantined, ...]

    # -- merges -----------------------------------------------------------------------------

    def merged_before(self, source: str) -> MergeResult | None:
        """The result of an earlier call with the same idempotency key; its source may be deleted."""
        commit = self._earlier()
        return None if commit is None else self._replayed_merge(commit, source)

    def merge(self, merged: ResolvedRef) -> MergeResult:
        """Merge a branch head or an earlier commit. Raises `MergeConflicts` and changes nothing then."""
        source, manifest, options = merged.branch, self.parts.manifest, self.options
        if merged.is_branch_head:
            theirs = manifest.current(source.physical)
        else:
            theirs = manifest.at(source.physical, merged.commit.sequence)
        draft = replace(self._draft(OperationKind.MERGE), merged_parent_commit_id=theirs.head)
        named = source.public if merged.is_branch_head else theirs.head

        def plan(planner: MergePlanner, ours: Snapshot) -> _Attempt:
            tip = Tip(self.branch.physical, ours.version, ours.commit_id)
            divergence = commits_since_fork(manifest, Tip.of(theirs), tip)
            base, state = self._base(divergence.known, theirs.head, ours)
            planned = replace(planner, adopts=True).plan(
                state, self.parts.snapshot_of(theirs), ours, options.resolution
            )
            return _Attempt(planned, ours, base, divergence.source_only)

        try:
            done = self._run(
                WriterKind.BRANCH_MERGE, draft, plan, lambda: self._refuse_removed(source, theirs)
            )
            outcome = _outcome(done.receipt.parent_commit_id, done.base)
        except AlreadyWritten as already:
            return self._replayed_merge(options.request.same(already.found), named)
        except _UpToDate:
            done = _Done(self._nothing(draft), None)
            outcome = MergeOutcome.ALREADY_UP_TO_DATE
        return MergeResult(
            done.receipt,
            named,
            self.branch.public,
            MergeOutcome.CONFLICTS if done.conflicts else outcome,
            options.dry_run,
            theirs.head,
            done.conflicts,
            done.conflicts_total,
        )

    def _replayed_merge(self, commit: CommitRecord, source: str) -> MergeResult:
        assert commit.draft.write_key is not None
        outcome = _outcome(commit.parent_commit_id, commit.draft.write_key.answer["base"])
        receipt = receipt_of(commit, self.contract.catalog, replayed=True)
        merged = commit.draft.merged_parent_commit_id
        return MergeResult(receipt, source, self.branch.public, outcome, source_commit_id=merged)

    def _base(
        self, known: KnownCommits, theirs: CommitId, ours: Snapshot
    ) -> tuple[CommitId | None, GraphState]:
        """The merge base, with its id if it is one commit. Raises `_UpToDate`."""
        bases = known.bases([theirs], [ours.commit_id])
        if bases == {theirs}:
            raise _UpToDate
        if bases == {ours.commit_id}:
            return ours.commit_id, GraphState(ours)
        if len(bases) == 1 and bases <= known.homes.keys():
            [base] = bases
            return base, self._state_of(known.homes[base])
        known = self.parts.branches.history()
        return None, self._combined(known, known.readable_bases([theirs], [ours.commit_id]))

    def _combined(self, known: KnownCommits, commits: Sequence[CommitId]) -> GraphState:
        """The merge of several commits, each with those before it."""
        first, *others = commits
        state = self._state_of(known.homes[first])
        planner = MergePlanner(self.parts)
        for number, commit in enumerate(others, start=1):
            base = self._combined(known, known.readable_bases(commits[:number], [commit]))
            state = planner.combine(base, self._state_of(known.homes[commit]), state)
        return state

    def _state_of(self, home: CommitLocation) -> GraphState:
        return GraphState(self._at(home.branch, home.sequence))

    def _at(self, branch: str | None, sequence: int) -> Snapshot:
        return self.parts.snapshot_of(self.parts.manifest.at(branch, sequence))

    # -- single commits ---------------------------------------------------------------------

    def apply(
        self, operation: OperationKind, commit: CommitRecord, home: BranchRef
    ) -> AppliedCommit:
        """Revert or cherry-pick a commit of the branch `home`. Raises `MergeConflicts`."""
        applied = commit.graph_commit_id
        earlier = self._earlier()
        if earlier is not None:
            return self._replayed(earlier, applied)
        self._require_head()
        made_by = commit.draft.operation
        if made_by in (OperationKind.INIT, OperationKind.SCHEMA_APPLY):
            raise InputError(
                f"commit '{applied}' is of {made_by.value} and changed no rows of the graph"
            )
        base = self._at(home.physical, commit.sequence - 1)
        source = self._at(home.physical, commit.sequence)
        if operation is OperationKind.REVERT:
            base, source = source, base

        def plan(planner: MergePlanner, ours: Snapshot) -> _Attempt:
            planned = planner.plan(GraphState(base), source, ours, self.options.resolution)
            return _Attempt(planned, ours, applied)

        return self._apply(applied, self._draft(operation), plan)

    def reset_before(self) -> AppliedCommit | None:
        """The result of an earlier call with the same idempotency key; its ref may have moved."""
        commit = self._earlier()
        if commit is None:
            return None
        assert commit.draft.write_key is not None
        return self._replayed(commit, commit.draft.write_key.answer["base"])

    def reset(self, target: ResolvedRef) -> AppliedCommit:
        """Give the branch the rows of another state. Recorded as a revert."""
        reset_to = target.commit_id
        self._require_head()
        refuse_other_schema(self.parts, target, f"'{self.branch.public}' cannot be reset to it")
        source = self.parts.snapshot_of(target.state)
        draft = self._draft(OperationKind.REVERT)
        draft = replace(draft, message=draft.message or f"reset to {reset_to}")

        def plan(planner: MergePlanner, ours: Snapshot) -> _Attempt:
            planned = planner.plan(GraphState(ours), source, ours, self.options.resolution)
            # All tables count as read: a concurrent write to any of them would survive the reset.
            others = frozenset(ours.entries) - {w.table_key for w in planned.change.writes}
            planned = replace(planned, change=replace(planned.change, reads=others))
            return _Attempt(planned, ours, reset_to)

        return self._apply(reset_to, draft, plan)

    def _apply(self, applied: CommitId, draft: CommitDraft, plan: _Plan) -> AppliedCommit:
        try:
            done = self._run(WriterKind.MUTATION, draft, plan)
        except AlreadyWritten as already:
            return self._replayed(self.options.request.same(already.found), applied)
        return AppliedCommit(
            done.receipt,
            self.branch.public,
            applied,
            self.options.dry_run,
            done.conflicts,
            done.conflicts_total,
        )

    def _replayed(self, made: CommitRecord, applied: CommitId) -> AppliedCommit:
        receipt = receipt_of(made, self.contract.catalog, replayed=True)
        return AppliedCommit(receipt, self.branch.public, applied)

    def _require_head(self) -> None:
        head = self.parts.manifest.current(self.branch.physical)
        self.parts.manifest.require_head(head, self.options.expected_head)

    # -- planning and committing ------------------------------------------------------------

    def _run(
        self,
        kind: WriterKind,
        draft: CommitDraft,
        plan: _Plan,
        still_stored: Callable[[], None] | None = None,
    ) -> _Done:
        """Plan on the branch head and commit, or report the plan of a dry run."""
        state = self.parts.manifest.current(self.branch.physical)
        first = self._attempt(plan, self.parts.snapshot_of(state))
        if self.options.dry_run:
            counts = {key: count for key, count in first.plan.counts.items() if count}
            receipt = replace(nothing_done(state, draft), counts=counts)
            return _Done(receipt, first.base, first.plan.conflicts, first.plan.conflicts_total)
        commit = self._commit(kind, draft, plan, first, still_stored)
        if commit is None:
            return _Done(self._nothing(draft), first.base)
        return _Done(receipt_of(commit, self.contract.catalog), first.base)

    def _attempt(self, plan: _Plan, ours: Snapshot) -> _Attempt:
        if ours.catalog.ir != self.contract.catalog.ir:
            raise SchemaMoved()
        options = self.options
        planner = MergePlanner(
            self.parts,
            self.branch.physical,
            writes=not options.dry_run,
            engine=options.engine,
            progress=options.progress,
        )
        return plan(planner, ours)

    def _commit(
        self,
        kind: WriterKind,
        draft: CommitDraft,
        plan: _Plan,
        first: _Attempt,
        still_stored: Callable[[], None] | None,
    ) -> CommitRecord | None:
        first.plan.refuse_conflicts()
        options, plans = self.options, [first.plan]

        def prepare(current: Snapshot) -> Change:
            again = self._attempt(plan, current).plan
            again.refuse_conflicts()
            plans.append(again)
            return again.change

        draft = replace(draft, warnings=_unused_resolutions(first.plan))
        request = WriteRequest(
            branch=self.branch,
            kind=kind,
            draft=options.request.on(draft, base=first.base),
            change=first.plan.change,
            checked=first.checked,
            prepare=prepare,
            expected_head=options.expected_head,
            commits_without_rows=kind is WriterKind.BRANCH_MERGE,
            ancestors=first.ancestors,
            quarantined=self.quarantined,
            still_stored=still_stored,
        )
        options.progress.stage("write", first.plan.rows)
        commit = self.writer.commit(request)
        options.progress.advance(plans[-1].rows)
        if commit is not None and len(plans) > 1:
            with suppress(OmnigraphError):  # The commit is made; cleanup removes leftover files.
                self._remove_unused(plans, commit)
        return commit

    def _remove_unused(self, plans: Sequence[MergePlan], commit: CommitRecord) -> None:
        """Remove the files of plans that were replaced because the target had moved.

        The commit's own state shows which files are used. A later state may have been compacted,
        and history still needs the files of this one.
        """
        made = self._at(self.branch.physical, commit.sequence)
        for plan in plans:
            for write in plan.change.writes:
                if write.written is not None:
                    used = made.open(self.parts.tables, write.table_key).files()
                    remove_files(self.parts.objects, [write.written], besides=used)

    def _refuse_removed(self, source: BranchRef, theirs: ManifestState) -> None:
        """Raise `ConflictError` if the source or a table version of its merged state was deleted.

        The target may refer to these versions, and the next merge of both branches uses them as its
        base. Cleanup never deletes what is current on a branch.
        """
        if source.physical is not None and source.physical not in self.parts.manifest.refs():
            raise ConflictError(f"'{source.public}' was deleted while it was being merged")
        with suppress(BranchNotFound):
            if self.parts.manifest.current(source.physical).head == theirs.head:
                return
        if next(removed_tables(self.parts.tables, theirs), None) is not None:
            raise ConflictError(
                f"branch '{source.public}' moved and cleanup deleted the version being merged; "
                "run the merge again"
            )

    def _earlier(self) -> CommitRecord | None:
        """The commit that an earlier call with the same idempotency key made."""
        if self.options.dry_run:
            return None
        return self.options.request.earlier(self.parts.manifest, self.branch.physical)

    def _draft(self, operation: OperationKind) -> CommitDraft:
        return new_draft(operation, self.contract, self.options.actor, self.options.message)

    def _nothing(self, draft: CommitDraft) -> Receipt:
        return nothing_done(self.parts.manifest.current(self.branch.physical), draft)


def _outcome(parent: CommitId | None, base: CommitId | None) -> MergeOutcome:
    is_forward = parent is not None and parent == base
    return MergeOutcome.FAST_FORWARD if is_forward else MergeOutcome.MERGED


def _unused_resolutions(plan: MergePlan) -> tuple[Warning, ...]:
    if not plan.unused:
        return ()
    shown = ", ".join(f"{key}:{id}" for key, id in plan.unused[:3])
    message = f"resolutions of rows that are in no conflict were not needed: {shown}"
    return (Warning("unused_resolution", message, len(plan.unused)),)
