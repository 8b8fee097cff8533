"""The steps of a read as a table: what is expected of each and, if it was run, what came of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, TextIO

from omnigraph.cli.output.json import write_document
from omnigraph.cli.output.table import TableLayout, write_grid
from omnigraph.cli.style import Style

if TYPE_CHECKING:
    from omnigraph.engine.read.explain import ExplainedStep, Explanation

_LAYOUT = TableLayout(max_column_width=100, overlong="wrap")


def write_explanation(explained: Explanation, out: TextIO, *, as_json: bool) -> None:
    """A line that says what is read and how, then a line per step in their order; or a document."""
    if as_json:
        write_document(explained.to_json(), out)
        return
    out.write(explained.summary + "\n")
    columns = ["step", "expected rows"]
    if explained.seconds is not None:
        columns += ["rows", "ms", "look-ups"]
    rows = [_row(step) for step in explained.steps]
    write_grid(columns, rows, out, _LAYOUT, Style.of(out))


def _row(step: ExplainedStep) -> list[str]:
    cells = [step.indented, f"{step.estimate:,.0f}"]
    if step.measured is not None:
        measured = step.measured
        cells += [f"{measured.rows:,}", f"{measured.seconds * 1e3:.2f}", f"{measured.lookups}"]
    return cells
