"""Checks a traversal: which edges it follows in which direction, its bounds, and what it binds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from omnigraph.catalog.model import Catalog, EdgeType
from omnigraph.diagnostics import did_you_mean
from omnigraph.language.query import ast
from omnigraph.language.query.ast import ANONYMOUS, Variable
from omnigraph.language.syntax import Span
from omnigraph.plan.ir import Direction, EdgePattern, Member, Shortest
from omnigraph.plan.scope import BoundEdge, BoundNode, BoundPath, Scope
from omnigraph.plan.type_errors import TypeErrors

_Ends = tuple[str, str]
"""The node types on the left and on the right of a traversal."""

_SAME_TYPES: Final = "needs edge types with the same node types at their ends"


class TraversalChecker:
    """Checks the traversals of one clause list; new variables are bound in `scope`."""

    def __init__(self, errors: TypeErrors, catalog: Catalog, scope: Scope) -> None:
        self._errors = errors
        self._catalog = catalog
        self._scope = scope
        self.types: dict[str, str] = {}
        """The node types of the variables introduced here."""
        self.edge_types: dict[str, tuple[str, ...]] = {}
        """The types of the edge variables."""

    def check(self, traversal: ast.Traversal) -> EdgePattern:
        edges = [self._edge(name) for name in traversal.edges.names]
        low, high = self._hops(traversal)
        for end in (traversal.left, traversal.right):
            self._refuse_non_node(end)
        if traversal.edges.names:
            members, ends = self._members(traversal, list({e.name: e for e in edges}.values()))
        else:
            members, ends = self._all_members(traversal)
        is_plain = traversal.edges.only is not None
        if high > 1 and ends[0] != ends[1] and not is_plain:
            message = "bounds over 1 need a selection with the same node types at both ends"
            self._errors.fail(traversal.span, "T5", message)
        self._refuse_variable(traversal, high)
        shortest = None
        if traversal.shortest:
            self._check_shortest(traversal, members, ends, low)
            weight = None if traversal.by is None else traversal.by.text
            shortest = Shortest(self._path_variable(traversal), weight)
        left = self._endpoint(traversal.left, ends[0], members)
        right = self._endpoint(traversal.right, ends[1], members)
        variable = None if traversal.shortest else self._edge_variable(traversal, members)
        return EdgePattern(left.name, right.name, members, low, high, variable, shortest)

    # -- which edges ------------------------------------------------------------------------

    def _edge(self, name: ast.EdgeName) -> EdgeType:
        edge = self._catalog.edge_for_traversal(name.text)
        if edge is None:
            words = [known[0].lower() + known[1:] for known in self._catalog.edges]
            hint = did_you_mean(name.text, words)
            self._errors.fail(name.span, "T4", f"unknown edge type `{name}`", hint)
        return edge

    def _members(
        self, traversal: ast.Traversal, edges: list[EdgeType]
    ) -> tuple[tuple[Member, ...], _Ends]:
        """Types decide on directions: a known left endpoint first, then a known right one, else the
        edges are followed as declared."""
        found: dict[str, tuple[Direction, _Ends]] = {}
        for edge in edges:
            direction = self._direction(traversal, edge)
            ends = (edge.from_type, edge.to_type)
            found[edge.name] = direction, ends if direction is Direction.OUT else ends[::-1]
        if traversal.edges.undirected:
            self._refuse_directed(traversal, edges)
            members = tuple((edge.name, way) for edge in edges for way in Direction)
            return members, found[edges[0].name][1]
        all_ends = {ends for _, ends in found.values()}
        if len(all_ends) > 1:
            self._fail_selection(traversal)
        return tuple((name, way) for name, (way, _) in found.items()), all_ends.pop()

    def _all_members(self, traversal: ast.Traversal) -> tuple[tuple[Member, ...], _Ends]:
        """The edge types that join two known node types, in either orientation."""
        known = [self._known_type(end) for end in (traversal.left, traversal.right)]
        if known[0] is None or known[1] is None:
            message = "`*` needs a declared source and destination; bind both ends to a node type"
            self._errors.fail(traversal.edges.span, "T5", message)
        ends = (known[0], known[1])
        if traversal.edges.undirected and ends[0] != ends[1]:
            message = f"undirected traversal joins nodes of one type, not {ends[0]} and {ends[1]}"
            self._errors.fail(traversal.edges.span, "T22", message)
        members: list[Member] = []
        for edge in self._catalog.edges.values():
            declared = (edge.from_type, edge.to_type)
            if declared == ends:
                members.append((edge.name, Direction.OUT))
            if declared[::-1] == ends and (traversal.edges.undirected or ends[0] != ends[1]):
                members.append((edge.name, Direction.IN))
        return tuple(members), ends

    def _refuse_directed(self, traversal: ast.Traversal, edges: Iterable[EdgeType]) -> None:
        ends = {(edge.from_type, edge.to_type) for edge in edges}
        for edge in edges:
            if not edge.is_self_typed or len(ends) > 1:
                message = "undirected traversal needs edge types that join nodes of one type;"
                joined = f"`{edge.name}` joins {edge.from_type} and {edge.to_type}"
                self._errors.fail(traversal.edges.span, "T22", f"{message} {joined}")

    def _fail_selection(self, traversal: ast.Traversal) -> None:
        span = traversal.edges.span
        if any(self._known_type(end) for end in (traversal.left, traversal.right)):
            self._errors.fail(span, "T5", f"an edge selection {_SAME_TYPES}")
        message = f"an edge selection {_SAME_TYPES}, or requires a declared endpoint type"
        self._errors.fail(span, "T5", message)

    def _known_type(self, variable: Variable) -> str | None:
        """The node type of an end that is bound already or by a binding further down."""
        bound = self._scope.find(variable.name)
        if isinstance(bound, BoundNode):
            return bound.node_type.name
        declared = self._scope.declared.get(variable.name)
        return None if declared is None else declared.name

    def _direction(self, traversal: ast.Traversal, edge: EdgeType) -> Direction:
        for variable, forward_type in (
            (traversal.left, edge.from_type),
            (traversal.right, edge.to_type),
        ):
            known = self._known_type(variable)
            if known == forward_type:
                return Direction.OUT
            if known in (edge.from_type, edge.to_type):
                return Direction.IN
            if self._scope.find(variable.name) is None and traversal.edges.only is not None:
                # A binding further down says otherwise, and is refused there.
                continue
            if known is not None:
                message = f"variable `${variable.name}` has type `{known}`, which is not an"
                ends = f"({edge.from_type} -> {edge.to_type})"
                message = f"{message} endpoint of edge `{edge.name}` {ends}"
                self._errors.fail(variable.span, "T5", message)
        return Direction.OUT

    # -- bounds and ends --------------------------------------------------------------------

    def _hops(self, traversal: ast.Traversal) -> tuple[int, int]:
        hops = traversal.hops
        if hops is None:
            return 1, 1
        if hops.low < 1:
            message = f"min hop bound must be >= 1, got {hops.low}"
            self._errors.fail(hops.span, "T15", message)
        if hops.high is None:
            message = f"unbounded traversal is disabled; write an upper bound: {{{hops.low},4}}"
            self._errors.fail(hops.span, "T15", message)
        if hops.high < hops.low:
            message = f"invalid traversal bounds {{{hops.low},{hops.high}}}"
            self._errors.fail(hops.span, "T15", message)
        return hops.low, hops.high

    def _refuse_non_node(self, end: Variable) -> None:
        bound = self._scope.find(end.name)
        if isinstance(bound, BoundEdge | BoundPath):
            kind = "edge" if isinstance(bound, BoundEdge) else "path"
            message = f"{kind} variable `${end.name}` cannot be the end of a traversal"
            self._errors.fail(end.span, "T23", message, "use the node variables beside it")

    def _endpoint(
        self, variable: Variable, expected: str, members: tuple[Member, ...]
    ) -> BoundNode:
        bound = self._scope.find(variable.name)
        if bound is None:
            bound = self._scope.introduce(variable.name, self._catalog.nodes[expected])
            self.types[bound.name] = expected
            return bound
        assert isinstance(bound, BoundNode)
        if bound.node_type.name != expected:
            message = f"variable `${variable.name}` has type `{bound.node_type.name}` but"
            names = " | ".join(dict.fromkeys(f"`{edge}`" for edge, _ in members)) or "`*`"
            self._errors.fail(variable.span, "T5", f"{message} edge {names} expects `{expected}`")
        return bound

    # -- edge and path variables ------------------------------------------------------------

    def _refuse_variable(self, traversal: ast.Traversal, high: int) -> None:
        variable = traversal.variable
        if variable is None:
            return
        kind = "path" if traversal.shortest else "edge"
        shown = f"{kind} variable `${variable.name}`"
        if high > 1 and not traversal.shortest:
            hint = "write `shortest` for the path, or bind one edge at a time"
            self._fail_variable(variable.span, f"{shown} cannot have bounds", hint)
        is_taken = self._scope.find(variable.name) or variable.name in (
            traversal.left.name,
            traversal.right.name,
        )
        if variable.name != ANONYMOUS and is_taken:
            self._fail_variable(variable.span, f"{shown} has the name of another variable")

    def _fail_variable(self, span: Span, message: str, hint: str | None = None) -> None:
        self._errors.fail(span, "T23", message, hint)

    def _edge_variable(self, traversal: ast.Traversal, members: tuple[Member, ...]) -> str | None:
        if traversal.variable is None:
            return None
        name = traversal.variable.name
        names = tuple(dict.fromkeys(edge for edge, _ in members))
        bound = BoundEdge(
            self._scope.unique(name), members=tuple(self._catalog.edges[n] for n in names)
        )
        self._scope.add(name, bound)
        self.edge_types[bound.name] = names
        return bound.name

    def _path_variable(self, traversal: ast.Traversal) -> str | None:
        if traversal.variable is None or traversal.variable.name == ANONYMOUS:
            return None
        name = traversal.variable.name
        bound = BoundPath(self._scope.unique(name))
        self._scope.add(name, bound)
        return bound.name

    def _check_shortest(
        self, traversal: ast.Traversal, members: tuple[Member, ...], ends: _Ends, low: int
    ) -> None:
        if ends[0] != ends[1]:
            message = f"shortest needs edges with one node type at both ends, got {ends[0]}"
            self._errors.fail(traversal.edges.span, "T63", f"{message} and {ends[1]}")
        weight = traversal.by
        if weight is None:
            return
        edges = [self._catalog.edges[name] for name in dict.fromkeys(name for name, _ in members)]
        for edge in edges:
            prop = edge.properties.get(weight.text)
            if prop is None or prop.type.list or not prop.type.scalar.is_numeric:
                problem = "no such property" if prop is None else prop.type.display
                message = f"shortest … by needs a number on every edge; `{weight}` of"
                hint = did_you_mean(weight.text, edge.properties) if prop is None else None
                shown = f"{message} `{edge.name}` is {problem}"
                if prop is None:
                    shown = f"{message} `{edge.name}` does not exist"
                self._errors.fail(weight.span, "T63", shown, hint)
        if low > 1:
            message = f"shortest … by needs the lower bound 1, got {low}"
            self._errors.fail(traversal.span, "T63", message)
