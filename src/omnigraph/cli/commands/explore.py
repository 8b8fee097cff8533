"""`omnigraph explore`: a web page that shows a graph."""

from __future__ import annotations

import secrets
import sys
import threading
from typing import TYPE_CHECKING, Final

import click

from omnigraph.cli.context import Context, open_graph, select_graph
from omnigraph.cli.framework import declare
from omnigraph.cli.options import json_option, uri_argument
from omnigraph.cli.output.answers import write_answer

if TYPE_CHECKING:
    from omnigraph.api.graph import Graph

LOOPBACK: Final = "127.0.0.1"
GRACE_SECONDS: Final = 5
LOCAL_ACTOR: Final = "explorer"
"""The actor of writes if neither the command line nor the configuration names one."""


@declare("explore")
@uri_argument
@click.option(
    "--port", type=click.IntRange(0, 65_535), default=0, help="Port.  [default: a free one]"
)
@click.option("--no-browser", is_flag=True, help="Print the address and open no browser.")
@click.option("--read-only", is_flag=True, help="Refuse mutations and merges.")
@json_option
@click.pass_obj
def explore(
    context: Context, uri: str | None, port: int, no_browser: bool, read_only: bool, as_json: bool
) -> int:
    """Show the graph at URI, or behind a server, in a browser.

    A local graph is served on the loopback interface until Ctrl-C. The address contains a token made for this
    run: keep it to yourself. A server shows its own page, which asks for a token.
    """
    from omnigraph.config.selection import RemoteTarget
    from omnigraph.extras import SERVER, is_installed

    target = select_graph(uri, context)
    if isinstance(target, RemoteTarget):
        named = "" if target.graph is None else f"#/overview?graph={target.graph}"
        _show(f"{target.base_url.rstrip('/')}/explore{named}", no_browser, as_json)
        return 0
    if not all(map(is_installed, SERVER.libraries)):
        raise SERVER.missing("omnigraph explore")
    with open_graph(target.uri, context, read_only=read_only) as graph:
        return _serve(graph, context, port, no_browser, read_only, as_json)


def _serve(
    graph: Graph, context: Context, port: int, no_browser: bool, read_only: bool, as_json: bool
) -> int:
    """Serve until the process is interrupted; the result is the exit code."""
    from omnigraph.errors import ServerConfigError
    from omnigraph.graph.gate import Gate, OpenGate
    from omnigraph.policy.gate import open_gate
    from omnigraph.server.app import App
    from omnigraph.server.call import ServerState
    from omnigraph.server.graphs import DEFAULT_ID, ReadsOnly, ServedGraph, ServedGraphs
    from omnigraph.server.lifecycle import listen, serve
    from omnigraph.server.tokens import Tokens

    policy = context.write_policy()
    gate: Gate = ReadsOnly()
    if not read_only:
        gate = OpenGate() if policy is None else open_gate(policy, resource=DEFAULT_ID)
    graphs = ServedGraphs([ServedGraph(DEFAULT_ID, graph.uri, graph, gate)], is_multi=False)
    token = secrets.token_urlsafe(32)
    app = App(ServerState(graphs), Tokens({context.actor or LOCAL_ACTOR: token}))
    try:
        listener = listen(LOOPBACK, port)
    except OSError as error:
        raise ServerConfigError(f"cannot listen on port {port}: {error.strerror}") from None
    bound = listener.getsockname()[1]
    # The part after # stays in the browser: it is in no request and no log.
    _show(f"http://{LOOPBACK}:{bound}/explore#token={token}", no_browser, as_json)
    return serve(app, listener, GRACE_SECONDS)


def _show(address: str, no_browser: bool, as_json: bool) -> None:
    """Open the address, and print it if no browser does."""
    document = {"address": address}
    if as_json or no_browser:
        write_answer(document, [address], as_json=as_json)
        sys.stdout.flush()
    if no_browser:
        return
    import webbrowser

    def opened() -> None:
        if not webbrowser.open(address) and not as_json:
            print(f"no browser could be opened; open {address}", flush=True)

    # Some browsers return only when they end.
    threading.Thread(target=opened, daemon=True).start()
