"""How commands are declared, found and listed.

`Root` finds a command through the table and loads its module on demand; `PlaneCommand` is the
class of every command: it accepts the global options and enforces the rules of its plane. A
command's function returns nothing, or an exit code. Tests: tests/unit/cli/test_framework.py.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import click

from omnigraph.cli.command_table import COMMANDS
from omnigraph.cli.context import Context, global_options
from omnigraph.cli.deprecated import rewrite
from omnigraph.cli.planes import LEGEND, Plane, refuse_server
from omnigraph.cli.style import warn
from omnigraph.diagnostics import did_you_mean


class PlaneCommand(click.Command):
    """A command of one plane. Its context object is the `Context` of the invocation."""

    def __init__(self, *args: Any, plane: Plane, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.plane = plane
        self.params.extend(global_options(hidden=True))

    def invoke(self, ctx: click.Context) -> Any:
        ctx.obj = context = Context.of(ctx)
        if context.server is not None:
            refuse_server(str(self.name), self.plane)
        return super().invoke(ctx)


def declare(name: str) -> Callable[[Callable[..., int | None]], PlaneCommand]:
    """Turn a function into the command of that name; plane and summary come from the table."""
    entry = COMMANDS[name]
    return click.command(name, cls=PlaneCommand, plane=entry.plane, short_help=entry.help)


class Root(click.Group):
    """The `omnigraph` command itself: knows all names, imports none until it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return None
        command: PlaneCommand = import_module(f"omnigraph.cli.commands.{entry.module}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        args, warning = rewrite(args)
        if warning and not ctx.resilient_parsing:
            warn(warning)
        if args[0] not in COMMANDS and not ctx.resilient_parsing:
            hint = did_you_mean(args[0], COMMANDS)
            ctx.fail(f"No such command '{args[0]}'." + (f" {hint.capitalize()}" if hint else ""))
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        legend = []
        for plane in Plane:
            rows = [(entry.name, entry.help) for entry in COMMANDS.values() if entry.plane is plane]
            if rows:
                legend.append((plane.value, LEGEND[plane]))
                with formatter.section(f"{plane.value.capitalize()} plane"):
                    formatter.write_dl(rows)
        with formatter.section("COMMANDS BY PLANE"):
            formatter.write_dl(legend)
