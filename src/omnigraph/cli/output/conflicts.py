"""The conflicts of a merge: for people, and as a file that is edited and given back."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from omnigraph.cli.output.cell import value_text
from omnigraph.cli.replace_file import replacing
from omnigraph.cli.style import Style
from omnigraph.errors import InputError, MergeConflict, MergeConflicts


@contextmanager
def telling_conflicts() -> Iterator[None]:
    """Conflicts that make the block fail are told one by one before the error goes on."""
    try:
        yield
    except MergeConflicts as error:
        for line in conflict_lines(error.conflicts, error.total, Style.of(sys.stderr)):
            print(line, file=sys.stderr)
        raise


def conflict_lines(conflicts: Sequence[MergeConflict], total: int, style: Style) -> Iterator[str]:
    """A line per conflict, and under it the values on which the two sides differ.

    `total` is how many there are; they are not all told if there are very many.
    """
    for conflict in conflicts:
        where = (
            conflict.table_key
            if conflict.row_id is None
            else f"{conflict.table_key} {conflict.row_id}"
        )
        yield style.error(f"{where}: {conflict.kind}") + f"  {conflict.message}"
        if conflict.is_about_a_row:
            yield from _values(conflict.base, conflict.ours, conflict.theirs)
    if total > len(conflicts):
        yield f"… {total - len(conflicts)} more conflicts"


def write_report(path: str, conflicts: Sequence[MergeConflict], total: int) -> None:
    """Write the conflicts to a file. Whoever fills in `take` can pass it to --resolve.

    Raises `InputError` if it cannot be written.
    """
    found: list[dict[str, Any]] = []
    for conflict in conflicts:
        document = conflict.to_json()
        found.append(document | {"take": None} if conflict.is_about_a_row else document)
    document = {"conflicts": found, "conflicts_total": total}
    text = json.dumps(document, ensure_ascii=False, indent=2)
    try:
        with replacing(path) as file:
            file.write(f"{text}\n")
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}") from None


def _values(*rows: Mapping[str, Any] | None) -> Iterator[str]:
    base, ours, theirs = rows
    if ours is None or theirs is None:
        gone, kept = ("ours", "theirs") if ours is None else ("theirs", "ours")
        yield f"    {gone} deleted it, {kept} changed it"
        return
    for name in sorted(ours):
        if ours[name] != theirs.get(name):
            before = "" if base is None else f"{value_text(base.get(name))} → "
            yield f"    {name}: {before}ours {value_text(ours[name])}, theirs {value_text(theirs.get(name))}"
