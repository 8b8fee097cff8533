"""The entry point `omnigraph`: runs one command and turns its outcome into an exit code."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence

import click

from omnigraph._version import __version__
from omnigraph.cli.context import global_options
from omnigraph.cli.exits import FAILURE, INTERRUPTED, SUCCESS, report, report_document
from omnigraph.cli.framework import Root
from omnigraph.interrupts import ending


def _show_version(ctx: click.Context, _param: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        click.echo(f"omnigraph {__version__}")
        ctx.exit()


root = Root(
    "omnigraph",
    help="A typed property graph with branches and history.",
    context_settings={"help_option_names": ["-h", "--help"]},
    params=[
        *global_options(hidden=False),
        click.Option(
            ["-v", "--version"],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=_show_version,
            help="Print the version and exit.",
        ),
    ],
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; the result is the exit code of the process."""
    _prepare_stdout()
    as_json = "--json" in (sys.argv[1:] if argv is None else argv)
    code = _run(argv, as_json)
    _warn_of_settings()
    return _flush(code)


def _run(argv: Sequence[str] | None, as_json: bool) -> int:
    try:
        code = root.main(argv, prog_name="omnigraph", standalone_mode=False)
    except click.ClickException as error:
        if as_json:
            report_document({"error": error.format_message()})
            return error.exit_code
        from omnigraph.diagnostics import cut_values

        shown = io.StringIO()
        error.show(shown)
        click.echo(cut_values(shown.getvalue()), nl=False, err=True)
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except Exception as error:
        # Libraries turn an interrupt into errors of their own.
        return INTERRUPTED if ending.is_set() else report(error, as_json=as_json)
    return code if isinstance(code, int) else SUCCESS


def _warn_of_settings() -> None:
    """Name environment variables that are not known, if the command has read any."""
    if settings := sys.modules.get("omnigraph.settings"):
        from omnigraph.cli.exits import warn

        for message in settings.unknown_variables():
            warn(message)


def _prepare_stdout() -> None:
    """Make standard output take any text, in any locale and even when it is closed."""
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115  lives as long as we do
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")


def _flush(code: int) -> int:
    """Flush standard output; a closed pipe is not an error."""
    if ending.is_set():
        return code
    try:
        sys.stdout.flush()
    except OSError as error:
        # The interpreter flushes once more on its way out; that attempt must not fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        # A failed command has already printed its error.
        if isinstance(error, BrokenPipeError) or code != SUCCESS:
            return code or FAILURE
        return report(error)
    return code
