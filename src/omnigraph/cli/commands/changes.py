"""`omnigraph changes`: the changes of a branch, commit by commit, from a cursor on."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

import click

from omnigraph.cli.address import graph_uri, open_graph
from omnigraph.cli.context import Context
from omnigraph.cli.framework import declare
from omnigraph.cli.options import branch_option, full_option, json_option, uri_argument
from omnigraph.cli.output.answer import write_answer
from omnigraph.cli.output.changes import change_lines
from omnigraph.cli.output.json import compact
from omnigraph.cli.output.row_values import RowValues
from omnigraph.cli.style import Style

if TYPE_CHECKING:
    from omnigraph.api.graph import Graph
    from omnigraph.engine.compare.feed import CommitChanges

_LOOK_AGAIN_SECONDS = 1.0


@declare("changes")
@uri_argument
@branch_option
@click.option(
    "--since", metavar="COMMIT|CURSOR", help="Start after this commit, or where a cursor points."
)
@click.option("--type", "types", multiple=True, metavar="TYPE", help="Only this type; repeatable.")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Stop after N commits.")
@click.option("--rows", is_flag=True, help="Show the values before and after.")
@full_option
@click.option(
    "--follow", is_flag=True, help="Go on as commits come, one JSON line each, until stopped."
)
@json_option
@click.pass_obj
def command(
    context: Context,
    uri: str | None,
    branch: str,
    since: str | None,
    types: tuple[str, ...],
    limit: int | None,
    rows: bool,
    full: bool,
    follow: bool,
    as_json: bool,
) -> None:
    """Show what each commit of a branch changed, oldest first.

    The cursor at the end leads to what comes next: pass it to --since another time, and no commit is
    shown twice or left out.
    """
    graph = open_graph(graph_uri(uri, context), read_only=True)
    if follow:
        _follow(graph, branch, since, types, limit, rows)
        return
    found = list(islice(graph.changes(since, branch=branch, types=types), limit))
    cursor = found[-1].cursor if found else since
    document: dict[str, Any] = {}
    if as_json:
        document = {
            "branch": branch,
            "commits": [told.to_json(rows=rows) for told in found],
            "next_cursor": cursor,
            "at_head": not found or found[-1].at_head,
        }
    write_answer(document, _lines(found, cursor, rows, full), as_json=as_json)


def _follow(
    graph: Graph,
    branch: str,
    since: str | None,
    types: tuple[str, ...],
    limit: int | None,
    rows: bool,
) -> None:
    told = 0
    while True:
        for commit in graph.changes(since, branch=branch, types=types):
            document = commit.to_json(rows=rows) | {"cursor": commit.cursor}
            print(compact(document), flush=True)
            since, told = commit.cursor, told + 1
            if told == limit:
                return
        time.sleep(_LOOK_AGAIN_SECONDS)


def _lines(found: list[CommitChanges], cursor: str | None, rows: bool, full: bool) -> Iterator[str]:
    style = Style.of(sys.stdout)
    for told in found:
        by = f" by {told.commit.actor}" if told.commit.actor is not None else ""
        yield style.header(f"{told.commit.id} {told.commit.operation}{by}")
        values = RowValues((table.declared for table in told.changes.tables), full=full)
        yield from change_lines(told.changes.documents(rows=rows), style, values, indent="  ")
    if cursor is not None:
        yield f"cursor {cursor}"
