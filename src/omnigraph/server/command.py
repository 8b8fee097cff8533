"""The command `omnigraph-server`: decides what to serve and to whom, opens it, and serves.

Everything that can be wrong is refused before a graph is opened or a port is bound.
Tests: tests/server/test_start.py.
"""

from __future__ import annotations

import logging
import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

import click

from omnigraph._version import __version__
from omnigraph.diagnostics import counted
from omnigraph.errors import GraphNotFound, OmnigraphError, ServerConfigError
from omnigraph.instruments import Instruments, install
from omnigraph.server.logs import LOG_FORMATS, LogFormat, configure

if TYPE_CHECKING:
    from omnigraph.server.exchange import HttpApi
    from omnigraph.server.graphs import Access
    from omnigraph.server.metrics import ServerMetrics
    from omnigraph.server.tracing import Tracing

log = logging.getLogger("omnigraph.server")

DEFAULT_BIND: Final = "127.0.0.1:8080"
DEFAULT_GRACE_SECONDS: Final = 25
HTTP_APIS: Final = ("both", "0.13", "0.7")
_LEVELS: Final = ("debug", "info", "warning", "error")
OTLP_ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
"""Spans are exported if one of these variables names a collector."""


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("uri", required=False)
@click.option(
    "--bind",
    envvar="OMNIGRAPH_BIND",
    metavar="HOST:PORT",
    help=f"Address to listen on, by default {DEFAULT_BIND}. With port 0 a free one is chosen and printed.",
)
@click.option("--target", metavar="NAME", help="Serve this graph of the project file.")
@click.option(
    "--config",
    metavar="FILE",
    help="Project file. Without URI and --target, all its graphs are served.",
)
@click.option(
    "--cluster",
    metavar="DIR|URI",
    help="Serve the applied graphs of a cluster: its directory, or its storage root.",
)
@click.option(
    "--require-all-graphs",
    envvar="OMNIGRAPH_REQUIRE_ALL_GRAPHS",
    is_flag=True,
    help="Do not start while a graph of the cluster cannot be served.",
)
@click.option(
    "--unauthenticated",
    is_flag=True,
    help="Serve without tokens: every caller may do everything.",
)
@click.option(
    "--http-api",
    envvar="OMNIGRAPH_HTTP_API",
    type=click.Choice(HTTP_APIS),
    default="both",
    show_default=True,
    help="Contracts to offer: by version header, only 0.13, or only the one without a header.",
)
@click.option(
    "--shutdown-grace-seconds",
    envvar="OMNIGRAPH_SHUTDOWN_GRACE_SECONDS",
    type=click.IntRange(min=0, max=86_400),
    default=DEFAULT_GRACE_SECONDS,
    show_default=True,
    help="How long running requests may take after a signal to end.",
)
@click.option(
    "--body-timeout-seconds",
    type=click.FloatRange(min=0.1, max=3_600),
    default=60.0,
    show_default=True,
    help="How long a client may take to send a request body.",
)
@click.option(
    "--reader-timeout-seconds",
    type=click.FloatRange(min=0.1, max=86_400),
    default=300.0,
    show_default=True,
    help="How long a client may read nothing of its answer before it is cut off.",
)
@click.option(
    "--spark",
    is_flag=True,
    help="Let large loads, merges and exports run on Spark, which needs Java.",
)
@click.option(
    "--log-level",
    envvar="OMNIGRAPH_LOG_LEVEL",
    type=click.Choice(_LEVELS),
    default="info",
    show_default=True,
    help="What to log to standard error.",
)
@click.option(
    "--log-format",
    envvar="OMNIGRAPH_LOG_FORMAT",
    type=click.Choice(LOG_FORMATS),
    default="text",
    show_default=True,
    help="Log lines of text, or a JSON document a line.",
)
@click.option(
    "--slow-query-ms",
    envvar="OMNIGRAPH_SLOW_QUERY_MS",
    type=click.IntRange(min=0),
    default=5000,
    show_default=True,
    help="Log reads that take longer, with their plan.",
)
@click.version_option(__version__, "-v", "--version", message="omnigraph-server %(version)s")
def command(
    uri: str | None,
    bind: str | None,
    target: str | None,
    config: str | None,
    cluster: str | None,
    require_all_graphs: bool,
    unauthenticated: bool,
    http_api: HttpApi,
    shutdown_grace_seconds: int,
    body_timeout_seconds: float,
    reader_timeout_seconds: float,
    spark: bool,
    log_level: str,
    log_format: LogFormat,
    slow_query_ms: int,
) -> int:
    """Serve the graph at URI, graphs of a project file, or those of a cluster, over HTTP."""
    # No line of the log shows them, and every request writes one or two.
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    configure(log_level, log_format)
    from omnigraph.config.legacy import read_legacy_config
    from omnigraph.extras import SERVER, is_installed
    from omnigraph.server.tokens import read_tokens
    from omnigraph.settings import read_settings

    if not all(map(is_installed, SERVER.libraries)):
        raise SERVER.missing("omnigraph-server")

    from omnigraph.server.admission import Admission
    from omnigraph.server.app import App
    from omnigraph.server.boot import ProjectBoot, choose_source
    from omnigraph.server.call import ServerState
    from omnigraph.server.cluster_boot import ClusterBoot
    from omnigraph.server.deployments import Deployments
    from omnigraph.server.graphs import Access
    from omnigraph.server.lifecycle import listen, serve

    settings = read_settings()
    tokens = read_tokens(os.environ)
    boot: ProjectBoot | ClusterBoot
    if cluster is not None:
        for other, name in ((uri, "a URI"), (target, "--target"), (config, "--config")):
            if other is not None:
                raise ServerConfigError(
                    f"--cluster is an exclusive boot source; it cannot be combined with {name}"
                )
        boot, project_bind = ClusterBoot.read(cluster), None
    else:
        project = read_legacy_config(config, settings)
        if (notice := project.notice()) and not settings.suppress_yaml_deprecation:
            log.warning("%s", notice)
        source = choose_source(uri, target, project, is_explicit=config is not None)
        boot, project_bind = ProjectBoot(source), project.server_bind
    written = bind or project_bind or DEFAULT_BIND
    host, port = address(written)
    access = classify(
        has_tokens=len(tokens) > 0,
        has_policy=boot.has_policy,
        unauthenticated=is_open(unauthenticated),
    )
    log.info("tokens: env-or-file, %s; access: %s", counted(len(tokens), "actor"), access.value)
    if access is Access.OPEN:
        log.warning("serving without authentication: every caller may do everything")
    elif access is Access.DEFAULT_DENY:
        log.warning("no policy is configured: tokens only allow reads")
    graphs = boot.open(access, require_all=require_all_graphs)
    state = ServerState(
        graphs,
        admission=Admission(*admission_limits(os.environ)),
        server_gate=boot.server_gate,
        engine="auto" if spark else "inline",
        shutdown_grace_seconds=shutdown_grace_seconds,
        source_version=settings.source_version,
        cluster=boot.snapshot if isinstance(boot, ClusterBoot) else None,
        slow_query_seconds=slow_query_ms / 1000,
    )
    tracing = observe(state.metrics, os.environ)
    app = App(state, tokens, http_api=http_api, body_seconds=body_timeout_seconds, tracing=tracing)
    try:
        listener = listen(host, port)
    except OSError as error:
        raise ServerConfigError(f"cannot listen on {written}: {error.strerror}") from None
    bound_host, bound_port = listener.getsockname()[:2]
    log.info("listening on %s:%d", bound_host, bound_port)
    if port == 0:
        print(f"OMNIGRAPH_LISTEN_ADDR={bound_host}:{bound_port}", flush=True)
    boot.begin(graphs)
    if isinstance(boot, ClusterBoot):
        state.deployments = Deployments(state, boot.cluster, access)
        state.deployments.follow(settings.ledger_poll_seconds)
    code = serve(app, listener, shutdown_grace_seconds, reader_timeout_seconds)
    for graph in graphs:
        graph.graph.close()
    return code


