"""The options every command accepts, wherever on the command line they stand.

`omnigraph --as ada lint …` and `omnigraph lint … --as ada` mean the same; when an option is given
twice, the one after the command wins.
"""

from __future__ import annotations

from typing import NamedTuple

import click

_META = "omnigraph."


class Context(NamedTuple):
    """Who acts and which server is addressed: what one invocation was told by global options."""

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
