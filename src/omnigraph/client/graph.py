"""Connecting to a server, and the handle on a graph behind it.

A remote graph has the calls, results and errors of an embedded one. What it does not offer raises
`EmbeddedOnly`; docs/user/remote.md lists it. Tests: tests/surfaces/parity, tests/unit/client."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from omnigraph.api.arguments import optional_text, text_argument
from omnigraph.client import documents
from omnigraph.client.blobs import RemoteBlobs
from omnigraph.client.branches import RemoteMerges
from omnigraph.client.changing import RemoteChanges
from omnigraph.client.failures import failure
from omnigraph.client.handle import (
    RemoteHandle,
    keyed,
    named_source,
    new_key,
    refuse_engine,
    write_fields,
)
from omnigraph.client.history import RemoteHistory
from omnigraph.client.reading import RemoteReads
from omnigraph.client.transport import TIMEOUT_SECONDS, Reply, Transport
from omnigraph.errors import EmbeddedOnly, UnexpectedAnswer
from omnigraph.settings import read_settings
from omnigraph.versioning.branch_names import MAIN
from omnigraph.wire import documents07 as v07

if TYPE_CHECKING:
    from datetime import timedelta
    from typing import NoReturn

    from omnigraph.api.protocol import GraphProtocol
    from omnigraph.catalog.migrate import MigrationPlan
    from omnigraph.catalog.model import Catalog
    from omnigraph.history.refs import Ref
    from omnigraph.language.syntax import Source
    from omnigraph.maintenance.cleanup import CleanupReport
    from omnigraph.maintenance.indexes import IndexReport
    from omnigraph.maintenance.optimize import OptimizeReport
    from omnigraph.maintenance.repair import RepairReport
    from omnigraph.maintenance.status import GraphStatus
    from omnigraph.maintenance.verify_report import VerifyReport
    from omnigraph.progress import Progress
    from omnigraph.schema import SchemaApplyResult
    from omnigraph.spark.choice import EngineArgument
    from omnigraph.versioning.audit import RecordedAudit


class RemoteGraph(RemoteReads, RemoteChanges, RemoteMerges, RemoteHistory):
    """A graph behind a server, bound to one branch."""

    @property
    def schema(self) -> RemoteSchema:
        """The accepted schema of the graph."""
        return RemoteSchema(self)

    @property
    def blobs(self) -> RemoteBlobs:
        """The blobs of the graph."""
        return RemoteBlobs(self)

    @property
    def maintenance(self) -> RemoteMaintenance:
        """The status of the graph; its maintenance runs beside its storage."""
        return RemoteMaintenance(self)

    def __reduce__(self) -> tuple[Any, ...]:
        """A handle that travels leaves its token behind."""
        return _reconnected, (self._shared, self._branch, self._actor)


def connect(
    url: str,
    *,
    token: str | None = None,
    graph: str | None = None,
    branch: str = "main",
    timeout: float | None = TIMEOUT_SECONDS,
) -> GraphProtocol:
    """Connect to a graph behind an `omnigraph-server`. It has the calls of an opened one.

    `graph` is its name on a server for several graphs. The actor is that of `token`, by default the
    one in `OMNIGRAPH_BEARER_TOKEN`. A call that hears nothing from the server for `timeout` seconds
    fails. Raises `ServerUnreachable`, `Unauthenticated` or `BranchNotFound`.

    >>> team = og.connect(url, token="ada-secret")
    >>> team.actor, len(team.query("team.gq", {"name": "Ada"}, name="friends_of"))
    ('ada', 1)
    """
    given = read_settings().bearer_token if token is None else token
    name, bound = optional_text("graph", graph), text_argument("branch", branch)
    transport = Transport(url, given, graph=name, timeout=timeout)
    reply = transport.call("GET", "/caller", on_server=True, passes=(400,))
    if reply.status == 400:
        _refuse_contract(reply)
    caller = reply.json(v07.CallerOutput)
    opened = RemoteGraph(transport, bound, caller.actor_id)
    return opened if bound == MAIN else opened.checkout(bound)


def _refuse_contract(reply: Reply) -> NoReturn:
    """Raise for a server that answers nothing without a version header."""
    if reply.json(dict).get("code") == "api_contract_mismatch":
        problem = (
            "the server offers only HTTP contract 0.13, and og.connect needs the one without a version "
            "header; start it with `--http-api both`"
        )
        raise UnexpectedAnswer(reply.server, problem, reply.status)
    raise failure(reply.server, reply.status, reply.headers, reply.content)


def _reconnected(transport: Transport, branch: str, actor: str | None) -> RemoteGraph:
    """A handle that came from another process; its token is that of the environment here."""
    token = read_settings().bearer_token
    here = Transport(transport.server, token, graph=transport.graph, timeout=transport.timeout)
    return RemoteGraph(here, branch, actor)


class RemoteSchema:
    """The accepted schema of a graph behind a server."""

    def __init__(self, graph: RemoteHandle) -> None:
        self._graph = graph

    def __repr__(self) -> str:
        from omnigraph.diagnostics import counted

        types = self.catalog
        nodes, edges = (
            counted(len(types.nodes), "node type"),
            counted(len(types.edges), "edge type"),
        )
        return f"<schema: {nodes}, {edges}>"

    def __str__(self) -> str:
        return self.source

    @property
    def source(self) -> str:
        """The schema as text, comments included."""
        return self._graph._get("/schema", v07.SchemaOutput).schema_source

    @property
    def catalog(self) -> Catalog:
        """The types with their properties and constraints."""
        found = self._graph._get("/schema", v07.SchemaOutput, ("compiled", "true"))
        return documents.catalog_of(found)

    def _repr_svg_(self) -> str:
        return self.diagram("svg")

    def diagram(self, format: Literal["mermaid", "svg"] = "mermaid") -> str:
        """The schema as a Mermaid class diagram, which GitHub and notebooks render."""
        from omnigraph.pictures.schema import diagram

        return diagram(self.catalog, format)

    def plan(self, new: str | Path, *, allow_data_loss: bool = False) -> MigrationPlan:
        """The steps that lead to another schema, unsupported ones included. Changes nothing."""
        from omnigraph.read.source_files import schema_source

        self._graph._transport  # noqa: B018 - a closed handle is refused at once
        return self._planned(schema_source(new), allow_data_loss)

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
    ) -> SchemaApplyResult:
        """Change the schema as one commit on `main`, which must be the only branch."""
        from omnigraph.read.source_files import query_source, schema_source
        from omnigraph.schema import SchemaApplyResult

        graph = self._graph
        graph._transport  # noqa: B018 - a closed handle is refused at once
        refuse_engine(engine)
        text = schema_source(new)
        body = {
            "schema_source": text.text,
            "allow_data_loss": allow_data_loss,
            "queries": [query_source(query).text for query in queries],
            **write_fields(message, expected_head),
        }
        plan = self._planned(text, allow_data_loss)
        write = keyed(new_key(idempotency_key))
        with named_source(text, "<schema>"):
            reply = graph._call("POST", "/schema/apply", body=body, write=write)
        done = reply.json(v07.SchemaApplyOutput)
        return SchemaApplyResult(plan, documents.receipt_of(done, MAIN))

    def _planned(self, desired: Source, allow_data_loss: bool) -> MigrationPlan:
        from omnigraph.catalog.compile import build_declared
        from omnigraph.catalog.migrate import plan_migration

        return plan_migration(
            self.catalog.ir, build_declared(desired), allow_data_loss=allow_data_loss
        )


class RemoteMaintenance:
    """The status of a graph behind a server. The other calls raise `EmbeddedOnly`."""

    def __init__(self, graph: RemoteHandle) -> None:
        self._graph = graph

    def __repr__(self) -> str:
        return f"<maintenance of {self._graph!r}>"

    def status(self, branch: str | None = None) -> GraphStatus:
        """Sizes, index and embedding coverage, pending recoveries, and recommended actions."""
        graph = self._graph
        found = graph._get("/status", v07.StatusOutput, ("branch", graph._on(branch)))
        at = ("snapshot", found.graph_commit_id)
        schema = graph._get("/schema", v07.SchemaOutput, at, ("compiled", "true"))
        tables = graph._get("/snapshot", v07.SnapshotOutput, at)
        snapshot = documents.snapshot_of(tables, documents.catalog_of(schema))
        return documents.status_of(found, snapshot)

    def verify(
        self, branches: Iterable[str] | None = None, *, progress: Progress | None = None
    ) -> VerifyReport:
        """Not available on a remote graph. Raises `EmbeddedOnly`."""
        self._refuse("verify")

    def optimize(self) -> OptimizeReport:
        """Not available on a remote graph. Raises `EmbeddedOnly`."""
        self._refuse("optimize")

    def cleanup(
        self,
        *,
        keep_versions: int | None = None,
        older_than: timedelta | None = None,
        min_age: timedelta | None = None,
        dry_run: bool = False,
    ) -> CleanupReport:
        """Not available on a remote graph. Raises `EmbeddedOnly`."""
        self._refuse("cleanup")

    def repair(
        self,
        branch: str | None = None,
        *,
        confirm: bool = False,
        force: bool = False,
        rollback: bool = False,
    ) -> RepairReport:
        """Not available on a remote graph. Raises `EmbeddedOnly`."""
        self._refuse("repair")

    def ensure_indexes(
        self, branch: str | None = None, *, progress: Progress | None = None
    ) -> IndexReport:
        """Not available on a remote graph. Raises `EmbeddedOnly`."""
        self._refuse("ensure_indexes")

    def recover(self) -> None:
        """Not available on a remote graph. Raises `EmbeddedOnly`."""
        self._refuse("recover")

    def recoveries(self, branch: str | None = None) -> list[RecordedAudit]:
        """Not available on a remote graph. Raises `EmbeddedOnly`."""
        self._refuse("recoveries")

    def wait(self) -> None:
        """Not available on a remote graph. Raises `EmbeddedOnly`."""
        self._refuse("wait")

    def _refuse(self, call: str) -> NoReturn:
        self._graph._transport  # noqa: B018 - a closed handle is refused at once
        raise EmbeddedOnly(f"maintenance.{call}")
