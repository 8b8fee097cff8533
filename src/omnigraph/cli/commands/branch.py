"""`omnigraph branch create`, `branch list` and `branch delete`."""

from __future__ import annotations

import click

from omnigraph.cli.address import graph_uri, open_graph
from omnigraph.cli.context import Context
from omnigraph.cli.framework import declare
from omnigraph.cli.options import json_option, uri_option
from omnigraph.cli.output.answer import write_answer


@declare("branch create")
@click.argument("name")
@click.option(
    "--from",
    "source",
    default="main",
    show_default=True,
    metavar="BRANCH",
    help="Branch whose present state the new one starts with.",
)
@uri_option
@json_option
@click.pass_obj
def create(context: Context, name: str, source: str, uri: str | None, as_json: bool) -> None:
    """Create the branch NAME. Nothing is copied, however large the graph is."""
    uri = graph_uri(uri, context)
    created = open_graph(uri).create_branch(name, source=source, actor=context.actor).branch
    write_answer(
        {"uri": uri, "from": source, "name": created, "actor_id": context.actor},
        [f"created branch {created} from {source}"],
        as_json=as_json,
    )


@declare("branch list")
@uri_option
@json_option
@click.pass_obj
def list_names(context: Context, uri: str | None, as_json: bool) -> None:
    """List the branches by name."""
    names = sorted(open_graph(graph_uri(uri, context), read_only=True).branches())
    write_answer({"branches": names}, names, as_json=as_json)


@declare("branch delete")
@click.argument("name")
@uri_option
@json_option
@click.pass_obj
def delete(context: Context, name: str, uri: str | None, as_json: bool) -> None:
    """Delete the branch NAME, without asking. Branches that others depend on are kept."""
    uri = graph_uri(uri, context)
    open_graph(uri).delete_branch(name, actor=context.actor)
    write_answer(
        {"uri": uri, "name": name, "actor_id": context.actor},
        [f"deleted branch {name}"],
        as_json=as_json,
    )
