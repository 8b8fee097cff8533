"""Which variables clauses mention and introduce, seen from the text alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from omnigraph.language.query import ast
from omnigraph.plan.scope import Scope

_BLOCKS = (ast.Negation, ast.Optional, ast.Exists, ast.AggregateBlock)


def mentions_outer(clauses: Iterable[ast.Clause], scope: Scope) -> bool:
    """Whether clauses of a block mention a variable bound outside of it.

    Those of a block inside the block do not count.
    """
    return any(scope.find(variable.name) for clause in clauses for variable in _variables(clause))


def introduced_variables(clauses: Iterable[ast.Clause]) -> Iterator[str]:
    """The variables that clauses bind themselves, unless they are bound already."""
    for clause in clauses:
        if isinstance(clause, ast.Binding):
            yield clause.variable.name
        elif isinstance(clause, ast.Traversal):
            yield clause.left.name
            yield clause.right.name
            if clause.variable is not None:
                yield clause.variable.name


def _variables(found: object) -> Iterator[ast.Variable]:
    """All variables in a part of the tree, without those of blocks in it."""
    if isinstance(found, _BLOCKS):
        return
    if isinstance(found, ast.Variable):
        yield found
    elif isinstance(found, tuple):
        for item in found:
            yield from _variables(item)
    elif isinstance(found, Struct):
        for name in found.__struct_fields__:
            if name != "span":
                yield from _variables(getattr(found, name))