def observe(metrics: ServerMetrics, environment: Mapping[str, str]) -> Tracing | None:
    """Listen to the engine from now on; what makes spans, if the environment asks for them."""
    from omnigraph.extras import TRACING

    listener: Instruments = metrics
    tracing = None
    if is_traced(environment):
        try:
            from omnigraph.server.tracing import TracedInstruments, Tracing
        except ImportError:
            log.warning("no traces: %s", TRACING.missing("exporting traces").message)
        else:
            tracing = Tracing()
            listener = TracedInstruments(metrics, tracing)
    install(listener)
    return tracing


def is_traced(environment: Mapping[str, str]) -> bool:
    """Whether the environment names a collector of OpenTelemetry and does not turn traces off."""
    is_off = environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"
    return not is_off and any(environment.get(name, "").strip() for name in OTLP_ENDPOINTS)


def classify(*, has_tokens: bool, has_policy: bool, unauthenticated: bool) -> Access:
    """What callers may do. Raises `ServerConfigError` if tokens and options do not say."""
    from omnigraph.server.graphs import Access

    if has_tokens:
        return Access.POLICY if has_policy else Access.DEFAULT_DENY
    if has_policy:
        raise ServerConfigError(
            "a policy file is configured but no bearer tokens; set "
            "OMNIGRAPH_SERVER_BEARER_TOKEN or OMNIGRAPH_SERVER_BEARER_TOKENS_FILE"
        )
    if unauthenticated:
        return Access.OPEN
    raise ServerConfigError(
        "no bearer tokens are configured; set OMNIGRAPH_SERVER_BEARER_TOKEN or "
        "OMNIGRAPH_SERVER_BEARER_TOKENS_FILE, or pass --unauthenticated to serve every caller"
    )


