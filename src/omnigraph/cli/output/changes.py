"""Row changes for the terminal: a coloured line per row, its changed values, and the totals.

Tests: tests/unit/cli/test_output.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from omnigraph.cli.exits import Style
from omnigraph.cli.output.answers import compact, one_line, value_text
from omnigraph.diagnostics import counted, shortened
from omnigraph.language.types import Scalar
from omnigraph.language.values import format_date
from omnigraph.limits import MAX_SHOWN_CHARACTERS

if TYPE_CHECKING:
    from omnigraph.catalog.model import EntityType
    from omnigraph.cli.remote import ServedGraph


_SHOWN_ELEMENTS: Final = 3
_SHOWN_BEFORE_CHANGE: Final = 20
"""Characters shown in front of the first one in which two long texts differ."""


class RowValues:
    """Writes values of rows of some types. With `full`, nothing is cut."""

    def __init__(self, types: Callable[[], Iterable[EntityType]], *, full: bool) -> None:
        """`types` is called when the first value is shown."""
        self._declared = types
        self._full = full

    @cached_property
    def _types(self) -> Mapping[str, EntityType]:
        return {declared.table_key: declared for declared in self._declared()}

    def texts(self, table_key: str, name: str, *values: Any) -> list[str]:
        """The same property in several states; equal beginnings of long texts are left out."""
        readable = [self._with_dates(table_key, name, value) for value in values]
        shown = readable if self._full else _elided(readable)
        return [one_line(value_text(value)) for value in shown]

    def _with_dates(self, table_key: str, name: str, value: Any) -> Any:
        declared = self._types.get(table_key)
        prop = None if declared is None else declared.properties.get(name)
        if prop is None or prop.type.scalar is not Scalar.DATE:
            return value
        if isinstance(value, list):
            return [None if day is None else format_date(day) for day in value]
        return None if value is None else format_date(value)


def served_types(graph: ServedGraph) -> Iterable[EntityType]:
    """The types of a graph behind a server."""
    from omnigraph.catalog.compile import compile_schema
    from omnigraph.language.syntax import Source

    return compile_schema(Source("<schema>", graph.schema()["schema_source"]))


def elided(row: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """A row whose long values are cut: what is left of them is text."""
    return None if row is None else {name: _cut(value) for name, value in row.items()}


def _elided(values: Sequence[Any]) -> list[Any]:
    texts = [value for value in values if isinstance(value, str)]
    start = _equal_characters(texts) - _SHOWN_BEFORE_CHANGE if len(texts) > 1 else 0
    if start <= 0 or max(map(len, texts)) <= MAX_SHOWN_CHARACTERS:
        return [_cut(value) for value in values]
    return [_cut_behind(value, start) if isinstance(value, str) else value for value in values]


def _equal_characters(texts: Sequence[str]) -> int:
    """How many characters at the beginning the texts have in common."""
    pairs = enumerate(zip(*texts, strict=False))
    return next((at for at, found in pairs if len(set(found)) > 1), min(map(len, texts)))


def _cut(value: Any) -> Any:
    if isinstance(value, str):
        return shortened(value)
    if not isinstance(value, list) or len(compact(value)) <= MAX_SHOWN_CHARACTERS:
        return value
    first = ",".join(shortened(compact(element)) for element in value[:_SHOWN_ELEMENTS])
    return f"[{first},… ({len(value):,} elements)]"


def _cut_behind(text: str, start: int) -> str:
    """The part of a text from a character on, and how long all of it is."""
    end = start + MAX_SHOWN_CHARACTERS
    rest = "" if len(text) <= end else "…"
    return f"…{text[start:end]}{rest} ({len(text):,} characters)"


_SIGNS: Final = {"insert": "+", "update": "~", "delete": "-"}


def change_lines(
    changes: Iterable[Mapping[str, Any]], style: Style, values: RowValues, indent: str = ""
) -> Iterator[str]:
    """One line per change; with values, those that became different follow it."""
    for change in changes:
        text = f"{change['table_key']} {change['id']}"
        if "endpoints" in change:
            text += f"  {change['endpoints']['src']} → {change['endpoints']['dst']}"
        yield indent + change_line(change["op"], text, style)
        for name, old, new in _differences(change):
            before, after = values.texts(change["table_key"], name, old, new)
            yield f"{indent}    {name}: {before} → {after}"


def stat_line(stats: Mapping[str, Any]) -> str:
    """The numbers of a diff in words."""
    if not stats["types_affected"]:
        return "no changes"
    parts = [counted(stats[f"{op}s"], op) for op in _SIGNS]
    return f"{', '.join(parts)} in {', '.join(stats['types_affected'])}"


def _differences(change: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    before, after = change.get("before"), change.get("after")
    if before is None and after is None:
        return
    old, new = before or {}, after or {}
    for name in sorted(old.keys() | new.keys()):
        if name not in ("id", "src", "dst") and old.get(name) != new.get(name):
            yield name, old.get(name), new.get(name)


def change_line(op: str, text: str, style: Style) -> str:
    """The sign of an operation and what it changed, in its colour."""
    line = f"{_SIGNS[op]} {text}"
    match op:
        case "insert":
            return style.ok(line)
        case "delete":
            return style.error(line)
        case _:
            return style.warning(line)
