"""Options that every command accepts, anywhere on the command line, and the graph they select.

`omnigraph --as ada lint …` and `omnigraph lint … --as ada` mean the same; if an option is given twice, the
one after the command wins. The storage engine is imported only when a graph is opened: help, completion
and usage errors do not wait for it. Tests: tests/unit/cli/test_address.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import click

from omnigraph.cli.command_table import is_remote
from omnigraph.errors import UsageError

if TYPE_CHECKING:
    from omnigraph.api.graph import Graph


_META = "omnigraph."


class Context(NamedTuple):
    """Values of the global options: actor, server and graph."""

    actor: str | None
    server: str | None
    graph: str | None

    @classmethod
    def of(cls, ctx: click.Context) -> Context:
        """Collect the values from the root and the command; `--graph` alone is a usage error."""
        context = cls(*(ctx.meta.get(_META + name) for name in cls._fields))
        if context.graph is not None and context.server is None:
            raise click.UsageError("--graph names a graph on a server and requires --server.", ctx)
        return context


def global_options(*, hidden: bool) -> list[click.Parameter]:
    """The global options; the root shows them in its help, the commands only accept them."""
    return [
        click.Option(
            [flag, name],
            metavar=metavar,
            help=text,
            hidden=hidden,
            expose_value=False,
            callback=_remember,
        )
        for flag, name, metavar, text in (
            ("--as", "actor", "ACTOR", "Actor recorded for writes that go straight to storage."),
            ("--server", "server", "NAME", "Server to address, by its configured name."),
            ("--graph", "graph", "GRAPH_ID", "Graph on that server; requires --server."),
        )
    ]


def _remember(ctx: click.Context, param: click.Parameter, value: str | None) -> None:
    # click shares `meta` between a command and its parents, and parses the root first.
    if value is not None:
        ctx.meta[f"{_META}{param.name}"] = value


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
