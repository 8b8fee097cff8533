"""The two serialisers: results of the engine as documents of a contract.

`CONTRACT_07` is what a client without a version header gets, `CONTRACT_13` what one with
`Omnigraph-Http-Api: 0.13` gets. Handlers are the same for both and call these. A read and its rows are in
`omnigraph.wire.rows`. Tests: tests/server.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final, Protocol

import msgspec
from msgspec import UNSET, Raw, Struct

from omnigraph.json_structs import described
from omnigraph.wire import documents07 as v07
from omnigraph.wire import documents13 as v13

if TYPE_CHECKING:
    from omnigraph.api.graph_at import GraphAt
    from omnigraph.history.commits import Commit, Receipt
    from omnigraph.load.run import LoadResult
    from omnigraph.merge.merger import AppliedCommit, MergeResult
    from omnigraph.mutation.run import MutationResult
    from omnigraph.read.result import Result
    from omnigraph.versioning.commits import Warning
    from omnigraph.wire.errors import ErrorOutput13
    from omnigraph.wire.rows import Objects

HEADER: Final = "Omnigraph-Http-Api"
VERSION_13: Final = "0.13"
RELEASE_13: Final = "0.13.0"
"""The release of contract 0.13 that `/healthz` names as `version` under the header."""

ALL_FIELDS: Final = "application/vnd.omnigraph+json"
"""The media type of documents with every field we have: those of contract 0.7. A client of contract 0.13
that accepts it gets them, and the rules of 0.13 otherwise."""

MAIN: Final = "main"


class Contract(Protocol):
    """The documents of one contract."""

    @property
    def version(self) -> str: ...

    def read(
        self, result: Result, warnings: list[v07.WarningOutput], objects: Objects
    ) -> Struct: ...

    def mutation(self, result: MutationResult) -> Struct: ...

    def load(self, result: LoadResult, uri: str, base: str | None) -> Struct: ...

    def merge(
        self,
        result: MergeResult,
        commit: Commit | None,
        deleted: bool | None,
        failure: ErrorOutput13 | None,
    ) -> Struct: ...

    def commit(self, commit: Commit) -> Struct: ...

    def commits(self, newest_first: list[Commit]) -> Struct: ...

    def snapshot(self, state: GraphAt, format_stamp: int) -> Struct: ...

    def schema(self, source: str) -> Struct: ...


class Contract07:
    """Contract 0.7, with our additions as further fields."""

    version = "0.7"

    def read(
        self, result: Result, warnings: list[v07.WarningOutput], objects: Objects
    ) -> v07.ReadOutput:
        return v07.ReadOutput(
            query_name=result.query_name,
            target=v07.ReadTargetOutput(branch=result.branch, snapshot=result.snapshot),
            row_count=result.row_count,
            columns=result.columns or UNSET,
            rows=Raw(result.rows_json()),
            graph_commit_id=result.commit_id,
            warnings=warnings or UNSET,
            results={
                name: v07.FurtherResultOutput(
                    columns=further.columns,
                    row_count=further.row_count,
                    rows=Raw(further.rows_json()),
                )
                for name, further in result.results.items()
            }
            or UNSET,
        )

    def mutation(self, result: MutationResult) -> v07.ChangeOutput:
        return v07.ChangeOutput(
            branch=result.branch,
            query_name=result.query_name,
            affected_nodes=result.affected_nodes,
            affected_edges=result.affected_edges,
            actor_id=result.receipt.actor_id,
            commit=_commit_of(result.receipt),
            returned=[
                v07.ReturnedOutput(
                    statement=found.statement, columns=found.columns, rows=Raw(found.rows_json())
                )
                for found in result.returned
            ]
            or UNSET,
            **receipt_fields(result.receipt),
        )

    def load(self, result: LoadResult, uri: str, base: str | None) -> v07.IngestOutput:
        return v07.IngestOutput(
            uri=uri,
            branch=result.branch,
            base_branch=base,
            branch_created=result.branch_created,
            mode=result.mode,
            tables=[
                v07.IngestTableOutput(table_key=key, rows_loaded=rows)
                for key, rows in sorted(result.rows_loaded.items())
            ],
            actor_id=result.receipt.actor_id,
            commit=_commit_of(result.receipt),
            load_id=result.load_id,
            quarantined=result.quarantined,
            engine=result.engine,
            **receipt_fields(result.receipt) | {"replayed": result.replayed},
        )

    def merge(
        self,
        result: MergeResult,
        commit: Commit | None,
        deleted: bool | None,
        failure: ErrorOutput13 | None,
    ) -> v07.BranchMergeOutput:
        return v07.BranchMergeOutput(
            source=result.source,
            target=result.target,
            outcome=msgspec.convert(result.outcome.value, described(v07.MergeOutcome)),
            actor_id=result.receipt.actor_id,
            commit=None if commit is None else CONTRACT_13.commit(commit),
            source_commit_id=result.source_commit_id,
            branch_deleted=UNSET if deleted is None else deleted,
            branch_delete_error_details=failure or UNSET,
            **_dry_run_fields(result),
            **receipt_fields(result.receipt),
        )

    def commit(self, commit: Commit) -> v07.CommitOutput:
        document = msgspec.convert(commit.to_json(), described(v07.CommitOutput))
        if not commit.warnings:
            return document
        return msgspec.structs.replace(document, warnings=_warnings(commit.warnings))

    def commits(self, newest_first: list[Commit]) -> v07.CommitListOutput:
        return v07.CommitListOutput(commits=[self.commit(one) for one in reversed(newest_first)])

    def snapshot(self, state: GraphAt, format_stamp: int) -> v07.SnapshotOutput:
        document = state.to_json() | {"graph_commit_id": state.commit_id}
        return msgspec.convert(document, described(v07.SnapshotOutput))

    def schema(self, source: str) -> v07.SchemaOutput:
        return v07.SchemaOutput(schema_source=source)


class Contract13:
    """Contract 0.13."""

    version = VERSION_13

    def read(
        self, result: Result, warnings: list[v07.WarningOutput], objects: Objects
    ) -> v13.ReadOutput:
        from omnigraph.wire.rows import columns_13, rows_13

        columns = columns_13(result)
        return v13.ReadOutput(
            query_name=result.query_name,
            target=v07.ReadTargetOutput(branch=result.branch, snapshot=result.snapshot),
            row_count=result.row_count,
            columns=columns or UNSET,
            rows=Raw(rows_13(result, columns, objects)),
            graph_commit_id=result.commit_id,
            results={
                name: v07.FurtherResultOutput(
                    columns=(names := columns_13(further)),
                    row_count=further.row_count,
                    rows=Raw(rows_13(further, names, {})),
                )
                for name, further in result.results.items()
            }
            or UNSET,
        )

    def mutation(self, result: MutationResult) -> v13.ChangeOutput:
        from omnigraph.wire.rows import rows_13

        return v13.ChangeOutput(
            branch=result.branch,
            query_name=result.query_name,
            affected_nodes=result.affected_nodes,
            affected_edges=result.affected_edges,
            actor_id=result.receipt.actor_id,
            commit=_commit_of(result.receipt),
            returned=[
                v07.ReturnedOutput(
                    statement=found.statement,
                    columns=found.columns,
                    rows=Raw(rows_13(found, found.columns, {})),
                )
                for found in result.returned
            ]
            or UNSET,
        )

    def load(self, result: LoadResult, uri: str, base: str | None) -> v13.IngestOutput:
        return v13.IngestOutput(uri=uri, **_batch_fields(result, base))

    def batch_load(self, result: LoadResult, base: str | None) -> v13.GraphBatchLoadOutput:
        """The document of `load/ndjson`."""
        return v13.GraphBatchLoadOutput(**_batch_fields(result, base))

    def merge(
        self,
        result: MergeResult,
        commit: Commit | None,
        deleted: bool | None,
        failure: ErrorOutput13 | None,
    ) -> v13.BranchMergeOutput:
        return v13.BranchMergeOutput(
            source=result.source,
            target=result.target,
            outcome=msgspec.convert(result.outcome.value, described(v07.MergeOutcome)),
            actor_id=result.receipt.actor_id,
            commit=None if commit is None else self.commit(commit),
            branch_deleted=UNSET if deleted is None else deleted,
            branch_delete_error_details=failure or UNSET,
            **_dry_run_fields(result),
        )

    def commit(self, commit: Commit) -> v13.CommitOutput:
        document = commit.to_json()
        return v13.CommitOutput(
            graph_commit_id=commit.id,
            graph_branch=document["manifest_branch"],
            graph_manifest_version=commit.number,
            parent_commit_id=document["parent_commit_id"],
            merged_parent_commit_id=document["merged_parent_commit_id"],
            actor_id=commit.actor,
            created_at=document["created_at"],
        )

    def commits(self, newest_first: list[Commit]) -> v13.CommitListOutput:
        return v13.CommitListOutput(commits=[self.commit(one) for one in newest_first])

    def snapshot(self, state: GraphAt, format_stamp: int) -> v13.SnapshotOutput:
        document = state.to_json()
        return v13.SnapshotOutput(
            graph_branch=document["branch"],
            graph_manifest_version=document["manifest_version"],
            internal_schema_version=format_stamp,
            datasets=[
                v13.SnapshotDatasetOutput(
                    **named(table["table_key"]),
                    entity_count=table["row_count"],
                    dataset_path=table["table_path"],
                    published_dataset_version=table["table_version"],
                    native_dataset_branch=table["table_branch"],
                )
                for table in document["tables"]
            ],
        )

    def schema(self, source: str) -> v13.SchemaOutput:
        return v13.SchemaOutput(schema_source=source)


CONTRACT_07: Final = Contract07()
CONTRACT_13: Final = Contract13()


def named(table_key: str) -> dict[str, Any]:
    """A table key as contract 0.13 writes it: `entity_kind` and `type_name`."""
    kind, _, name = table_key.partition(":")
    return {"entity_kind": kind, "type_name": name}


def receipt_fields(receipt: Receipt) -> dict[str, Any]:
    """The fields that documents of contract 0.7 take from a receipt."""
    fields: dict[str, Any] = {
        "graph_commit_id": receipt.graph_commit_id,
        "parent_commit_id": receipt.parent_commit_id,
        "manifest_version": receipt.manifest_version,
        "operation": receipt.operation.value,
        "operation_id": receipt.operation_id,
        "created_at": receipt.created_at,
        "counts": {
            key: v07.CountsOutput(
                inserted=count.inserted, updated=count.updated, deleted=count.deleted
            )
            for key, count in receipt.counts.items()
        },
    }
    if receipt.replayed:
        fields["replayed"] = True
    if receipt.warnings:
        fields["warnings"] = _warnings(receipt.warnings)
    return fields


def _warnings(warnings: Iterable[Warning]) -> list[v07.WarningOutput]:
    return [
        v07.WarningOutput(
            code=warning.code,
            message=warning.message,
            count=UNSET if warning.count is None else warning.count,
        )
        for warning in warnings
    ]


def applied_07(result: AppliedCommit) -> v07.AppliedCommitOutput:
    """The document of a revert, a cherry-pick or a reset, the same in both contracts."""
    return v07.AppliedCommitOutput(
        branch=result.branch,
        source_commit_id=result.source_commit_id,
        actor_id=result.receipt.actor_id,
        **_dry_run_fields(result),
        **receipt_fields(result.receipt),
    )


def _commit_of(receipt: Receipt) -> v13.CommitOutput | None:
    """The commit of a write that has one parent, without looking it up."""
    if receipt.graph_commit_id is None:
        return None
    return v13.CommitOutput(
        graph_commit_id=receipt.graph_commit_id,
        graph_branch=None if receipt.branch == MAIN else receipt.branch,
        graph_manifest_version=receipt.manifest_version,
        parent_commit_id=receipt.parent_commit_id,
        merged_parent_commit_id=None,
        actor_id=receipt.actor_id,
        created_at=receipt.created_at,
    )


def _batch_fields(result: LoadResult, base: str | None) -> dict[str, Any]:
    return {
        "branch": result.branch,
        "base_branch": base,
        "branch_created": result.branch_created,
        "mode": result.mode,
        "nodes": list(_loaded(result, "node")),
        "edges": list(_loaded(result, "edge")),
        "total_entities": sum(result.rows_loaded.values()),
        "commit": _commit_of(result.receipt),
        "actor_id": result.receipt.actor_id,
    }


def _loaded(result: LoadResult, kind: str) -> Iterable[v13.LoadedTypeOutput]:
    for key, rows in sorted(result.rows_loaded.items()):
        if key.startswith(f"{kind}:") and rows:
            name = key.partition(":")[2]
            yield v13.LoadedTypeOutput(name=name, entities_loaded=rows)


def _dry_run_fields(result: MergeResult | AppliedCommit) -> dict[str, Any]:
    if not result.dry_run:
        return {}
    return {
        "dry_run": True,
        "conflicts": [conflict.to_json() for conflict in result.conflicts],
        "conflicts_total": result.conflicts_total,
    }
