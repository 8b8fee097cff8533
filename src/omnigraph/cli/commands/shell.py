"""`omnigraph shell`: a prompt on a graph that stays open."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from omnigraph.cli.context import Context
from omnigraph.cli.exits import FAILURE, SUCCESS, Style
from omnigraph.cli.framework import declare
from omnigraph.cli.opening import open_any
from omnigraph.cli.options import branch_option, uri_argument
from omnigraph.cli.output.results import FORMATS, Format

HISTORY_FILE = "shell_history"


@declare("shell")
@uri_argument
@branch_option
@click.option("--read-only", is_flag=True, help="Refuse mutations.")
@click.option(
    "--format",
    "format",
    type=click.Choice(FORMATS),
    help="Output format.  [default: that of the configuration, or table]",
)
@click.option("--json", "as_json", is_flag=True, help="Same as --format json, without timing.")
@click.pass_obj
def shell(
    context: Context,
    uri: str | None,
    branch: str,
    read_only: bool,
    format: Format | None,
    as_json: bool,
) -> int:
    """Ask the graph at URI, or behind a server, for queries one after another.

    The graph stays open, so answers come in milliseconds. An input is a query, the body of one, or a
    command such as .help; it may have several lines. Tab completes words, types, properties and
    branches. Input from a pipe is run too, and the exit code is 1 if one of its queries fails.
    """
    if as_json and format is not None:
        raise click.UsageError("--format and --json are exclusive; use one of them.")
    # Imported here because help should not wait for the compiler.
    from omnigraph.cli.shell.session import ShellSession, run_stream

    graph, name = open_any(uri, context, read_only=read_only, is_chosen=read_only)
    is_tty = sys.stdin.isatty() and sys.stdout.isatty()
    session = ShellSession(
        graph if branch == graph.branch else graph.checkout(branch),
        sys.stdout,
        layout=context.table_layout,
        format="json" if as_json else format or context.default_format or "table",
        timing=is_tty,
    )
    try:
        if not is_tty:
            return SUCCESS if run_stream(session, iter(sys.stdin)) else FAILURE
        from omnigraph.cli.shell.prompt import run_prompt

        run_prompt(session, name, _history(), coloured=Style.of(sys.stdout).enabled)
    finally:
        graph.close()
    return SUCCESS


def _history() -> Path | None:
    """The file of earlier inputs, readable by its owner alone; None if it cannot be kept."""
    from omnigraph.settings import read_settings

    folder = Path(read_settings().home).expanduser()
    path = folder / HISTORY_FILE
    try:
        folder.mkdir(parents=True, exist_ok=True)
        os.close(os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600))
    except OSError:
        return None
    return path
