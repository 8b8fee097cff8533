"""How commands are declared, found and listed.

`Root` and `Family` find a command through the table and load its module on demand; `PlaneCommand`
is the class of every command: it accepts the global options and enforces the rules of its plane. A
command's function returns nothing, or an exit code. Tests: tests/unit/cli/test_framework.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any

import click

from omnigraph.cli.command_table import (
    ALIASES,
    COMMANDS,
    FAMILIES,
    LEGEND,
    CommandEntry,
    Plane,
    label,
    rewrite,
)
from omnigraph.cli.context import BranchOption, Context, GlobalOptions, global_options
from omnigraph.cli.exits import warn
from omnigraph.diagnostics import did_you_mean


class PlaneCommand(click.Command):
    """A command of one plane. Its context object is the `Context` of the invocation."""

    def __init__(self, *args: Any, plane: Plane, label: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.plane = plane
        self.label = label
        # `log --graph` means the drawing: a command's own option wins over the global one.
        own = {flag for param in self.params for flag in param.opts}
        self.params += (p for p in global_options(hidden=True) if own.isdisjoint(p.opts))

    def invoke(self, ctx: click.Context) -> Any:
        ctx.obj = context = Context(GlobalOptions.of(ctx), self.plane, self.label)
        for param in self.params:
            if isinstance(param, BranchOption) and ctx.params[param.name or ""] is None:
                ctx.params[param.name or ""] = context.default_branch
        return super().invoke(ctx)


def declare(name: str) -> Callable[[Callable[..., int | None]], PlaneCommand]:
    """Turn a function into the command of that name; plane and summary come from the table."""
    entry = COMMANDS[name]
    return click.command(
        entry.word,
        cls=PlaneCommand,
        plane=entry.plane,
        label=label(name),
        short_help=entry.help,
        hidden=entry.hidden,
    )


def load_command(entry: CommandEntry) -> PlaneCommand:
    """Import the module of a command and take the command from it."""
    module = import_module(f"omnigraph.cli.commands.{entry.module}")
    command: PlaneCommand = getattr(module, entry.function)
    return command


class Family(click.Group):
    """Commands that share their first word, as in `branch create` and `branch list`."""

    def __init__(self, name: str) -> None:
        super().__init__(name, help=FAMILIES[name], params=global_options(hidden=True))
        self._entries = {e.word: e for e in COMMANDS.values() if e.family == name != e.name}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._entries)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = self._entries.get(cmd_name)
        return None if entry is None else load_command(entry)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        meant = ALIASES.get(f"{self.name} {args[0]}", args[0]).rpartition(" ")[2]
        _refuse_unknown(ctx, meant, self._entries, self._entries)
        args = [meant, *args[1:]]
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(word, entry.help) for word, entry in self._entries.items()])


class Root(click.Group):
    """The `omnigraph` command: knows all names and imports a command when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(dict.fromkeys(entry.family for entry in _visible()))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in FAMILIES:
            return Family(cmd_name)
        entry = COMMANDS.get(cmd_name)
        return None if entry is None else load_command(entry)

    def _with_members(self, args: list[str]) -> click.Command | None:
        """`changes poll`: a command that is the first word of others, if one of those is meant."""
        first, second = (*args, "")[:2]
        member = COMMANDS.get(f"{first} {second}")
        return None if first in FAMILIES or member is None else load_command(member)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        args, warning = rewrite(args)
        if warning and not ctx.resilient_parsing:
            warn(warning)
        known = {entry.family for entry in COMMANDS.values()}
        _refuse_unknown(ctx, args[0], known, self.list_commands(ctx))
        if member := self._with_members(args):
            return f"{args[0]} {args[1]}", member, args[2:]
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        legend = []
        for plane in Plane:
            rows: dict[str, str] = {}
            for entry in _visible():
                if entry.plane is plane:
                    rows.setdefault(entry.family, FAMILIES.get(entry.family, entry.help))
            if rows:
                legend.append((plane.value, LEGEND[plane]))
                with formatter.section(f"{plane.value.capitalize()} plane"):
                    formatter.write_dl(list(rows.items()))
        with formatter.section("COMMANDS BY PLANE"):
            formatter.write_dl(legend)


def _visible() -> Iterable[CommandEntry]:
    return (entry for entry in COMMANDS.values() if not entry.hidden)


def _refuse_unknown(
    ctx: click.Context, word: str, known: Iterable[str], suggested: Iterable[str]
) -> None:
    """Fail with the closest name, unless a shell is only asking what could be completed."""
    if word in known or ctx.resilient_parsing:
        return
    hint = did_you_mean(word, suggested)
    ctx.fail(f"No such command '{word}'." + (f" {hint.capitalize()}" if hint else ""))
