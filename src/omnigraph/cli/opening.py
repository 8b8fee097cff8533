"""Opening the graph that a command selects as a handle, in storage or behind a server.

Most commands speak to a server in documents (`omnigraph.cli.remote`); those that make many calls, such as
the shell, use the client library. Nothing here is imported by a command that does not need it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from omnigraph.cli.context import Context, open_graph, select_graph
from omnigraph.errors import UsageError

if TYPE_CHECKING:
    from omnigraph.api.protocol import GraphProtocol


def open_any(
    uri: str | None,
    context: Context,
    *,
    read_only: bool,
    is_chosen: bool = False,
    alias_graph: str | None = None,
) -> tuple[GraphProtocol, str]:
    """The handle, and how messages name the graph.

    `is_chosen` says that the person asked for a read-only handle, which a server cannot give.
    """
    from omnigraph.config.selection import RemoteTarget

    target = select_graph(uri, context, alias_graph)
    if not isinstance(target, RemoteTarget):
        opened = open_graph(target.uri, context, read_only=read_only)
        return cast("GraphProtocol", opened), target.uri
    if is_chosen:
        raise UsageError("--read-only is for storage; on a server the token decides")
    from omnigraph.client.graph import connect

    token = context.token_for(target)
    secret = None if token is None else token.secret
    return connect(target.base_url, token=secret, graph=target.graph), target.url
