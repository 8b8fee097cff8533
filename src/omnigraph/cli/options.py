"""Options and arguments shared by commands, and those that select a query and its parameters."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict, TypeVar, cast

import click

from omnigraph.cli.context import (
    BranchOption,
    Context,
    address_or_server,
    current_context,
    remember,
    served_graph,
)
from omnigraph.errors import InputError, UsageError
from omnigraph.json_structs import described

if TYPE_CHECKING:
    from omnigraph.cli.remote import ServedGraph
    from omnigraph.config.legacy import QueryFileAlias
    from omnigraph.config.operator import OutputFormat
    from omnigraph.config.selection import RemoteTarget
    from omnigraph.language.types import PropType
    from omnigraph.plan.params import JsonParameters
    from omnigraph.spark.choice import Engine, EngineChoice

F = TypeVar("F", bound=Callable[..., Any])

json_option = click.option("--json", "as_json", is_flag=True, help="Print a JSON document.")

file_json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print a JSON document about the file of --out."
)


def refuse_json_of_data(as_json: bool, out: str | None) -> None:
    """Raise a usage error for `--json` where standard output takes the data itself."""
    if as_json and out is None:
        raise click.UsageError(
            "--json describes the file of --out; without it the data is printed."
        )


project_file_option = click.option(
    "--config",
    "project_file",
    metavar="FILE",
    expose_value=False,
    callback=remember,
    help="Project file.  [default: omnigraph.yaml, if it exists]",
)


def project_options(function: F) -> F:
    """Declare the options of the project file, which commands on a graph have."""
    target = click.option(
        "--target",
        "project_graph",
        metavar="NAME",
        expose_value=False,
        callback=remember,
        help="Graph of the project file, by its name.",
    )
    return target(project_file_option(function))


def uri_argument(function: F) -> F:
    """Declare the graph, for commands that are about the graph as a whole: by place or by name."""
    option = click.option(
        "--uri",
        "uri_option",
        metavar="URI",
        expose_value=False,
        callback=remember,
        help="Graph path or URI, instead of URI.",
    )
    return click.argument("uri", required=False)(option(project_options(function)))


def cluster_options(function: F) -> F:
    """Declare the other way to name a graph that maintenance commands have: by its cluster."""
    cluster = click.option(
        "--cluster",
        metavar="NAME|DIR|URI",
        expose_value=False,
        callback=remember,
        help="Cluster of the graph: its configured name, its directory or its storage root.",
    )
    graph = click.option(
        "--cluster-graph",
        "--graph",
        "cluster_graph",
        metavar="GRAPH_ID",
        expose_value=False,
        callback=remember,
        help="Graph of that cluster.",
    )
    return cluster(graph(function))


def uri_option(function: F) -> F:
    """Declare the graph, for commands whose argument names something in it."""
    option = click.option("--uri", metavar="URI", help="Graph path or URI.")
    return option(project_options(function))


def branch_option_of(
    flag: str, name: str, text: str, *, metavar: str = "BRANCH"
) -> Callable[[F], F]:
    """Declare a branch whose default is that of the project file, or `main`."""
    return click.option(
        flag,
        name,
        cls=BranchOption,
        metavar=metavar,
        help=f"{text}  [default: cli.branch of the project file, or main]",
    )


branch_option = branch_option_of("--branch", "branch", "Branch to work on.")

query_branch_option = click.option(
    "--branch",
    metavar="BRANCH",
    help="Branch to work on.  [default: that of the alias, cli.branch of the project file, or main]",
)

message_option = click.option("-m", "--message", metavar="TEXT", help="Commit message.")


def _engine_option(when: str) -> Callable[[F], F]:
    return click.option(
        "--engine",
        type=click.Choice(["auto", "spark", "inline"]),
        help="Engine to run on. Default: OMNIGRAPH_ENGINE, defaults.engine in the operator config, "
        f"or auto, which uses Spark {when}.",
    )


_master_option = click.option(
    "--master",
    metavar="URL",
    help="Spark master to run on. Default: OMNIGRAPH_SPARK_MASTER, spark.master in the operator config, "
    "or all cores of this machine.",
)


def engine_options(function: F) -> F:
    """Declare `--engine` and `--master`, for commands that can run on Spark."""
    return _engine_option("when it is faster")(_master_option(function))


def asking_engine_options(function: F) -> F:
    """The same for commands that call an embedding provider."""
    return _engine_option("for 8 MB of texts and more")(_master_option(function))


def comparing_engine_options(function: F) -> F:
    """The same for commands that compare rows."""
    return _engine_option("for a million rows that may differ and more")(_master_option(function))


def rewriting_engine_options(function: F) -> F:
    """The same for commands that rewrite rows."""
    return _engine_option("for twenty million rows and more")(_master_option(function))


def chosen_engine(engine: str | None, master: str | None) -> EngineChoice:
    """The engine selected by options, environment or configuration file, in this order.

    Sessions started from now on use the file too, and Java starts at once if Spark is required for
    certain. Raises a usage error for a master that would not be used.
    """
    if engine == "inline" and master is not None:
        raise click.UsageError("--master is of no use with --engine inline.")
    from omnigraph.settings import read_settings
    from omnigraph.spark.choice import EngineChoice

    config = current_context().operator
    if config.spark_master is not None or config.spark_conf:
        from omnigraph.spark.session import prefer

        prefer(config.spark_master, config.spark_conf)
    if engine is None:
        wanted = read_settings().engine or config.engine
        engine = wanted if master is None else "spark"
    if engine == "spark":
        # Before Java is started; a call without Spark would only find out later.
        from omnigraph.spark.java import require_spark

        require_spark("engine 'spark'" if master is None else f"the Spark master '{master}'")
        from omnigraph.spark.session import expect_session

        expect_session(master)
    return EngineChoice(cast("Engine", engine or "auto"), master=master)


set_option = click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="NAME=VALUE",
    callback=lambda _ctx, _param, given: _settings(given),
    help="Engine setting of this call: ann_nprobes, engine, history_release_bytes, merge_lineage or "
    "traversal_work_limit. It is checked; the engine chooses its own values. Repeatable.",
)


def _settings(given: Sequence[str]) -> dict[str, object]:
    """Engine settings by name, checked as a server checks them."""
    if not given:
        return {}
    import msgspec

    from omnigraph.wire.requests import SettingsRequest

    found = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals:
            raise click.BadParameter("write it as NAME=VALUE.")
        found[name] = value
    try:
        checked = msgspec.convert(found, described(SettingsRequest), strict=False)
    except msgspec.ValidationError as error:
        raise InputError(f"--set: {error}") from None
    return {name: value for name, value in msgspec.to_builtins(checked).items() if name in found}


yes_option = click.option(
    "--yes", is_flag=True, help="Do not ask before data outside this machine is deleted."
)


def require_consent(what: str, target: str, *, yes: bool) -> None:
    """Ask before something is deleted that is not on this machine. Raises `UsageError` without consent."""
    from omnigraph.cli.exits import end_waiting, wants_json

    if yes:
        return
    if wants_json() or not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError(f"{what} on {target} needs consent; pass --yes")
    end_waiting()
    if not click.confirm(f"{what} on {target}?", err=True):
        raise UsageError(f"{what} on {target} was not confirmed; nothing was changed")


if_commit_option = click.option(
    "--if-commit",
    metavar="COMMIT",
    help="Write only if this is the newest commit of the branch; exit with 4 otherwise.",
)


def expect_head_option(branch: str = "the branch") -> Callable[[F], F]:
    """The required head of a write; `branch` names its target in the help."""
    text = f"Fail unless this is the newest commit of {branch}."
    return click.option("--expect-head", metavar="COMMIT", help=text)


full_option = click.option("--full", is_flag=True, help="Show long texts and vectors in full.")

idempotency_key_option = click.option(
    "--idempotency-key",
    metavar="KEY",
    help="Idempotency key; a repeated call returns the first receipt.",
)


def with_options(options: Sequence[Callable[[Any], Any]]) -> Callable[[F], F]:
    """Options that several commands take, in the order in which the help shows them."""
    return lambda function: reduce(lambda made, option: option(made), reversed(options), function)


class ParamsOptions(TypedDict):
    """The options for parameters of a query."""

    params: str | None
    params_file: str | None
    assignments: tuple[str, ...]


class QueryOptions(ParamsOptions):
    """The options as they were given. A word is the graph, or an argument of the alias."""

    words: tuple[str, ...]
    uri: str | None
    alias: str | None
    query_path: str | None
    query_text: str | None
    name: str | None


class ChosenQuery(NamedTuple):
    """A graph, a query source, the name of the query in it, its parameters, and the alias it came from."""

    uri: str | None
    source: str | Path
    name: str | None
    given: Mapping[str, object]
    alias: QueryFileAlias | None = None

    def graph(self, context: Context) -> str | ServedGraph:
        """The graph that the query is for."""
        graph = None if self.alias is None else self.alias.graph
        return address_or_server(self.uri, context, graph)

    @property
    def params(self) -> JsonParameters:
        """The parameters, for a graph that is opened here."""
        from omnigraph.plan.params import JsonParameters

        return JsonParameters(self.given)

    @property
    def text(self) -> str:
        """The source, for a server. Raises `SourceUnreadable`."""
        from omnigraph.read.source_files import query_source

        return query_source(self.source).text

    @property
    def file(self) -> str | None:
        return str(self.source) if isinstance(self.source, Path) else None

    @property
    def format(self) -> OutputFormat | None:
        return None if self.alias is None else self.alias.format

    def branch(self, given: str | None, context: Context) -> str:
        """The branch to work on: the one given, that of the alias, or the default."""
        of_alias = None if self.alias is None else self.alias.branch
        return given or of_alias or context.default_branch


class StoredQuery(NamedTuple):
    """A query that a server has under a name. An alias says nothing but its parameters."""

    target: RemoteTarget
    name: str
    given: Mapping[str, object]
    is_alias: bool = False
    format: OutputFormat | None = None

    def graph(self, context: Context) -> ServedGraph:
        return served_graph(self.target, context)


def params_options(function: F) -> F:
    """Declare the options of `ParamsOptions`."""
    file = click.option("--params-file", metavar="FILE", help="File with the parameters.")
    text = click.option("--params", metavar="JSON", help="Parameters as a JSON object.")
    one = click.option(
        "-p",
        "--param",
        "assignments",
        multiple=True,
        metavar="NAME=VALUE",
        help="One parameter, as text that fits its type; wins over --params. Repeatable.",
    )
    return one(text(file(function)))


_OPTIONS: tuple[Callable[[Any], Any], ...] = (
    click.argument("words", nargs=-1, metavar="[URI | ARGS...]"),
    uri_option,
    click.option("--query", "query_path", metavar="FILE", help="Query file (.gq)."),
    click.option("-e", "--query-string", "query_text", metavar="GQ", help="Query text."),
    click.option("--alias", metavar="NAME", help="Alias of a query; ARGS are its arguments."),
    click.option("--name", metavar="QUERY", help="Query to run, if there are several."),
    params_options,
)


def query_options(function: F) -> F:
    """Declare the options of `QueryOptions`."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


