"""Errors of calls to a server."""

from __future__ import annotations

from omnigraph.errors.base import OmnigraphError, Retry
from omnigraph.errors.inputs import InputError


class RemoteError(OmnigraphError):
    """A call to a server failed outside the graph engine.

    `server` is the address, `status` the HTTP status if the server has answered.
    """

    code = "OG-H-000"

    def __init__(self, server: str, problem: str, status: int | None = None) -> None:
        self.server = server
        self.status = status
        super().__init__(f"{server}: {problem}")


class ServerUnreachable(RemoteError):
    """No connection could be made, or a read got no answer. Nothing was changed."""

    code = "OG-H-001"
    retry = Retry.AS_IS


class AnswerLost(RemoteError):
    """A change was sent, but its answer did not arrive, so its outcome is unknown."""

    code = "OG-H-002"


class Unauthenticated(RemoteError):
    """The server requires a token, or does not know the one that was sent."""

    code = "OG-H-003"
    kind = "policy"


class UnexpectedAnswer(RemoteError):
    """The answer does not follow the HTTP contract, or comes from something else than the server."""

    code = "OG-H-004"


class EmbeddedOnly(InputError):
    """A call or an argument needs a graph that is opened from its storage."""

    code = "OG-I-060"

    def __init__(
        self, call: str, advice: str = "open the graph from its storage with og.open()"
    ) -> None:
        self.call = call
        super().__init__(f"{call} is not available on a remote graph; {advice}")
