"""Merges, reverts, cherry-picks and resets: what leads from one state to another, brought into a branch.

All are the same three-way merge with other states: a merge brings what the source has done since the
common ancestor, a cherry-pick what one commit did, a revert the opposite of that, and a reset what
leads from the head of the branch to another state.
Tests: tests/behaviour/test_merge*.py, tests/behaviour/test_reverts.py, tests/behaviour/test_resets.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import Enum

from omnigraph.diagnostics import counted
from omnigraph.engine.engines import AUTO, EngineChoice
from omnigraph.engine.merge.choices import Choices
from omnigraph.engine.merge.images import Image
from omnigraph.engine.merge.plan import MergePlan, MergePlanner
from omnigraph.engine.parts import GraphParts
from omnigraph.engine.receipts import (
    SHORT_ID_LENGTH,
    Receipt,
    WriteResult,
    nothing_done,
    receipt_of,
)
from omnigraph.engine.refs import ResolvedRef, refuse_other_schema
from omnigraph.engine.write.change import Change
from omnigraph.engine.write.commit import AlreadyWritten, TableWriter, WriteRequest
from omnigraph.engine.write.keys import KeyedRequest
from omnigraph.errors import (
    BranchNotFound,
    ConflictError,
    InputError,
    MergeConflict,
    OmnigraphError,
    SchemaMoved,
)
from omnigraph.progress import SILENT, Progress
from omnigraph.versioning.ancestry import (
    CommitLocation,
    KnownCommits,
    Tip,
    commits_since_fork,
)
from omnigraph.versioning.branches import BranchRef
from omnigraph.versioning.commits import (
    CommitDraft,
    CommitId,
    CommitRecord,
    Counts,
    OperationId,
    OperationKind,
    Warning,
)
from omnigraph.versioning.contract import SchemaContract
from omnigraph.versioning.ids import new_ulid, now_micros
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
    """What is recorded with a merge, the head it insists on, and how it decides."""

    choices: Choices
    request: KeyedRequest
    actor: str | None = None
    message: str | None = None
    expected_head: CommitId | None = None
    dry_run: bool = False
    engine: EngineChoice = AUTO
    progress: Progress = SILENT


@dataclass(frozen=True, slots=True, repr=False)
class MergeResult(WriteResult):
    """What a merge did, or would do. Only a dry run has conflicts; it has no commit."""

    receipt: Receipt
    source: str
    target: str
    outcome: MergeOutcome
    dry_run: bool = False
    source_commit_id: CommitId | None = None
    """The commit of the source that was merged."""
    conflicts: tuple[MergeConflict, ...] = ()
    """The first ones, if there are very many."""
    conflicts_total: int = 0

    def __repr__(self) -> str:
        found = f", {counted(self.conflicts_total, 'conflict')}" if self.conflicts_total else ""
        what = f"{self.source} into {self.target}, {self.outcome.value}{found}"
        return f"<MergeResult {what}, dry run>" if self.dry_run else self._repr_with(what)


@dataclass(frozen=True, slots=True, repr=False)
class AppliedCommit(WriteResult):
    """What a revert, cherry-pick or reset did, or would do. `source_commit_id` is the commit it was about."""

    receipt: Receipt
    branch: str
    source_commit_id: CommitId
    dry_run: bool = False
    conflicts: tuple[MergeConflict, ...] = ()
    conflicts_total: int = 0

    def __repr__(self) -> str:
        found = f", {counted(self.conflicts_total, 'conflict')}" if self.conflicts_total else ""
        what = f"of {self.source_commit_id[-SHORT_ID_LENGTH:]}{found}"
        return f"<AppliedCommit {what}, dry run>" if self.dry_run else self._repr_with(what)


@dataclass
class _Attempt:
    """The newest plan of a merge: made anew whenever the target has moved."""

    plan: MergePlan
    checked: Snapshot
    base: CommitId | None = None
    """The common ancestor of a merge; otherwise the commit that the call is about."""
    ancestors: tuple[CommitRecord, ...] = field(default_factory=tuple)


class _UpToDate(Exception):
    """Somebody else has brought the target up to date meanwhile."""


class Merger:
    """Merges into the branches of one graph."""

    def __init__(self, parts: GraphParts, writer: TableWriter) -> None:
        self._parts = parts
        self._writer = writer

    # -- merges -----------------------------------------------------------------------------

    def merged_before(
        self, source: str, target: BranchRef, contract: SchemaContract, options: MergeOptions
    ) -> MergeResult | None:
        """What an earlier call with the same idempotency key did. The source may be gone since."""
        if options.dry_run:
            return None
        commit = options.request.earlier(self._parts.manifest, target.physical)
        return None if commit is None else _replayed_merge(commit, source, target, contract)

    def merge(
        self,
        merged: ResolvedRef,
        target: BranchRef,
        contract: SchemaContract,
        options: MergeOptions,
        quarantined: tuple[Quarantined, ...],
    ) -> MergeResult:
        """Merge a branch as it is now, or as it was. Raises `MergeConflicts`; nothing has changed then."""
        source, manifest = merged.branch, self._parts.manifest
        if merged.is_branch_head:
            theirs = manifest.current(source.physical)
        else:
            theirs = manifest.at(source.physical, merged.commit.sequence)
        draft = _draft(OperationKind.MERGE, contract, options)
        draft = replace(draft, merged_parent_commit_id=theirs.head)
        named = source.public if merged.is_branch_head else theirs.head

        def attempt(ours: Snapshot) -> _Attempt:
            _check_schema(ours, contract)
            tip = Tip(target.physical, ours.version, ours.commit_id)
            parted = commits_since_fork(self._parts.manifest, Tip.of(theirs), tip)
            base, image = self._base(parted.known, theirs.head, ours)
            planner = self._planner(target, options, adopts=True)
            plan = planner.plan(image, self._parts.snapshot_of(theirs), ours, options.choices)
            return _Attempt(plan, ours, base, parted.source_only)

        def result(receipt: Receipt, outcome: MergeOutcome) -> MergeResult:
            return MergeResult(receipt, named, target.public, outcome, options.dry_run, theirs.head)

        try:
            first = attempt(self._parts.snapshot_of(self._parts.manifest.current(target.physical)))
        except _UpToDate:
            nothing = self._nothing(target, draft)
            return result(nothing, MergeOutcome.ALREADY_UP_TO_DATE)
        if options.dry_run:
            forecast = _outcome(first.checked.commit_id, first.base)
            outcome = MergeOutcome.CONFLICTS if first.plan.conflicts else forecast
            would = replace(self._nothing(target, draft), counts=_shown(first.plan.counts))
            return replace(
                result(would, outcome),
                conflicts=first.plan.conflicts,
                conflicts_total=first.plan.conflicts_total,
            )
        try:
            commit = self._commit(
                target,
                WriterKind.BRANCH_MERGE,
                draft,
                first,
                attempt,
                options,
                quarantined,
                lambda: self._refuse_removed(source, theirs),
            )
        except AlreadyWritten as already:
            commit = options.request.same(already.found)
            return _replayed_merge(commit, named, target, contract)
        except _UpToDate:
            return result(self._nothing(target, draft), MergeOutcome.ALREADY_UP_TO_DATE)
        assert commit is not None
        outcome = _outcome(commit.parent_commit_id, first.base)
        return result(receipt_of(commit, contract.catalog), outcome)

    def _base(
        self, known: KnownCommits, theirs: CommitId, ours: Snapshot
    ) -> tuple[CommitId | None, Image]:
        """The common ancestor, with its id if it is one commit. Raises `_UpToDate`."""
        bases = known.bases([theirs], [ours.commit_id])
        if bases == {theirs}:
            raise _UpToDate
        if bases == {ours.commit_id}:
            return ours.commit_id, Image(ours)
        if len(bases) == 1 and bases <= known.homes.keys():
            [base] = bases
            return base, Image(self._at(known.homes[base]))
        known = self._parts.branches.history()
        return None, self._combined(known, known.readable_bases([theirs], [ours.commit_id]))

    def _combined(self, known: KnownCommits, commits: Sequence[CommitId]) -> Image:
        """The merge of several commits, each with those before it."""
        first, *others = commits
        image = Image(self._at(known.homes[first]))
        planner = MergePlanner(self._parts)
        for number, commit in enumerate(others, start=1):
            base = self._combined(known, known.readable_bases(commits[:number], [commit]))
            image = planner.combine(base, Image(self._at(known.homes[commit])), image)
        return image

    def _at(self, home: CommitLocation) -> Snapshot:
        return self._parts.snapshot_of(self._parts.manifest.at(home.branch, home.sequence))

    # -- single commits ---------------------------------------------------------------------

    def apply(
        self,
        operation: OperationKind,
        commit: CommitRecord,
        home: BranchRef,
        branch: BranchRef,
        contract: SchemaContract,
        options: MergeOptions,
        quarantined: tuple[Quarantined, ...],
    ) -> AppliedCommit:
        """Revert or pick a commit, on a branch as it is now. Raises `MergeConflicts`."""
        if not options.dry_run:
            earlier = options.request.earlier(self._parts.manifest, branch.physical)
            if earlier is not None:
                return _replayed(earlier, commit.graph_commit_id, branch, contract)
        expected = options.expected_head
        self._parts.manifest.require_head(self._parts.manifest.current(branch.physical), expected)
        base, source = self._around(commit, home)
        if operation is OperationKind.REVERT:
            base, source = source, base
        draft = _draft(operation, contract, options)

        def plan(planner: MergePlanner, ours: Snapshot) -> MergePlan:
            return planner.plan(Image(base), source, ours, options.choices)

        applied = commit.graph_commit_id
        return self._apply(applied, plan, branch, contract, draft, options, quarantined)

    def reset_before(
        self, branch: BranchRef, contract: SchemaContract, options: MergeOptions
    ) -> AppliedCommit | None:
        """What an earlier call with the same idempotency key did. The ref may lead elsewhere since."""
        if options.dry_run:
            return None
        commit = options.request.earlier(self._parts.manifest, branch.physical)
        if commit is None:
            return None
        assert commit.draft.write_key is not None
        return _replayed(commit, commit.draft.write_key.answer["base"], branch, contract)

    def reset(
        self,
        target: ResolvedRef,
        branch: BranchRef,
        contract: SchemaContract,
        options: MergeOptions,
        quarantined: tuple[Quarantined, ...],
    ) -> AppliedCommit:
        """Bring a branch to the content of another state, by what leads there from its head.

        It is recorded as a revert: of everything that the state does not have.
        """
        reset_to = target.commit_id
        head = self._parts.manifest.current(branch.physical)
        self._parts.manifest.require_head(head, options.expected_head)
        refuse_other_schema(self._parts, target, f"'{branch.public}' cannot be reset to it")
        source = self._parts.snapshot_of(target.state)
        message = options.message or f"reset to {reset_to}"
        draft = _draft(OperationKind.REVERT, contract, replace(options, message=message))

        def plan(planner: MergePlanner, ours: Snapshot) -> MergePlan:
            planned = planner.plan(Image(ours), source, ours, options.choices)
            # Whatever is written meanwhile would otherwise stay.
            everything = frozenset(ours.entries) - {w.table_key for w in planned.change.writes}
            return replace(planned, change=replace(planned.change, reads=everything))

        return self._apply(reset_to, plan, branch, contract, draft, options, quarantined)

    def _around(self, commit: CommitRecord, home: BranchRef) -> tuple[Snapshot, Snapshot]:
        """The states before and after a commit."""
        if commit.draft.operation in (OperationKind.INIT, OperationKind.SCHEMA_APPLY):
            what = commit.draft.operation.value
            raise InputError(
                f"commit '{commit.graph_commit_id}' is of {what} and changed no rows of the graph"
            )
        sequence = commit.sequence
        before = self._parts.snapshot_of(self._parts.manifest.at(home.physical, sequence - 1))
        return before, self._parts.snapshot_of(self._parts.manifest.at(home.physical, sequence))

    def _apply(
        self,
        applied: CommitId,
        plan: Callable[[MergePlanner, Snapshot], MergePlan],
        branch: BranchRef,
        contract: SchemaContract,
        draft: CommitDraft,
        options: MergeOptions,
        quarantined: tuple[Quarantined, ...],
    ) -> AppliedCommit:
        def attempt(ours: Snapshot) -> _Attempt:
            _check_schema(ours, contract)
            planner = self._planner(branch, options, adopts=False)
            return _Attempt(plan(planner, ours), ours, applied)

        def result(receipt: Receipt) -> AppliedCommit:
            return AppliedCommit(receipt, branch.public, applied, options.dry_run)

        first = attempt(self._parts.snapshot_of(self._parts.manifest.current(branch.physical)))
        if options.dry_run:
            would = replace(self._nothing(branch, draft), counts=_shown(first.plan.counts))
            return replace(
                result(would),
                conflicts=first.plan.conflicts,
                conflicts_total=first.plan.conflicts_total,
            )
        try:
            made = self._commit(
                branch, WriterKind.MUTATION, draft, first, attempt, options, quarantined
            )
        except AlreadyWritten as already:
            return _replayed(options.request.same(already.found), applied, branch, contract)
        if made is None:
            return result(self._nothing(branch, draft))
        return result(receipt_of(made, contract.catalog))

    # -- committing -------------------------------------------------------------------------

    def _planner(self, branch: BranchRef, options: MergeOptions, *, adopts: bool) -> MergePlanner:
        return MergePlanner(
            self._parts,
            branch.physical,
            adopts=adopts,
            writes=not options.dry_run,
            engine=options.engine,
            progress=options.progress,
        )

    def _commit(
        self,
        branch: BranchRef,
        kind: WriterKind,
        draft: CommitDraft,
        first: _Attempt,
        attempt: Callable[[Snapshot], _Attempt],
        options: MergeOptions,
        quarantined: tuple[Quarantined, ...],
        still_stored: Callable[[], None] | None = None,
    ) -> CommitRecord | None:
        first.plan.refuse_conflicts()

        plans = [first.plan]

        def prepare(current: Snapshot) -> Change:
            again = attempt(current)
            again.plan.refuse_conflicts()
            plans.append(again.plan)
            return again.plan.change

        request = WriteRequest(
            branch=branch,
            kind=kind,
            draft=options.request.on(
                replace(draft, warnings=tuple(_unused(first.plan))), base=first.base
            ),
            change=first.plan.change,
            checked=first.checked,
            prepare=prepare,
            expected_head=options.expected_head,
            commits_without_rows=kind is WriterKind.BRANCH_MERGE,
            ancestors=first.ancestors,
            quarantined=quarantined,
            still_stored=still_stored,
        )
        options.progress.stage("write", first.plan.rows)
        commit = self._writer.commit(request)
        options.progress.advance(plans[-1].rows)
        if commit is not None and len(plans) > 1:
            with suppress(OmnigraphError):  # What stays is nobody's, and the merge is made.
                self._remove_unused(plans, branch, commit)
        return commit

    def _remove_unused(
        self, plans: Sequence[MergePlan], branch: BranchRef, commit: CommitRecord
    ) -> None:
        """Remove the files of plans that were made anew because the target had moved.

        The state of the very commit tells which are used: in a later one, its rows may have been
        stored anew, and its files are still those of its history.
        """
        made = self._at(CommitLocation(branch.physical, commit.sequence))
        for plan in plans:
            for write in plan.change.writes:
                if write.written is not None:
                    from omnigraph.engine.merge.spread import remove

                    used = made.open(self._parts.tables, write.table_key).files()
                    remove(self._parts.objects, [write.written], besides=used)

    def _refuse_removed(self, source: BranchRef, theirs: ManifestState) -> None:
        """Raises `ConflictError` when versions of main that the merged state names are gone.

        The target may point at them, and the next merge of the two will compare with them. What is
        current on a branch is never removed. Neither may the branch itself have been: the merged
        commit could not be read by later merges.
        """
        if source.physical is not None and source.physical not in self._parts.manifest.refs():
            raise ConflictError(f"'{source.public}' was deleted while it was being merged")
        with suppress(BranchNotFound):
            if self._parts.manifest.current(source.physical).head == theirs.head:
                return
        if next(removed_tables(self._parts.tables, theirs), None) is not None:
            raise ConflictError(
                f"'{source.public}' has moved on and cleanup has removed what was to be merged; "
                "merge again"
            )

    def _nothing(self, branch: BranchRef, draft: CommitDraft) -> Receipt:
        return nothing_done(self._parts.manifest.current(branch.physical), draft)


def _check_schema(snapshot: Snapshot, contract: SchemaContract) -> None:
    if snapshot.catalog.ir != contract.catalog.ir:
        raise SchemaMoved()


def _replayed_merge(
    commit: CommitRecord, source: str, target: BranchRef, contract: SchemaContract
) -> MergeResult:
    assert commit.draft.write_key is not None
    outcome = _outcome(commit.parent_commit_id, commit.draft.write_key.answer["base"])
    receipt = receipt_of(commit, contract.catalog, replayed=True)
    merged = commit.draft.merged_parent_commit_id
    return MergeResult(receipt, source, target.public, outcome, source_commit_id=merged)


def _replayed(
    made: CommitRecord, applied: CommitId, branch: BranchRef, contract: SchemaContract
) -> AppliedCommit:
    receipt = receipt_of(made, contract.catalog, replayed=True)
    return AppliedCommit(receipt, branch.public, applied)


def _outcome(parent: CommitId | None, base: CommitId | None) -> MergeOutcome:
    is_forward = parent is not None and parent == base
    return MergeOutcome.FAST_FORWARD if is_forward else MergeOutcome.MERGED


def _shown(counts: dict[str, Counts]) -> dict[str, Counts]:
    return {key: count for key, count in counts.items() if count}


def _unused(plan: MergePlan) -> list[Warning]:
    if not plan.unused:
        return []
    shown = ", ".join(f"{key}:{id}" for key, id in plan.unused[:3])
    message = f"resolutions of rows that are in no conflict were not needed: {shown}"
    return [Warning("unused_resolution", message, len(plan.unused))]


def _draft(
    operation: OperationKind, contract: SchemaContract, options: MergeOptions
) -> CommitDraft:
    return CommitDraft(
        graph_commit_id=CommitId(new_ulid()),
        operation=operation,
        operation_id=OperationId(new_ulid()),
        created_at=now_micros(),
        schema_ir_hash=contract.hash,
        schema_ref=contract.reference,
        actor_id=options.actor,
        message=options.message,
    )
