"""One request while it is answered: what is known of it so far, for headers, logs and traces."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, Literal

from omnigraph.server.call import Call
from omnigraph.server.graphs import ServedGraph
from omnigraph.server.logs import REQUEST_ID
from omnigraph.server.routes import Route, Scope
from omnigraph.wire.contracts import CONTRACT_07, CONTRACT_13, HEADER, VERSION_13, Contract

if TYPE_CHECKING:
    from opentelemetry.trace import Span

HttpApi = Literal["both", "0.13", "0.7"]
UNSTAMPED: Final = frozenset(["oauthProtectedResource", "metrics"])
"""Operations whose answers name no contract."""


class Exchange:
    """What is known of a request so far, for its response headers."""

    def __init__(self, contract: Contract | None, http_api: HttpApi) -> None:
        self.is_mismatch = contract is None
        self.contract = contract or CONTRACT_13
        self.actor: str | None = None
        self.served: ServedGraph | None = None
        self.is_streaming = False
        self.call: Call | None = None
        self.request_id = ""
        self.span: Span | None = None
        self.operation = "unknown"
        self.successor: str | None = None
        self._http_api = http_api
        self._is_public = False
        self._is_stamped = self.contract is CONTRACT_13

    def enter(self, route: Route) -> None:
        """The route is found: public ones are stamped whatever was asked for."""
        self.operation = route.operation
        self.successor = route.successor
        self._is_public = route.scope is Scope.PUBLIC
        if self._is_public and self.is_mismatch:
            self.contract = CONTRACT_07
        if route.operation in UNSTAMPED:
            self._is_stamped = False
        elif self._is_public:
            self._is_stamped = self._http_api != "0.7"

    def known(self) -> dict[str, str | int | None]:
        """Who asked for what, for logs and traces."""
        call = self.call
        return {
            "actor": self.actor,
            "graph": None if self.served is None else self.served.id,
            "branch": None if call is None else call.branch,
            "rows": None if call is None else call.rows,
        }

    def attributes(self) -> dict[str, str | int | None]:
        """The same for a span."""
        named = {f"omnigraph.{name}": value for name, value in self.known().items()}
        return {"http.route": self.operation, "omnigraph.request_id": self.request_id, **named}

    @property
    def draining_code(self) -> Literal["service_unavailable", "internal"]:
        return "service_unavailable" if self.contract is CONTRACT_13 else "internal"

    @property
    def unavailable_code(self) -> Literal["graph_unavailable", "internal"]:
        return "graph_unavailable" if self.contract is CONTRACT_13 else "internal"

    def stamped(self, headers: Mapping[str, str]) -> dict[str, str]:
        found = dict(headers)
        found[REQUEST_ID] = self.request_id
        if self._is_stamped:
            found[HEADER] = VERSION_13
        if not self._is_public and self._http_api != "0.7":
            found["Vary"] = HEADER
        return found
