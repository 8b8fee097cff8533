"""The calls that change rows: mutations, loads, inserts and embeddings."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from omnigraph.api.arguments import (
    commit_argument,
    kind_of,
    names_argument,
    optional_text,
    text_argument,
)
from omnigraph.api.branches import HasBranches
from omnigraph.api.statements import branch_statement, run_branch_statement
from omnigraph.catalog.model import EntityType, NodeType
from omnigraph.errors import (
    BranchNotFound,
    ConstraintError,
    InputError,
    LoadError,
    MutationError,
    OmnigraphError,
    ReadsRestricted,
)
from omnigraph.graph.gate import Action
from omnigraph.limits import MAX_LOAD_ERRORS

if TYPE_CHECKING:
    from omnigraph.api.protocol import GraphProtocol
    from omnigraph.embedding.embed import EmbedResult
    from omnigraph.history.refs import Ref
    from omnigraph.load.run import Loaded, Loader, LoadOptions, LoadResult
    from omnigraph.mutation.run import MutationResult
    from omnigraph.plan.changes import MutationPlan
    from omnigraph.progress import Progress
    from omnigraph.spark.choice import EngineArgument
    from omnigraph.versioning.branches import BranchRef
    from omnigraph.versioning.contract import SchemaContract
    from omnigraph.versioning.recovery.sidecar import Quarantined


class Changes(HasBranches):
    """Calls that change the rows of a graph, each as one commit."""

    def mutate(
        self,
        source: str | Path,
        params: Mapping[str, object] | None = None,
        *,
        name: str | None = None,
        branch: str | None = None,
        message: str | None = None,
        expected_head: Ref | None = None,
        idempotency_key: str | None = None,
    ) -> MutationResult:
        """Run a mutation query as one commit, or none if nothing changes.

        Concurrent writers are no obstacle: the mutation is prepared on the newest state of the
        branch, and again if the branch moves. Only `expected_head` refuses a branch that is at
        another commit (`HeadMoved`). A repeated call with the same `idempotency_key` writes nothing
        and returns the first receipt. Raises `MutationError` that lists every violated rule.

        >>> done = graph.mutate("team.gq", {"email": "cy@x.org", "name": "Cy"}, name="add_person")
        >>> done.affected_nodes
        1
        """
        statement = branch_statement(source)
        if statement is not None:
            graph = cast("GraphProtocol", self)
            given = (name, params, message, expected_head, idempotency_key)
            return run_branch_statement(graph, statement, branch, *given)
        from omnigraph.commit.keys import keyed_request, keyed_text
        from omnigraph.mutation.match_reader import MatchReader
        from omnigraph.mutation.run import MutationOptions, Mutator
        from omnigraph.plan.params import bind_host_values

        core = self._writable("mutate")
        query_name, ref = optional_text("name", name), self._ref(branch)
        self._allow(Action.CHANGE, ref.public)
        text, head = (
            optional_text("message", message),
            commit_argument("expected_head", expected_head),
        )
        matches = MatchReader(core.tables, core.reader, self._view)
        mutator = Mutator(core.parts, core.writer, matches)

        def compiled_under(
            contract: SchemaContract,
        ) -> tuple[MutationPlan, Mapping[str, object], MutationOptions]:
            # What the view hides does not exist for the mutation.
            compiled = core.reader.queries.compile(source, query_name, contract.catalog, self._view)
            plan = compiled.mutation_plan()
            bound = bind_host_values(plan.parameters, params or {})
            request = keyed_request(idempotency_key, "mutate", keyed_text(compiled.text), bound)
            return plan, bound, MutationOptions(request, self._actor, text, head)

        known = core.known_schema(ref) if idempotency_key is None and head is None else None
        if known is not None:
            ready = None
            with suppress(OmnigraphError):  # It may be right under the schema of the newest commit.
                ready = compiled_under(known.contract)
            if ready is not None:
                done = mutator.mutate_known(ready[0], ready[1], ref, known, ready[2])
                if done is not None:
                    return self._shown(done)
        quarantined = self._recover(ref)
        # After the recovery, which may have completed a schema change.
        contract = core.contract(ref)
        plan, bound, options = compiled_under(contract)
        try:
            return self._shown(mutator.mutate(plan, bound, ref, contract, options, quarantined))
        except ConstraintError as error:
            if _names_any(self._view.hidden_names(contract.catalog), error):
                hidden = "it would violate a rule of the schema about what is hidden from you"
                raise MutationError([hidden], 1) from None
            raise

    def load(
        self,
        source: object,
        mode: str,
        *,
        branch: str | None = None,
        create_from: Ref | None = None,
        format: str | None = None,
        mapping: str | Path | Mapping[str, object] | None = None,
        load_id: str | None = None,
        strict: bool = False,
        cascade: bool = False,
        quarantine: str | Path | None = None,
        max_errors: int = MAX_LOAD_ERRORS,
        message: str | None = None,
        expected_head: Ref | None = None,
        engine: EngineArgument = "auto",
        progress: Progress | None = None,
    ) -> LoadResult:
        """Load records as one commit: all of them or, if one is bad, none.

        `source` is a path, glob or URI; bytes or a stream of JSON text; records as dicts; several of
        these in a list; or `{"Type": rows}` with dicts, Arrow, pandas, Polars or Spark frames. It is
        None if `mapping`, a document or the path of one, names all files.

        `mode` is `append`, `merge` (replace rows by id), `patch` (update given properties) or
        `overwrite` (replace all rows of the loaded types; with `cascade` also delete edges that
        would dangle). A missing `branch` is created from `create_from`. Unknown properties are
        ignored with a warning, or refused with `strict`. With `quarantine`, good records are loaded
        and bad ones are written to that directory. A repeated `load_id` loads nothing and returns
        the first result. Raises `LoadError` that lists the bad records.

        >>> graph.load({"Note": [{"slug": "n2", "text": "Fixed"}]}, "merge").rows_loaded
        {'node:Note': 1}
        """
        from omnigraph.history.commits import receipt_of
        from omnigraph.load.run import Loader, LoadOptions, LoadResult, check_load_options
        from omnigraph.progress import SILENT
        from omnigraph.spark.choice import chosen_engine

        core = self._writable("load")
        known_mode, known_id = check_load_options(
            text_argument("mode", mode), optional_text("load_id", load_id), cascade=cascade
        )
        options = LoadOptions(
            mode=known_mode,
            load_id=known_id,
            is_id_new=load_id is None,
            actor=self._actor,
            message=optional_text("message", message),
            expected_head=commit_argument("expected_head", expected_head),
            max_errors=max_errors,
            quarantine=None if quarantine is None else Path(quarantine),
            format=format,
            mapping=mapping,
            progress=progress or SILENT,
            cascade=cascade,
            strict=strict,
            engine=chosen_engine(engine),
        )
        if known_mode == "overwrite":
            self._require_whole("replace all rows of a type")
        ref, created = self._load_target(branch, create_from)
        self._allow(Action.CHANGE, ref.public)
        quarantined = self._recover(ref)
        contract = core.contract(ref)
        loader = Loader(core.parts, core.writer)
        loaded = loader.replay(ref, options) if load_id is not None else None
        if loaded is None:
            self._require_head(ref, options.expected_head)
            loaded = self._load(loader, source, ref, contract, options, quarantined)
        done = LoadResult(
            receipt=receipt_of(loaded.commit, contract.catalog, replayed=loaded.replayed),
            branch=ref.public,
            base_branch=create_from if isinstance(create_from, str) else None,
            branch_created=created,
            mode=known_mode,
            rows_loaded=loaded.note.rows_loaded,
            load_id=known_id,
            replayed=loaded.replayed,
            quarantined=loaded.note.quarantined,
            engine=loaded.engine,
            stages=loaded.stages,
            lock_seconds=loaded.lock_seconds,
            engine_reason=(
                loaded.decision.reason if loaded.decision and loaded.decision.is_weighed else None
            ),
        )
        return self._shown(done)

    def _load(
        self,
        loader: Loader,
        source: object,
        ref: BranchRef,
        contract: SchemaContract,
        options: LoadOptions,
        quarantined: tuple[Quarantined, ...],
    ) -> Loaded:
        """Load into types of which this handle sees all properties."""
        view, catalog = self._view, contract.catalog
        if not view.hides_names:
            return loader.load(source, ref, contract, options, quarantined)
        known = view.loadable(catalog)
        refused = frozenset(
            found.table_key
            for found in view.restrict(catalog)
            if found.properties.keys() != known.entity(found.table_key).properties.keys()
        )
        try:
            return loader.load(
                source,
                ref,
                replace(contract, catalog=known),
                replace(options, refused=refused),
                quarantined,
            )
        except LoadError as error:
            # A type that is named was named by the caller: no other is known to the load.
            properties = {name for found in catalog for name in found.properties}
            if _names_any(view.hidden_names(catalog) & properties, error):
                raise ReadsRestricted("load a type of which properties are hidden") from None
            raise

    def insert(
        self,
        type: str,
        rows: object,
        *,
        branch: str | None = None,
        message: str | None = None,
        expected_head: Ref | None = None,
        idempotency_key: str | None = None,
        strict: bool = True,
        engine: EngineArgument = "auto",
    ) -> LoadResult:
        """Insert rows of one type as one commit. A key that exists is a `LoadError`.

        `rows` are dicts, an Arrow table, or a pandas or Polars frame; those of an edge type have
        `from` and `to`.

        >>> graph.insert("Wrote", [{"from": "bo@x.org", "to": "n1"}], message="co-author").rows_loaded
        {'edge:Wrote': 1}
        """
        return self._load_rows(
            type, rows, "append", branch, message, expected_head, idempotency_key, strict, engine
        )

    def upsert(
        self,
        type: str,
        rows: object,
        *,
        branch: str | None = None,
        message: str | None = None,
        expected_head: Ref | None = None,
        idempotency_key: str | None = None,
        strict: bool = True,
        engine: EngineArgument = "auto",
    ) -> LoadResult:
        """Insert rows of one type, or update those that exist, as one commit.

        A row is found by its `@key` (an edge by its `@unique(src, dst, …)`). Properties that a row
        does not have keep their values; None clears a value. The arguments are those of `insert`.

        >>> _ = graph.upsert("Person", [{"email": "bo@x.org", "name": "Bo B."}])
        >>> graph.get("Person", "bo@x.org")["name"]
        'Bo B.'
        """
        return self._load_rows(
            type, rows, "patch", branch, message, expected_head, idempotency_key, strict, engine
        )

    def embed(
        self,
        *,
        branch: str | None = None,
        types: Iterable[str] = (),
        properties: Iterable[str] = (),
        pending: bool = False,
        stale: bool = False,
        all: bool = False,
        include_given: bool = False,
        dry_run: bool = False,
        message: str | None = None,
        expected_head: Ref | None = None,
        idempotency_key: str | None = None,
        engine: EngineArgument = "auto",
        progress: Progress | None = None,
    ) -> EmbedResult:
        """Compute missing and stale `@embed` vectors as one commit.

        `pending` or `stale` picks one of the two; `all` recomputes every computed vector. Vectors
        that were loaded stay, unless `include_given` is set and their text has changed. With
        `dry_run` the vectors are only counted.

        >>> graph.embed(dry_run=True).properties
        ()
        """
        from omnigraph.commit.keys import keyed_request
        from omnigraph.embedding.embed import Embedder, EmbedOptions
        from omnigraph.progress import SILENT
        from omnigraph.spark.choice import chosen_engine

        if (pending or stale) and all:
            raise InputError("all=True already includes pending and stale; pass only one")
        chosen = names_argument("types", types), names_argument("properties", properties)
        asked = (*chosen, pending, stale, all, include_given)
        options = EmbedOptions(
            keyed_request(idempotency_key, "embed", *asked),
            *chosen,
            pending=pending or not stale,
            stale=stale or not pending,
            everything=all,
            include_given=include_given,
            actor=self._actor,
            message=optional_text("message", message),
            expected_head=commit_argument("expected_head", expected_head),
        )
        choice = chosen_engine(engine)
        self._require_whole("embed")
        core = self._core if dry_run else self._writable("embed")
        ref = self._ref(branch)
        contract = core.contract(ref)
        if not dry_run:
            self._allow(Action.CHANGE, ref.public)
        embedder = Embedder(core.parts, core.writer)
        if dry_run:
            return embedder.preview(ref, contract, options)
        quarantined = self._recover(ref)
        if options.request.earlier(core.parts.manifest, ref.physical) is None:
            self._require_head(ref, options.expected_head)
        return embedder.embed(ref, contract, options, quarantined, choice, progress or SILENT)

    def _load_rows(
        self,
        type: str,
        rows: object,
        mode: str,
        branch: str | None,
        message: str | None,
        expected_head: Ref | None,
        idempotency_key: str | None,
        strict: bool,
        engine: EngineArgument,
    ) -> LoadResult:
        from omnigraph.load.recognition import is_rows
        from omnigraph.read.entities import find_type

        core = self._writable("insert" if mode == "append" else "upsert")
        catalog = self._view.restrict(core.contract().catalog)
        declared = find_type(catalog, text_argument("type", type))
        if not is_rows(rows):
            wanted = "a list of dicts, an Arrow table, or a pandas or Polars frame"
            raise InputError(f"rows must be {wanted}, not {kind_of(rows)}")
        if mode == "patch":
            _require_identity(declared)
        return self.load(
            {declared.table_key: rows},
            mode,
            branch=branch,
            message=message,
            expected_head=expected_head,
            load_id=idempotency_key,
            strict=strict,
            engine=engine,
        )

    def _load_target(self, branch: str | None, source: Ref | None) -> tuple[BranchRef, bool]:
        """The branch to load into, created from `source` if it does not exist."""
        try:
            return self._ref(branch), False
        except BranchNotFound:
            if branch is None or source is None:
                raise
            # Before the branch exists, or a denied load would leave it behind.
            self._allow(Action.CHANGE, branch)
            self.branches.create(branch, source)
            return self._core.find_branch(branch), True


def _names_any(names: frozenset[str], error: OmnigraphError) -> bool:
    return bool(names) and not names.isdisjoint(re.findall(r"\w+", str(error)))


def _require_identity(declared: EntityType) -> None:
    """Raises `InputError` for a type whose rows cannot be found again."""
    from omnigraph.catalog.constraints import identity_group

    if identity_group(declared) is None:
        missing = "@key" if isinstance(declared, NodeType) else "@unique(src, dst)"
        problem = f"upsert cannot find rows of '{declared.name}': the type has no {missing}"
        raise InputError(f"{problem}; use insert, or load with mode='patch' and ids")
