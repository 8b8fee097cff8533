"""Exit codes, error output, the hints that name commands, and colour.

0 success, 1 failure, 2 wrong use of the command line, 4 a condition was lost, 5 waiting has ended and the work goes on, 75 the server takes no more
writes now, 130 after an interrupt (`cli/entry.py` has the other signals). Product errors never show a stack trace. An internal error shows one only when
`OMNIGRAPH_DEBUG` is set. Error messages are the same for every caller; only the hints name commands.
Text is coloured only when its stream is a terminal that can show it and `NO_COLOR` is not set."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from shlex import quote
from typing import TYPE_CHECKING, Any, Final, Literal, NoReturn, TextIO

import click

if TYPE_CHECKING:
    from omnigraph.errors import HeadMoved, OmnigraphError

SUCCESS: Final = 0
FAILURE: Final = 1
CONDITION_LOST: Final = 4
NOT_DONE_YET: Final = 5
TRY_LATER: Final = 75
INTERRUPTED: Final = 130


class CommandFailed(Exception):
    """A failure with an exit code of its own, and the document that `--json` prints for it."""

    def __init__(self, error: Exception, code: int, document: Mapping[str, Any] | None) -> None:
        super().__init__(str(error))
        self.error = error
        self.code = code
        self.document = document


def wants_json() -> bool:
    """Whether the command that runs was told to print JSON."""
    given = click.get_current_context().params
    return bool(given.get("as_json")) or given.get("format") == "json"


def condition_lost(error: HeadMoved) -> NoReturn:
    """Fail because the branch is not at the commit of `--if-commit`."""
    failure = {"expected": error.expected, "actual": error.actual}
    document = {"error": error.message, "precondition_failure": failure}
    raise CommandFailed(error, CONDITION_LOST, document if wants_json() else None) from error


def _wants_traces() -> bool:
    from omnigraph.settings import read_text

    return read_text("OMNIGRAPH_DEBUG") is not None


def report_document(document: Mapping[str, Any]) -> None:
    """Print an error document as one line on standard error."""
    import json

    print(json.dumps(document, ensure_ascii=False), file=sys.stderr)


def _error_document(error: OmnigraphError) -> dict[str, Any]:
    from omnigraph.errors import LanguageError

    document: dict[str, Any] = {"error": error.message, "error_code": error.code}
    if isinstance(error, LanguageError):
        document["diagnostics"] = [one.to_json() for one in error.diagnostics]
    if hint := hint_for(error):
        document["hint"] = hint
    return document


def report(error: Exception, *, as_json: bool = False) -> int:
    """Print a failure to standard error and give the exit code for it."""
    if isinstance(error, CommandFailed):
        if error.document is not None:
            from omnigraph.cli.output.answers import write_document

            write_document(error.document, sys.stdout)
        report(error.error, as_json=as_json)
        return error.code
    from omnigraph.errors import LanguageError, OmnigraphError

    if as_json and isinstance(error, OmnigraphError):
        report_document(_error_document(error))
        return FAILURE
    if isinstance(error, LanguageError):
        # File positions come first, as editors expect.
        message = str(error)
    elif isinstance(error, OmnigraphError):
        hint = hint_for(error)
        message = f"error[{error.code}]: {error}" + (f"\n   hint: {hint}" if hint else "")
    elif isinstance(error, OSError):
        message = f"io: {error.strerror or error}"
    elif _wants_traces():
        sys.excepthook(type(error), error, error.__traceback__)
        return FAILURE
    else:
        what = f"{type(error).__name__}: {error}".splitlines()[0]
        message = f"internal error: {what}\nset OMNIGRAPH_DEBUG=1 to see the stack trace"
    if as_json:
        report_document({"error": message})
        return FAILURE
    headline, newline, rest = message.partition("\n")
    print(f"{Style.of(sys.stderr).error(headline)}{newline}{rest}", file=sys.stderr)
    return FAILURE


def hint_for(error: OmnigraphError) -> str | None:
    """The command to run next, if one always applies."""
    # Imported here because help waits for no exception.
    from omnigraph import errors

    match error:
        case errors.GraphNotFound(uri=uri):
            return f"`omnigraph init --schema FILE {quote(uri)}` creates one"
        case errors.AlreadyInitialized(is_complete=False):
            return "`omnigraph init --force` replaces what an unfinished init left"
        case errors.AlreadyInitialized():
            return "--force replaces what an unfinished init left, never a graph"
        case errors.CommitStateUnknown(takes_key=False):
            return "repeat the command; it completes or undoes the commit first"
        case errors.CommitStateUnknown(is_load=True, idempotency_key=key):
            return f"repeat the command with --load-id {quote(key)}"
        case errors.CommitStateUnknown(idempotency_key=key):
            return f"if the command has --idempotency-key, repeat it with {quote(key)} there"
        case errors.Unauthenticated():
            return (
                "`omnigraph login NAME` stores a token for a server of the operator config; "
                "OMNIGRAPH_BEARER_TOKEN is used for any server"
            )
        case errors.DanglingEdges():
            return "--cascade deletes the edges"
        case errors.UnknownParameter():
            return "--params and --params-file take a JSON object, one key per declared parameter"
        case errors.MissingExtra(missing="the extra 'spark'", feature="engine 'spark'"):
            return "--engine inline works without it"
        case errors.TableDrift() | errors.RecoveryQuarantined() | errors.RecoveryPending():
            return "`omnigraph repair` shows what it would do"
        case errors.RepairRefused():
            return (
                "`omnigraph repair --confirm --force` accepts what is there, "
                "`omnigraph repair --confirm --force --rollback` discards it"
            )
    return None


class Style:
    """The few roles that have a colour."""

    def __init__(self, enabled: bool) -> None:
        self.enabled = enabled

    @classmethod
    def of(cls, stream: TextIO) -> Style:
        """The style that fits a stream and the environment."""
        # `omnigraph version` loads as little as it can, and is not styled.
        if not stream.isatty():
            return cls(False)
        from omnigraph.settings import read_text

        wanted = not read_text("NO_COLOR") and read_text("TERM") != "dumb"
        return cls(wanted)

    def error(self, text: str) -> str:
        return click.style(text, fg="red") if self.enabled else text

    def warning(self, text: str) -> str:
        return click.style(text, fg="yellow") if self.enabled else text

    def ok(self, text: str) -> str:
        return click.style(text, fg="green") if self.enabled else text

    def header(self, text: str) -> str:
        return click.style(text, bold=True) if self.enabled else text


WAITING: Final = "omnigraph.waiting"
"""Where the context of a command keeps its line about a long wait; `omnigraph.cli.terminal` has it."""


def end_waiting() -> None:
    """Remove the line about waiting, if there is one: something else is written now."""
    context = click.get_current_context(silent=True)
    if context is not None and (waiting := context.meta.get(WAITING)) is not None:
        waiting.end()


def warn(message: str) -> None:
    """Print a warning to standard error."""
    end_waiting()
    print(f"{Style.of(sys.stderr).warning('warning:')} {message}", file=sys.stderr)


def echo_write(target: str, how: Literal["direct", "served"], *, quiet: bool) -> None:
    """Name the command and the target of a write that leaves this machine, on standard error."""
    if not quiet:
        end_waiting()
        print(f"{click.get_current_context().command_path} → {target} ({how})", file=sys.stderr)
