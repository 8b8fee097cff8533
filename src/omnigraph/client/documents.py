"""Documents of the server as the results that an embedded graph returns.

Tests: tests/surfaces/parity.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET, UnsetType

from omnigraph.errors import MergeConflict
from omnigraph.history.commits import Commit, Receipt, from_micros
from omnigraph.json_structs import described
from omnigraph.versioning.branch_names import MAIN, BranchName
from omnigraph.versioning.commits import CommitId, Counts, OperationKind, Warning
from omnigraph.wire import documents07 as v07
from omnigraph.wire.requests import LoadMode

if TYPE_CHECKING:
    import pyarrow as pa

    from omnigraph.catalog.model import Catalog
    from omnigraph.history.tags import Tag
    from omnigraph.load.run import LoadResult
    from omnigraph.maintenance.status import GraphStatus
    from omnigraph.merge.merger import AppliedCommit, MergeResult
    from omnigraph.mutation.returned import Returned
    from omnigraph.mutation.run import MutationResult
    from omnigraph.read.explain import Explanation
    from omnigraph.read.result import Result
    from omnigraph.versioning.snapshot import Snapshot

_Written = v07.ChangeOutput | v07.IngestOutput | v07.BranchMergeOutput | v07.AppliedCommitOutput


def commit_of(document: v07.CommitOutput) -> Commit:
    parents = (document.parent_commit_id, document.merged_parent_commit_id)
    return Commit(
        id=CommitId(document.graph_commit_id),
        branch=document.manifest_branch or MAIN,
        number=document.manifest_version,
        parents=tuple(CommitId(parent) for parent in parents if parent is not None),
        operation=document.operation,
        actor=document.actor_id,
        message=document.message,
        created_at=from_micros(document.created_at),
        counts=_counts(document.counts),
        warnings=_warnings(document.warnings),
        load_id=None if document.load_id is UNSET else document.load_id,
    )


def _counts(counts: Mapping[str, v07.CountsOutput]) -> dict[str, Counts]:
    return {key: Counts(one.inserted, one.updated, one.deleted) for key, one in counts.items()}


def _warnings(warnings: Iterable[v07.WarningOutput] | UnsetType) -> tuple[Warning, ...]:
    if warnings is UNSET:
        return ()
    return tuple(
        Warning(one.code, one.message, None if one.count is UNSET else one.count)
        for one in warnings
    )


def receipt_of(document: _Written | v07.SchemaApplyOutput, branch: str) -> Receipt:
    made, parent = document.graph_commit_id, document.parent_commit_id
    return Receipt(
        graph_commit_id=None if made is None else CommitId(made),
        parent_commit_id=None if parent is None else CommitId(parent),
        branch=BranchName(branch),
        manifest_version=document.manifest_version,
        operation=OperationKind(document.operation),
        operation_id=document.operation_id,
        actor_id=document.actor_id,
        created_at=document.created_at,
        counts=_counts(document.counts),
        warnings=_warnings(document.warnings),
        replayed=document.replayed is True,
    )


def mutation_of(document: v07.ChangeOutput) -> MutationResult:
    from omnigraph.mutation.run import MutationResult

    return MutationResult(
        receipt=receipt_of(document, document.branch),
        query_name=document.query_name,
        branch=document.branch,
        affected_nodes=document.affected_nodes,
        affected_edges=document.affected_edges,
        returned=tuple(_returned(one) for one in document.returned or ()),
    )


def _returned(document: v07.ReturnedOutput) -> Returned:
    """Rows as JSON has them: a date is a text."""
    import pyarrow as pa

    from omnigraph.mutation.returned import Returned

    rows = msgspec.json.decode(document.rows)
    table = pa.table({name: [row[name] for row in rows] for name in document.columns})
    return Returned(document.statement, table, ())


def load_of(document: v07.IngestOutput, base: str | None) -> LoadResult:
    from omnigraph.load.run import LoadResult

    return LoadResult(
        receipt=receipt_of(document, document.branch),
        branch=document.branch,
        base_branch=base,
        branch_created=document.branch_created,
        mode=msgspec.convert(document.mode, described(LoadMode)),
        rows_loaded={table.table_key: table.rows_loaded for table in document.tables},
        load_id=document.load_id,
        replayed=document.replayed is True,
        quarantined=document.quarantined,
        engine=document.engine,
    )


def merge_of(document: v07.BranchMergeOutput) -> MergeResult:
    from omnigraph.merge.merger import MergeOutcome, MergeResult

    source = document.source_commit_id
    return MergeResult(
        receipt=receipt_of(document, document.target),
        source=document.source,
        target=document.target,
        outcome=MergeOutcome(document.outcome),
        source_commit_id=None if source is None else CommitId(source),
        **_dry_run(document),
    )


def applied_of(document: v07.AppliedCommitOutput) -> AppliedCommit:
    from omnigraph.merge.merger import AppliedCommit

    return AppliedCommit(
        receipt=receipt_of(document, document.branch),
        branch=document.branch,
        source_commit_id=CommitId(document.source_commit_id),
        **_dry_run(document),
    )


def _dry_run(document: v07.BranchMergeOutput | v07.AppliedCommitOutput) -> dict[str, Any]:
    if document.dry_run is not True:
        return {}
    conflicts = [] if document.conflicts is UNSET else document.conflicts
    return {
        "dry_run": True,
        "conflicts": msgspec.convert(conflicts, described(tuple[MergeConflict, ...])),
        "conflicts_total": document.conflicts_total,
    }


def tag_of(document: v07.TagOutput) -> Tag:
    from omnigraph.history.tags import Tag

    return Tag(
        name=document.name,
        commit_id=CommitId(document.graph_commit_id),
        branch=BranchName(document.branch),
        number=document.version,
        created_at=from_micros(document.created_at),
        actor=document.actor_id,
    )


def catalog_of(document: v07.SchemaOutput) -> Catalog:
    from omnigraph.catalog.ir import schema_from_json
    from omnigraph.catalog.model import Catalog

    return Catalog.from_ir(schema_from_json(document.schema_ir))


def results_of(content: bytes) -> Result:
    """A result from its Arrow stream, with the further results that follow it."""
    import pyarrow as pa

    source = pa.BufferReader(content)
    with pa.ipc.open_stream(source) as stream:
        table = stream.read_all()
    names = json.loads(table.schema.metadata[b"omnigraph"]).get("results", ())
    result, further = _result_of(table), {}
    for name in names:
        with pa.ipc.open_stream(source) as stream:
            further[name] = _result_of(stream.read_all())
    result.results = further
    return result


def _result_of(table: pa.Table) -> Result:
    """A result from its rows; the metadata of their schema says what was read."""
    from omnigraph.language.types import PropType
    from omnigraph.read.result import Result

    about = json.loads(table.schema.metadata[b"omnigraph"])
    types = msgspec.convert(about["prop_types"], described(tuple[PropType, ...]))
    return Result(
        about["query_name"],
        table.replace_schema_metadata(None),
        types,
        branch=about["target"]["branch"],
        snapshot=about["target"]["snapshot"],
        commit_id=CommitId(about["graph_commit_id"]),
        entities=about["entities"],
    )


def explanation_of(document: v07.ExplainOutput) -> Explanation:
    from omnigraph.read.explain import ExplainedStep, Explanation

    total = document.total_ms
    return Explanation(
        query_name=document.query_name,
        branch=document.target.branch,
        snapshot=document.target.snapshot,
        commit_id=document.graph_commit_id,
        looks_up=document.looks_up,
        steps=msgspec.convert(
            msgspec.to_builtins(document.steps), described(tuple[ExplainedStep, ...])
        ),
        seconds=None if total is UNSET else total / 1e3,
    )


def snapshot_of(document: v07.SnapshotOutput, catalog: Catalog) -> Snapshot:
    """The tables of a state. Their files are on the server."""
    from omnigraph.versioning.commits import TableId
    from omnigraph.versioning.snapshot import Snapshot, SnapshotEntry, table_keys

    ids = {key: table_id for table_id, key in table_keys(catalog).items()}
    entries = {
        table.table_key: SnapshotEntry(
            table.table_key,
            ids.get(table.table_key, TableId("")),
            table.table_path,
            table.table_version,
            table.table_branch,
            table.row_count,
        )
        for table in document.tables
    }
    return Snapshot(
        BranchName(document.branch),
        document.manifest_version,
        CommitId(document.graph_commit_id or ""),
        catalog,
        entries,
    )


def status_of(document: v07.StatusOutput, snapshot: Snapshot) -> GraphStatus:
    from omnigraph.maintenance.status import GraphStatus, MovedBranch, TableStatus
    from omnigraph.versioning.locks import LeaseNote
    from omnigraph.versioning.recovery.recover import RecoveryStatus
    from omnigraph.versioning.recovery.sidecar import Quarantined

    tables = [
        table
        | {
            "embeddings": [
                {
                    "property": one["property"],
                    "source": one["source"],
                    "counts": {n: v for n, v in one.items() if n not in ("property", "source")},
                }
                for one in table["embeddings"]
            ]
        }
        for table in document.tables
    ]
    return GraphStatus(
        uri=document.uri,
        snapshot=snapshot,
        branches=document.branches,
        moved=msgspec.convert(document.moved_branches, described(tuple[MovedBranch, ...])),
        tables=msgspec.convert(tables, described(tuple[TableStatus, ...])),
        recovery=RecoveryStatus(
            tuple(document.pending),
            tuple(Quarantined(one["name"], one["reason"]) for one in document.quarantined),
        ),
        leases=msgspec.convert(document.lease_notes, described(tuple[LeaseNote, ...])),
        scratch=tuple(document.scratch),
        cached_bytes=document.cached_bytes,
    )
