"""Environment variables: one table of them, and one object with the values they have now.

Opening a graph reads all of them, so that an invalid value is refused by name before anything
happens. What may change between two calls (limits of queries, the embedding provider, folders for
blobs) is read again by each call. Variables of other products are only passed on, never refused.
Tests: tests/unit/test_settings.py, tests/docs/test_settings.py.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import Any, Final, Literal, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from omnigraph.diagnostics import with_hint
from omnigraph.errors import InvalidSetting
from omnigraph.limits import (
    LOCK_WAIT_MS,
    LOOKUP_MAX_FRONTIER,
    LOOKUP_MAX_HOPS,
    QUERY_MAX_BYTES,
    QUERY_MAX_ROWS,
    QUERY_TIMEOUT_SECONDS,
)

OWN_PREFIX: Final = "OMNIGRAPH_"

TOKEN_PREFIX: Final = "OMNIGRAPH_TOKEN_"
"""Variables that begin like this hold the tokens of single servers, which give them their names."""

_CACHED_ENVIRONMENTS: Final = 16


class Settings(Struct, frozen=True):
    """The values of all variables; a variable that is not set has its default."""

    base_url: str | None = None
    bearer_token: str | None = None
    bind: str | None = None
    ca_file: str | None = None
    cache_dir: str | None = None
    config: str | None = None
    debug: str | None = None
    default_branch: str | None = None
    durability: Literal["fsync", "none"] = "fsync"
    embed_base_url: str | None = None
    embed_deadline_ms: int = 60_000
    embed_model: str | None = None
    embed_provider: str | None = None
    embed_retry_attempts: int = 4
    embed_retry_backoff_ms: int = 200
    embed_timeout_ms: int = 30_000
    embeddings_mock: bool = False
    engine: Literal["auto", "spark", "inline"] | None = None
    expand_indexed_max_frontier: int = LOOKUP_MAX_FRONTIER
    expand_indexed_max_hops: int = LOOKUP_MAX_HOPS
    external_blobs: str = ""
    gemini_base_url: str | None = None
    graph_id: str | None = None
    home: str = "~/.omnigraph"
    http_api: Literal["both", "0.13", "0.7"] | None = None
    ledger_poll_seconds: int = 5
    lock_wait_ms: int = LOCK_WAIT_MS
    log_format: Literal["text", "json"] | None = None
    log_level: Literal["debug", "info", "warning", "error"] | None = None
    max_bytes: int = QUERY_MAX_BYTES
    max_rows: int = QUERY_MAX_ROWS
    max_seconds: float = QUERY_TIMEOUT_SECONDS
    merge_staging_dir: str | None = None
    no_legacy_config: str | None = None
    per_actor_bytes_max: str | None = None
    per_actor_inflight_max: str | None = None
    profile: str | None = None
    require_all_graphs: str | None = None
    server_bearer_token: str | None = None
    server_bearer_tokens_aws_secret: str | None = None
    server_bearer_tokens_file: str | None = None
    server_bearer_tokens_json: str | None = None
    shutdown_grace_seconds: int | None = None
    slow_query_ms: int | None = None
    source_version: str | None = None
    spark_cache: str | None = None
    spark_master: str | None = None
    suppress_yaml_deprecation: str | None = None
    token: str | None = None
    traversal_mode: Literal["auto", "indexed", "csr"] = "auto"
    unauthenticated: str | None = None
    uri: str | None = None
    aws_access_key_id: str | None = None
    aws_allow_http: str | None = None
    aws_endpoint_url: str | None = None
    aws_endpoint_url_s3: str | None = None
    aws_region: str | None = None
    aws_s3_force_path_style: str | None = None
    aws_secret_access_key: str | None = None
    aws_session_token: str | None = None
    gemini_api_key: str | None = None
    java_home: str | None = None
    no_color: str | None = None
    openai_api_key: str | None = None
    openrouter_api_key: str | None = None
    pager: str | None = None
    pyspark_python: str | None = None
    spark_user: str | None = None
    term: str | None = None
    xdg_cache_home: str | None = None

    def __repr__(self) -> str:
        return "<Settings>"  # Some of them are secrets.


class Kind(NamedTuple):
    """What a variable can be set to: in words, and how the text is read; None if it cannot be."""

    accepts: str
    parse: Callable[[str], Any]
    allows_empty: bool = True
    """Whether an empty text counts as not set; it is refused otherwise."""


class Variable(NamedTuple):
    """One environment variable."""

    name: str
    kind: Kind
    meaning: str

    @property
    def field(self) -> str:
        return self.name.removeprefix(OWN_PREFIX).lower()

    @property
    def default(self) -> object:
        return getattr(_DEFAULTS, self.field)


_SWITCH: Final = {
    **dict.fromkeys(("1", "true", "yes", "on"), True),
    **dict.fromkeys(("0", "false", "no", "off"), False),
}


def _choice(*words: str, allows_empty: bool = True) -> Kind:
    quoted = [f"'{word}'" for word in words]
    accepts = " or ".join(quoted) if len(words) == 2 else f"one of {', '.join(quoted)}"
    return Kind(accepts, {word: word for word in words}.get, allows_empty)


def _number(accepts: str, low: int, high: int = 2**63 - 1, *, allows_empty: bool = True) -> Kind:
    def parse(text: str) -> int | None:
        # Nineteen digits fit 64 bits; a longer text would only cost time.
        if not (text.isascii() and text.isdigit() and len(text) <= 19):
            return None
        return int(text) if low <= int(text) <= high else None

    return Kind(accepts, parse, allows_empty)


_TEXT: Final = Kind("any text", str)
_YES_OR_NO: Final = Kind("1 or 0", lambda text: _SWITCH.get(text.lower()))
_AMOUNT: Final = _number("a whole number", 0)
_POSITIVE: Final = _number("a whole number above 0", 1)
# Nine digits are eleven days; much longer times do not fit the clock calls.
_WAIT: Final = _number(
    "a number of milliseconds from 0 to 999999999", 0, 999_999_999, allows_empty=False
)

VARIABLES: Final = (
    Variable("OMNIGRAPH_BASE_URL", _TEXT, "server of `omnigraph mcp`, if no graph is named"),
    Variable("OMNIGRAPH_BEARER_TOKEN", _TEXT, "token for servers that have none of their own"),
    Variable("OMNIGRAPH_BIND", Kind("HOST:PORT", str), "where the server listens"),
    Variable(
        "OMNIGRAPH_CA_FILE",
        Kind("a file", str),
        "certificates (PEM) that https servers are checked with, instead of those of the system",
    ),
    Variable(
        "OMNIGRAPH_CACHE_DIR",
        Kind("a directory", str),
        "cache of small immutable objects of graphs on object stores, shared by processes",
    ),
    Variable("OMNIGRAPH_CONFIG", Kind("a file", str), "project file instead of `./omnigraph.yaml`"),
    Variable("OMNIGRAPH_DEBUG", _TEXT, "any value: internal errors show their stack trace"),
    Variable("OMNIGRAPH_DEFAULT_BRANCH", _TEXT, "branch of `omnigraph mcp`, as `--branch`"),
    Variable(
        "OMNIGRAPH_DURABILITY",
        _choice("fsync", "none", allows_empty=False),
        "what the local disk must have done before a write is acknowledged",
    ),
    Variable("OMNIGRAPH_EMBED_BASE_URL", _TEXT, "address of an OpenAI or compatible server"),
    Variable(
        "OMNIGRAPH_EMBED_DEADLINE_MS",
        _AMOUNT,
        "how long to wait for a provider in all attempts together; 0: no limit",
    ),
    Variable("OMNIGRAPH_EMBED_MODEL", _TEXT, "model of an OpenAI or compatible server"),
    Variable(
        "OMNIGRAPH_EMBED_PROVIDER",
        Kind("`gemini`, `openai`, `openai-compatible` or `mock`", str),
        "who computes vectors; without it the first of Gemini, OpenRouter and OpenAI that has a key",
    ),
    Variable("OMNIGRAPH_EMBED_RETRY_ATTEMPTS", _POSITIVE, "how often a provider is asked"),
    Variable(
        "OMNIGRAPH_EMBED_RETRY_BACKOFF_MS",
        _POSITIVE,
        "wait before the second attempt; then doubled",
    ),
    Variable("OMNIGRAPH_EMBED_TIMEOUT_MS", _POSITIVE, "how long to wait for a provider's answer"),
    Variable(
        "OMNIGRAPH_EMBEDDINGS_MOCK", _YES_OR_NO, "repeatable vectors without any model, for trials"
    ),
    Variable(
        "OMNIGRAPH_ENGINE", _choice("auto", "spark", "inline"), "where work is done by default"
    ),
    Variable(
        "OMNIGRAPH_EXPAND_INDEXED_MAX_FRONTIER",
        _AMOUNT,
        "most nodes from which edges are looked up instead of read; 0 is the default",
    ),
    Variable(
        "OMNIGRAPH_EXPAND_INDEXED_MAX_HOPS",
        _AMOUNT,
        "most hops that are looked up instead of read; 0 is the default",
    ),
    Variable(
        "OMNIGRAPH_EXTERNAL_BLOBS",
        Kind("folders and addresses, separated by commas", str),
        "where blobs may be kept outside of a graph",
    ),
    Variable("OMNIGRAPH_GEMINI_BASE_URL", _TEXT, "another address for Gemini"),
    Variable("OMNIGRAPH_GRAPH_ID", _TEXT, "graph of `OMNIGRAPH_BASE_URL`; without it `default`"),
    Variable("OMNIGRAPH_HOME", Kind("a folder", str), "folder of `config.yaml` and `credentials`"),
    Variable(
        "OMNIGRAPH_HTTP_API", _choice("both", "0.13", "0.7"), "contracts that the server offers"
    ),
    Variable(
        "OMNIGRAPH_LEDGER_POLL_SECONDS",
        _AMOUNT,
        "how often a server looks for a new revision of its cluster; 0 turns it off",
    ),
    Variable("OMNIGRAPH_LOCK_WAIT_MS", _WAIT, "how long a writer waits for the lock of a branch"),
    Variable("OMNIGRAPH_LOG_FORMAT", _choice("text", "json"), "how the server logs"),
    Variable(
        "OMNIGRAPH_LOG_LEVEL", _choice("debug", "info", "warning", "error"), "what the server logs"
    ),
    Variable("OMNIGRAPH_MAX_BYTES", _AMOUNT, "most bytes that one query may hold"),
    Variable("OMNIGRAPH_MAX_ROWS", _AMOUNT, "most rows that one query may make"),
    Variable("OMNIGRAPH_MAX_SECONDS", _AMOUNT, "longest time that one query may take"),
    Variable("OMNIGRAPH_MERGE_STAGING_DIR", Kind("a folder", str), "where large merges keep rows"),
    Variable(
        "OMNIGRAPH_NO_LEGACY_CONFIG", _TEXT, "any value: an `omnigraph.yaml` that exists is refused"
    ),
    Variable(
        "OMNIGRAPH_PER_ACTOR_BYTES_MAX",
        Kind("a whole number", str),
        "most bytes in writes of one actor at a time on a server; 4 GiB without it",
    ),
    Variable(
        "OMNIGRAPH_PER_ACTOR_INFLIGHT_MAX",
        Kind("a whole number", str),
        "most writes of one actor at a time on a server; 16 without it",
    ),
    Variable("OMNIGRAPH_PROFILE", _TEXT, "profile that selects the graph"),
    Variable(
        "OMNIGRAPH_REQUIRE_ALL_GRAPHS",
        Kind("`1` or `0`", str),
        "`1`: a server does not start while a graph of its cluster cannot be served",
    ),
    Variable("OMNIGRAPH_SERVER_BEARER_TOKEN", _TEXT, "token of the actor `default` on a server"),
    Variable(
        "OMNIGRAPH_SERVER_BEARER_TOKENS_AWS_SECRET",
        _TEXT,
        "refused: tokens from AWS are not supported yet",
    ),
    Variable(
        "OMNIGRAPH_SERVER_BEARER_TOKENS_FILE",
        Kind("a file", str),
        "JSON object of actors and their tokens",
    ),
    Variable(
        "OMNIGRAPH_SERVER_BEARER_TOKENS_JSON",
        _TEXT,
        "the same object itself; used without the file",
    ),
    Variable(
        "OMNIGRAPH_SHUTDOWN_GRACE_SECONDS",
        _AMOUNT,
        "how long requests may run after the server was told to end",
    ),
    Variable("OMNIGRAPH_SLOW_QUERY_MS", _AMOUNT, "reads that take longer are logged by the server"),
    Variable("OMNIGRAPH_SOURCE_VERSION", _TEXT, "shown by `/healthz` as `source_version`"),
    Variable(
        "OMNIGRAPH_SPARK_CACHE",
        Kind("a folder, or 'off'", str),
        "where the start cache of Spark is kept",
    ),
    Variable("OMNIGRAPH_SPARK_MASTER", _TEXT, "Spark master to run on"),
    Variable(
        "OMNIGRAPH_SUPPRESS_YAML_DEPRECATION",
        _TEXT,
        "any value: no notice about keys of `omnigraph.yaml`",
    ),
    Variable("OMNIGRAPH_TOKEN", _TEXT, "token for `OMNIGRAPH_BASE_URL`, if no other is found"),
    Variable(
        "OMNIGRAPH_TRAVERSAL_MODE",
        _choice("auto", "indexed", "csr"),
        "how edges are followed: by look-ups, in memory, or whichever is quicker",
    ),
    Variable(
        "OMNIGRAPH_UNAUTHENTICATED",
        Kind("any text but `0` and `false`", str),
        "serve without tokens, as `--unauthenticated`",
    ),
    Variable(
        "OMNIGRAPH_URI",
        Kind("a path or an address", str),
        "graph of commands that are given none",
    ),
    Variable("AWS_ACCESS_KEY_ID", _TEXT, "key of an S3-compatible store"),
    Variable("AWS_ALLOW_HTTP", _TEXT, "`true`: reach the store without TLS"),
    Variable("AWS_ENDPOINT_URL", _TEXT, "address of the store"),
    Variable("AWS_ENDPOINT_URL_S3", _TEXT, "the same; wins"),
    Variable("AWS_REGION", _TEXT, "region of the store"),
    Variable("AWS_S3_FORCE_PATH_STYLE", _TEXT, "`true`: the bucket is a part of the path"),
    Variable("AWS_SECRET_ACCESS_KEY", _TEXT, "secret that belongs to the key"),
    Variable("AWS_SESSION_TOKEN", _TEXT, "token of a temporary key"),
    Variable("GEMINI_API_KEY", _TEXT, "key for Gemini"),
    Variable("JAVA_HOME", _TEXT, "Java that runs Spark instead of the bundled one"),
    Variable("NO_COLOR", _TEXT, "any value: no colours"),
    Variable("OPENAI_API_KEY", _TEXT, "key for OpenAI or a compatible server"),
    Variable("OPENROUTER_API_KEY", _TEXT, "key for OpenRouter or a compatible server"),
    Variable("PAGER", _TEXT, "program that shows long output on a terminal; `cat`: none"),
    Variable("PYSPARK_PYTHON", _TEXT, "Python that Spark starts on executors"),
    Variable("SPARK_USER", _TEXT, "user that Spark sees where the system knows none"),
    Variable("TERM", _TEXT, "`dumb`: no colours and no progress bars"),
    Variable("XDG_CACHE_HOME", _TEXT, "folder of caches"),
)
"""Every variable that is read."""

_BY_NAME: Final = {variable.name: variable for variable in VARIABLES}
_PLACES: Final = {name: place for place, name in enumerate(_BY_NAME)}
_DEFAULTS: Final = Settings()


def read_settings(environment: Mapping[str, str] | None = None) -> Settings:
    """The settings of this moment. Raises `InvalidSetting`, which names the variable."""
    if environment is not None:
        return _settings_in(environment)
    settings, scoped = _own.read(), _scoped.get()
    return replace(settings, **scoped) if scoped else settings


class _OwnEnvironment:
    """The environment of this process. Every call reads it, and it hardly ever changes.

    Comparing the dictionary behind `os.environ` with what it was takes a microsecond, going through its
    names a hundred times as long.
    """

    def __init__(self) -> None:
        self._read: tuple[dict[Any, Any], Settings] | None = None

    def read(self) -> Settings:
        stored: dict[Any, Any] | None = getattr(os.environ, "_data", None)
        if stored is None:
            return _settings_in(os.environ)
        known = self._read
        if known is None or known[0] != stored:
            copy = dict(stored)
            known = copy, _settings_in(os.environ)
            if copy == stored:
                self._read = known
        return known[1]


def _settings_in(given: Mapping[str, str]) -> Settings:
    # Asking for one that is not set takes longer than passing over a name.
    found = sorted((name for name in given if name in _PLACES), key=_PLACES.__getitem__)
    return _parsed(tuple((name, text) for name in found if (text := given.get(name)) is not None))


_own: Final = _OwnEnvironment()


_scoped: ContextVar[Mapping[str, Any] | None] = ContextVar("omnigraph_settings", default=None)


@contextmanager
def scoped_settings(values: Mapping[str, Any]) -> Iterator[None]:
    """Let some settings have other values in this thread, and in what `side_by_side` starts from it."""
    token = _scoped.set(values)
    try:
        yield
    finally:
        _scoped.reset(token)


def read_text(name: str) -> str | None:
    """One variable as it is, for those that report errors and so must not raise any."""
    return os.environ.get(_BY_NAME[name].name) or None


def read_secret(name: str) -> str | None:
    """A variable that a configuration file names, without the blanks around it; None if blank."""
    return os.environ.get(name, "").strip() or None


def add_variables(given: Mapping[str, str]) -> None:
    """Set variables of this process that are not set."""
    for name, text in given.items():
        os.environ.setdefault(name, text)


def unknown_variables(environment: Iterable[str] | None = None) -> list[str]:
    """What to tell about variables that are called like ours and are not in the table."""
    given = sorted(os.environ if environment is None else environment)
    own = [name for name in _BY_NAME if name.startswith(OWN_PREFIX)]
    return [
        with_hint(f"the environment variable {name} is not known", name, own)
        for name in given
        if name.startswith(OWN_PREFIX)
        and not name.startswith(TOKEN_PREFIX)
        and name not in _BY_NAME
    ]


@lru_cache(_CACHED_ENVIRONMENTS)
def _parsed(given: tuple[tuple[str, str], ...]) -> Settings:
    values = {}
    for name, text in given:
        variable = _BY_NAME[name]
        if not text and variable.kind.allows_empty:
            continue
        value = variable.kind.parse(text)
        if value is None:
            raise InvalidSetting(name, text, variable.kind.accepts)
        values[variable.field] = value
    return Settings(**values)
