"""The reference page of the command line, made from the commands themselves.

`python -m omnigraph.cli.reference > docs/user/cli.md` writes it. Only people and tests run this;
the command line never imports it. Tests: tests/docs/test_cli_reference.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from inspect import cleandoc

import click

from omnigraph.cli.command_table import COMMANDS, FAMILIES, LEGEND, SPELLINGS, CommandEntry, Plane
from omnigraph.cli.examples import examples_of
from omnigraph.cli.framework import Family, load_command
from omnigraph.cli.main import root

_INTRODUCTION = """\
# Command line

<!-- Made by `python -m omnigraph.cli.reference`; changes by hand are lost. -->

Results go to standard output; warnings and errors go to standard error. An error starts with
`error[CODE]:`, which `omnigraph errors CODE` explains, unless it is about a place in a file. With `--json` a
command prints one JSON document, and an error is one line of JSON on standard error, with `error`,
`error_code`, and where they apply `hint` and `diagnostics`. If a server has refused the command, its error
document is on standard output too; for a write, `command_outcome` in it says whether something may have
changed and what to do.

## The graph of a command

A command finds its graph in the first of these: the argument URI or `--uri`, `--store`, `--target`, or
`--server` with `--graph`; `--profile`; `OMNIGRAPH_URI`; `OMNIGRAPH_PROFILE`; `cli.graph` of the project file;
the defaults of the operator config; the graph that the current folder is, or the only one in it.
`omnigraph profile show` says which one it is, and why.

## Exit codes

| Exit code | Meaning |
|---|---|
| 0 | success |
| 1 | the command failed, was refused, or found what it looks for: an error, a file to format |
| 2 | wrong use of the command line |
| 4 | the branch is not at the commit of `--if-commit`; nothing was changed |
| 75 | the server takes no more writes of this actor now; try again later |
| 130 | interrupted by Ctrl-C |
| 129, 143 | ended by a hang-up of the terminal, by a request to terminate |

After such a signal a command prints one line, `interrupted`, `hung up` or `terminated`. A write whose
commit has begun is finished first; otherwise nothing of it is visible. A command that takes long to
leave ends at once when a signal is repeated after two seconds.

Errors show the first 200 characters of a value and how many it has. JSON that is given to a command, as
parameters, decisions of a merge or a specification, is refused with line and column when it is broken, and
when an object has a key twice.

On a terminal, output is coloured unless `NO_COLOR` is set, and goes through `PAGER` (by default `less`) when it
is longer than the screen; `PAGER=cat` turns that off. A command that takes more than a second says so.
`--quiet` shows no progress. In a pipe there is plain text and none of this. A defect of the program itself is
reported as `internal error`; `OMNIGRAPH_DEBUG=1` adds the stack trace.

## Completion

Commands, options and choices are completed with Tab:

```sh
omnigraph completion bash > ~/.local/share/bash-completion/completions/omnigraph
mkdir -p ~/.zfunc && omnigraph completion zsh > ~/.zfunc/_omnigraph   # with fpath+=~/.zfunc before compinit
```
"""


def reference() -> str:
    """The whole page."""
    ctx = click.Context(root, info_name="omnigraph", terminal_width=100, **root.context_settings)
    sections = [
        _INTRODUCTION,
        "## Global options\n\nAccepted before or after the name of the command; the value given "
        "after it wins.\n\n" + _options(root, ctx),
        "## Planes\n\nA plane says how a command reaches a graph.\n\n" + _planes(),
        *(_command(entry, ctx) for entry in COMMANDS.values() if not entry.hidden),
        "## Old spellings\n\nThey still work and print a warning.\n\n" + _spellings(),
    ]
    return "\n".join(sections)


def _command(entry: CommandEntry, ctx: click.Context) -> str:
    word = entry.name
    if entry.family in FAMILIES:
        ctx = click.Context(Family(entry.family), parent=ctx, info_name=entry.family)
        word = entry.word
    command = load_command(entry)
    sub_ctx = click.Context(command, parent=ctx, info_name=word)
    usage = command.get_usage(sub_ctx).removeprefix("Usage: ")
    text = f"## `{entry.name}`\n\n```\n{usage}\n```\n\n{cleandoc(command.help or '')}\n"
    options = _options(command, sub_ctx)
    examples = "".join(f"{line}\n" for line in examples_of(entry.name))
    parts = [text, options, f"```sh\n{examples}```\n" if examples else ""]
    return "\n".join(part for part in parts if part)


def _options(command: click.Command, ctx: click.Context) -> str:
    """The options that are not the same everywhere; the help option stands with the root's."""
    params = command.get_params(ctx) if command is root else command.params
    options = (param for param in params if isinstance(param, click.Option))
    records = filter(None, (option.get_help_record(ctx) for option in options))
    rows = [(f"`{names}`", meaning) for names, meaning in records]
    return _table(("Option", "Meaning"), rows) if rows else ""


def _planes() -> str:
    return _table(("Plane", "What it does", "Commands"), _plane_rows())


def _plane_rows() -> Iterator[tuple[str, str, str]]:
    for plane in Plane:
        entries = (e for e in COMMANDS.values() if e.plane is plane and not e.hidden)
        names = [f"`{entry.name}`" for entry in entries]
        if names:
            yield plane.value, LEGEND[plane], ", ".join(names)


def _spellings() -> str:
    rows = [(f"`{' '.join(old)}`", f"`{new}`") for old, new in SPELLINGS.items()]
    rows.append(("`ingest`", "`load`, with --mode merge and --from main where they are not given"))
    return _table(("Old", "Use"), rows)


def _table(header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [header, ("---",) * len(header), *rows]
    return "".join(
        "| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines
    )


if __name__ == "__main__":
    click.echo(reference(), nl=False)
