"""Calls of the command line to a server: contract, token, failures, and what a write announces.

A call asks the server first which contract it speaks (`HEAD /healthz`, without the token). Under contract
0.13 it asks for documents with all fields; a server that does not know them answers in those of 0.13, which
the caller translates. A failed call has its exit code and, with `--json`, its document. Nothing is sent
twice. Tests: tests/surfaces/remote.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NoReturn

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
    AnswerLost,
    CommitStateUnknown,
    NotFoundError,
    OmnigraphError,
    RemoteError,
    ServerUnreachable,
    UnexpectedAnswer,
)

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

_GRAPH_PATH: Final = re.compile(r"(.+)/graphs/([A-Za-z0-9-]{1,64})")
REFUSED: Final = frozenset(range(400, 600))


class ServerCalls:
    """Calls to one graph of a server. Nothing is sent before the first one."""

    def __init__(self, target: RemoteTarget, token: Token | None, context: Context) -> None:
        self.url = target.url
        self.base, self._graph = target.base_url, target.graph
        if self._graph is None and (nested := _GRAPH_PATH.fullmatch(self.base)):
            self.base, self._graph = nested.groups()
        self._secret = None if token is None else token.secret
        self._context = context
        self.source_name: str | None = None
        """The file of the query or schema that is sent; messages name it."""

    # -- one call ---------------------------------------------------------------------------

    @cached_property
    def contract(self) -> ContractVersion:
        """The contract that the server speaks. Raises `RemoteError` for one that we do not."""
        probe = Transport(self.base, timeout=PROBE_SECONDS)
        try:
            reply = probe.call("HEAD", "/healthz", on_server=True, passes=REFUSED)
        finally:
            probe.close()
        if reply.status != 200:
            problem = f"the server returned {reply.status} for /healthz; check the address"
            raise UnexpectedAnswer(self.base, problem, reply.status)
        stamp = reply.headers.get(HEADER.lower())
        if stamp is None:
            return "0.7"
        if stamp != CONTRACT_13:
            problem = (
                f"the server speaks HTTP contract {shortened(stamp, 40)}, this command 0.13 and 0.7"
            )
            raise UnexpectedAnswer(self.base, problem, reply.status)
        return CONTRACT_13

    def transport(self, contract: ContractVersion) -> Transport:
        graph = self._graph
        if graph is None and contract == CONTRACT_13:
            graph = SINGLE_GRAPH
        return Transport(self.base, self._secret, graph=graph, contract=contract)

    def call(
        self,
        method: str,
        path: str,
        adapt: Adapt = dict,
        *,
        query: Mapping[str, object] | None = None,
        body: Mapping[str, object] | None = None,
        headers: Mapping[str, str] | None = None,
        write: Write | None = None,
        contract: ContractVersion | None = None,
        on_server: bool = False,
        needs: tuple[str, ...] = (),
        timeout: float | None = None,
        content: bytes | None = None,
        content_type: str | None = None,
    ) -> Document:
        """Send a request and return its document, which must have the fields that are needed.

        `body` and `query` may hold None, which is left out. `contract` is that of a route which only one
        contract has.
        """
        with self.failing(write):
            spoken = self._spoken(contract)
            sender = self.transport(spoken)
            if write is not None:
                self._announce()
            try:
                reply = sender.call(
                    method,
                    path,
                    query=parameters(query or {}),
                    body=None if body is None else _given(body),
                    content=content,
                    content_type=content_type,
                    headers=headers,
                    accept="application/json"
                    if spoken == "0.7"
                    else f"{ALL_FIELDS}, application/json",
                    write=write,
                    on_server=on_server,
                    passes=REFUSED,
                    timeout=timeout,
                )
            finally:
                sender.close()
            if reply.status >= 300:
                self._refuse(reply)
            if reply.status == 204:
                return {}
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
            raise UnexpectedAnswer(self.base, problem)
        return wanted if wanted is not None and self.contract else self.contract

    def _strange(self, reply: Reply) -> UnexpectedAnswer:
        problem = "the answer is not the expected document; check that this is an OmniGraph server"
        return UnexpectedAnswer(self.base, problem, reply.status)

    @contextmanager
    def stream(
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
        with self.failing(None):
            sender = self.transport(self._spoken(contract))
        try:
            with (
                self.failing(None),
                sender.stream(
                    method,
                    path,
                    query=parameters(query or {}),
                    body=None if body is None else _given(body),
                    headers=headers,
                    accept=accept,
                ) as incoming,
            ):
                yield incoming
        finally:
            sender.close()

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
            raise _Refused(UnexpectedAnswer(self.base, problem, reply.status), reply, None)
        error = failure(self.base, reply.status, reply.headers, reply.content)
        if self.source_name is not None:
            _rename_source(error, self.source_name)
        if isinstance(error, NotFoundError) and self._graph is None:
            error = _with_graph_hint(error)
        body: Document | None
        try:
            body = reply.json(dict)
        except UnexpectedAnswer:
            body = None
        raise _Refused(error, reply, body)

    @contextmanager
    def failing(self, write: Write | None) -> Iterator[None]:
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


class _Refused(Exception):
    """An answer that is not a success, with its body if it has one."""

    def __init__(self, error: OmnigraphError, reply: Reply, body: Document | None) -> None:
        super().__init__(str(error))
        self.error = error
        self.status = reply.status
        self.body = body


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


def _rename_source(error: OmnigraphError, name: str) -> None:
    """Name the file of a text in a message, where the server calls it a query or a schema."""
    message = error.message
    for text in ("<query>", "<schema>"):
        message = message.replace(f"{text}:", f"{name}:")
    error.message, error.args = message, (message,)


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


def _given(body: Mapping[str, object]) -> Document:
    return {name: value for name, value in body.items() if value is not None}


def parameters(query: Mapping[str, object]) -> list[tuple[str, str]]:
    """The parameters of a query string; None and False are left out, a list is repeated."""
    found: list[tuple[str, str]] = []
    for name, value in query.items():
        for one in value if isinstance(value, list | tuple) else (value,):
            if one is not None and one is not False:
                found.append((name, "true" if one is True else str(one)))
    return found
