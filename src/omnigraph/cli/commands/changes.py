"""`omnigraph changes`: row changes of a branch, commit by commit, from a cursor."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

import click

from omnigraph.cli.context import Context, graph_uri, open_graph
from omnigraph.cli.framework import declare
from omnigraph.cli.options import branch_option, full_option, json_option, uri_argument
from omnigraph.cli.output.answers import write_answer
from omnigraph.cli.output.cells import compact
from omnigraph.cli.output.changes import RowValues, change_lines
from omnigraph.cli.style import Style

if TYPE_CHECKING:
    from omnigraph.api.graph import Graph
    from omnigraph.diff.feed import CommitChanges

_LOOK_AGAIN_SECONDS = 1.0


@declare("changes")
@uri_argument
@branch_option
@click.option("--since", metavar="COMMIT|CURSOR", help="Start after this commit or at this cursor.")
@click.option("--type", "types", multiple=True, metavar="TYPE", help="Only this type; repeatable.")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Stop after N commits.")
@click.option("--rows", is_flag=True, help="Show the values before and after.")
@full_option
@click.option("--follow", is_flag=True, help="Wait for new commits and print one JSON line each.")
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
    """Show the row changes of each commit of a branch, oldest first.

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
            "commits": [commit.to_json(rows=rows) for commit in found],
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
    shown = 0
    while True:
        for commit in graph.changes(since, branch=branch, types=types):
            document = commit.to_json(rows=rows) | {"cursor": commit.cursor}
            print(compact(document), flush=True)
            since, shown = commit.cursor, shown + 1
            if shown == limit:
                return
        time.sleep(_LOOK_AGAIN_SECONDS)


def _lines(found: list[CommitChanges], cursor: str | None, rows: bool, full: bool) -> Iterator[str]:
    style = Style.of(sys.stdout)
    for changes in found:
        by = f" by {changes.commit.actor}" if changes.commit.actor is not None else ""
        yield style.header(f"{changes.commit.id} {changes.commit.operation}{by}")
        values = RowValues((table.declared for table in changes.changes.tables), full=full)
        yield from change_lines(changes.changes.documents(rows=rows), style, values, indent="  ")
    if cursor is not None:
        yield f"cursor {cursor}"
