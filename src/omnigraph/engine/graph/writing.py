"""Changes of the rows of a graph: mutations and loads."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from omnigraph.engine.gate import Action, Request
from omnigraph.engine.graph.branching import Branching
from omnigraph.engine.graph.parameters import joined_parameters
from omnigraph.errors import (
    BranchNotFound,
)
from omnigraph.limits import MAX_LOAD_ERRORS
from omnigraph.progress import SILENT, Progress
from omnigraph.versioning.branches import BranchRef
from omnigraph.versioning.commits import CommitId

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from omnigraph.engine.write.load import LoadResult
    from omnigraph.engine.write.mutation import MutationResult


class Writes(Branching):
    """What changes the rows of a graph."""

    def mutate(
        self,
        query: str | Path,
        name: str | None = None,
        params: Mapping[str, object] | None = None,
        /,
        *,
        branch: str | None = None,
        actor: str | None = None,
        message: str | None = None,
        expected_head: str | None = None,
        idempotency_key: str | None = None,
        **more: object,
    ) -> MutationResult:
        """Run a mutation as one commit, or as none when nothing changes in the end.

        `query` is query text or the path of a query file; `name` picks one of several queries in
        it. Parameters come as a mapping, or as keywords unless one here has their name.

        Other writers are no obstacle: the mutation is made on the newest state of the branch, unless
        that is not `expected_head`. A second call with the same `idempotency_key` changes nothing
        and returns what the first one did.
        """
        from omnigraph.engine.write.keys import keyed_request
        from omnigraph.engine.write.mutation import MutationOptions
        from omnigraph.plan.params import bind_host_values

        self._writable("mutate")
        ref = self._ref(branch)
        self._gate.check(Request(actor, Action.CHANGE, branch=ref.public))
        quarantined = self._recover(ref)
        # After the recovery, which may have completed a change of the schema.
        contract = self._schemas.contract()
        compiled = self._reader.queries.compile(query, name, contract.catalog)
        plan = compiled.mutation_plan()
        bound = bind_host_values(plan.parameters, joined_parameters(params, more))
        options = MutationOptions(
            request=keyed_request(idempotency_key, "mutate", compiled.text, bound),
            actor=actor,
            message=message,
            expected_head=None if expected_head is None else CommitId(expected_head),
        )
        return self._mutator.mutate(plan, bound, ref, contract, options, quarantined)

    def load(
        self,
        source: object = None,
        mode: str = "merge",
        *,
        branch: str | None = None,
        base: str | None = None,
        load_id: str | None = None,
        actor: str | None = None,
        message: str | None = None,
        expected_head: str | None = None,
        strict: bool = False,
        cascade: bool = False,
        max_errors: int = MAX_LOAD_ERRORS,
        quarantine: str | Path | None = None,
        format: str | None = None,
        mapping: str | Path | Mapping[str, object] | None = None,
        progress: Progress = SILENT,
        engine: str | None = None,
        spark: SparkSession | None = None,
        master: str | None = None,
    ) -> LoadResult:
        """Load records as one commit: all of them or, with the first bad one, none.

        `source` is a path, several paths, JSON text, or a dictionary of data frames by type. A
        `mapping` (a document or the path of one) says what the columns of tables are, and may name
        files to load by itself. `progress` is told about stages and records.

        A missing branch is made from `base` if one is given. Raises `LoadError` that lists every
        bad record; with `quarantine`, good records are loaded and bad ones kept in that folder.

        Properties that the schema does not have are ignored with a warning; with `strict` they raise
        `UnknownPropertiesRefused`.

        An overwrite that removes nodes to which other edges point raises `DanglingEdges`, unless
        their types are loaded too; with `cascade` these edges are deleted in the same commit.

        `engine` says where it runs: `spark`, `inline`, or `auto`, which takes Spark for large input.
        A session that is handed in is used and not stopped; `master` names one to start.
        """
        from omnigraph.engine.engines import chosen_engine
        from omnigraph.engine.receipts import receipt_of
        from omnigraph.engine.write.load import LoadOptions, LoadResult, check_load_options

        self._writable("load")
        known_mode, known_id = check_load_options(mode, load_id, cascade=cascade)
        options = LoadOptions(
            mode=known_mode,
            load_id=known_id,
            is_id_new=load_id is None,
            actor=actor,
            message=message,
            expected_head=None if expected_head is None else CommitId(expected_head),
            max_errors=max_errors,
            quarantine=None if quarantine is None else Path(quarantine),
            format=format,
            mapping=mapping,
            progress=progress,
            cascade=cascade,
            strict=strict,
            engine=chosen_engine(engine, spark, master),
        )
        ref, created = self._load_target(branch, base, actor)
        self._gate.check(Request(actor, Action.CHANGE, branch=ref.public))
        quarantined = self._recover(ref)
        contract = self._schemas.contract()
        loaded = self._loader.replay(ref, options) if load_id is not None else None
        if loaded is None:
            self._require_head(ref, options.expected_head)
            loaded = self._loader.load(source, ref, contract, options, quarantined)
        return LoadResult(
            receipt=receipt_of(loaded.commit, contract.catalog, replayed=loaded.replayed),
            branch=ref.public,
            base_branch=base,
            branch_created=created,
            mode=known_mode,
            rows_loaded=loaded.note.rows_loaded,
            load_id=known_id,
            replayed=loaded.replayed,
            quarantined=loaded.note.quarantined,
            engine=loaded.engine,
        )

    def _load_target(
        self, branch: str | None, base: str | None, actor: str | None
    ) -> tuple[BranchRef, bool]:
        """The branch to load into, made from `base` if it is missing and a base is given."""
        try:
            return self._ref(branch), False
        except BranchNotFound:
            if branch is None or base is None:
                raise
            self.create_branch(branch, source=base, actor=actor)
            return self._branches.find(branch), True
