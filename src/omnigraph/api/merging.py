"""The calls that bring changes from one branch to another, and undo them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from omnigraph.api.arguments import commit_argument, optional_text
from omnigraph.api.branches import HasBranches, apply_options, only_shown
from omnigraph.errors import BranchInUse, HeadMoved, InputError
from omnigraph.graph.gate import Action
from omnigraph.versioning.commits import OperationKind, Warning

if TYPE_CHECKING:
    from omnigraph.history.refs import Ref, ResolvedRef
    from omnigraph.merge.merger import AppliedCommit, MergeOptions, MergeResult
    from omnigraph.progress import Progress
    from omnigraph.spark.choice import EngineArgument


class Merges(HasBranches):
    """Calls that combine branches, each as one commit."""

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
        """Merge a branch, or an earlier state of one, into a branch: the bound one by default.

        Three-way, as one commit with two parents. Raises `MergeConflicts` that lists every conflict;
        nothing has changed then. `strategy` is `fail`, `ours` (the target wins) or `theirs`, for all
        rows or by `Type` and `Type.property`; with granularity `property`, updates of different
        properties of a row are combined. `resolutions` decide single rows: mappings of `table_key`,
        `row_id` and `take`. `dry_run` reports outcome, counts and conflicts and changes nothing.
        `delete_source` deletes the merged branch afterwards, unless it has moved meanwhile or another
        branch or a tag has come to need it: then it stays, and the receipt has a warning. A replayed
        call deletes nothing.

        >>> _ = graph.branches.create("june").upsert("Note", [{"slug": "n2", "text": "Fixed"}])
        >>> graph.merge("june").outcome.value
        'fast_forward'
        """
        from omnigraph.commit.keys import keyed_request
        from omnigraph.history.branches import delete_branch, resolve_source
        from omnigraph.history.refs import written_form
        from omnigraph.merge.merger import MergeOptions, Merger
        from omnigraph.merge.resolution import ConflictResolution
        from omnigraph.progress import SILENT
        from omnigraph.spark.choice import chosen_engine

        core = self._writable("merge")
        decided = tuple(resolutions)
        resolution, ours = ConflictResolution.parse(strategy, granularity, decided), self._ref(into)
        if source == ours.public:
            raise InputError("a merge needs distinct source and target branches")
        named = written_form(source)
        self._allow(Action.BRANCH_MERGE, named, ours.public)
        options = MergeOptions(
            resolution=resolution,
            request=keyed_request(idempotency_key, "merge", named, strategy, granularity, decided),
            actor=self._actor,
            message=optional_text("message", message),
            expected_head=commit_argument("expected_head", expected_head),
            dry_run=dry_run,
            engine=chosen_engine(engine),
            progress=progress or SILENT,
        )
        quarantined = self._recover(ours)
        contract = core.contract()
        resolution.check(self._view.restrict(contract.catalog))
        merger = Merger(core.parts, core.writer, ours, contract, options, quarantined)
        earlier = merger.merged_before(named)
        if earlier is not None:
            return self._shown(earlier)
        self._require_head(ours, options.expected_head)
        theirs = resolve_source(core.parts, self._bound, source)
        if delete_source:
            self._refuse_kept(theirs)
        # What was interrupted on the source is recovered too, or it would come without its author.
        self._recover(theirs.branch)
        merged = only_shown(self, ours, lambda: [theirs.state], lambda: merger.merge(theirs))
        if not delete_source or dry_run:
            return merged
        try:
            delete_branch(core.parts, theirs.branch, merged.source_commit_id)
        except (BranchInUse, HeadMoved) as error:
            # The merge is made; an error would hide it.
            return _with_warning(merged, Warning("source_kept", f"source not deleted: {error}"))
        return merged

    def _refuse_kept(self, source: ResolvedRef) -> None:
        """Before a merge: raise what would keep its source from being deleted."""
        if not source.is_branch_head:
            raise InputError("delete_source needs a branch as source, not a commit")
        self._allow(Action.BRANCH_DELETE, target_branch=source.branch.public)
        self.branches._refuse_bound(source.branch)
        self._core.branches.require_deletable(source.branch)

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
        """Undo a commit's changes as a new commit; for a merge, what it changed on its branch.

        Raises `MergeConflicts` when rows that it wrote have changed since.

        >>> written = graph.upsert("Note", [{"slug": "n2", "text": "Wrong"}])
        >>> _ = graph.revert(written)
        >>> graph.get("Note", "n2") is None
        True
        """
        options = apply_options(
            self, "revert", ref, dry_run, message, expected_head, idempotency_key, engine, progress
        )
        return self._apply(OperationKind.REVERT, ref, branch, options)

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
        """Apply a commit's changes to another branch as a new commit.

        Raises `MergeConflicts` when the rows it changed differ there.

        >>> fix = graph.branches.create("june").upsert("Note", [{"slug": "n2", "text": "Fixed"}])
        >>> graph.cherry_pick(fix).receipt.counts["node:Note"].inserted
        1
        """
        options = apply_options(
            self,
            "cherry_pick",
            ref,
            dry_run,
            message,
            expected_head,
            idempotency_key,
            engine,
            progress,
        )
        return self._apply(OperationKind.CHERRY_PICK, ref, branch, options)

    def _apply(
        self, operation: OperationKind, ref: Ref, branch: str | None, options: MergeOptions
    ) -> AppliedCommit:
        from omnigraph.merge.merger import Merger

        core = self._writable(operation.value.replace("_", "-"))
        target = self._ref(branch)
        self._allow(Action.CHANGE, target.public)
        quarantined = self._recover(target)
        contract = core.contract()
        found = core.resolve_ref(ref, self._bound, "ref")
        merger = Merger(core.parts, core.writer, target, contract, options, quarantined)
        home, number = found.branch.physical, found.commit.sequence
        return only_shown(
            self,
            target,
            lambda: [core.manifest.at(home, n) for n in (number, number - 1) if n > 0],
            lambda: merger.apply(operation, found.commit, found.branch),
        )


def _with_warning(merged: MergeResult, warning: Warning) -> MergeResult:
    receipt = replace(merged.receipt, warnings=(*merged.receipt.warnings, warning))
    return replace(merged, receipt=receipt)
