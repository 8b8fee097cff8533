"""`omnigraph log`, `commit list`, `commit show`, `diff` and `changes`: what happened to a graph.

`log --graph` draws the descent of commits: one line per commit, one column per line of history. A merge
opens a column to its right, `●─╮`, or joins one that is there, `├─●`; the commit at which two lines forked
closes one, `●─╯`. Tests: tests/unit/cli/test_commit_graph.py."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import click

from omnigraph.cli.context import Context, graph_uri, open_graph
from omnigraph.cli.exits import Style
from omnigraph.cli.framework import declare
from omnigraph.cli.options import (
    branch_option,
    chosen_engine,
    comparing_engine_options,
    full_option,
    json_option,
    uri_argument,
    uri_option,
)
from omnigraph.cli.output.answers import compact, write_answer
from omnigraph.cli.output.changes import RowValues, change_lines, stat_line
from omnigraph.cli.progress import progress
from omnigraph.diagnostics import counted

if TYPE_CHECKING:
    from omnigraph.api.graph import Graph
    from omnigraph.diff.diff import Diff
    from omnigraph.diff.feed import CommitChanges
    from omnigraph.history.commits import Commit


_COMMIT: Final = "●"


def draw(commits: Sequence[tuple[str, Sequence[str]]]) -> Iterator[str]:
    """The drawing beside each commit; commits come with their parents, and before them."""
    shown = {commit for commit, _ in commits}
    lanes: list[str | None] = []
    for commit, parents in commits:
        waiting = [lane for lane, awaited in enumerate(lanes) if awaited == commit]
        column = waiting[0] if waiting else _free(lanes)
        closing = waiting[1:]
        for lane in closing:
            lanes[lane] = None
        known = [parent for parent in parents if parent in shown]
        lanes[column] = known[0] if known else None
        opening: list[int] = []
        joining: list[int] = []
        for parent in known[1:]:
            if parent in lanes:
                joining.append(lanes.index(parent))
            else:
                opening.append(_free(lanes, column + 1))
                lanes[opening[-1]] = parent
        yield _lanes_line(lanes, column, opening, closing, joining)
        while lanes and lanes[-1] is None:
            lanes.pop()


def _free(lanes: list[str | None], start: int = 0) -> int:
    """The first free lane at or after `start`."""
    for lane in range(start, len(lanes)):
        if lanes[lane] is None:
            return lane
    lanes.append(None)
    return len(lanes) - 1


def _lanes_line(
    lanes: Sequence[str | None],
    column: int,
    opening: Sequence[int],
    closing: Sequence[int],
    joining: Sequence[int],
) -> str:
    linked = [column, *opening, *closing, *joining]
    first, last = min(linked), max(linked)
    signs = []
    for lane, awaited in enumerate(lanes):
        inside = first < lane < last
        if lane == column:
            sign = _COMMIT
        elif lane in joining or (lane in opening and lane in closing):
            sign = "┤" if lane > column else "├"
        elif lane in opening:
            sign = "┬" if inside else "╮"
        elif lane in closing:
            sign = "┴" if inside else "╯"
        elif awaited is not None:
            sign = "┼" if inside else "│"
        else:
            sign = "─" if inside else " "
        signs.append(sign + ("─" if first <= lane < last else " "))
    return "".join(signs).rstrip()


@declare("log")
@uri_argument
@branch_option
@click.option("--graph", "drawn", is_flag=True, help="Draw the commit graph.")
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=50,
    show_default=True,
    metavar="N",
    help="Stop after N commits.",
)
@click.option("--oneline", is_flag=True, help="One short line per commit.")
@json_option
@click.pass_obj
def log(
    context: Context,
    uri: str | None,
    branch: str,
    drawn: bool,
    limit: int,
    oneline: bool,
    as_json: bool,
) -> None:
    """Show the commits of a branch, newest first.

    With --graph, include merged commits and draw lines from each commit to its parents.
    """
    graph = open_graph(graph_uri(uri, context), read_only=True)
    found = graph.log(branch, merged=drawn, limit=limit)
    pictures = list(draw([(commit.id, commit.parents) for commit in found])) if drawn else None
    documents = [commit.to_json() for commit in found]
    write_answer({"commits": documents}, _log_lines(found, pictures, oneline), as_json=as_json)


def _log_lines(commits: list[Commit], pictures: list[str] | None, oneline: bool) -> Iterator[str]:
    style = Style.of(sys.stdout)
    width = max(map(len, pictures), default=0) if pictures else 0
    for number, commit in enumerate(commits):
        picture = f"{pictures[number]:<{width}} " if pictures else ""
        yield picture + _log_line(commit, style, oneline)


def _log_line(commit: Commit, style: Style, oneline: bool) -> str:
    parts = [style.header(commit.id), commit.operation]
    if not oneline:
        parts.append(f"{commit.created_at:%Y-%m-%d %H:%M:%S}")
        parts.append(f"branch={commit.branch}")
        if commit.actor is not None:
            parts.append(f"actor={commit.actor}")
        counts = commit.counts.values()
        changed = {
            "+": sum(count.inserted for count in counts),
            "~": sum(count.updated for count in counts),
            "-": sum(count.deleted for count in counts),
        }
        parts += [f"{sign}{count}" for sign, count in changed.items() if count]
    if commit.message is not None:
        parts.append(commit.message.splitlines()[0] if commit.message else "")
    return " ".join(parts)


_SHOWN_IF_SET = ("parent_commit_id", "merged_parent_commit_id", "actor_id")


def _wanted_actor(_ctx: click.Context, _param: click.Parameter, value: str | None) -> str | None:
    if value is None:
        return None
    field, equals, actor = value.partition("=")
    if field != "actor" or not equals:
        raise click.BadParameter("write it as actor=<id>.")
    return actor


@declare("commit list")
@uri_argument
@click.option(
    "--branch", default="main", show_default=True, metavar="BRANCH", help="Branch to list."
)
@click.option(
    "--filter",
    "actor",
    metavar="actor=ID",
    callback=_wanted_actor,
    help="Only commits made by this actor.",
)
@click.option("--since", metavar="COMMIT|TIME", help="Only commits since this commit or time.")
@click.option("--until", metavar="COMMIT|TIME", help="Only commits up to this commit or time.")
@click.option(
    "--order",
    type=click.Choice(["oldest", "newest"]),
    default="oldest",
    show_default=True,
    help="Sort order.",
)
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Stop after N commits.")
@json_option
@click.pass_obj
def commit_list(
    context: Context,
    uri: str | None,
    branch: str,
    actor: str | None,
    since: str | None,
    until: str | None,
    order: str,
    limit: int | None,
    as_json: bool,
) -> None:
    """List the commits of a branch.

    A TIME is a date or a date and time such as 2026-01-31T08:00:00, in UTC unless it names a zone.
    """
    graph = open_graph(graph_uri(uri, context), read_only=True)
    found = graph.log(
        branch, actor=actor, since=since, until=until, limit=limit, reverse=order != "newest"
    )
    commits = [commit.to_json() for commit in found]
    write_answer({"commits": commits}, map(_commit_line, commits), as_json=as_json)


@declare("commit show")
@click.argument("commit_id")
@uri_option
@json_option
@click.pass_obj
def commit_show(context: Context, commit_id: str, uri: str | None, as_json: bool) -> None:
    """Show the commit COMMIT_ID of any branch."""
    graph = open_graph(graph_uri(uri, context), read_only=True)
    commit = graph.commit(commit_id).to_json()
    write_answer(commit, _commit_lines(commit), as_json=as_json)


def _commit_line(commit: Mapping[str, Any]) -> str:
    line = (
        f"{commit['graph_commit_id']} branch={commit['manifest_branch'] or 'main'} "
        f"version={commit['manifest_version']}"
    )
    return f"{line} actor={commit['actor_id']}" if commit["actor_id"] is not None else line


def _commit_lines(commit: Mapping[str, Any]) -> Iterator[str]:
    yield f"graph_commit_id: {commit['graph_commit_id']}"
    yield f"manifest_branch: {commit['manifest_branch'] or 'main'}"
    yield f"manifest_version: {commit['manifest_version']}"
    for field in _SHOWN_IF_SET:
        if commit[field] is not None:
            yield f"{field}: {commit[field]}"
    yield f"created_at: {commit['created_at']}"


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
def diff(
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
    write_answer(document, _diff_lines(found, rows, full, stat, limit), as_json=as_json)


def _diff_lines(
    found: Diff, rows: bool, full: bool, stat: bool, limit: int | None
) -> Iterator[str]:
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
    write_answer(document, _changes_lines(found, cursor, rows, full), as_json=as_json)


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


def _changes_lines(
    found: list[CommitChanges], cursor: str | None, rows: bool, full: bool
) -> Iterator[str]:
    style = Style.of(sys.stdout)
    for changes in found:
        by = f" by {changes.commit.actor}" if changes.commit.actor is not None else ""
        yield style.header(f"{changes.commit.id} {changes.commit.operation}{by}")
        values = RowValues((table.declared for table in changes.changes.tables), full=full)
        yield from change_lines(changes.changes.documents(rows=rows), style, values, indent="  ")
    if cursor is not None:
        yield f"cursor {cursor}"
