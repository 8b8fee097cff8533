"""Constraints before and after: an index may be added, nothing else may come or go.

Constraints are compared by meaning. Columns count under the names their properties will have, and
a bound written `5` equals one written `5.0`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

from omnigraph.catalog.ir import (
    Bound,
    CheckIR,
    ConstraintIR,
    IndexIR,
    KeyIR,
    RangeIR,
    UniqueIR,
)
from omnigraph.catalog.migrate.steps import (
    AddConstraint,
    Entity,
    Step,
    StoredKind,
    UnsupportedChange,
)
from omnigraph.language.schema.rules import ENDPOINTS

_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"})


def constraint_steps(
    kind: StoredKind,
    type_name: str,
    before: Sequence[ConstraintIR],
    after: Sequence[ConstraintIR],
    successors: Mapping[str, str],
) -> Iterator[Step]:
    """What happened to the constraints of a type whose properties became their `successors`."""
    entity = Entity(kind, type_name)
    if kind == "edge":
        successors = _without_endpoints(successors)
    kept = [_renamed(constraint, successors) for constraint in before]
    wanted, known = set(after), set(kept)
    removed = [c for c in kept if c not in wanted]
    if removed:
        texts = ", ".join(constraint_text(c) for c in removed)
        reason = f"removing constraints from '{type_name}' is not supported: {texts}"
        yield UnsupportedChange(entity, reason)
    for constraint in after:
        if constraint in known:
            continue
        if isinstance(constraint, IndexIR):
            yield AddConstraint(kind, type_name, constraint)
        else:
            text = constraint_text(constraint)
            reason = f"adding constraint '{text}' to '{type_name}' is not supported"
            yield UnsupportedChange(entity, reason)


def constraint_text(constraint: ConstraintIR) -> str:
    """The constraint as a schema would spell it: `@index(level)`."""
    match constraint:
        case KeyIR(columns):
            return f"@key({', '.join(columns)})"
        case UniqueIR(columns):
            return f"@unique({', '.join(columns)})"
        case IndexIR(columns):
            return f"@index({', '.join(columns)})"
        case RangeIR(column, low, high):
            return f"@range({column}, {_bound(low)}..{_bound(high)})"
        case CheckIR(column, pattern):
            return f"@check({column}, {quoted(pattern)})"


def quoted(text: str) -> str:
    """The text as a string literal of the schema language, on one line."""
    return f'"{text.translate(_ESCAPES)}"'


def _bound(bound: Bound | None) -> str:
    return "" if bound is None else str(bound)


def _without_endpoints(successors: Mapping[str, str]) -> Mapping[str, str]:
    """On an edge `src` and `dst` in a constraint are its ends, never properties so called."""
    return {
        old: new for old, new in successors.items() if old not in ENDPOINTS and new not in ENDPOINTS
    }


def _renamed(constraint: ConstraintIR, successors: Mapping[str, str]) -> ConstraintIR:
    match constraint:
        case KeyIR(columns) | UniqueIR(columns) | IndexIR(columns):
            names = sorted(successors.get(c, c) for c in columns)
            return replace(constraint, columns=tuple(names))
        case RangeIR(column) | CheckIR(column):
            return replace(constraint, property=successors.get(column, column))
