"""The variables of a query: nodes, edges and paths, and which of them a clause list can see."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import count

from omnigraph.catalog.model import EdgeType, NodeType
from omnigraph.language.query.ast import ANONYMOUS, Clause
from omnigraph.language.types import PropType, Scalar
from omnigraph.plan.ir import Pattern

_NUMBER = PropType(Scalar.I64)
_SUM = PropType(Scalar.F64, nullable=True)
_IDS = PropType(Scalar.STRING, list=True)

PATH_PARTS: Mapping[str, PropType] = {
    "length": _NUMBER,
    "cost": _SUM,
    "nodes": _IDS,
    "edges": _IDS,
}
"""What can be read of a path."""


@dataclass(frozen=True)
class BoundVariable:
    """A variable: `name` in the plan, which differs from the text only to avoid a clash.

    One that is `optional` may be unbound in some rows.
    """

    name: str
    optional: bool = False


@dataclass(frozen=True)
class BoundNode(BoundVariable):
    node_type: NodeType = field(kw_only=True)

    @property
    def shown_type(self) -> str:
        return self.node_type.name

    @property
    def properties(self) -> Mapping[str, PropType]:
        return {name: prop.type for name, prop in self.node_type.properties.items()}


@dataclass(frozen=True)
class BoundEdge(BoundVariable):
    """An edge of one of several types. Their common properties can be read."""

    members: tuple[EdgeType, ...] = field(kw_only=True)

    @property
    def shown_type(self) -> str:
        return " | ".join(member.name for member in self.members) or "*"

    @property
    def properties(self) -> Mapping[str, PropType]:
        if not self.members:
            return {}
        first, others = self.members[0], self.members[1:]
        found = {name: prop.type for name, prop in first.properties.items()}
        for other in others:
            found = {
                name: common
                for name, kind in found.items()
                if name in other.properties
                and (common := _common_type(kind, other.properties[name].type)) is not None
            }
        return found


@dataclass(frozen=True)
class BoundPath(BoundVariable):
    @property
    def shown_type(self) -> str:
        return "path"

    @property
    def properties(self) -> Mapping[str, PropType]:
        return PATH_PARTS


Bound = BoundNode | BoundEdge | BoundPath

PatternCheck = Callable[["Scope", tuple[Clause, ...]], Pattern]
"""Checks clauses that bind variables in a scope of their own."""


def _common_type(left: PropType, right: PropType) -> PropType | None:
    """The type of a property that two edge types have; None if their base types differ."""
    if (left.scalar, left.list, left.dimension) != (right.scalar, right.list, right.dimension):
        return None
    enum = left.enum_values if left.enum_values == right.enum_values else None
    return PropType(
        left.scalar, left.nullable or right.nullable, left.list, left.dimension, enum_values=enum
    )


class Scope:
    """Variables bound so far in one clause list, on top of those of the enclosing lists.

    `declared` are the node types that bindings of the list give to variables, also further down. The
    variables of an optional block become variables of the list around it.
    """

    def __init__(
        self,
        parameters: Mapping[str, PropType],
        *,
        parent: Scope | None = None,
        is_optional: bool = False,
    ) -> None:
        self.parameters = parameters
        self.parent = parent
        self._is_optional = is_optional
        self.check_pattern: PatternCheck | None = parent.check_pattern if parent else None
        """Checks the clauses of a block; None where there are no patterns."""
        self.declared: Mapping[str, NodeType] = {}
        self._own: dict[str, Bound] = {}
        self._introduced: frozenset[str] = frozenset()
        self._depth: int = parent._depth + (not is_optional) if parent else 0
        self._blocks: dict[str, str] = parent._blocks if parent else {}
        self._numbers: Iterator[int] = parent._numbers if parent else count(1)

    def find(self, name: str) -> Bound | None:
        """The variable of this name, from here or from an enclosing list."""
        scope: Scope | None = self
        while scope is not None:
            found = scope._own.get(name)
            if found is not None:
                return found
            scope = scope.parent
        return None

    def introduces(self, names: Iterable[str]) -> None:
        """Say which variables the clause list binds, also further down in the text."""
        self._introduced = frozenset(names)

    def _is_taken_by_enclosing(self, name: str) -> bool:
        scope = self.parent
        if self._is_optional and scope is not None:
            return scope._is_taken_by_enclosing(name)
        while scope is not None and name not in scope._introduced:
            scope = scope.parent
        return scope is not None

    def unique(self, name: str) -> str:
        """The name of a new variable in the plan.

        Every `$_` is a variable of its own that nothing can refer to. A variable of a block that an
        enclosing list binds later in the text is another variable; the mark `#`, which no source can
        contain, keeps the two apart in the plan. One mark per level of nesting, because the enclosing
        list may have to mark its own as well.
        """
        if name == ANONYMOUS:
            return f"_#{next(self._numbers)}"
        return name + "#" * self._depth if self._is_taken_by_enclosing(name) else name

    def introduce(self, name: str, node_type: NodeType) -> BoundNode:
        """Bind a new node variable."""
        variable = BoundNode(self.unique(name), node_type=node_type)
        self.add(name, variable)
        return variable

    def add(self, name: str, variable: Bound) -> None:
        """Bind a new variable of any kind; nothing can refer to `$_`."""
        if name != ANONYMOUS:
            self._own[name] = variable

    def adopt(self, inner: Scope) -> None:
        """Make the variables of an optional block visible behind it; they may be unbound."""
        for name, variable in inner.own.items():
            self._own[name] = replace(variable, optional=True)

    def block_name(self, block: str) -> str:
        """A name for a block that is a value, the same for the same text about the same variables."""
        return self._blocks.setdefault(block, f"block#{len(self._blocks) + 1}")

    def names(self) -> list[str]:
        """All variable names in reach, for hints."""
        inherited = self.parent.names() if self.parent else []
        return [*inherited, *self._own]

    @property
    def own(self) -> Mapping[str, Bound]:
        return self._own
