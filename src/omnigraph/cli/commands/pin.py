"""`omnigraph pin create`, `pin list` and `pin delete`: the older name for tags."""

from __future__ import annotations

import click

from omnigraph.cli.context import Context, graph_uri, open_graph
from omnigraph.cli.framework import declare
from omnigraph.cli.options import json_option, uri_argument, uri_option
from omnigraph.cli.output.answers import write_answer


@declare("pin create")
@click.argument("name")
@click.option("--at", "ref", metavar="REF", help="Commit to pin. Default: the head of main.")
@uri_option
@json_option
@click.pass_obj
def create(context: Context, name: str, ref: str | None, uri: str | None, as_json: bool) -> None:
    """Pin a commit under NAME and protect it from cleanup. Same as `tag create`."""
    uri = graph_uri(uri, context)
    pin = open_graph(uri, context).tags.create(name, ref)
    line = f"pinned {pin.commit_id} as {pin.name}"
    write_answer({"uri": uri, **pin.to_json()}, [line], as_json=as_json)


@declare("pin list")
@uri_argument
@json_option
@click.pass_obj
def list_all(context: Context, uri: str | None, as_json: bool) -> None:
    """List pins by name. Same as `tag list`."""
    pins = open_graph(graph_uri(uri, context), read_only=True).tags.all()
    lines = (f"{pin.name} {pin.commit_id} version={pin.number}" for pin in pins)
    write_answer({"pins": [pin.to_json() for pin in pins]}, lines, as_json=as_json)


@declare("pin delete")
@click.argument("name")
@uri_option
@json_option
@click.pass_obj
def delete(context: Context, name: str, uri: str | None, as_json: bool) -> None:
    """Delete the pin NAME; the next cleanup may delete its commit."""
    uri = graph_uri(uri, context)
    open_graph(uri, context).tags.delete(name)
    write_answer({"uri": uri, "name": name}, [f"removed pin {name}"], as_json=as_json)
