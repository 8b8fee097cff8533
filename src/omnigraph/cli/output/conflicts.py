"""Merge conflicts on the terminal, and as a file to edit and pass back."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from omnigraph.cli.output.changes import RowValues, elided
from omnigraph.cli.style import Style
from omnigraph.diagnostics import counted
from omnigraph.errors import InputError, MergeConflict, MergeConflicts
from omnigraph.replace_file import replacing


@contextmanager
def reporting_conflicts(values: RowValues) -> Iterator[None]:
    """Print the conflicts of a failing block before the error propagates."""
    try:
        yield
    except MergeConflicts as error:
        for line in conflict_lines(error.conflicts, error.total, Style.of(sys.stderr), values):
            print(line, file=sys.stderr)
        raise


def conflict_lines(
    conflicts: Sequence[MergeConflict], total: int, style: Style, values: RowValues
) -> Iterator[str]:
    """A line per conflict, and under it the values on which the two sides differ.

    `total` counts all of them; `conflicts` may hold only the first.
    """
    for conflict in conflicts:
        where = (
            conflict.table_key
            if conflict.row_id is None
            else f"{conflict.table_key} {conflict.row_id}"
        )
        yield style.error(f"{where}: {conflict.kind}") + f"  {conflict.message}"
        if conflict.is_about_a_row:
            yield from _values(conflict, values)
    if total > len(conflicts):
        yield f"… {counted(total - len(conflicts), 'more conflict')}"


def write_report(path: str, conflicts: Sequence[MergeConflict], total: int, *, full: bool) -> None:
    """Write the conflicts to a file that --resolve reads once each `take` is filled in.

    Its values are for people and are not read back; unless all of them are wanted, long ones are
    cut. Raises `InputError` if it cannot be written.
    """
    found: list[dict[str, Any]] = []
    for conflict in conflicts:
        document = conflict.to_json()
        if not full and conflict.is_about_a_row:
            document |= {side: elided(document[side]) for side in ("base", "ours", "theirs")}
        found.append(document | {"take": None} if conflict.is_about_a_row else document)
    document = {"conflicts": found, "conflicts_total": total}
    text = json.dumps(document, ensure_ascii=False, indent=2)
    try:
        with replacing(path) as file:
            file.write(f"{text}\n")
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}") from None


def _values(conflict: MergeConflict, values: RowValues) -> Iterator[str]:
    base, ours, theirs = conflict.base, conflict.ours, conflict.theirs
    if ours is None or theirs is None:
        gone, kept = ("ours", "theirs") if ours is None else ("theirs", "ours")
        yield f"    {gone} deleted it, {kept} changed it"
        return
    for name in sorted(ours):
        if ours[name] != theirs.get(name):
            states = [row.get(name) for row in (ours, theirs, base) if row is not None]
            mine, other, *before = values.texts(conflict.table_key, name, *states)
            origin = "".join(f"{text} → " for text in before)
            yield f"    {name}: {origin}ours {mine}, theirs {other}"
