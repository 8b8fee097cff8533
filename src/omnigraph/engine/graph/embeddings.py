"""The vectors of a graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from omnigraph.engine.gate import Action, Request
from omnigraph.engine.graph.handle import GraphHandle
from omnigraph.errors import InputError
from omnigraph.progress import SILENT, Progress
from omnigraph.versioning.commits import CommitId

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from omnigraph.engine.write.refill_report import RefillResult


class Embeddings(GraphHandle):
    """What keeps the vectors of a graph in step with their texts."""

    def embed(
        self,
        *,
        branch: str | None = None,
        types: Sequence[str] = (),
        properties: Sequence[str] = (),
        pending: bool = False,
        stale: bool = False,
        all: bool = False,
        include_given: bool = False,
        dry_run: bool = False,
        actor: str | None = None,
        message: str | None = None,
        expected_head: str | None = None,
        progress: Progress = SILENT,
        engine: str | None = None,
        spark: SparkSession | None = None,
        master: str | None = None,
    ) -> RefillResult:
        """Compute `@embed` vectors that are missing or out of date, as one commit.

        `pending` and `stale` choose one of the two; `all` computes those that are up to date as
        well. Vectors that were given stay as they are, unless `include_given` and their text has
        changed. With `dry_run` the vectors are only counted.

        `engine` says where the provider is asked, `spark` and `master` on which session, as for
        `load`; the vectors are the same.
        """
        from omnigraph.engine.engines import chosen_engine
        from omnigraph.engine.write.refill import Refiller
        from omnigraph.engine.write.refill_report import RefillOptions

        if (pending or stale) and all:
            raise InputError("`all` takes in what is pending and stale; leave those out")
        head = None if expected_head is None else CommitId(expected_head)
        options = RefillOptions(
            types=tuple(types),
            properties=tuple(properties),
            pending=pending or not stale,
            stale=stale or not pending,
            everything=all,
            include_given=include_given,
            actor=actor,
            message=message,
            expected_head=head,
        )
        choice = chosen_engine(engine, spark, master)
        if not dry_run:
            self._writable("embed")
        contract = self._schemas.contract()
        ref = self._ref(branch)
        self._gate.check(
            Request(actor, Action.READ if dry_run else Action.CHANGE, branch=ref.public)
        )
        refiller = Refiller(self._parts, self._writer)
        if dry_run:
            return refiller.preview(ref, contract, options)
        quarantined = self._recover(ref)
        self._require_head(ref, head)
        return refiller.refill(ref, contract, options, quarantined, choice, progress)
