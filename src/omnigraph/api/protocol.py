"""What embedded and remote graphs have in common: the calls, as protocols.

Code that takes a `GraphProtocol` works with a graph opened from storage and, later, with one behind
a server. Tests: tests/surfaces/parity.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, Protocol, Self, runtime_checkable

from omnigraph.limits import MAX_LOAD_ERRORS

if TYPE_CHECKING:
    from datetime import datetime, timedelta

    import pyarrow as pa

    from omnigraph.analytics.run import Analysis
    from omnigraph.catalog.migrate import MigrationPlan
    from omnigraph.catalog.model import Catalog
    from omnigraph.diff.diff import Diff
    from omnigraph.diff.feed import CommitChanges, EntityChange
    from omnigraph.embedding.embed import EmbedResult
    from omnigraph.history.commits import Commit
    from omnigraph.history.refs import Ref
    from omnigraph.history.tags import Tag
    from omnigraph.load.run import LoadResult
    from omnigraph.maintenance.cleanup import CleanupReport
    from omnigraph.maintenance.indexes import IndexReport
    from omnigraph.maintenance.optimize import OptimizeReport
    from omnigraph.maintenance.repair import RepairReport
    from omnigraph.maintenance.status import GraphStatus
    from omnigraph.maintenance.verify_report import VerifyReport
    from omnigraph.merge.merger import AppliedCommit, MergeResult
    from omnigraph.mutation.run import MutationResult
    from omnigraph.progress import Progress
    from omnigraph.read.budget import CancelToken, QueryBudget
    from omnigraph.read.entities import Blob
    from omnigraph.read.explain import Explanation
    from omnigraph.read.result import Result
    from omnigraph.read.view import ReadView
    from omnigraph.schema import SchemaApplyResult
    from omnigraph.spark.choice import EngineArgument
    from omnigraph.versioning.audit import RecordedAudit
    from omnigraph.versioning.commits import CommitId


@runtime_checkable
class BranchesProtocol(Protocol):
    """The branches of a graph."""

    def __iter__(self) -> Iterator[str]: ...

    def __len__(self) -> int: ...

    def __contains__(self, name: object) -> bool: ...

    def create(self, name: str, source: Ref | None = None) -> GraphProtocol: ...

    def delete(self, name: str) -> None: ...

    def reset(
        self,
        name: str,
        ref: Ref,
        *,
        dry_run: bool = False,
        message: str | None = None,
        expected_head: Ref | None = None,
        idempotency_key: str | None = None,
        engine: EngineArgument = "auto",
        progress: Progress | None = None,
    ) -> AppliedCommit: ...


@runtime_checkable
class TagsProtocol(Protocol):
    """The tags of a graph."""

    def __iter__(self) -> Iterator[str]: ...

    def __len__(self) -> int: ...

    def __contains__(self, name: object) -> bool: ...

    def __getitem__(self, name: str) -> Tag: ...

    def all(self) -> list[Tag]: ...

    def create(self, name: str, ref: Ref | None = None) -> Tag: ...

    def delete(self, name: str) -> None: ...


@runtime_checkable
class SchemaProtocol(Protocol):
    """The schema of a graph."""

    @property
    def source(self) -> str: ...

    @property
    def catalog(self) -> Catalog: ...

    def diagram(self, format: Literal["mermaid", "svg"] = "mermaid") -> str: ...

    def plan(self, new: str | Path, *, allow_data_loss: bool = False) -> MigrationPlan: ...

    def apply(
        self,
        new: str | Path,
        *,
        allow_data_loss: bool = False,
        message: str | None = None,
        expected_head: Ref | None = None,
        idempotency_key: str | None = None,
        queries: Sequence[str | Path] = (),
        engine: EngineArgument = "auto",
        progress: Progress | None = None,
    ) -> SchemaApplyResult: ...


@runtime_checkable
class BlobsProtocol(Protocol):
    """The blobs of a graph."""

    def open(
        self, type: str, id: str, property: str, *, branch: str | None = None, at: Ref | None = None
    ) -> Blob: ...

    def read(
        self,
        type: str,
        id: str,
        property: str,
        *,
        offset: int = 0,
        length: int | None = None,
        branch: str | None = None,
        at: Ref | None = None,
    ) -> bytes: ...


@runtime_checkable
class MaintenanceProtocol(Protocol):
    """The maintenance of a graph."""

    def status(self, branch: str | None = None) -> GraphStatus: ...

    def verify(
        self, branches: Iterable[str] | None = None, *, progress: Progress | None = None
    ) -> VerifyReport: ...

    def optimize(self) -> OptimizeReport: ...

    def cleanup(
        self,
        *,
        keep_versions: int | None = None,
        older_than: timedelta | None = None,
        min_age: timedelta | None = None,
        dry_run: bool = False,
    ) -> CleanupReport: ...

    def repair(
        self,
        branch: str | None = None,
        *,
        confirm: bool = False,
        force: bool = False,
        rollback: bool = False,
    ) -> RepairReport: ...

    def ensure_indexes(
        self, branch: str | None = None, *, progress: Progress | None = None
    ) -> IndexReport: ...

    def recover(self) -> None: ...

    def recoveries(self, branch: str | None = None) -> list[RecordedAudit]: ...

    def wait(self) -> None: ...


@runtime_checkable
class BlobsAtProtocol(Protocol):
    """The blobs of a graph at one commit."""

    def open(self, type: str, id: str, property: str) -> Blob: ...

    def read(
        self, type: str, id: str, property: str, *, offset: int = 0, length: int | None = None
    ) -> bytes: ...


@runtime_checkable
class GraphAtProtocol(Protocol):
    """A graph at one commit."""

    @property
    def branch(self) -> str: ...

    @property
    def number(self) -> int: ...

    @property
    def commit_id(self) -> CommitId: ...

    @property
    def catalog(self) -> Catalog: ...

    @property
    def counts(self) -> dict[str, int]: ...

    def to_json(self) -> dict[str, Any]: ...

    def query(
        self,
        source: str | Path,
        params: Mapping[str, object] | None = None,
        *,
        name: str | None = None,
        view: ReadView | None = None,
        budget: QueryBudget | None = None,
        cancel: CancelToken | None = None,
        exact: bool = False,
    ) -> Result: ...

    def explain(
        self,
        source: str | Path,
        params: Mapping[str, object] | None = None,
        *,
        name: str | None = None,
        view: ReadView | None = None,
        budget: QueryBudget | None = None,
        cancel: CancelToken | None = None,
        exact: bool = False,
        analyze: bool = False,
    ) -> Explanation: ...

    def get(self, type: str, id: str) -> dict[str, Any] | None: ...

    def scan(
        self,
        type: str,
        *,
        columns: Sequence[str] | None = None,
        where: str | None = None,
        params: Mapping[str, object] | None = None,
        budget: QueryBudget | None = None,
        cancel: CancelToken | None = None,
    ) -> pa.RecordBatchReader: ...

    def analyze(
        self,
        algorithm: str,
        params: Mapping[str, object] | None = None,
        *,
        nodes: Iterable[str] = (),
        edges: Iterable[str] = (),
        directed: bool | None = None,
        weight: str | None = None,
        top: int | None = None,
        budget: QueryBudget | None = None,
        cancel: CancelToken | None = None,
    ) -> Analysis: ...

    @property
    def blobs(self) -> BlobsAtProtocol: ...

    def export(
        self,
        target: str | Path | BinaryIO,
        *,
        format: str = "jsonl",
        types: Iterable[str] = (),
        engine: EngineArgument = "auto",
        progress: Progress | None = None,
    ) -> int: ...

    def export_batches(
        self, *, types: Iterable[str] = ()
    ) -> Iterator[tuple[str, pa.RecordBatch]]: ...


@runtime_checkable
class GraphProtocol(Protocol):
    """A graph, opened from storage or through a server."""

    @property
    def uri(self) -> str: ...

    @property
    def branch(self) -> str: ...

    @property
    def actor(self) -> str | None: ...

    @property
    def read_only(self) -> bool: ...

    @property
    def closed(self) -> bool: ...

    def close(self) -> None: ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *_exception: object) -> None: ...

    def checkout(self, branch: str, *, max_staleness: float | None = None) -> Self: ...

    def as_actor(self, actor: str | None) -> Self: ...

    def at(self, ref: Ref) -> GraphAtProtocol: ...

    def query(
        self,
        source: str | Path,
        params: Mapping[str, object] | None = None,
        *,
        name: str | None = None,
        branch: str | None = None,
        at: Ref | None = None,
        max_staleness: float | None = None,
        view: ReadView | None = None,
        budget: QueryBudget | None = None,
        cancel: CancelToken | None = None,
        exact: bool = False,
    ) -> Result: ...

    def explain(
        self,
        source: str | Path,
        params: Mapping[str, object] | None = None,
        *,
        name: str | None = None,
        branch: str | None = None,
        at: Ref | None = None,
        view: ReadView | None = None,
        budget: QueryBudget | None = None,
        cancel: CancelToken | None = None,
        exact: bool = False,
        analyze: bool = False,
    ) -> Explanation: ...

    def get(
        self,
        type: str,
        id: str,
        *,
        branch: str | None = None,
        at: Ref | None = None,
        max_staleness: float | None = None,
    ) -> dict[str, Any] | None: ...

    def scan(
        self,
        type: str,
        *,
        columns: Sequence[str] | None = None,
        where: str | None = None,
        params: Mapping[str, object] | None = None,
        branch: str | None = None,
        at: Ref | None = None,
        max_staleness: float | None = None,
        budget: QueryBudget | None = None,
        cancel: CancelToken | None = None,
    ) -> pa.RecordBatchReader: ...

    def export(
        self,
        target: str | Path | BinaryIO,
        *,
        format: str = "jsonl",
        types: Iterable[str] = (),
        branch: str | None = None,
        at: Ref | None = None,
        engine: EngineArgument = "auto",
        progress: Progress | None = None,
    ) -> int: ...

    def export_batches(
        self, *, types: Iterable[str] = (), branch: str | None = None, at: Ref | None = None
    ) -> Iterator[tuple[str, pa.RecordBatch]]: ...

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
    ) -> MutationResult: ...

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
    ) -> LoadResult: ...

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
    ) -> LoadResult: ...

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
    ) -> LoadResult: ...

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
    ) -> EmbedResult: ...

    def analyze(
        self,
        algorithm: str,
        params: Mapping[str, object] | None = None,
        *,
        nodes: Iterable[str] = (),
        edges: Iterable[str] = (),
        directed: bool | None = None,
        weight: str | None = None,
        top: int | None = None,
        write: Mapping[str, str] | None = None,
        branch: str | None = None,
        at: Ref | None = None,
        budget: QueryBudget | None = None,
        cancel: CancelToken | None = None,
        message: str | None = None,
        expected_head: Ref | None = None,
        idempotency_key: str | None = None,
    ) -> Analysis: ...

    @property
    def branches(self) -> BranchesProtocol: ...

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
    ) -> MergeResult: ...

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
    ) -> AppliedCommit: ...

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
    ) -> AppliedCommit: ...

    def head(self, branch: str | None = None) -> Commit: ...

    def log(
        self,
        branch: str | None = None,
        *,
        actor: str | None = None,
        operation: str | None = None,
        since: str | datetime | None = None,
        until: str | datetime | None = None,
        limit: int | None = None,
        merged: bool = False,
        reverse: bool = False,
    ) -> list[Commit]: ...

    def commit(self, ref: Ref) -> Commit: ...

    def diff(
        self,
        a: Ref,
        b: Ref,
        *,
        types: Iterable[str] = (),
        kinds: Iterable[str] = (),
        ops: Iterable[str] = (),
        view: ReadView | None = None,
        engine: EngineArgument = "auto",
        progress: Progress | None = None,
    ) -> Diff: ...

    def changes(
        self,
        cursor: Ref | None = None,
        *,
        branch: str | None = None,
        types: Iterable[str] = (),
        kinds: Iterable[str] = (),
        ops: Iterable[str] = (),
    ) -> Iterator[CommitChanges]: ...

    def cursor(self, branch: str | None = None) -> str: ...

    def history(
        self, type: str, id: str, *, branch: str | None = None
    ) -> Iterator[EntityChange]: ...

    @property
    def tags(self) -> TagsProtocol: ...

    @property
    def schema(self) -> SchemaProtocol: ...

    @property
    def blobs(self) -> BlobsProtocol: ...

    @property
    def maintenance(self) -> MaintenanceProtocol: ...
