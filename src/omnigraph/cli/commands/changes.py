"""`omnigraph changes`, `changes poll`, `changes baseline` and `commit changes`: change feeds.

`changes` shows commits in our own form. The others are the feed of HTTP contract 0.13: pages with a cursor,
and the baseline from which a copy starts. Tests: tests/unit/cli/test_diff.py, tests/unit/cli/test_polls.py.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import click

from omnigraph.cli.context import Context, address_or_server, open_graph
from omnigraph.cli.exits import Style
from omnigraph.cli.framework import declare
from omnigraph.cli.options import branch_option, full_option, json_option, uri_argument
from omnigraph.cli.output.answers import compact, write_answer
from omnigraph.cli.output.changes import RowValues, change_lines, served_types

if TYPE_CHECKING:
    from omnigraph.api.graph import Graph
    from omnigraph.catalog.model import EntityType
    from omnigraph.cli.remote import ServedGraph

_LOOK_AGAIN_SECONDS = 1.0
SERVED_COMMITS: Final = 100
"""Commits that a server sends at once."""


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
def changes(
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
    graph = address_or_server(uri, context)
    feed: Feed
    if isinstance(graph, str):
        seen: dict[str, EntityType] = {}
        feed = partial(_changes_here, open_graph(graph, read_only=True), branch, types, rows, seen)
        values = RowValues(seen.values, full=full)
    else:
        served = graph
        page = 1 if follow else SERVED_COMMITS
        feed = partial(_changes_served, served, branch, types, rows, page)
        values = RowValues(lambda: served_types(served), full=full)
    if follow:
        _follow(feed, since, limit)
        return
    found = list(feed(since, limit))
    _, cursor, at_head = found[-1] if found else ({}, since, True)
    commits = [commit for commit, _, _ in found]
    document = {"branch": branch, "commits": commits, "next_cursor": cursor, "at_head": at_head}
    write_answer(document, _changes_lines(commits, cursor, values), as_json=as_json)


Feed: TypeAlias = "Callable[[str | None, int | None], Iterator[tuple[dict[str, Any], str, bool]]]"
"""Commits after a cursor: document, the cursor behind it, and whether it was the head."""


def _changes_here(
    graph: Graph,
    branch: str,
    types: tuple[str, ...],
    rows: bool,
    seen: dict[str, EntityType],
    since: str | None,
    limit: int | None,
) -> Iterator[tuple[dict[str, Any], str, bool]]:
    """`seen` gets the types as they were when they changed."""
    for one in islice(graph.changes(since, branch=branch, types=types), limit):
        seen |= {table.declared.table_key: table.declared for table in one.changes.tables}
        yield one.to_json(rows=rows), one.cursor, one.at_head


def _changes_served(
    graph: ServedGraph,
    branch: str,
    types: tuple[str, ...],
    rows: bool,
    most: int,
    since: str | None,
    limit: int | None,
) -> Iterator[tuple[dict[str, Any], str, bool]]:
    """A page per request; only the cursor behind the last commit of a page is known."""
    while True:
        page_limit = most if limit is None else min(limit, most)
        query = {"branch": branch, "since": since, "limit": page_limit, "rows": rows}
        page = graph.changes(query | {"type_name": types})
        since, at_head = page["next_cursor"], page["at_head"]
        for commit in page["commits"]:
            yield commit, since or "", at_head
        if limit is not None:
            limit -= len(page["commits"])
        if at_head or not page["commits"] or limit == 0:
            return


def _follow(feed: Feed, since: str | None, limit: int | None) -> None:
    shown = 0
    while True:
        for commit, cursor, _ in feed(since, None if limit is None else limit - shown):
            print(compact(commit | {"cursor": cursor}), flush=True)
            since, shown = cursor, shown + 1
            if shown == limit:
                return
        time.sleep(_LOOK_AGAIN_SECONDS)


def _changes_lines(
    found: list[dict[str, Any]], cursor: str | None, values: RowValues
) -> Iterator[str]:
    style = Style.of(sys.stdout)
    for commit in found:
        by = f" by {commit['actor_id']}" if commit["actor_id"] is not None else ""
        yield style.header(f"{commit['graph_commit_id']} {commit['operation']}{by}")
        yield from change_lines(commit["changes"], style, values, indent="  ")
    if cursor is not None:
        yield f"cursor {cursor}"
