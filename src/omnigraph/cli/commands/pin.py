"""`omnigraph pin create`, `pin list` and `pin delete`: tags under their older name."""

from __future__ import annotations

import click

from omnigraph.cli.address import graph_uri, open_graph
from omnigraph.cli.context import Context
from omnigraph.cli.framework import declare
from omnigraph.cli.options import json_option, uri_argument, uri_option
from omnigraph.cli.output.answer import write_answer


@declare("pin create")
@click.argument("name")
@click.option("--at", "ref", metavar="REF", help="Commit to keep; without it the newest of main.")
@uri_option
@json_option
@click.pass_obj
def create(context: Context, name: str, ref: str | None, uri: str | None, as_json: bool) -> None:
    """Keep a commit readable under NAME, whatever is cleaned up. The same as `tag create`."""
    uri = graph_uri(uri, context)
    pin = open_graph(uri, context).tags.create(name, ref)
    line = f"pinned {pin.commit_id} as {pin.name}"
    write_answer({"uri": uri, **pin.to_json()}, [line], as_json=as_json)


@declare("pin list")
@uri_argument
@json_option
@click.pass_obj
def list_all(context: Context, uri: str | None, as_json: bool) -> None:
    """List the pins of the graph at URI by name. The same as `tag list`."""
    pins = open_graph(graph_uri(uri, context), read_only=True).tags.all()
    lines = (f"{pin.name} {pin.commit_id} version={pin.number}" for pin in pins)
    write_answer({"pins": [pin.to_json() for pin in pins]}, lines, as_json=as_json)


@declare("pin delete")
@click.argument("name")
@uri_option
@json_option
@click.pass_obj
def delete(context: Context, name: str, uri: str | None, as_json: bool) -> None:
    """Remove the pin NAME; its commit goes with the next cleanup that does not keep it."""
    uri = graph_uri(uri, context)
    open_graph(uri, context).tags.delete(name)
    write_answer({"uri": uri, "name": name}, [f"removed pin {name}"], as_json=as_json)
