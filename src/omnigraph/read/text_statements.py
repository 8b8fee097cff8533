"""What a query text may hold besides its query: settings for itself, `show` and `explain`."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from omnigraph.language.query.ast import QueryFile
from omnigraph.language.query.file_settings import SETTINGS
from omnigraph.language.query.file_statements import Setting, Show, first_word
from omnigraph.language.query.parse import parse_text
from omnigraph.language.syntax import Source
from omnigraph.language.types import PropType, Scalar
from omnigraph.read.budget import QueryBudget

if TYPE_CHECKING:
    from omnigraph.read.explain import Explanation

_FIRST_WORDS: Final = frozenset({"explain", "branch", "show", "set", "reset"})
_TEXT: Final = PropType(Scalar.STRING)
_LIMITS: Final = {
    "max_rows": "max_rows",
    "traversal_work_limit": "max_rows",
    "max_bytes": "max_bytes",
    "max_seconds": "timeout_s",
}


def leading_statements(source: Source) -> QueryFile | None:
    """The parsed text, if it begins with a setting or with a statement; else None, at no cost."""
    return parse_text(source) if first_word(source.text) in _FIRST_WORDS else None


def chosen_settings(file: QueryFile) -> dict[str, int | str]:
    """The settings as the last statement about each leaves them."""
    found: dict[str, int | str] = {}
    for one in file.settings:
        if isinstance(one, Setting):
            found[one.name] = one.value
        elif one.name is None:
            found.clear()
        else:
            found.pop(one.name, None)
    return found


def limited(budget: QueryBudget, chosen: dict[str, int | str]) -> QueryBudget:
    """A budget lowered by settings; they never raise it."""
    for name, field in _LIMITS.items():
        value = chosen.get(name)
        if isinstance(value, int):
            budget = replace(budget, **{field: min(getattr(budget, field), value)})
    return budget


def shown_settings(
    show: Show, chosen: dict[str, int | str]
) -> tuple[pa.Table, tuple[PropType, ...]]:
    """The settings of a text as rows."""
    names = list(SETTINGS) if show.name is None else [show.name]
    rows = [
        {
            "name": name,
            "value": str(chosen[name]) if name in chosen else None,
            "default": _default(name),
            "source": "text" if name in chosen else "default",
            "scope": "ignored" if SETTINGS[name].ignored else "text",
        }
        for name in names
    ]
    columns = ("name", "value", "default", "source", "scope")
    return _table(rows, dict.fromkeys(columns, _TEXT))


def _default(name: str) -> str | None:
    budget = QueryBudget.from_environment()
    if name in _LIMITS:
        return str(getattr(budget, _LIMITS[name]))
    words = SETTINGS[name].words
    return "false" if name == "exact" else words[0] if words else None


def explained_rows(explanation: Explanation) -> tuple[pa.Table, tuple[PropType, ...]]:
    """The steps of a plan as rows, in the order in which they run."""
    rows = [
        {
            "tree": "plan",
            "depth": depth,
            "node": step.op,
            "detail": json.dumps({"text": step.text, **step.detail}, default=str),
        }
        for depth, step in enumerate(explanation.steps)
    ]
    kinds = dict.fromkeys(("tree", "node", "detail"), _TEXT)
    kinds["depth"] = PropType(Scalar.I64)
    return _table(rows, {name: kinds[name] for name in ("tree", "depth", "node", "detail")})


def _table(
    rows: list[dict[str, Any]], kinds: dict[str, PropType]
) -> tuple[pa.Table, tuple[PropType, ...]]:
    types = [pa.int64() if kind.scalar is Scalar.I64 else pa.utf8() for kind in kinds.values()]
    schema = pa.schema(list(zip(kinds, types, strict=True)))
    return pa.Table.from_pylist(rows, schema=schema), tuple(kinds.values())
