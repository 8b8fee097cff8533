"""How commands are declared, found and listed.

`Root` and `Family` find a command through the table and load its module on demand; `PlaneCommand`
is the class of every command: it accepts the global options and enforces the rules of its plane. A
command's function returns nothing, or an exit code. Tests: tests/unit/cli/test_framework.py.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from typing import Any

import click

from omnigraph.cli.command_table import (
    ALIASES,
    COMMANDS,
    FAMILIES,
    LEGEND,
    TAKE_SERVERS,
    CommandEntry,
    Plane,
    families_by_task,
    label,
    rewrite,
)
from omnigraph.cli.context import (
    BranchOption,
    Context,
    GlobalOptions,
    global_options,
    merge_uri_option,
)
from omnigraph.cli.exits import warn


class PlaneCommand(click.Command):
    """A command of one plane. Its context object is the `Context` of the invocation."""

    def __init__(
        self,
        *args: Any,
        plane: Plane,
        label: str,
        entry_name: str = "",
        is_paged: bool = False,
        is_interactive: bool = False,
        takes_server: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.entry_name = entry_name
        self.is_paged = is_paged
        self.is_interactive = is_interactive
        self.plane = plane
        self.label = label
        self.takes_server = takes_server
        # `log --graph` means the drawing: a command's own option wins over the global one.
        own = {flag for param in self.params for flag in param.opts}
        self.params += (p for p in global_options(hidden=True) if own.isdisjoint(p.opts))

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            flags = {flag for param in self.get_params(ctx) for flag in param.opts}
            raise _unknown_option(ctx, error.option_name, flags) from None

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        from omnigraph.cli.examples import examples_of

        if lines := examples_of(self.entry_name):
            with formatter.section("Examples"):
                for line in lines:
                    formatter.write(f"{' ' * formatter.current_indent}{line}\n")

    def invoke(self, ctx: click.Context) -> Any:
        ctx.obj = context = Context(
            GlobalOptions.of(ctx), self.plane, self.label, takes_server=self.takes_server
        )
        merge_uri_option(ctx)
        for param in self.params:
            if isinstance(param, BranchOption) and ctx.params[param.name or ""] is None:
                ctx.params[param.name or ""] = context.default_branch
        # A stream that was closed when the process started is None.
        if not any(stream is not None and stream.isatty() for stream in (sys.stdout, sys.stderr)):
            return super().invoke(ctx)
        from omnigraph.cli.terminal import on_terminal

        is_paged = self.is_paged and not ctx.params.get("follow")
        text = None if self.is_interactive or context.options.quiet else self.label
        with on_terminal(waiting=text, paged=is_paged):
            return super().invoke(ctx)


def declare(name: str) -> Callable[[Callable[..., int | None]], PlaneCommand]:
    """Turn a function into the command of that name; plane and summary come from the table."""
    entry = COMMANDS[name]
    return click.command(
        entry.word,
        cls=PlaneCommand,
        plane=entry.plane,
        label=label(name),
        takes_server=name in TAKE_SERVERS,
        entry_name=name,
        is_paged=entry.is_paged,
        is_interactive=entry.is_interactive,
        short_help=entry.help,
        hidden=entry.hidden,
    )


def load_command(entry: CommandEntry) -> PlaneCommand:
    """Import the module of a command and take the command from it."""
    module = import_module(f"omnigraph.cli.commands.{entry.module}")
    command: PlaneCommand = getattr(module, entry.function)
    return command


class _SuggestingGroup(click.Group):
    """A group that names the closest option when it is given one that it does not have."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            flags = {flag for param in self.get_params(ctx) for flag in param.opts}
            raise _unknown_option(ctx, error.option_name, flags) from None


class Family(_SuggestingGroup):
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


class Root(_SuggestingGroup):
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
        if args[0] == "help" and not ctx.resilient_parsing:
            # As with Git: `help branch create` is `branch create --help`.
            if len(args) == 1:
                click.echo(ctx.get_help())
                ctx.exit()
            args = [*args[1:], "--help"]
        args, warning = rewrite(args)
        if warning and not ctx.resilient_parsing:
            warn(warning)
        known = {entry.family for entry in COMMANDS.values()}
        members = [e.name for e in _visible() if e.name == f"{e.family} {args[0]}"]
        _refuse_unknown(ctx, args[0], known, self.list_commands(ctx), members)
        if member := self._with_members(args):
            return f"{args[0]} {args[1]}", member, args[2:]
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        families: dict[str, str] = {}
        planes: dict[Plane, list[str]] = {plane: [] for plane in Plane}
        for entry in _visible():
            families.setdefault(entry.family, FAMILIES.get(entry.family, entry.help))
            if entry.family not in planes[entry.plane]:
                planes[entry.plane].append(entry.family)
        for task, rows in families_by_task(families).items():
            with formatter.section(task):
                formatter.write_dl(rows)
        with formatter.section("COMMANDS BY PLANE"):
            legend = [(p.value, f"{LEGEND[p]}: {', '.join(names)}") for p, names in planes.items()]
            formatter.write_dl(legend)
        formatter.write_paragraph()
        formatter.write_text(
            "`omnigraph help COMMAND` shows the options of a command and examples."
        )


def _visible() -> Iterable[CommandEntry]:
    return (entry for entry in COMMANDS.values() if not entry.hidden)


def _unknown_option(ctx: click.Context, name: str, flags: Iterable[str]) -> click.UsageError:
    """The error for an option that a command does not have, with the closest one that it has."""
    from omnigraph.diagnostics import did_you_mean

    long = [flag for flag in flags if flag.startswith("--")]
    written = name if name.startswith("--") else f"-{name}"
    hint = did_you_mean(written, long)
    if hint is None and len(matching := [flag for flag in long if flag.startswith(written)]) == 1:
        hint = f"did you mean `{matching[0]}`?"
    return click.UsageError(
        f"No such option '{name}'.{f' {hint.capitalize()}' if hint else ''}", ctx
    )


def _refuse_unknown(
    ctx: click.Context,
    word: str,
    known: Iterable[str],
    suggested: Iterable[str],
    members: Sequence[str] = (),
) -> None:
    """Fail with the closest name, unless a shell is only asking what could be completed.

    `members` are the commands of families that have the word as their second one.
    """
    if word in known or ctx.resilient_parsing:
        return
    from omnigraph.diagnostics import did_you_mean

    if members:
        hint: str | None = f"did you mean {' or '.join(f'`{name}`' for name in members)}?"
    else:
        hint = did_you_mean(word, suggested)
    ctx.fail(f"No such command '{word}'." + (f" {hint.capitalize()}" if hint else ""))
