"""A graph behind a server, as commands use it: one method per route, in and out plain JSON documents.

A call asks the server first which contract it speaks (`HEAD /healthz`, without the token). Under contract
0.13 it asks for documents with all fields; a server that does not know them answers in those of 0.13, which
`omnigraph.wire.adapted13` translates. Either way a command sees the documents that it prints itself for a
local graph. Nothing here imports the storage engine. Tests: tests/surfaces/test_cli_parity.py,
tests/unit/cli/test_remote.py.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NoReturn
from urllib.parse import quote

from omnigraph.cli.exits import (
    CONDITION_LOST,
    FAILURE,
    TRY_LATER,
    CommandFailed,
    echo_write,
    wants_json,
    warn,
)
from omnigraph.client.failures import failure
from omnigraph.client.transport import HEADER, ContractVersion, Incoming, Reply, Transport, Write
from omnigraph.diagnostics import shortened
from omnigraph.errors import (
    CommitStateUnknown,
    NotFoundError,
    OmnigraphError,
    ServerUnreachable,
    UnexpectedAnswer,
)
from omnigraph.errors.remote import AnswerLost, RemoteError
from omnigraph.wire import adapted13

if TYPE_CHECKING:
    from omnigraph.cli.context import Context
    from omnigraph.config.credentials import Token
    from omnigraph.config.selection import RemoteTarget

Document = dict[str, Any]
Adapt = Callable[[Document], Document]

ALL_FIELDS: Final = "application/vnd.omnigraph+json"
PROBE_SECONDS: Final = 5.0
CONTRACT_13: Final = "0.13"
SINGLE_GRAPH: Final = "default"
"""The id that contract 0.13 gives the graph of a server for one graph without a name."""
CONDITION_HEADER: Final = "Omnigraph-If-Graph-Commit"

_GRAPH_PATH: Final = re.compile(r"(.+)/graphs/([A-Za-z0-9-]{1,64})")
_REFUSED: Final = frozenset(range(400, 600))


class ServedGraph:
    """The graph that a command addresses on a server. Nothing is sent before the first call."""

    def __init__(self, target: RemoteTarget, token: Token | None, context: Context) -> None:
        self.url = target.url
        self._base, self._graph = target.base_url, target.graph
        if self._graph is None and (nested := _GRAPH_PATH.fullmatch(self._base)):
            self._base, self._graph = nested.groups()
        self._secret = None if token is None else token.secret
        self._context = context

    # -- one call ---------------------------------------------------------------------------

    @cached_property
    def contract(self) -> ContractVersion:
        """The contract that the server speaks. Raises `RemoteError` for one that we do not."""
        probe = Transport(self._base, timeout=PROBE_SECONDS)
        try:
            reply = probe.call("HEAD", "/healthz", on_server=True, passes=_REFUSED)
        finally:
            probe.close()
        if reply.status != 200:
            problem = f"the server returned {reply.status} for /healthz; check the address"
            raise UnexpectedAnswer(self._base, problem, reply.status)
        stamp = reply.headers.get(HEADER.lower())
        if stamp is None:
            return "0.7"
        if stamp != CONTRACT_13:
            problem = (
                f"the server speaks HTTP contract {shortened(stamp, 40)}, this command 0.13 and 0.7"
            )
            raise UnexpectedAnswer(self._base, problem, reply.status)
        return CONTRACT_13

    def _transport(self, contract: ContractVersion) -> Transport:
        graph = self._graph
        if graph is None and contract == CONTRACT_13:
            graph = SINGLE_GRAPH
        return Transport(self._base, self._secret, graph=graph, contract=contract)

    def _call(
        self,
        method: str,
        path: str,
        adapt: Adapt = dict,
        *,
        query: Mapping[str, object] | Iterable[tuple[str, str]] = (),
        body: Mapping[str, object] | None = None,
        headers: Mapping[str, str] | None = None,
        write: Write | None = None,
        contract: ContractVersion | None = None,
        on_server: bool = False,
        needs: tuple[str, ...] = (),
    ) -> Document:
        """Send a request and return its document, which must have the fields that are needed.

        `body` and `query` may hold None, which is left out. `contract` is that of a route which only one
        contract has.
        """
        with self._failing(write):
            spoken = self._spoken(contract)
            transport = self._transport(spoken)
            if write is not None:
                self._announce()
            try:
                reply = transport.call(
                    method,
                    path,
                    query=_parameters(query),
                    body=None if body is None else _given(body),
                    headers=headers,
                    accept="application/json"
                    if spoken == "0.7"
                    else f"{ALL_FIELDS}, application/json",
                    write=write,
                    on_server=on_server,
                    passes=_REFUSED,
                )
            finally:
                transport.close()
            if reply.status >= 300:
                self._refuse(reply)
            document = _document(reply)
            if spoken != "0.7" and ALL_FIELDS not in reply.headers["content-type"]:
                try:
                    document = adapt(document)
                except (AttributeError, KeyError, TypeError):
                    raise self._strange(reply) from None
            if any(name not in document for name in needs):
                raise self._strange(reply)
        return document

    def _spoken(self, wanted: ContractVersion | None) -> ContractVersion:
        """The contract of a call. A server of contract 0.13 may also speak 0.7, which it will say."""
        if wanted == CONTRACT_13 and self.contract != CONTRACT_13:
            problem = "the server speaks HTTP contract 0.7, and this command needs 0.13"
            raise UnexpectedAnswer(self._base, problem)
        return wanted if wanted is not None and self.contract else self.contract

    def _strange(self, reply: Reply) -> UnexpectedAnswer:
        problem = "the answer is not the expected document; check that this is an OmniGraph server"
        return UnexpectedAnswer(self._base, problem, reply.status)

    @contextmanager
    def _stream(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, object] | None = None,
        body: Mapping[str, object] | None = None,
        headers: Mapping[str, str] | None = None,
        accept: str = "*/*",
        contract: ContractVersion | None = None,
    ) -> Iterator[Incoming]:
        with self._failing(None):
            transport = self._transport(self._spoken(contract))
        try:
            with (
                self._failing(None),
                transport.stream(
                    method,
                    path,
                    query=_parameters(query or {}),
                    body=None if body is None else _given(body),
                    headers=headers,
                    accept=accept,
                ) as incoming,
            ):
                yield incoming
        finally:
            transport.close()

    def _announce(self) -> None:
        """Before a write: name its target, and say what does not apply to it."""
        if self._context.options.actor is not None:
            warn("--as does not apply to a server, which takes the actor from the token")
        echo_write(self.url, "served", quiet=bool(self._context.options.quiet))

    # -- failures ---------------------------------------------------------------------------

    def _refuse(self, reply: Reply) -> NoReturn:
        """Raise for an answer that is not a success."""
        if "json" not in reply.headers.get("content-type", ""):
            text = shortened(reply.content.decode("utf-8", "replace").strip(), 200)
            problem = f"server returned {reply.status}: {text}"
            if reply.status not in (401, 403, 429):
                problem += "; check that this is the address of an OmniGraph server"
            raise _Refused(UnexpectedAnswer(self._base, problem, reply.status), reply, None)
        error = failure(self._base, reply.status, reply.headers, reply.content)
        if isinstance(error, NotFoundError) and self._graph is None:
            error = _with_graph_hint(error)
        body: Document | None
        try:
            body = reply.json(dict)
        except UnexpectedAnswer:
            body = None
        raise _Refused(error, reply, body)

    @contextmanager
    def _failing(self, write: Write | None) -> Iterator[None]:
        """Give failures their exit code and, with `--json`, their document."""
        try:
            yield
        except _Refused as refused:
            code = _EXITS.get(refused.status, FAILURE)
            # The message comes first, for people who look at it.
            document = {"error": str(refused.error), **(refused.body or {})}
            if write is not None:
                document |= {"command_outcome": _outcome(refused.status)}
            raise CommandFailed(refused.error, code, document if wants_json() else None) from None
        except (RemoteError, CommitStateUnknown) as error:
            document = {"error": str(error)}
            if write is not None:
                document |= {"command_outcome": _outcome_unanswered(error)}
            raise CommandFailed(error, FAILURE, document if wants_json() else None) from error

    # -- queries ----------------------------------------------------------------------------

    def query(self, **body: object) -> Document:
        return self._call("POST", "/query", adapted13.read, body=body, needs=_READ)

    def explain(self, **body: object) -> Document:
        return self._call("POST", "/explain", body=body, needs=("query_name", "target", "plan"))

    def aliased(self, name: str, params: Mapping[str, object]) -> Document:
        """Run a stored read that an alias names; without parameters no body is sent."""
        body = {"params": params} if params else None
        path = f"/queries/{_segment(name)}"
        return self._call("POST", path, adapted13.read, body=body, needs=_READ)

    def stored(
        self,
        name: str,
        *,
        mutation: bool,
        idempotency_key: str | None = None,
        if_commit: str | None = None,
        **body: object,
    ) -> Document:
        """Run a stored query. Raises if it is not of the kind that the caller expects."""
        path = f"/queries/{_segment(name)}"
        sent = {**body, "expect_mutation": mutation}
        write = Write(idempotency_key or _new_key()) if mutation else None
        adapt = adapted13.change if mutation else adapted13.read
        if if_commit is not None:
            document = self._conditional(path, sent, if_commit, write)
        else:
            document = self._call("POST", path, adapt, body=sent, write=write)
        if not mutation and "rows" in document and any(name not in document for name in _READ):
            raise UnexpectedAnswer(self._base, "the answer is not the expected document")
        if ("rows" in document) is mutation:
            kind = "a read" if mutation else "a mutation"
            raise UnexpectedAnswer(self._base, f"stored query '{name}' is {kind}")
        return self._with_commit(document) if mutation else document

    def mutate(
        self, *, idempotency_key: str | None, if_commit: str | None, **body: object
    ) -> Document:
        write = Write(idempotency_key or _new_key())
        if if_commit is not None:
            return self._with_commit(self._conditional("/mutate", body, if_commit, write))
        changed = self._call(
            "POST", "/mutate", adapted13.change, body=body, write=write, needs=_CHANGE
        )
        return self._with_commit(changed)

    def _conditional(
        self, path: str, body: Mapping[str, object], commit: str, write: Write | None
    ) -> Document:
        """A write on condition. Contract 0.7 has no route for it, but an expected head."""
        if self.contract == "0.7":
            sent = {**body, "expected_head": commit}
            try:
                return self._call("POST", path, body=sent, write=write)
            except CommandFailed as failed:
                document = failed.document
                head = (document or {}).get("head_conflict")
                if head is None and type(failed.error).__name__ != "HeadMoved":
                    raise
                if document is not None and head is not None:
                    found = {"expected": head["expected"], "actual": head["actual"]}
                    document = {**document, "precondition_failure": found}
                raise CommandFailed(failed.error, CONDITION_LOST, document) from None
        headers = {CONDITION_HEADER: commit}
        return self._call(
            "POST",
            f"{path}/if-graph-commit",
            adapted13.change,
            body=body,
            headers=headers,
            write=write,
            needs=_CHANGE,
        )

    def _with_commit(self, document: Document) -> Document:
        """A receipt with the commit as contract 0.13 writes it. Older servers leave it out."""
        if "commit" in document:
            return document
        commit_id = document.get("graph_commit_id")
        made = None if commit_id is None else adapted13.to_commit_13(self.commit(commit_id))
        return document | {"commit": made}

    # -- data -------------------------------------------------------------------------------

    def load(self, *, load_id: str | None, **body: object) -> Document:
        key = load_id or _new_key()
        # A server of contract 0.7 reads the id in the body, one of 0.13 the header.
        sent = {**body, "load_id": key}
        write = Write(key, is_load=True)
        return self._with_commit(
            self._call("POST", "/load", adapted13.ingest, body=sent, write=write, needs=_INGEST)
        )

    @contextmanager
    def export(self, **body: object) -> Iterator[Iterator[bytes]]:
        """The lines of an export while they arrive."""
        with self._stream("POST", "/export", body=body, accept=ALL_FIELDS) as incoming:
            yield iter(incoming)

    @contextmanager
    def blob(self, selector: Mapping[str, object], byte_range: str | None) -> Iterator[Incoming]:
        headers = {} if byte_range is None else {"Range": byte_range}
        with self._stream("GET", "/blob", query=selector, headers=headers) as incoming:
            yield incoming

    def blob_head(self, selector: Mapping[str, object]) -> Reply:
        with self._failing(None):
            transport = self._transport(self.contract)
            try:
                reply = transport.call(
                    "HEAD", "/blob", query=_parameters(selector), passes=_REFUSED | {302}
                )
            finally:
                transport.close()
            if reply.status not in (200, 302):
                # An answer to HEAD has no body; the same request by GET says what is wrong.
                self._call("GET", "/blob", query=selector)
            return reply

    # -- state ------------------------------------------------------------------------------

    def snapshot(self, branch: str) -> Document:
        query = {"branch": branch}
        needs = ("branch", "manifest_version", "tables")
        return self._call("GET", "/snapshot", adapted13.snapshot, query=query, needs=needs)

    def schema(self) -> Document:
        return self._call("GET", "/schema", adapted13.schema, needs=("schema_source",))

    def apply_schema(self, *, idempotency_key: str | None, **body: object) -> Document:
        """Change the schema, for which contract 0.13 has no route."""
        write = Write(idempotency_key or _new_key())
        needs = ("uri", "applied", "manifest_version", "steps")
        return self._call(
            "POST", "/schema/apply", body=body, write=write, contract="0.7", needs=needs
        )

    def status(self, branch: str) -> Document:
        query = {"branch": branch}
        return self._call("GET", "/status", query=query, needs=("uri", "branch", "tables"))

    def graphs(self) -> Document:
        return self._call("GET", "/graphs", adapted13.graphs, on_server=True, needs=("graphs",))

    # -- branches ---------------------------------------------------------------------------

    def branches(self) -> Document:
        return self._call("GET", "/branches", needs=("branches",))

    def create_branch(self, name: str, source: str) -> Document:
        body = {"name": name, "from": source}
        return self._call("POST", "/branches", body=body, write=Write(), needs=("name", "from"))

    def delete_branch(self, name: str) -> Document:
        path = f"/branches/{_segment(name)}"
        return self._call("DELETE", path, write=Write(), needs=("name",))

    def merge(self, *, idempotency_key: str | None, **body: object) -> Document:
        # A dry run changes nothing: it is neither announced nor has it a key.
        write = None if body.get("dry_run") else Write(idempotency_key or _new_key())
        path = "/branches/merge"
        needs = ("source", "target", "outcome")
        merged = self._call("POST", path, adapted13.merge, body=body, write=write, needs=needs)
        return merged if write is None else self._with_commit(merged)

    # -- history ----------------------------------------------------------------------------

    def commits(self, **query: object) -> list[Document]:
        """Commits, oldest first."""
        listed = self._call("GET", "/commits", adapted13.commits, query=query, needs=("commits",))
        found: list[Document] = listed["commits"]
        return found

    def commit(self, commit_id: str) -> Document:
        path = f"/commits/{_segment(commit_id)}"
        return self._call("GET", path, adapted13.commit, needs=("graph_commit_id", "created_at"))

    def diff(self, **body: object) -> Document:
        return self._call("POST", "/diff", body=body, needs=("changes", "stats"))

    def changes(self, query: Mapping[str, object]) -> Document:
        """Changes by commit, which only contract 0.7 has in this form."""
        needs = ("commits", "next_cursor", "at_head")
        return self._call("GET", "/changes", query=query, contract="0.7", needs=needs)

    def poll(self, query: Mapping[str, object]) -> Document:
        return self._call("GET", "/changes", query=query, contract=CONTRACT_13, needs=("blocks",))

    def commit_changes(self, commit_id: str, query: Mapping[str, object]) -> Document:
        path = f"/commits/{_segment(commit_id)}/changes"
        needs = ("cause", "changes")
        return self._call("GET", path, query=query, contract=CONTRACT_13, needs=needs)

    @contextmanager
    def baseline(self, **body: object) -> Iterator[Iterator[bytes]]:
        path = "/changes/baseline"
        with self._stream("POST", path, body=body, contract=CONTRACT_13) as incoming:
            yield iter(incoming)


class _Refused(Exception):
    """An answer that is not a success, with its body if it has one."""

    def __init__(self, error: OmnigraphError, reply: Reply, body: Document | None) -> None:
        super().__init__(str(error))
        self.error = error
        self.status = reply.status
        self.body = body


_READ: Final = ("query_name", "target", "row_count", "rows")
_CHANGE: Final = ("branch", "query_name", "affected_nodes", "affected_edges", "actor_id")
_INGEST: Final = ("uri", "branch", "branch_created", "mode", "tables")

_EXITS: Final = {412: CONDITION_LOST, 429: TRY_LATER}
_NOT_STARTED: Final = {"execution": "not_started", "effects": "none", "action": "retry"}


def _outcome(status: int) -> Document:
    """What a refused write has done, and what the caller can do."""
    if status in (409, 412):
        return {"execution": "returned", "effects": "none", "action": "refresh"}
    if status == 503:
        return {"execution": "not_started", "effects": "none", "action": "recover"}
    if status >= 500:
        return {"execution": "returned", "effects": "unknown", "action": "reconcile"}
    return _NOT_STARTED


def _outcome_unanswered(error: OmnigraphError) -> Document:
    if isinstance(error, AnswerLost | CommitStateUnknown):
        return {"execution": "unknown", "effects": "unknown", "action": "reconcile"}
    if isinstance(error, ServerUnreachable):
        return _NOT_STARTED
    return {"execution": "not_started", "effects": "none", "action": "reconcile"}


def _with_graph_hint(error: NotFoundError) -> NotFoundError:
    if f"graph '{SINGLE_GRAPH}' not found" not in error.message:
        return error
    return NotFoundError("the server has several graphs, or its graph has a name; pass --graph")


def _document(reply: Reply) -> Document:
    if "json" not in reply.headers.get("content-type", ""):
        kind = reply.headers.get("content-type", "no type")
        problem = f"the answer is not JSON ({shortened(kind, 60)}); check that this is an OmniGraph server"
        raise UnexpectedAnswer(reply.server, problem, reply.status)
    found: Document = reply.json(dict)
    return found


def _new_key() -> str:
    """A key under which the server remembers a write, so that a lost answer can be asked for again."""
    return os.urandom(16).hex()


def _given(body: Mapping[str, object]) -> Document:
    return {name: value for name, value in body.items() if value is not None}


def _parameters(
    query: Mapping[str, object] | Iterable[tuple[str, str]],
) -> list[tuple[str, str]]:
    if not isinstance(query, Mapping):
        return list(query)
    found: list[tuple[str, str]] = []
    for name, value in query.items():
        for one in value if isinstance(value, list | tuple) else (value,):
            if one is not None and one is not False:
                found.append((name, "true" if one is True else str(one)))
    return found


def _segment(text: str) -> str:
    return quote(text, safe="")
