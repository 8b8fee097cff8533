"""Which graph a command is about, and opening it.

The storage engine is imported here and only when a graph is opened: help, completion and usage
errors must not wait for it. Tests: tests/unit/cli/test_address.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph.cli.context import Context
from omnigraph.cli.planes import is_remote
from omnigraph.errors import UsageError

if TYPE_CHECKING:
    from omnigraph.api.graph import Graph


def graph_uri(uri: str | None, context: Context) -> str:
    """The address a data-plane command was given, if it is one this version can reach."""
    if context.server is not None:
        if uri is not None:
            raise UsageError(f"--server and the graph address {uri} are exclusive; use one of them")
        raise UsageError(
            f"unknown server '{context.server}'; servers are not supported yet, "
            "so none can be defined"
        )
    if uri is None:
        raise UsageError("URI must be provided via <URI>, --target, or config")
    if is_remote(uri):
        raise UsageError(
            f"{uri} is a remote graph, and remote graphs are not supported yet; "
            "use a path or an s3:// address"
        )
    return uri


def open_graph(uri: str, context: Context | None = None, *, read_only: bool = False) -> Graph:
    """Open a graph on its main branch, in the name of the actor that the context has."""
    from omnigraph.api.graph import open

    return open(uri, read_only=read_only, actor=None if context is None else context.actor)
