"""`omnigraph log`, `commit list`, `commit show` and `diff`: what happened to a graph.

`log --graph` draws the descent of commits: one line per commit, one column per line of history. A merge
opens a column to its right, `●─╮`, or joins one that is there, `├─●`; the commit at which two lines forked
closes one, `●─╯`. Tests: tests/unit/cli/test_commit_graph.py."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import click

from omnigraph.cli.command_table import refuse_direct
from omnigraph.cli.context import Context, address_or_server, open_graph
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
from omnigraph.cli.output.answers import write_answer
from omnigraph.cli.output.changes import RowValues, change_lines, served_types, stat_line
from omnigraph.cli.progress import progress
from omnigraph.diagnostics import counted

if TYPE_CHECKING:
    from omnigraph.cli.remote import ServedGraph
    from omnigraph.diff.diff import Diff


_COMMIT: Final = "●"
_OPS: Final = ("insert", "update", "delete")
MAX_CHANGES: Final = 2**31
"""The largest limit of a diff that a server takes."""


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
    graph = address_or_server(uri, context)
    if isinstance(graph, str):
        opened = open_graph(graph, read_only=True)
        found = [one.to_json() for one in opened.log(branch, merged=drawn, limit=limit)]
    else:
        found = graph.commits(branch=branch, merged=drawn, limit=limit)[::-1][:limit]
    pictures = list(draw([(c["graph_commit_id"], _parents(c)) for c in found])) if drawn else None
    write_answer({"commits": found}, log_lines(found, pictures, oneline=oneline), as_json=as_json)


def _parents(commit: Mapping[str, Any]) -> list[str]:
    both = (commit["parent_commit_id"], commit["merged_parent_commit_id"])
    return [parent for parent in both if parent is not None]


def log_lines(
    commits: list[dict[str, Any]], pictures: list[str] | None, *, oneline: bool
) -> Iterator[str]:
    """One line per commit, with the drawing beside it if there is one."""
    style = Style.of(sys.stdout)
    width = max(map(len, pictures), default=0) if pictures else 0
    for number, commit in enumerate(commits):
        picture = f"{pictures[number]:<{width}} " if pictures else ""
        yield picture + log_line(commit, style, oneline=oneline)


def log_line(
    commit: Mapping[str, Any], style: Style | None = None, *, oneline: bool = False
) -> str:
    """One commit on a line."""
    style = style or Style(enabled=False)
    parts = [style.header(commit["graph_commit_id"]), commit.get("operation", "commit")]
    if not oneline:
        made = datetime.fromtimestamp(commit["created_at"] // 1_000_000, UTC)
        parts.append(f"{made:%Y-%m-%d %H:%M:%S}")
        parts.append(f"branch={commit['manifest_branch'] or 'main'}")
        if commit["actor_id"] is not None:
            parts.append(f"actor={commit['actor_id']}")
        counts = commit.get("counts", {}).values()
        signs = {"+": "inserted", "~": "updated", "-": "deleted"}
        changed = {sign: sum(count[what] for count in counts) for sign, what in signs.items()}
        parts += [f"{sign}{count}" for sign, count in changed.items() if count]
    if (message := commit.get("message")) is not None:
        parts.append(message.splitlines()[0] if message else "")
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
    graph = address_or_server(uri, context)
    is_reversed = order != "newest"
    if isinstance(graph, str):
        found = open_graph(graph, read_only=True).log(
            branch, actor=actor, since=since, until=until, limit=limit, reverse=is_reversed
        )
        commits = [commit.to_json() for commit in found]
    else:
        commits = graph.commits(
            branch=branch,
            actor=actor,
            since=since,
            until=until,
            limit=limit,
            reverse=is_reversed,
        )
        commits = (commits if is_reversed else commits[::-1])[:limit]
    write_answer({"commits": commits}, map(_commit_line, commits), as_json=as_json)


@declare("commit show")
@click.argument("commit_id")
@uri_option
@json_option
@click.pass_obj
def commit_show(context: Context, commit_id: str, uri: str | None, as_json: bool) -> None:
    """Show the commit COMMIT_ID of any branch."""
    graph = address_or_server(uri, context)
    if isinstance(graph, str):
        commit = open_graph(graph, read_only=True).commit(commit_id).to_json()
    else:
        commit = graph.commit(commit_id)
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
    graph = address_or_server(uri, context)
    kinds, ops = [kind] if kind else [], [op] if op else []
    if isinstance(graph, str):
        with progress("comparing", as_json=as_json) as shown:
            found = open_graph(graph, read_only=True).diff(
                before,
                after,
                types=types,
                kinds=kinds,
                ops=ops,
                progress=shown,
                engine=chosen_engine(engine, master),
            )
        document = found.to_json(rows=rows, stat=stat, limit=limit) if as_json else {}
        lines = diff_lines(found, rows=rows, full=full, stat=stat, limit=limit)
    else:
        for flag, given in (("--engine", engine), ("--master", master)):
            if given is not None:
                refuse_direct(f"`diff {flag}`", graph.url)
        document = graph.diff(
            to=after,
            type_names=list(types),
            kinds=kinds,
            ops=ops,
            rows=rows and not stat,
            limit=limit if limit is not None and not stat else MAX_CHANGES,
            **{"from": before},
        )
        lines = _served_diff_lines(graph, document, full, stat)
        if stat:
            left_out = ("changes", "next_cursor")
            document = {name: document[name] for name in document if name not in left_out}
    write_answer(document, lines, as_json=as_json)


def _served_diff_lines(
    graph: ServedGraph, document: Mapping[str, Any], full: bool, stat: bool
) -> Iterator[str]:
    stats, changes = document["stats"], document["changes"]
    if stat:
        counts: dict[str, dict[str, int]] = {}
        for one in changes:
            by_op = counts.setdefault(one["table_key"], dict.fromkeys(_OPS, 0))
            by_op[one["op"]] += 1
        for key, by_op in counts.items():
            shown = ", ".join(counted(count, op) for op, count in by_op.items() if count)
            yield f"{key}  {shown}"
    else:
        values = RowValues(lambda: served_types(graph), full=full)
        yield from change_lines(changes, Style.of(sys.stdout), values)
        total = sum(stats[f"{op}s"] for op in _OPS)
        if len(changes) < total:
            yield f"… {total - len(changes)} more"
    yield stat_line(stats)


def diff_lines(
    found: Diff, *, rows: bool, full: bool, stat: bool, limit: int | None
) -> Iterator[str]:
    """The changes of a comparison for people, or their counts."""
    style = Style.of(sys.stdout)
    if stat:
        for table in found.changes.tables:
            counts_by_op = ((op.value, count) for op, count in table.counts().items())
            counts = ", ".join(counted(count, op) for op, count in counts_by_op if count)
            yield f"{table.declared.table_key}  {counts}"
    else:
        page = found.changes.after(None, limit)
        values = RowValues(lambda: [table.declared for table in page.tables], full=full)
        yield from change_lines(page.documents(rows=rows), style, values)
        if len(page) < len(found):
            yield f"… {len(found) - len(page)} more"
    yield stat_line(found.stats())
