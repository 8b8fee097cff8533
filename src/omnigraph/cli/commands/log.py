"""`omnigraph log`: the history of a branch, newest first, if wanted as a drawing."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from omnigraph.cli.address import graph_uri, open_graph
from omnigraph.cli.context import Context
from omnigraph.cli.framework import declare
from omnigraph.cli.options import branch_option, json_option, uri_argument
from omnigraph.cli.output.answer import write_answer
from omnigraph.cli.output.commit_graph import draw
from omnigraph.cli.style import Style

if TYPE_CHECKING:
    from omnigraph.versioning.commits import CommitRecord


@declare("log")
@uri_argument
@branch_option
@click.option("--graph", "drawn", is_flag=True, help="Draw how commits descend from each other.")
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

    With --graph also those that merges brought in, with lines from each commit to its parents.
    """
    from omnigraph.engine.receipts import commit_to_json

    graph = open_graph(graph_uri(uri, context), read_only=True)
    if drawn:
        found = graph.ancestry(branch)[:limit]
    else:
        found = graph.commits(branch, newest_first=True, limit=limit)
    catalog = graph.catalog
    documents = [commit_to_json(commit, catalog) for commit in found]
    pictures = list(draw([(c.graph_commit_id, c.parents) for c in found])) if drawn else None
    write_answer(
        {"commits": documents}, _lines(found, documents, pictures, oneline), as_json=as_json
    )


def _lines(
    commits: list[CommitRecord],
    documents: list[dict[str, Any]],
    pictures: list[str] | None,
    oneline: bool,
) -> Iterator[str]:
    style = Style.of(sys.stdout)
    width = max(map(len, pictures), default=0) if pictures else 0
    for number, (commit, document) in enumerate(zip(commits, documents, strict=True)):
        picture = f"{pictures[number]:<{width}} " if pictures else ""
        yield picture + _line(commit, document, style, oneline)


def _line(commit: CommitRecord, document: dict[str, Any], style: Style, oneline: bool) -> str:
    draft = commit.draft
    parts = [style.header(draft.graph_commit_id), draft.operation.value]
    if not oneline:
        made = datetime.fromtimestamp(draft.created_at / 1_000_000, UTC)
        parts.append(f"{made:%Y-%m-%d %H:%M:%S}")
        parts.append(f"branch={document['manifest_branch'] or 'main'}")
        if draft.actor_id is not None:
            parts.append(f"actor={draft.actor_id}")
        changed = {
            sign: sum(count[name] for count in document["counts"].values())
            for sign, name in (("+", "inserted"), ("~", "updated"), ("-", "deleted"))
        }
        parts += [f"{sign}{count}" for sign, count in changed.items() if count]
    if draft.message is not None:
        parts.append(draft.message.splitlines()[0] if draft.message else "")
    return " ".join(parts)
