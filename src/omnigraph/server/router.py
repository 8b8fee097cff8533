"""Finding the route of a path.

Paths are matched as they were sent, before percent-decoding: `/branches/a%2Fb` names the branch `a/b`.
Tests: tests/server/test_odd_names.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote_to_bytes

from omnigraph.server.problems import HttpProblem
from omnigraph.server.routes import Route, Scope

GRAPH_PREFIX = ("graphs", "{graph_id}")


@dataclass(frozen=True, slots=True)
class Match:
    """A route and the values of its path parameters."""

    route: Route
    path: Mapping[str, str]


@dataclass(slots=True)
class _Node:
    """The routes below one sequence of segments."""

    fixed: dict[str, _Node] = field(default_factory=dict)
    parameter: tuple[str, _Node] | None = None
    routes: dict[str, Route] = field(default_factory=dict)

    def child(self, segment: str) -> _Node:
        if not segment.startswith("{"):
            return self.fixed.setdefault(segment, _Node())
        name = segment.strip("{}")
        if self.parameter is None:
            self.parameter = (name, _Node())
        assert self.parameter[0] == name, "one position has one parameter"
        return self.parameter[1]


class Router:
    """The routes of one contract, with or without the prefix of graphs."""

    def __init__(self, routes: Iterable[Route], *, is_nested: bool) -> None:
        self._root = _Node()
        for route in routes:
            is_graph = route.scope is Scope.GRAPH
            node = self._root
            for segment in (*(GRAPH_PREFIX if is_graph and is_nested else ()), *route.segments):
                node = node.child(segment)
            node.routes[route.method] = route

    def find(self, method: str, raw_path: bytes) -> Match:
        """The route of a request. Raises `HttpProblem` 400, 404 or 405."""
        text = raw_path.decode("latin-1")
        if not text.startswith("/"):
            raise HttpProblem(404, "not found")
        found: dict[str, str] = {}
        node: _Node | None = self._root
        for segment in text[1:].split("/"):
            node = _step(node, segment, found)
            if node is None:
                raise HttpProblem(404, "not found")
        assert node is not None
        if not node.routes:
            raise HttpProblem(404, "not found")
        route = node.routes.get(method) or (node.routes.get("GET") if method == "HEAD" else None)
        if route is None:
            allowed = ", ".join(sorted(node.routes))
            message = f"method {method[:16]} is not allowed here; use {allowed}"
            raise HttpProblem(405, message, headers={"Allow": allowed})
        return Match(route, found)


def _step(node: _Node | None, segment: str, found: dict[str, str]) -> _Node | None:
    if node is None or not segment:
        return None
    if segment in node.fixed:
        return node.fixed[segment]
    if node.parameter is None:
        return None
    name, child = node.parameter
    try:
        found[name] = unquote_to_bytes(segment).decode("utf-8")
    except UnicodeDecodeError:
        raise HttpProblem(400, f"the path parameter '{name}' is not UTF-8") from None
    if "\0" in found[name]:
        raise HttpProblem(400, f"the path parameter '{name}' contains a NUL character")
    return child
