"""The schema of a graph, and how it becomes another one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from omnigraph.engine.gate import Action, Request
from omnigraph.engine.graph.handle import GraphHandle
from omnigraph.progress import SILENT, Progress
from omnigraph.versioning.branch_names import MAIN
from omnigraph.versioning.commits import CommitId

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from omnigraph.catalog.migrate import MigrationPlan
    from omnigraph.engine.schema import SchemaApplication, SchemaApplyResult


class Schemas(GraphHandle):
    """What changes the schema of a graph."""

    def plan_schema(self, schema: str | Path, *, allow_data_loss: bool = False) -> MigrationPlan:
        """The steps to another schema, those that cannot be made included. Changes nothing.

        `schema` is schema text or the path of a schema file.
        """
        from omnigraph.engine.source_files import schema_source

        desired = schema_source(schema)
        return self._application().plan(desired, allow_data_loss=allow_data_loss)

    def apply_schema(
        self,
        schema: str | Path,
        *,
        allow_data_loss: bool = False,
        actor: str | None = None,
        message: str | None = None,
        expected_head: str | None = None,
        idempotency_key: str | None = None,
        queries: Sequence[str | Path] = (),
        progress: Progress = SILENT,
        engine: str | None = None,
        spark: SparkSession | None = None,
        master: str | None = None,
    ) -> SchemaApplyResult:
        """Make a schema the accepted one, as one commit on `main`, which must be the only branch.

        What is dropped stays readable at earlier commits until it is cleaned up; with
        `allow_data_loss` it is removed at once. Raises `UnsupportedMigration` or
        `SchemaApplyBlocked`, and `QueriesBroken` when one of the `queries`, texts or paths of query
        files, does not fit the new schema.

        A second call with the same `idempotency_key` changes nothing and returns what the first one
        did. `engine` says where rows are written anew, `spark` and `master` on which session, as for
        `load`; `auto` takes Spark for twenty million rows. `progress` is told about tables and rows.
        """
        from omnigraph.engine.engines import chosen_engine
        from omnigraph.engine.schema import SchemaApplyOptions
        from omnigraph.engine.source_files import query_source, schema_source
        from omnigraph.engine.write.keys import keyed_request

        self._writable("apply a schema")
        self._gate.check(Request(actor, Action.SCHEMA_APPLY, target_branch=MAIN))
        head = None if expected_head is None else CommitId(expected_head)
        choice = chosen_engine(engine, spark, master)
        desired = schema_source(schema)
        options = SchemaApplyOptions(
            request=keyed_request(idempotency_key, "schema_apply", desired.text, allow_data_loss),
            allow_data_loss=allow_data_loss,
            actor=actor,
            message=message,
            expected_head=head,
            engine=choice,
            queries=tuple(query_source(query) for query in queries),
            progress=progress,
        )
        try:
            return self._application().apply(desired, options)
        finally:
            self.sync_branch(self.branch)

    def _application(self) -> SchemaApplication:
        from omnigraph.engine.schema import SchemaApplication

        return SchemaApplication(self._parts)
