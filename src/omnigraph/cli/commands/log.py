"""`omnigraph log`: commit history of a branch, newest first."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from omnigraph.cli.context import Context, graph_uri, open_graph
from omnigraph.cli.framework import declare
from omnigraph.cli.options import branch_option, json_option, uri_argument
from omnigraph.cli.output.answers import write_answer
from omnigraph.cli.output.commit_graph import draw
from omnigraph.cli.style import Style

if TYPE_CHECKING:
    from omnigraph.history.commits import Commit


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
def command(
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
    write_answer({"commits": documents}, _lines(found, pictures, oneline), as_json=as_json)


def _lines(commits: list[Commit], pictures: list[str] | None, oneline: bool) -> Iterator[str]:
    style = Style.of(sys.stdout)
    width = max(map(len, pictures), default=0) if pictures else 0
    for number, commit in enumerate(commits):
        picture = f"{pictures[number]:<{width}} " if pictures else ""
        yield picture + _line(commit, style, oneline)


def _line(commit: Commit, style: Style, oneline: bool) -> str:
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
