"""`omnigraph errors` and `spark warm`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from textwrap import indent
from typing import TYPE_CHECKING

import click
import msgspec

from omnigraph.cli.exits import Style
from omnigraph.cli.framework import declare
from omnigraph.cli.options import json_option
from omnigraph.cli.output.answers import write_answer, write_document
from omnigraph.cli.output.results import TableLayout, write_grid
from omnigraph.cli.progress import progress
from omnigraph.diagnostics import did_you_mean
from omnigraph.error_codes import REGISTRY, ErrorCode
from omnigraph.errors import NotFoundError

if TYPE_CHECKING:
    from omnigraph.spark.start_cache import StartCache


@declare("errors")
@click.argument("code", required=False)
@json_option
def errors(code: str | None, as_json: bool) -> None:
    """Explain the error CODE, or list all codes."""
    if code is None:
        entries = sorted(REGISTRY.values(), key=lambda entry: entry.natural_key)
    else:
        entries = [_find(code)]
    if as_json:
        write_document({"errors": msgspec.to_builtins(entries)}, sys.stdout)
    elif code is None:
        rows = [(entry.code, entry.kind, entry.title) for entry in entries]
        style = Style.of(sys.stdout)
        write_grid(("code", "kind", "title"), rows, sys.stdout, TableLayout(), style)
    else:
        sys.stdout.write(_full_text(entries[0], Style.of(sys.stdout)))


def _find(code: str) -> ErrorCode:
    entry = REGISTRY.get(code.upper())
    if entry is None:
        hint = did_you_mean(code.upper(), REGISTRY)
        advice = hint or "`omnigraph errors` lists all codes"
        raise NotFoundError(f"no error has the code '{code}'; {advice}")
    return entry


def _full_text(entry: ErrorCode, style: Style) -> str:
    text = f"{style.header(f'{entry.code}: {entry.title}')}\nkind: {entry.kind}\n\n"
    text += entry.explanation + "\n"
    if entry.example:
        text += "\nexample:\n" + indent(entry.example, "    ") + "\n"
    return text


@declare("spark warm")
@json_option
def spark_warm(as_json: bool) -> None:
    """Prepare a cache that makes Spark start faster on this machine.

    Runs Spark once, which takes about a minute, and writes a file of about 180 MB to the cache directory of
    the user, or to the directory that OMNIGRAPH_SPARK_CACHE names. Does nothing if the file exists.
    """
    from omnigraph.spark.start_cache import warm

    with progress("making a start cache", as_json=as_json) as shown:
        made = warm(shown)
    write_answer(made.to_json(), _lines(made), as_json=as_json)


def _lines(made: StartCache) -> Iterator[str]:
    size = f"{made.bytes / 1e6:.0f} MB"
    if not made.created:
        yield f"{made.file} is there already ({size}); delete it to make a new one"
        return
    yield f"wrote {made.file} ({size})"
    yield f"a session starts in {made.seconds_with:.1f} s, without the file in {made.seconds_without:.1f} s"


SHELLS = ("bash", "zsh", "fish")


@declare("completion")
@click.argument("shell", type=click.Choice(SHELLS))
@json_option
@click.pass_context
def completion(ctx: click.Context, shell: str, as_json: bool) -> None:
    """Print the script that completes commands and options in SHELL.

    Write it where the shell looks for such scripts, or load it for one session with
    `source <(omnigraph completion bash)`.
    """
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None, "click knows these shells"
    script = kind(ctx.find_root().command, {}, "omnigraph", "_OMNIGRAPH_COMPLETE").source()
    write_answer({"shell": shell, "script": script}, [script.rstrip("\n")], as_json=as_json)