_STATE_OPTIONS = (
    click.option(
        "--branch",
        metavar="BRANCH",
        help="Branch to read.  [default: cli.branch of the project file, or main]",
    ),
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


def state_branch(branch: str | None, snapshot: str | None, context: Context) -> str | None:
    """The branch to read, or None if another state is. Raises a usage error when both are given."""
    refuse_two_states(branch, snapshot)
    return branch if branch is not None or snapshot is not None else context.default_branch


def chosen_query(
    options: QueryOptions, context: Context, *, mutating: bool = False
) -> ChosenQuery | StoredQuery:
    """The selected query. Raises `InputError`, or a usage error when two exclude each other."""
    if options["alias"] is not None:
        return _aliased(options["alias"], options, context, mutating)
    uri, words = options["uri"], options["words"]
    if stored := _stored(options, context):
        return stored
    if len(words) > 1:
        raise click.UsageError(f"Got unexpected extra argument ({words[1]})")
    if words and uri is not None:
        raise click.UsageError("the graph is given twice; use --uri or URI.")
    source = _source(options, context)
    params = _params(options) | _assigned(options, source, options["name"])
    return ChosenQuery(words[0] if words else uri, source, options["name"], params)


def _stored(options: QueryOptions, context: Context) -> StoredQuery | None:
    """The stored query that the only word names, if the command addresses a server otherwise."""
    from omnigraph.config.selection import RemoteTarget

    words, given = options["words"], (options["query_path"], options["query_text"])
    if len(words) != 1 or given != (None, None) or _is_address(words[0]):
        return None
    target = context.select(options["uri"])
    if not isinstance(target, RemoteTarget):
        return None
    if options["name"] is not None:
        raise click.UsageError("--name selects a query of a file; a stored query has its own name.")
    return StoredQuery(target, words[0], _params(options) | _assigned(options))


def _is_address(word: str) -> bool:
    """Whether a positional word is the address of a graph rather than the name of a query."""
    return "/" in word or ".omni" in word or os.path.exists(word)


def _aliased(
    name: str, options: QueryOptions, context: Context, mutating: bool
) -> ChosenQuery | StoredQuery:
    from omnigraph.config.operator import StoredQueryAlias
    from omnigraph.config.selection import bind_arguments, stored_query_call

    for flag, value in (("--query", options["query_path"]), ("-e", options["query_text"])):
        if value is not None:
            raise click.UsageError(f"--alias and {flag} are exclusive; use one of them.")
    alias, words, uri = context.alias(name, mutating=mutating), options["words"], options["uri"]
    params = _params(options)
    if isinstance(alias, StoredQueryAlias):
        params |= _assigned(options)
        call = stored_query_call(alias, words, params, context.operator)
        return StoredQuery(call.target, call.query, call.params, is_alias=True, format=alias.format)
    if words and context.select(uri, alias.graph, nearby=False) is None:
        uri, words = words[0], words[1:]
    source = context.legacy.find_query_file(alias.query)
    chosen = options["name"] or alias.query_name
    bound = bind_arguments(alias, words, params | _assigned(options, source, chosen))
    return ChosenQuery(uri, source, chosen, bound, alias)


def _source(options: QueryOptions, context: Context) -> str | Path:
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
    return context.legacy.find_query_file(path)


def _assigned(
    options: ParamsOptions, source: str | Path | None = None, name: str | None = None
) -> dict[str, object]:
    """The parameters given one by one. Raises a usage error for one without a value or given twice."""
    found: dict[str, object] = {}
    if not options["assignments"]:
        return found
    declared = _declared_parameters(source, name)
    for given in options["assignments"]:
        parameter, equals, value = given.partition("=")
        parameter = parameter.removeprefix("$")
        if not equals or not parameter:
            raise click.UsageError(f"-p takes NAME=VALUE, not '{given}'.")
        if parameter in found:
            raise click.UsageError(f"-p gives the parameter '{parameter}' twice.")
        found[parameter] = parameter_value(declared.get(parameter), value)
    return found


def parameter_value(declared: PropType | None, text: str) -> object:
    """The value of a parameter given as text: as it is where text is expected, otherwise JSON if it can be."""
    from omnigraph.config.selection import parse_argument
    from omnigraph.language.types import Scalar

    texts = (Scalar.STRING, Scalar.DATE, Scalar.DATETIME, Scalar.BLOB)
    if declared is not None and declared.scalar in texts and not declared.list:
        return None if declared.nullable and text == "null" else text
    return parse_argument(text)


def _declared_parameters(source: str | Path | None, name: str | None) -> dict[str, PropType]:
    """The types of a query's parameters, as far as they can be told; running it says why not."""
    from omnigraph.errors import OmnigraphError
    from omnigraph.language.query.parse import parse_queries
    from omnigraph.read.source_files import query_source

    if source is None:
        return {}
    try:
        queries = parse_queries(query_source(source)).queries
    except OmnigraphError:
        return {}
    return {
        parameter.name: parameter.type.type
        for query in queries
        if name in (None, query.name.text)
        for parameter in query.parameters
    }


def _params(options: ParamsOptions) -> dict[str, object]:
    from omnigraph.json_text import JsonError, parse_json

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
        return {}
    try:
        given = parse_json(text)
    except JsonError as error:
        raise InputError(f"params are not JSON: {error}") from None
    if not isinstance(given, dict):
        raise InputError("params JSON must be an object")
    return given
