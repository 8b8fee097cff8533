"""Changes of rows for people: a line each, with a sign and a colour, and what they come to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from omnigraph.cli.output.row_values import RowValues
from omnigraph.cli.style import Style
from omnigraph.diagnostics import counted

_SIGNS: Final = {"insert": "+", "update": "~", "delete": "-"}


def change_lines(
    changes: Iterable[Mapping[str, Any]], style: Style, values: RowValues, indent: str = ""
) -> Iterator[str]:
    """One line per change; with values, those that became different follow it."""
    for change in changes:
        line = f"{_SIGNS[change['op']]} {change['table_key']} {change['id']}"
        if "endpoints" in change:
            line += f"  {change['endpoints']['src']} → {change['endpoints']['dst']}"
        yield indent + _coloured(change["op"], line, style)
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


def _coloured(op: str, line: str, style: Style) -> str:
    match op:
        case "insert":
            return style.ok(line)
        case "delete":
            return style.error(line)
        case _:
            return style.warning(line)
