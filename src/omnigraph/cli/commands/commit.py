"""`omnigraph commit list` and `commit show`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click

from omnigraph.cli.context import Context, graph_uri, open_graph
from omnigraph.cli.framework import declare
from omnigraph.cli.options import branch_option, json_option, uri_argument, uri_option
from omnigraph.cli.output.answers import write_answer

if TYPE_CHECKING:
    pass

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
@branch_option
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
def list_all(
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
    write_answer({"commits": commits}, map(_line, commits), as_json=as_json)


@declare("commit show")
@click.argument("commit_id")
@uri_option
@json_option
@click.pass_obj
def show(context: Context, commit_id: str, uri: str | None, as_json: bool) -> None:
    """Show the commit COMMIT_ID of any branch."""
    graph = open_graph(graph_uri(uri, context), read_only=True)
    commit = graph.commit(commit_id).to_json()
    write_answer(commit, _lines(commit), as_json=as_json)


def _line(commit: Mapping[str, Any]) -> str:
    line = (
        f"{commit['graph_commit_id']} branch={commit['manifest_branch'] or 'main'} "
        f"version={commit['manifest_version']}"
    )
    return f"{line} actor={commit['actor_id']}" if commit["actor_id"] is not None else line


def _lines(commit: Mapping[str, Any]) -> Iterator[str]:
    yield f"graph_commit_id: {commit['graph_commit_id']}"
    yield f"manifest_branch: {commit['manifest_branch'] or 'main'}"
    yield f"manifest_version: {commit['manifest_version']}"
    for field in _SHOWN_IF_SET:
        if commit[field] is not None:
            yield f"{field}: {commit[field]}"
    yield f"created_at: {commit['created_at']}"
