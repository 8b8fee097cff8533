"""Bringing changes from one branch to another, and undoing them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from omnigraph.engine.gate import Action, Request
from omnigraph.engine.graph.handle import GraphHandle
from omnigraph.errors import InputError
from omnigraph.progress import SILENT, Progress
from omnigraph.versioning.commits import CommitId, OperationKind

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from omnigraph.engine.merge.run import AppliedCommit, MergeOptions, Merger, MergeResult


class Merges(GraphHandle):
    """What combines branches."""

    def merge(
        self,
        source: str,
        into: str | None = None,
        *,
        strategy: str | Mapping[str, str] = "fail",
        granularity: str = "row",
        resolutions: Iterable[Mapping[str, Any]] = (),
        dry_run: bool = False,
        actor: str | None = None,
        message: str | None = None,
        expected_head: str | None = None,
        idempotency_key: str | None = None,
        progress: Progress = SILENT,
        engine: str | None = None,
        spark: SparkSession | None = None,
        master: str | None = None,
    ) -> MergeResult:
        """Bring the changes of a branch into another, the bound one by default, as one commit.

        Raises `MergeConflicts` that lists every conflict; nothing has changed then. `strategy` is
        `fail`, `ours` (the target's side) or `theirs`, for all rows or by `Type` and
        `Type.property`; with granularity `property`, updates of different properties of a row go
        together. `resolutions` decide single rows: mappings of `table_key`, `row_id` and `take`.
        A dry run reports outcome, counts and conflicts and changes nothing. A second call with the
        same `idempotency_key` changes nothing and returns what the first one did.

        `engine` says where rows are merged: `spark`, `inline`, or `auto`, which takes Spark when
        very many may differ; `spark` and `master` are as for `load`.
        """
        from omnigraph.engine.engines import chosen_engine
        from omnigraph.engine.merge.choices import Choices
        from omnigraph.engine.merge.run import MergeOptions
        from omnigraph.engine.write.keys import keyed_request

        self._writable("merge")
        decided = tuple(resolutions)
        choices, ours = Choices.of(strategy, granularity, decided), self._ref(into)
        if source == ours.public:
            raise InputError("a merge needs distinct source and target branches")
        self._gate.check(Request(actor, Action.BRANCH_MERGE, source, ours.public))
        options = MergeOptions(
            choices=choices,
            request=keyed_request(idempotency_key, "merge", source, strategy, granularity, decided),
            actor=actor,
            message=message,
            expected_head=None if expected_head is None else CommitId(expected_head),
            dry_run=dry_run,
            engine=chosen_engine(engine, spark, master),
            progress=progress,
        )
        quarantined = self._recover(ours)
        contract = self._schemas.contract()
        choices.check(contract.catalog)
        earlier = self._merger().merged_before(source, ours, contract, options)
        if earlier is not None:
            return earlier
        self._require_head(ours, options.expected_head)
        theirs = self._branches.find(source)
        # What was interrupted on the source is recovered too, or it would come without its author.
        self._recover(theirs)
        return self._merger().merge(theirs, ours, contract, options, quarantined)

    def revert(
        self,
        commit_id: str,
        *,
        branch: str | None = None,
        dry_run: bool = False,
        actor: str | None = None,
        message: str | None = None,
        expected_head: str | None = None,
        idempotency_key: str | None = None,
        progress: Progress = SILENT,
        engine: str | None = None,
        spark: SparkSession | None = None,
        master: str | None = None,
    ) -> AppliedCommit:
        """Undo what a commit did, as one new commit; of a merge, what it changed on its branch.

        Raises `MergeConflicts` when rows it wrote have changed since. A second call with the same
        `idempotency_key` changes nothing and returns what the first one did.
        """
        from omnigraph.engine.engines import chosen_engine
        from omnigraph.engine.merge.choices import Choices
        from omnigraph.engine.merge.run import MergeOptions
        from omnigraph.engine.write.keys import keyed_request

        request = keyed_request(idempotency_key, "revert", commit_id)
        head = None if expected_head is None else CommitId(expected_head)
        choice = chosen_engine(engine, spark, master)
        options = MergeOptions(Choices(), request, actor, message, head, dry_run, choice, progress)
        return self._apply(OperationKind.REVERT, commit_id, branch, options)

    def cherry_pick(
        self,
        commit_id: str,
        *,
        branch: str | None = None,
        dry_run: bool = False,
        actor: str | None = None,
        message: str | None = None,
        expected_head: str | None = None,
        idempotency_key: str | None = None,
        progress: Progress = SILENT,
        engine: str | None = None,
        spark: SparkSession | None = None,
        master: str | None = None,
    ) -> AppliedCommit:
        """Do on a branch what a commit did on another one, as one new commit.

        Raises `MergeConflicts` when the rows it changed are not the same here. A second call with
        the same `idempotency_key` changes nothing and returns what the first one did.
        """
        from omnigraph.engine.engines import chosen_engine
        from omnigraph.engine.merge.choices import Choices
        from omnigraph.engine.merge.run import MergeOptions
        from omnigraph.engine.write.keys import keyed_request

        request = keyed_request(idempotency_key, "cherry_pick", commit_id)
        head = None if expected_head is None else CommitId(expected_head)
        choice = chosen_engine(engine, spark, master)
        options = MergeOptions(Choices(), request, actor, message, head, dry_run, choice, progress)
        return self._apply(OperationKind.CHERRY_PICK, commit_id, branch, options)

    def _apply(
        self, operation: OperationKind, commit_id: str, branch: str | None, options: MergeOptions
    ) -> AppliedCommit:
        self._writable(operation.value.replace("_", "-"))
        ref = self._ref(branch)
        self._gate.check(Request(options.actor, Action.CHANGE, branch=ref.public))
        quarantined = self._recover(ref)
        contract = self._schemas.contract()
        commit, home = self._locate(CommitId(commit_id))
        merger = self._merger()
        return merger.apply(operation, commit, home, ref, contract, options, quarantined)

    def _merger(self) -> Merger:
        from omnigraph.engine.merge.run import Merger

        return Merger(self._parts, self._writer)
