"""Options that select a query and its parameters."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypedDict, TypeVar

import click

from omnigraph.cli.options import uri_option
from omnigraph.errors import InputError, UsageError
from omnigraph.json_text import JsonError, parse_json
from omnigraph.plan.params import JsonParameters

F = TypeVar("F", bound=Callable[..., Any])


class QueryOptions(TypedDict):
    """The options as they were given."""

    uri_argument: str | None
    uri: str | None
    query_path: str | None
    query_text: str | None
    name: str | None
    params: str | None
    params_file: str | None


class ChosenQuery(NamedTuple):
    """The address of the graph, a query source, the name of the query in it, and its parameters."""

    uri: str | None
    source: str | Path
    name: str | None
    params: JsonParameters


_OPTIONS = (
    click.argument("uri_argument", required=False, metavar="[URI]"),
    uri_option,
    click.option("--query", "query_path", metavar="FILE", help="Query file (.gq)."),
    click.option("-e", "--query-string", "query_text", metavar="GQ", help="Query text."),
    click.option("--name", metavar="QUERY", help="Query to run, if there are several."),
    click.option("--params", metavar="JSON", help="Parameters as a JSON object."),
    click.option("--params-file", metavar="FILE", help="File with the parameters."),
)


def query_options(function: F) -> F:
    """Declare the options of `QueryOptions`."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


_STATE_OPTIONS = (
    click.option("--branch", metavar="BRANCH", help="Branch to read.  [default: main]"),
    click.option(
        "--snapshot", metavar="REF", help="Read the state of this commit, tag or other ref."
    ),
)


exact_option = click.option(
    "--exact", is_flag=True, help="Search vectors exactly, without an index."
)


def state_options(function: F) -> F:
    """Declare the options that say which state of a graph to read."""
    for option in reversed(_STATE_OPTIONS):
        function = option(function)
    return function


def refuse_two_states(branch: str | None, snapshot: str | None) -> None:
    """Raise a usage error when both of them are given."""
    if branch is not None and snapshot is not None:
        raise click.UsageError("--branch and --snapshot are exclusive; use one of them.")


def chosen_query(options: QueryOptions) -> ChosenQuery:
    """The selected query. Raises `InputError`, or a usage error when two exclude each other."""
    return ChosenQuery(_uri(options), _source(options), options["name"], _params(options))


def _uri(options: QueryOptions) -> str | None:
    argument, option = options["uri_argument"], options["uri"]
    if argument is not None and option is not None:
        raise click.UsageError("the graph is given twice; use --uri or URI.")
    return option if argument is None else argument


def _source(options: QueryOptions) -> str | Path:
    path, text = options["query_path"], options["query_text"]
    if path is not None and text is not None:
        raise click.UsageError("--query and --query-string are exclusive; use one of them.")
    if text is not None:
        if not text.strip():
            raise UsageError("--query-string must not be empty")
        # With a line break at its end no text is taken for the path of a file.
        return text + "\n"
    if path is None:
        message = "exactly one of --query, --query-string, or --alias must be provided"
        raise UsageError(message)
    if not Path(path).exists():
        raise InputError(f"query file '{path}' not found")
    return Path(path)


def _params(options: QueryOptions) -> JsonParameters:
    text, path = options["params"], options["params_file"]
    if text is not None and path is not None:
        raise click.UsageError("--params and --params-file are exclusive; use one of them.")
    if path is not None:
        try:
            text = Path(path).read_text(encoding="utf-8")
        except OSError as error:
            raise InputError(f"params file '{path}' cannot be read: {error.strerror}") from None
        except UnicodeDecodeError:
            raise InputError(f"params file '{path}' is not UTF-8; save it as UTF-8") from None
    if text is None:
        return JsonParameters()
    try:
        given = parse_json(text)
    except JsonError as error:
        raise InputError(f"params are not JSON: {error}") from None
    if not isinstance(given, dict):
        raise InputError("params JSON must be an object")
    return JsonParameters(given)
