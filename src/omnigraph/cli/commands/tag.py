"""`omnigraph tag create`, `tag list` and `tag delete`."""

from __future__ import annotations

import click

from omnigraph.cli.context import Context, graph_uri, open_graph
from omnigraph.cli.framework import declare
from omnigraph.cli.options import json_option, uri_option
from omnigraph.cli.output.answers import write_answer


@declare("tag create")
@click.argument("name")
@click.argument("ref", default="main")
@uri_option
@json_option
@click.pass_obj
def create(context: Context, name: str, ref: str, uri: str | None, as_json: bool) -> None:
    """Tag the commit of REF (default: the head of main) and protect it from cleanup."""
    uri = graph_uri(uri, context)
    tag = open_graph(uri, context).tags.create(name, ref)
    line = f"tagged {tag.commit_id} on {tag.branch} as {tag.name}"
    write_answer({"uri": uri, **tag.to_json()}, [line], as_json=as_json)


@declare("tag list")
@click.argument("uri_argument", required=False, metavar="[URI]")
@uri_option
@json_option
@click.pass_obj
def list_all(context: Context, uri_argument: str | None, uri: str | None, as_json: bool) -> None:
    """List tags by name."""
    if uri_argument is not None and uri is not None:
        raise click.UsageError("the graph is given twice; use --uri or URI.")
    tags = open_graph(graph_uri(uri_argument or uri, context), read_only=True).tags.all()
    lines = (f"{tag.name} {tag.commit_id} {tag.branch} version={tag.number}" for tag in tags)
    write_answer({"tags": [tag.to_json() for tag in tags]}, lines, as_json=as_json)


@declare("tag delete")
@click.argument("name")
@uri_option
@json_option
@click.pass_obj
def delete(context: Context, name: str, uri: str | None, as_json: bool) -> None:
    """Delete the tag NAME; the next cleanup may remove its commit."""
    uri = graph_uri(uri, context)
    open_graph(uri, context).tags.delete(name)
    document = {"uri": uri, "name": name, "actor_id": context.actor}
    write_answer(document, [f"deleted tag {name}"], as_json=as_json)
