"""The first rows of a result, for people: aligned text for a prompt, a small table for a notebook."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from omnigraph.catalog.ir import compact_json
from omnigraph.diagnostics import counted

_WIDEST_CELL = 40

Row = Mapping[str, object]


def text_preview(summary: str, columns: Sequence[str], rows: Sequence[Row], total: int) -> str:
    """The summary, then the rows in aligned columns, then how many are not shown."""
    table = [[_cell(name) for name in columns], *_cells(columns, rows)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = [
        " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in table
    ]
    lines.insert(1, "-+-".join("-" * width for width in widths))
    return "\n".join([summary, *lines, *_note(len(rows), total)])


def html_preview(summary: str, columns: Sequence[str], rows: Sequence[Row], total: int) -> str:
    """The same as an HTML table. Everything in it is escaped."""
    head = "".join(f"<th>{escape(_cell(name))}</th>" for name in columns)
    body = "".join(
        f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>"
        for row in _cells(columns, rows)
    )
    notes = "".join(f"<p>{escape(note)}</p>" for note in _note(len(rows), total))
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f"<div><p>{escape(summary)}</p>{table}{notes}</div>"


def _cells(columns: Sequence[str], rows: Sequence[Row]) -> list[list[str]]:
    return [[_cell(row[name]) for name in columns] for row in rows]


def _cell(value: object) -> str:
    text = value if isinstance(value, str) else compact_json(value)
    text = "".join(c if c.isprintable() else repr(c)[1:-1] for c in text[: _WIDEST_CELL + 1])
    return text if len(text) <= _WIDEST_CELL else text[: _WIDEST_CELL - 1] + "…"


def _note(shown: int, total: int) -> list[str]:
    return [f"… {counted(total - shown, 'more row')}"] if total > shown else []
