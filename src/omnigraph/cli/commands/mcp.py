"""`omnigraph mcp`: a graph as tools of an agent, over standard input and output."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple

import click

from omnigraph.cli.context import Context, open_graph, select_graph
from omnigraph.cli.framework import declare
from omnigraph.cli.options import uri_argument

if TYPE_CHECKING:
    from omnigraph.api.graph import Graph
    from omnigraph.config.selection import RemoteTarget
    from omnigraph.settings import Settings


@declare("mcp")
@uri_argument
@click.option(
    "--branch",
    metavar="BRANCH",
    help="Branch of calls that name none. Without it they read main and write to a new branch.",
)
@click.option("--read-only", is_flag=True, help="Offer no tool that writes.")
@click.pass_obj
def mcp(context: Context, uri: str | None, branch: str | None, read_only: bool) -> None:
    """Serve the graph to an agent over the Model Context Protocol on standard input and output.

    The graph is embedded, or one behind a server (--server, or OMNIGRAPH_BASE_URL with OMNIGRAPH_GRAPH_ID and
    OMNIGRAPH_TOKEN).
    """
    from omnigraph.config.selection import EmbeddedTarget
    from omnigraph.extras import SERVER, is_installed
    from omnigraph.settings import read_settings

    if not all(map(is_installed, SERVER.libraries)):
        raise SERVER.missing("omnigraph mcp")
    settings = read_settings()
    target = select_graph(uri or settings.base_url, context)
    choices = _Choices(branch or settings.default_branch, read_only)
    if isinstance(target, EmbeddedTarget):
        with open_graph(target.uri, context, read_only=read_only, reads_obey=True) as graph:
            asyncio.run(_serve_embedded(graph, context, choices))
    else:
        asyncio.run(_serve_remote(target, context, choices, settings))


class _Choices(NamedTuple):
    """What the options choose."""

    default_branch: str | None
    is_read_only: bool


async def _serve_embedded(graph: Graph, context: Context, choices: _Choices) -> None:
    from omnigraph.mcp.protocol import serve_standard_streams
    from omnigraph.server.mcp_endpoint import embedded_session

    session = embedded_session(
        graph,
        context.actor,
        context.write_policy(),
        default_branch=choices.default_branch,
        is_read_only=choices.is_read_only,
    )
    await serve_standard_streams(session)


async def _serve_remote(
    target: RemoteTarget, context: Context, choices: _Choices, settings: Settings
) -> None:
    from omnigraph.client.transport import Transport
    from omnigraph.mcp.backend import ServerBackend
    from omnigraph.mcp.protocol import serve_standard_streams
    from omnigraph.mcp.session import AgentSession

    found = context.token_for(target)
    token = settings.token if found is None else found.secret
    graph = target.graph or settings.graph_id
    backend = ServerBackend(
        Transport(target.base_url, token, graph=graph or "default", contract="0.13"),
        Transport(target.base_url, token, graph=graph),
    )
    session = AgentSession(
        backend,
        actor=context.actor,
        default_branch=choices.default_branch,
        is_read_only=choices.is_read_only,
    )
    await serve_standard_streams(session)
