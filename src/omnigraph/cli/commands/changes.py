"""`omnigraph changes`, `changes poll`, `changes baseline` and `commit changes`: change feeds.

`changes` shows commits in our own form. The others are the feed of HTTP contract 0.13: pages with a cursor,
and the baseline from which a copy starts. Tests: tests/unit/cli/test_diff.py, tests/surfaces/remote.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypedDict, Unpack

import click

from omnigraph.cli.context import Context, address_or_server, open_graph
from omnigraph.cli.exits import Style
from omnigraph.cli.framework import declare
from omnigraph.cli.options import (
    branch_option,
    full_option,
    json_option,
    set_option,
    uri_argument,
    uri_option,
    with_options,
)
from omnigraph.cli.output.answers import as_document, compact, write_answer
from omnigraph.cli.output.changes import RowValues, change_line, change_lines, served_types
from omnigraph.errors import InputError
from omnigraph.replace_file import replacing_bytes

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
    shown twice or left out. `changes poll` and `changes baseline` are the feed of the HTTP API.
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


# -- the feed of contract 0.13 --------------------------------------------------------------


_FILTERS: tuple[Callable[[Any], Any], ...] = (
    click.option(
        "--limit",
        type=click.IntRange(min=1),
        default=1000,
        show_default=True,
        metavar="N",
        help="Most changes of a page, up to 8192.",
    ),
    click.option(
        "--kind",
        "kinds",
        multiple=True,
        type=click.Choice(["node", "edge"]),
        help="Only nodes, or only edges.",
    ),
    click.option(
        "--type", "types", multiple=True, metavar="TYPE", help="Only this type; repeatable."
    ),
    click.option(
        "--op",
        "ops",
        multiple=True,
        type=click.Choice(["insert", "update", "delete"]),
        help="Only this kind of change; repeatable.",
    ),
)


class FilterOptions(TypedDict):
    """Which changes are wanted."""

    limit: int
    kinds: tuple[str, ...]
    types: tuple[str, ...]
    ops: tuple[str, ...]


def _query(filters: FilterOptions, settings: Mapping[str, object]) -> dict[str, object]:
    """The filters as the query of a request."""
    return {
        "limit": filters["limit"],
        "kind": filters["kinds"],
        "type": filters["types"],
        "op": filters["ops"],
        "set": [f"{name}={value}" for name, value in settings.items()],
    }


def _checked_limit(limit: int) -> int:
    from omnigraph.wire.feed13 import MAX_LIMIT

    if limit > MAX_LIMIT:
        raise InputError(f"limit must be at most {MAX_LIMIT}")
    return limit


@declare("changes poll")
@uri_argument
@branch_option
@click.option("--cursor", metavar="CURSOR", help="Continue behind an earlier poll or baseline.")
@click.option("--start", metavar="START", help="now (the default), beginning or after:COMMIT.")
@click.option("--page-token", metavar="TOKEN", help="Continue the page that returned it.")
@with_options(_FILTERS)
@set_option
@json_option
@click.pass_obj
def changes_poll(
    context: Context,
    uri: str | None,
    branch: str,
    cursor: str | None,
    start: str | None,
    page_token: str | None,
    settings: Mapping[str, object],
    as_json: bool,
    **filters: Unpack[FilterOptions],
) -> None:
    """Show one page of the change feed of a branch.

    A poll covers the commits up to the head at its beginning, 128 at most. Its last page has the cursor
    for the next poll; the other pages have a token for the page behind them.
    """
    graph = address_or_server(uri, context)
    if isinstance(graph, str):
        from omnigraph.diff.diff import ChangeFilter
        from omnigraph.wire.feed13 import Start, poll

        wanted = ChangeFilter.parse(filters["types"], filters["kinds"], filters["ops"])
        at = Start(cursor, start, page_token)
        opened = open_graph(graph, read_only=True)
        document = as_document(poll(opened, branch, at, wanted, _checked_limit(filters["limit"])))
    else:
        place = {"branch": branch, "cursor": cursor, "start": start, "page_token": page_token}
        document = graph.poll(place | _query(filters, settings))
    write_answer(document, _poll_lines(document), as_json=as_json)


@declare("commit changes")
@click.argument("commit_id")
@uri_option
@click.option("--page-token", metavar="TOKEN", help="Continue the page that returned it.")
@with_options(_FILTERS)
@set_option
@json_option
@click.pass_obj
def commit_changes(
    context: Context,
    commit_id: str,
    uri: str | None,
    page_token: str | None,
    settings: Mapping[str, object],
    as_json: bool,
    **filters: Unpack[FilterOptions],
) -> None:
    """Show the changes of the commit COMMIT_ID, in pages."""
    graph = address_or_server(uri, context)
    if isinstance(graph, str):
        from omnigraph.diff.diff import ChangeFilter
        from omnigraph.wire.feed13 import commit_changes

        wanted = ChangeFilter.parse(filters["types"], filters["kinds"], filters["ops"])
        limit, opened = _checked_limit(filters["limit"]), open_graph(graph, read_only=True)
        commit = opened.commit(commit_id)
        document = as_document(commit_changes(opened, commit, page_token, wanted, limit))
    else:
        query = {"page_token": page_token} | _query(filters, settings)
        document = graph.commit_changes(commit_id, query)
    write_answer(document, _poll_lines({**document, "blocks": [document]}), as_json=as_json)


def _poll_lines(document: Mapping[str, Any]) -> Iterator[str]:
    style = Style.of(sys.stdout)
    for block in document["blocks"]:
        cause = block["cause"]
        by = f" by {cause['actor_id']}" if cause["actor_id"] is not None else ""
        yield style.header(f"{cause['graph_commit_id']} on {cause['authored_branch']}{by}")
        for change in block["changes"]:
            named = f"{change['kind']}:{change['type']['name']} {change['id']}"
            yield f"  {change_line(change['op'], named, style)}"
    if "next_page_token" in document:
        yield f"page token {document['next_page_token']}"
    if "cursor" in document:
        more = "" if document["caught_up"] else "  (more commits wait)"
        yield f"cursor {document['cursor']}{more}"


@declare("changes baseline")
@uri_argument
@branch_option
@click.option("--out", required=True, metavar="FILE", help="File to write the entities to.")
@with_options(_FILTERS[1:])
@json_option
@click.pass_obj
def changes_baseline(
    context: Context,
    uri: str | None,
    branch: str,
    out: str,
    kinds: tuple[str, ...],
    types: tuple[str, ...],
    ops: tuple[str, ...],
    as_json: bool,
) -> None:
    """Write all entities of a branch to a file, and print the cursor from which to poll.

    The cursor is printed when the file is complete and on disk; if something fails before that, there is
    neither. --op only binds the cursor: polls with it must have the same filters.
    """
    graph = address_or_server(uri, context)
    last = _LastLine()
    try:
        with replacing_bytes(out) as file:

            def send(part: bytes) -> None:
                file.write(last.held_back(part))

            if isinstance(graph, str):
                from omnigraph.diff.diff import ChangeFilter
                from omnigraph.wire.feed13 import Baseline

                wanted = ChangeFilter.parse(types, kinds, ops)
                Baseline.of(open_graph(graph, read_only=True), branch, wanted).write(send)
            else:
                with graph.baseline(branch=branch, kind=kinds, type=types, op=ops) as parts:
                    for part in parts:
                        send(part)
            handshake = last.handshake()
    except OSError as error:
        raise InputError(f"{out}: cannot be written: {error.strerror}") from None
    document = {"out": out, **handshake}
    lines = [f"wrote {out}", f"cursor {handshake['resume_cursor']}"]
    write_answer(document, lines, as_json=as_json)


class _LastLine:
    """Keeps the last line of a baseline, which is not an entity, out of the file."""

    def __init__(self) -> None:
        self._line = b""

    def held_back(self, part: bytes) -> bytes:
        """What can be written: everything before the last line that is known so far."""
        text = self._line + part
        end = text.rfind(b"\n", 0, len(text) - 1) + 1
        self._line = text[end:]
        return text[:end]

    def handshake(self) -> dict[str, str]:
        """The commit and the cursor. Raises `InputError` if the baseline ended before them."""
        from omnigraph.json_text import JsonError, parse_json

        try:
            record = parse_json(self._line.decode())
        except (JsonError, UnicodeDecodeError):
            record = None
        found = record.get("baseline") if isinstance(record, dict) else None
        if not isinstance(found, dict) or not self._line.endswith(b"\n"):
            raise InputError("the baseline ended before its cursor; take it again")
        return found
