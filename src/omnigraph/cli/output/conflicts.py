"""The conflicts of a merge: for people, and as a file that is edited and given back."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omnigraph.cli.output.cell import cell_text
from omnigraph.cli.style import Style

if TYPE_CHECKING:
    from omnigraph.errors import MergeConflict


def conflict_lines(conflicts: Iterable[MergeConflict], style: Style) -> Iterator[str]:
    """A line per conflict, and under it the values on which the two sides differ."""
    for conflict in conflicts:
        where = (
            conflict.table_key
            if conflict.row_id is None
            else f"{conflict.table_key} {conflict.row_id}"
        )
        yield style.error(f"{where}: {conflict.kind}") + f"  {conflict.message}"
        if conflict.is_about_a_row:
            yield from _values(conflict.base, conflict.ours, conflict.theirs)


def write_report(path: Path, conflicts: Sequence[MergeConflict]) -> None:
    """Write the conflicts to a file. Whoever fills in `take` can pass it to --resolve."""
    found: list[dict[str, Any]] = []
    for conflict in conflicts:
        document = conflict.to_json()
        found.append(document | {"take": None} if conflict.is_about_a_row else document)
    text = json.dumps({"conflicts": found}, ensure_ascii=False, indent=2)
    path.write_text(f"{text}\n", encoding="utf-8")


def _values(*rows: Mapping[str, Any] | None) -> Iterator[str]:
    base, ours, theirs = rows
    if ours is None or theirs is None:
        gone, kept = ("ours", "theirs") if ours is None else ("theirs", "ours")
        yield f"    {gone} deleted it, {kept} changed it"
        return
    for name in sorted(ours):
        if ours[name] != theirs.get(name):
            before = "" if base is None else f"{_shown(base.get(name))} → "
            yield f"    {name}: {before}ours {_shown(ours[name])}, theirs {_shown(theirs.get(name))}"


def _shown(value: Any) -> str:
    return "null" if value is None else cell_text(value)
