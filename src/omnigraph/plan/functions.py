"""The functions of values: their arguments and types, and the types several values share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from omnigraph.diagnostics import counted, did_you_mean
from omnigraph.language.query import ast
from omnigraph.language.query.habits import function_hint
from omnigraph.language.types import PropType, Scalar
from omnigraph.plan.ir import Compute, Constant, Expr, Null, Param

if TYPE_CHECKING:
    from omnigraph.plan.type_errors import TypeErrors

UNITS: Final = ("second", "minute", "hour", "day", "week", "month", "quarter", "year")
_DATE_UNITS: Final = UNITS[3:]
_PARTS: Final = (*UNITS, "weekday", "yearday")

TEXT: Final = PropType(Scalar.STRING)
INTEGER: Final = PropType(Scalar.I64)
FLOAT: Final = PropType(Scalar.F64)
BOOL: Final = PropType(Scalar.BOOL)


class _Kind(Struct, frozen=True):
    """What an argument may be, and how messages call it."""

    shown: str
    scalars: frozenset[Scalar]
    list: bool = False


_NUMERIC: Final = frozenset(s for s in Scalar if s.is_numeric)
_PLAIN: Final = frozenset(Scalar) - {Scalar.BLOB, Scalar.VECTOR, Scalar.OBJECT}
_TEXT: Final = _Kind("a String", frozenset({Scalar.STRING}))
_NUMBER: Final = _Kind("a number", _NUMERIC)
_INTEGER: Final = _Kind("an integer", frozenset(s for s in Scalar if s.is_integer))
_DATE: Final = _Kind("a Date", frozenset({Scalar.DATE}))
_DATETIME: Final = _Kind("a DateTime", frozenset({Scalar.DATETIME}))
_MOMENT: Final = _Kind("a Date or DateTime", frozenset({Scalar.DATE, Scalar.DATETIME}))
_ANY: Final = _Kind("a scalar", _PLAIN)
_CONVERTIBLE: Final = _Kind("a String, a number or a Bool", _NUMERIC | {Scalar.STRING, Scalar.BOOL})
_LIST: Final = _Kind("a list", _PLAIN, list=True)
_UNIT: Final = _Kind("a unit", frozenset({Scalar.STRING}))
_PATTERN: Final = _Kind("a pattern", frozenset({Scalar.STRING}))


_DEFINITE: Final = {
    _TEXT: TEXT,
    _PATTERN: TEXT,
    _INTEGER: INTEGER,
    _NUMBER: FLOAT,
    _DATE: PropType(Scalar.DATE),
    _DATETIME: PropType(Scalar.DATETIME),
}


class Function(Struct, frozen=True):
    """`result` is None where the value has the type of the first argument."""

    kinds: tuple[_Kind, ...]
    result: PropType | None
    optional: int = 0
    partial: bool = False
    """Whether the value may be null although no argument is."""
    units: tuple[str, ...] = UNITS


FUNCTIONS: Final[dict[str, Function]] = {
    "lower": Function((_TEXT,), TEXT),
    "upper": Function((_TEXT,), TEXT),
    "trim": Function((_TEXT,), TEXT),
    "length": Function((_TEXT,), INTEGER),
    "size": Function((_LIST,), INTEGER),
    "substring": Function((_TEXT, _INTEGER, _INTEGER), TEXT, optional=1, partial=True),
    "matches": Function((_TEXT, _PATTERN), BOOL),
    "abs": Function((_NUMBER,), None),
    "floor": Function((_NUMBER,), FLOAT),
    "ceil": Function((_NUMBER,), FLOAT),
    "round": Function((_NUMBER,), FLOAT),
    "date_add": Function((_MOMENT, _INTEGER, _UNIT), None, partial=True),
    "date_diff": Function((_MOMENT, _MOMENT, _UNIT), INTEGER),
    "date_trunc": Function((_MOMENT, _UNIT), None),
    "date_part": Function((_MOMENT, _UNIT), INTEGER, units=_PARTS),
    "to_date": Function((_DATETIME,), PropType(Scalar.DATE)),
    "to_datetime": Function((_DATE,), PropType(Scalar.DATETIME)),
    "to_string": Function((_ANY,), TEXT),
    "to_int": Function((_CONVERTIBLE,), INTEGER, partial=True),
    "to_float": Function((_CONVERTIBLE,), FLOAT, partial=True),
    "contains_any": Function((_LIST, _LIST), BOOL),
    "contains_all": Function((_LIST, _LIST), BOOL),
}
"""`coalesce` takes any number of arguments and is checked by itself."""

_NAMES: Final = (*FUNCTIONS, "coalesce")
_BUILT_IN: Final = ("count", "sum", "avg", "min", "max", "collect", "search", "fuzzy", "match_text")


def argument_types(name: str) -> list[PropType | None]:
    """The types that undeclared parameters take as the arguments of a function; None where several fit."""
    return [_DEFINITE.get(kind) for kind in FUNCTIONS[name].kinds] if name in FUNCTIONS else []


ALIKE: Final = frozenset({"coalesce", "contains_any", "contains_all", "date_diff"})
"""Functions whose first arguments have one type: undeclared parameters among them take it."""


def check_call(errors: TypeErrors, call: ast.Call, arguments: tuple[Expr, ...]) -> Compute:
    """Type a call. Raises T61 for an unknown function or arguments it does not take."""
    name = call.function.text
    if name == "coalesce":
        return _coalesce(errors, call, arguments)
    function = FUNCTIONS.get(name)
    if function is None:
        hint = function_hint(name) or did_you_mean(name, (*_NAMES, *_BUILT_IN))
        errors.fail(call.function.span, "T61", f"unknown function `{name}`", hint)
    most = len(function.kinds)
    if not most - function.optional <= len(arguments) <= most:
        shown = " and ".join(kind.shown for kind in function.kinds[: most - function.optional])
        optional = " and optionally a count" if function.optional else ""
        message = f"{name} takes {shown}{optional}, got {counted(len(arguments), 'argument')}"
        errors.fail(call.span, "T61", message)
    for written, given, kind in zip(call.arguments, arguments, function.kinds, strict=False):
        _check_argument(errors, call, written, given, kind)
    _check_together(errors, call, arguments)
    if name == "matches":
        _check_pattern(errors, call.arguments[1], arguments[1])
    result = arguments[0].type if function.result is None else function.result
    result = PropType(result.scalar)
    nullable = function.partial or any(_may_be_null(a) for a in arguments)
    return Compute(name, arguments, replace(result, nullable=nullable))


def _may_be_null(expression: Expr) -> bool:
    return isinstance(expression, Null) or expression.type.nullable


def _check_argument(
    errors: TypeErrors, call: ast.Call, written: ast.Expression, given: Expr, kind: _Kind
) -> None:
    name = call.function.text
    if kind is _UNIT:
        known = FUNCTIONS[name].units
        value = given.value if isinstance(given, Constant) else None
        if value not in known:
            message = f"{name} takes a unit as a literal: {', '.join(known)}"
            errors.fail(written.span, "T61", message, did_you_mean(str(value), known))
        return
    if isinstance(given, Null):
        return
    fits = given.type.scalar in kind.scalars and given.type.list == kind.list
    if kind.list and isinstance(given, Constant) and given.value == ():
        fits = True
    if not fits:
        message = f"{name} takes {kind.shown}, got {shown_type(given)}"
        errors.fail(written.span, "T61", message)
    if name == "substring" and isinstance(given, Constant) and kind is _INTEGER:
        assert isinstance(given.value, int)
        if given.value < 0:
            errors.fail(written.span, "T61", "substring takes positions and counts from 0")


def _check_together(errors: TypeErrors, call: ast.Call, arguments: Sequence[Expr]) -> None:
    """What arguments must have in common."""
    name = call.function.text
    first = arguments[0].type
    if name == "date_diff" and first.scalar is not arguments[1].type.scalar:
        message = f"date_diff takes two values of one type, got {first.display}"
        errors.fail(call.span, "T61", f"{message} and {arguments[1].type.display}")
    if name in ("contains_any", "contains_all") and not _same_elements(*arguments):
        message = f"{name} takes lists of one type, got {first.display}"
        errors.fail(call.span, "T61", f"{message} and {arguments[1].type.display}")
    unit = arguments[-1]
    if name.startswith("date_") and isinstance(unit, Constant):
        is_time = unit.value in ("second", "minute", "hour")
        if first.scalar is Scalar.DATE and is_time:
            known = ", ".join(_DATE_UNITS)
            message = f"a Date has no {unit.value}; {name} of a Date takes {known}"
            errors.fail(call.arguments[-1].span, "T61", message)


def _same_elements(left: Expr, right: Expr) -> bool:
    if any(isinstance(side, Constant) and side.value == () for side in (left, right)):
        return True
    one, two = left.type.scalar, right.type.scalar
    return one is two or (one.is_numeric and two.is_numeric)


def _check_pattern(errors: TypeErrors, written: ast.Expression, pattern: Expr) -> None:
    if isinstance(pattern, Constant):
        # Imported here because few queries have a pattern, and compiling needs Arrow for nothing else.
        from omnigraph.catalog.arrow import pattern_problem

        problem = pattern_problem(str(pattern.value))
        if problem is not None:
            errors.fail(written.span, "T61", f"matches has invalid regex: {problem}")
    elif not isinstance(pattern, Param):
        errors.fail(written.span, "T61", "matches takes a pattern as a literal or a parameter")


def _coalesce(errors: TypeErrors, call: ast.Call, arguments: tuple[Expr, ...]) -> Compute:
    if not arguments:
        errors.fail(call.span, "T61", "coalesce takes one argument or more, got none")
    shared = common_type(arguments)
    if shared is None:
        errors.fail(call.span, "T62", f"arguments of coalesce must {_share(arguments)}")
    nullable = all(_may_be_null(argument) for argument in arguments)
    return Compute("coalesce", arguments, replace(shared, nullable=nullable))


def _share(values: Iterable[Expr]) -> str:
    return f"share a type, got {', '.join(dict.fromkeys(map(shown_type, values)))}"


def shown_type(expression: Expr) -> str:
    from omnigraph.plan.ir import EntityId

    if isinstance(expression, Null):
        return "null"
    return "a node" if isinstance(expression, EntityId) else expression.type.display


def common_type(values: Sequence[Expr]) -> PropType | None:
    """The type that several values share, nullable if one may be null; None if there is none."""
    types = [value.type for value in values if not isinstance(value, Null)]
    nullable = any(_may_be_null(value) for value in values)
    if not types:
        return PropType(Scalar.STRING, nullable=True)
    full = [value.type for value in values if not _is_empty_list(value, types)]
    kinds = {(kind.scalar, kind.list, kind.dimension) for kind in full or types}
    if len(kinds) == 1:
        scalar, is_list, dimension = kinds.pop()
        return PropType(scalar, nullable, is_list, dimension)
    if all(scalar.is_numeric and not is_list for scalar, is_list, _ in kinds):
        is_whole = all(scalar.is_integer for scalar, *_ in kinds)
        return PropType(Scalar.I64 if is_whole else Scalar.F64, nullable)
    return None


def _is_empty_list(value: Expr, types: Sequence[PropType]) -> bool:
    if isinstance(value, Null):
        return True
    return isinstance(value, Constant) and value.value == () and any(t.list for t in types)


def sharing_error(values: Iterable[Expr]) -> str:
    """How values without a common type are refused."""
    return f"must {_share(values)}"
