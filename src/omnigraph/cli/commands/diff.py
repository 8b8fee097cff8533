"""`omnigraph diff`: compare two states of a graph."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from omnigraph.cli.context import Context, graph_uri, open_graph
from omnigraph.cli.framework import declare
from omnigraph.cli.operator_config import chosen_engine
from omnigraph.cli.options import (
    comparing_engine_options,
    full_option,
    json_option,
    uri_option,
)
from omnigraph.cli.output.answers import write_answer
from omnigraph.cli.output.changes import RowValues, change_lines, stat_line
from omnigraph.cli.progress import progress
from omnigraph.cli.style import Style
from omnigraph.diagnostics import counted

if TYPE_CHECKING:
    from omnigraph.diff.diff import Diff


@declare("diff")
@click.argument("before", metavar="FROM")
@click.argument("after", metavar="TO")
@uri_option
@click.option("--type", "types", multiple=True, metavar="TYPE", help="Only this type; repeatable.")
@click.option("--kind", type=click.Choice(["node", "edge"]), help="Only nodes, or only edges.")
@click.option(
    "--op", type=click.Choice(["insert", "update", "delete"]), help="Only this kind of change."
)
@click.option("--rows", is_flag=True, help="Show the values before and after.")
@full_option
@click.option("--stat", is_flag=True, help="Show counts only.")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Stop after N changes.")
@comparing_engine_options
@json_option
@click.pass_obj
def command(
    context: Context,
    before: str,
    after: str,
    uri: str | None,
    types: tuple[str, ...],
    kind: str | None,
    op: str | None,
    rows: bool,
    full: bool,
    stat: bool,
    limit: int | None,
    engine: str | None,
    master: str | None,
    as_json: bool,
) -> None:
    """Show the changes from FROM to TO, each a branch or commit.

    Net changes only: rows with equal values on both sides are not shown.
    """
    graph = open_graph(graph_uri(uri, context), read_only=True)
    with progress("comparing", as_json=as_json) as shown:
        found = graph.diff(
            before,
            after,
            types=types,
            kinds=[kind] if kind else (),
            ops=[op] if op else (),
            progress=shown,
            engine=chosen_engine(engine, master),
        )
    document = found.to_json(rows=rows, stat=stat, limit=limit) if as_json else {}
    write_answer(document, _lines(found, rows, full, stat, limit), as_json=as_json)


def _lines(found: Diff, rows: bool, full: bool, stat: bool, limit: int | None) -> Iterator[str]:
    style = Style.of(sys.stdout)
    if stat:
        for table in found.changes.tables:
            counts_by_op = ((op.value, count) for op, count in table.counts().items())
            counts = ", ".join(counted(count, op) for op, count in counts_by_op if count)
            yield f"{table.declared.table_key}  {counts}"
    else:
        page = found.changes.after(None, limit)
        values = RowValues((table.declared for table in page.tables), full=full)
        yield from change_lines(page.documents(rows=rows), style, values)
        if len(page) < len(found):
            yield f"… {len(found) - len(page)} more"
    yield stat_line(found.stats())