def is_open(flag: bool, environment: Mapping[str, str] = os.environ) -> bool:
    """Whether the flag or the environment allows to serve without tokens."""
    written = environment.get("OMNIGRAPH_UNAUTHENTICATED", "").strip().lower()
    return flag or written not in ("", "0", "false")


def address(bind: str) -> tuple[str, int]:
    """Host and port. Raises `ServerConfigError`."""
    host, colon, port = bind.rpartition(":")
    if not colon or not host or not port.isdigit() or int(port) > 65_535:
        raise ServerConfigError(
            f"'{bind}' is not an address; use HOST:PORT, for example {DEFAULT_BIND}"
        )
    return host.strip("[]"), int(port)


def admission_limits(environment: Mapping[str, str]) -> tuple[int, int]:
    """The limits of one actor's writes. A value that is not a number counts as not set."""
    from omnigraph.server.admission import DEFAULT_BYTES_MAX, DEFAULT_INFLIGHT_MAX

    def limit(name: str, default: int) -> int:
        text = environment.get(name, "").strip()
        if not text:
            return default
        if not (text.isascii() and text.isdigit() and len(text) <= 18):
            log.warning("%s is not a whole number; using %d", name, default)
            return default
        return int(text)

    return (
        limit("OMNIGRAPH_PER_ACTOR_INFLIGHT_MAX", DEFAULT_INFLIGHT_MAX),
        limit("OMNIGRAPH_PER_ACTOR_BYTES_MAX", DEFAULT_BYTES_MAX),
    )


def run(arguments: Sequence[str] | None = None) -> int:
    """The entry point; the result is the exit code of the process."""
    try:
        code = command.main(arguments, prog_name="omnigraph-server", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        return 1
    except GraphNotFound as error:
        create = f"omnigraph init --schema FILE {shlex.quote(error.uri)}"
        message = f"no graph at '{error.uri}'; create one with `{create}`"
        print(f"error[{error.code}]: {message}", file=sys.stderr)
        return 1
    except OmnigraphError as error:
        print(f"error[{error.code}]: {error.message}", file=sys.stderr)
        return 1
    return code if isinstance(code, int) else 0
