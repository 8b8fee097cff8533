"""Reads `cluster.yaml`: graphs, policies, providers and where the cluster is stored.

Every problem is reported, with line and column, and not only the first. Files that the declaration names are
not opened here. Tests: tests/cluster/test_validate.py.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Iterator, Mapping, Set
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from msgspec import Struct, field

from omnigraph.cluster.documents import FILE_NAME, ClusterStop, Diagnostics
from omnigraph.config.reading import read_config_text
from omnigraph.diagnostics import did_you_mean, shortened
from omnigraph.documents import DocumentError, DuplicateKey, KeyPath, Place, parse_located
from omnigraph.errors import ConfigFileError, InputError, StoreCallFailed
from omnigraph.rows.blob_bases import BlobBases
from omnigraph.storage.uris import GraphRoot, normalise_root

VERSION: Final = 1
_RESERVED: Final = ("apply", "env_file", "pipelines", "embeddings", "ui", "aliases", "bindings")
_TOP: Final = ("version", "metadata", "storage", "state", "graphs", "policies", "providers")
_ID: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*\Z")
_ENVIRONMENT: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}\Z")

ProviderKind = Literal["gemini", "openai", "openai-compatible", "mock"]
_PROVIDER_KINDS: Final[tuple[ProviderKind, ...]] = ("gemini", "openai", "openai-compatible", "mock")

_UNUSED: Final[Mapping[ProviderKind, Set[str]]] = {
    "gemini": {"model"},
    "openai": set(),
    "openai-compatible": set(),
    "mock": {"base_url", "model"},
}
_NEEDED: Final[Mapping[ProviderKind, Set[str]]] = {
    "gemini": {"api_key"},
    "openai": {"api_key"},
    "openai-compatible": {"base_url", "model"},
    "mock": set(),
}

Queries: TypeAlias = "str | tuple[str, ...] | Mapping[str, str]"
"""A directory or file, several of them, or a file per query name."""


class GraphDeclaration(Struct, frozen=True):
    """A declared graph."""

    schema: str
    queries: Queries = field(default_factory=dict)
    embedding_provider: str | None = None
    external_blobs: tuple[str, ...] | None = None


class PolicyDeclaration(Struct, frozen=True):
    """A declared policy bundle; `applies_to` as it was written."""

    file: str
    applies_to: tuple[str, ...]


class ProviderDeclaration(Struct, frozen=True):
    """A declared embedding provider. `api_key` is the name of the variable that has the key."""

    kind: ProviderKind
    base_url: str | None = None
    model: str | None = None
    api_key: str | None = None


class ClusterConfig(Struct, frozen=True):
    """A declaration whose own text is valid."""

    name: str | None = None
    storage: str | None = None
    backend: str | None = None
    lock: bool = True
    graphs: Mapping[str, GraphDeclaration] = field(default_factory=dict)
    policies: Mapping[str, PolicyDeclaration] = field(default_factory=dict)
    providers: Mapping[str, ProviderDeclaration] = field(default_factory=dict)
    places: Mapping[KeyPath, Place] = field(default_factory=dict)

    def place(self, *path: str | int) -> Place | None:
        """Where a key stands."""
        return self.places.get(path)

    def semantics(self) -> str:
        """Compact JSON of all that the text says; comments, order and formatting are left out."""
        document: dict[str, Any] = {
            "version": VERSION,
            "metadata": {"name": self.name},
            "storage": self.storage,
            "state": {"backend": self.backend, "lock": self.lock},
            "graphs": {id: _graph_semantics(self.graphs[id]) for id in sorted(self.graphs)},
            "policies": {
                name: {"file": found.file, "applies_to": found.applies_to}
                for name, found in sorted(self.policies.items())
            },
        }
        if self.providers:
            document["providers"] = {
                name: _provider_semantics(found) for name, found in sorted(self.providers.items())
            }
        return json.dumps(document, ensure_ascii=False, separators=(",", ":"))


def _graph_semantics(graph: GraphDeclaration) -> dict[str, Any]:
    queries = graph.queries
    written = (
        {name: {"file": queries[name]} for name in sorted(queries)}
        if isinstance(queries, Mapping)
        else queries
    )
    document: dict[str, Any] = {"schema": graph.schema, "queries": written}
    if graph.embedding_provider is not None:
        document["embedding_provider"] = graph.embedding_provider
    if graph.external_blobs is not None:
        document["external_blobs"] = {"allow": graph.external_blobs}
    return document


def provider_text(provider: ProviderDeclaration) -> str:
    """A provider as the catalog keeps it; it names the variable of the key, never the key."""
    return json.dumps(_provider_semantics(provider), ensure_ascii=False, indent=2) + "\n"


def _provider_semantics(provider: ProviderDeclaration) -> dict[str, Any]:
    return {name: getattr(provider, name) for name in provider.__struct_fields__}


# -- reading --------------------------------------------------------------------------------


def read_config(folder: Path, found: Diagnostics) -> ClusterConfig | None:
    """The declaration of a directory; None if it has a problem, which is then in `found`."""
    if not os.path.isdir(folder):
        found.error("config_dir_not_found", str(folder), "there is no such directory")
        return None
    path = folder / FILE_NAME
    try:
        text = read_config_text(path, ConfigFileError)
    except ConfigFileError as error:
        found.error("cluster_config_read_error", str(path), str(error))
        return None
    if text is None:
        found.error("cluster_config_read_error", str(path), "there is no such file")
        return None
    config = parse_config(text, found)
    if config is not None:
        try:
            storage_root(config, folder)
        except ClusterStop as stop:
            problem = stop.diagnostic
            found.error(problem.code, problem.path, problem.message, config.place("storage"))
            return None
    return config


def parse_config(text: str, found: Diagnostics) -> ClusterConfig | None:
    """The declaration in a text; None if it has a problem, which is then in `found`."""
    try:
        document = parse_located(text)
    except DocumentError as error:
        is_duplicate = isinstance(error, DuplicateKey)
        code = "duplicate_yaml_key" if is_duplicate else "invalid_cluster_yaml"
        found.error(code, FILE_NAME, str(error), error.place)
        return None
    return _Reader(document.places, found).config(document.value)


def parse_semantics(text: str, found: Diagnostics) -> ClusterConfig | None:
    """The declaration that `ClusterConfig.semantics` has written; None if it is not valid."""
    try:
        document = json.loads(text)
        for provider in (document.get("providers") or {}).values():
            if provider.get("api_key") is not None:
                provider["api_key"] = f"${{{provider['api_key']}}}"
    except (ValueError, RecursionError, AttributeError, TypeError):
        found.error("invalid_cluster_yaml", FILE_NAME, "the config of the bundle is not valid")
        return None
    if "providers" in document:
        document["providers"] = {"embedding": document["providers"]}
    return _Reader({}, found).config(document)


def storage_root(config: ClusterConfig, folder: Path) -> GraphRoot:
    """Where a cluster is stored. Raises `ClusterStop`."""
    storage = config.storage
    if storage is None:
        written = str(folder)
    else:
        written = storage if "://" in storage else str(folder / storage)
    try:
        root = normalise_root(written)
    except (InputError, StoreCallFailed) as error:
        raise ClusterStop("invalid_storage_root", "storage", str(error)) from None
    if root.kind == "memory" and storage is not None:
        raise ClusterStop(
            "invalid_storage_root", "storage", "a cluster is stored on disk or at an s3:// address"
        )
    return root


class _Reader:
    """Reads values and collects what is wrong with them."""

    def __init__(self, places: Mapping[KeyPath, Place], found: Diagnostics) -> None:
        self._places = places
        self._found = found
        self._is_valid = True

    def config(self, value: object) -> ClusterConfig | None:
        document = self._mapping((), value, None)
        for key in document:
            if key in _RESERVED:
                self._wrong("future_phase_field", (key,), f"'{key}' is reserved for later versions")
        self._refuse_unknown((), document, (*_TOP, *_RESERVED))
        version = document.get("version")
        if version != VERSION or isinstance(version, bool):
            said = "is missing" if version is None else f"{shortened(repr(version))} is not known"
            self._wrong(
                "unsupported_cluster_config_version",
                ("version",),
                f"version {said}; write `version: {VERSION}`",
            )
        metadata = self._mapping(("metadata",), document.get("metadata"), ("name",))
        state = self._mapping(("state",), document.get("state"), ("backend", "lock"))
        config = ClusterConfig(
            self._name(metadata.get("name")),
            self._storage(document.get("storage")),
            self._backend(state.get("backend")),
            self._lock(state.get("lock")),
            dict(self._graphs(document.get("graphs"))),
            dict(self._policies(document.get("policies"))),
            dict(self._providers(document.get("providers"))),
            self._places,
        )
        self._check_providers(config)
        return config if self._is_valid else None

    def _name(self, value: object) -> str | None:
        if value is None:
            return None
        if isinstance(value, str) and not value.strip():
            self._wrong("empty_metadata_name", ("metadata", "name"), "the name must not be blank")
            return None
        return self._text(("metadata", "name"), value)

    def _storage(self, value: object) -> str | None:
        if value is None:
            return None
        if not isinstance(value, str) or not value.strip():
            self._wrong("invalid_storage_root", ("storage",), "must be a path, file:// or s3://")
            return None
        storage = value.strip()
        _, has_scheme, rest = storage.partition("://")
        if has_scheme and not rest.strip("/"):
            self._wrong("invalid_storage_root", ("storage",), f"'{storage}' names no place")
            return None
        return storage.rstrip("/") or "/"

    def _backend(self, value: object) -> str | None:
        if value not in (None, "cluster"):
            said = (
                f"{shortened(repr(value))} is not a state backend; leave it out or write `cluster`"
            )
            self._wrong("unsupported_state_backend", ("state", "backend"), said)
            return None
        return None if value is None else "cluster"

    def _lock(self, value: object) -> bool:
        if value is None or isinstance(value, bool):
            return value is not False
        self._invalid(("state", "lock"), "must be true or false")
        return True

    # -- graphs -----------------------------------------------------------------------------

    def _graphs(self, value: object) -> Iterator[tuple[str, GraphDeclaration]]:
        known = ("schema", "queries", "embedding_provider", "external_blobs")
        for graph_id, written in self._mapping(("graphs",), value, None).items():
            path: KeyPath = ("graphs", graph_id)
            self._check_id(path, graph_id, "graph")
            graph = self._mapping(path, written, known)
            schema = self._required(path, graph, "schema")
            queries = self._queries((*path, "queries"), graph.get("queries"))
            provider = graph.get("embedding_provider")
            yield (
                graph_id,
                GraphDeclaration(
                    schema,
                    queries,
                    None
                    if provider is None
                    else self._text((*path, "embedding_provider"), provider),
                    self._blobs((*path, "external_blobs"), graph.get("external_blobs")),
                ),
            )

    def _queries(self, path: KeyPath, value: object) -> Queries:
        if value is None:
            return {}
        if isinstance(value, str):
            return self._text(path, value)
        if isinstance(value, list):
            return tuple(self._text((*path, at), item) for at, item in enumerate(value))
        if not isinstance(value, dict):
            self._invalid(path, "must be a path, a list of paths, or a file per query name")
            return {}
        files = {}
        for name, written in value.items():
            self._check_id((*path, name), name, "query")
            files[name] = self._required(
                (*path, name), self._mapping((*path, name), written, ("file",)), "file"
            )
        return files

    def _blobs(self, path: KeyPath, value: object) -> tuple[str, ...] | None:
        if value is None:
            return None
        allowed = self._mapping(path, value, ("allow",)).get("allow")
        if not isinstance(allowed, list):
            self._invalid((*path, "allow"), "must be a list of URIs")
            return None
        bases = tuple(self._text((*path, "allow", at), base) for at, base in enumerate(allowed))
        for at, base in enumerate(bases):
            try:
                if "," in base or not BlobBases.of(base).bases:
                    raise InputError("")
            except InputError:
                message = "must be the address or absolute path of a folder, without a comma"
                self._invalid((*path, "allow", at), message)
        return bases

    # -- policies and providers -------------------------------------------------------------

    def _policies(self, value: object) -> Iterator[tuple[str, PolicyDeclaration]]:
        for name, written in self._mapping(("policies",), value, None).items():
            path: KeyPath = ("policies", name)
            self._check_id(path, name, "policy")
            policy = self._mapping(path, written, ("file", "applies_to"))
            file = self._required(path, policy, "file")
            scopes = policy.get("applies_to")
            if not isinstance(scopes, list) or not scopes:
                said = "applies_to must list `cluster`, graph ids or `graph.<id>`"
                self._wrong("policy_missing_applies_to", (*path, "applies_to"), said)
                scopes = []
            written_scopes = tuple(
                self._text((*path, "applies_to", at), scope) for at, scope in enumerate(scopes)
            )
            yield name, PolicyDeclaration(file, written_scopes)

    def _providers(self, value: object) -> Iterator[tuple[str, ProviderDeclaration]]:
        declared = self._mapping(("providers",), value, ("embedding",)).get("embedding")
        for name, written in self._mapping(("providers", "embedding"), declared, None).items():
            path: KeyPath = ("providers", "embedding", name)
            self._check_id(path, name, "provider")
            provider = self._mapping(path, written, ("kind", "base_url", "model", "api_key"))
            kind = next((kind for kind in _PROVIDER_KINDS if kind == provider.get("kind")), None)
            if kind is None:
                self._invalid((*path, "kind"), f"must be one of {', '.join(_PROVIDER_KINDS)}")
                continue
            url, model = (
                None if provider.get(key) is None else self._text((*path, key), provider[key])
                for key in ("base_url", "model")
            )
            key = self._api_key((*path, "api_key"), provider.get("api_key"))
            for field_name in _UNUSED[kind] & {k for k, v in provider.items() if v is not None}:
                self._invalid((*path, field_name), f"a provider of kind {kind} has no {field_name}")
            for field_name in _NEEDED[kind] - {k for k, v in provider.items() if v is not None}:
                self._invalid(path, f"a provider of kind {kind} needs {field_name}")
            yield name, ProviderDeclaration(kind, url, model, key)

    def _api_key(self, path: KeyPath, value: object) -> str | None:
        if value is None:
            return None
        variable = _ENVIRONMENT.match(value.strip()) if isinstance(value, str) else None
        if variable is None:
            # The value is not shown: it may be a key.
            self._wrong(
                "inline_secret", path, "write `${NAME}`, the environment variable that has the key"
            )
            return None
        return variable[1]

    def _check_providers(self, config: ClusterConfig) -> None:
        for graph_id, graph in config.graphs.items():
            name = graph.embedding_provider
            if name is not None and name not in config.providers:
                said = f"there is no provider '{name}' under providers.embedding"
                path = ("graphs", graph_id, "embedding_provider")
                self._wrong("dangling_provider_reference", path, said)

    # -- values -----------------------------------------------------------------------------

    def _mapping(
        self, path: KeyPath, value: object, known: Collection[str] | None
    ) -> dict[str, object]:
        """Keys and values; none is the same as an empty one. Unknown keys are refused."""
        if value is None:
            return {}
        if not isinstance(value, dict):
            self._invalid(path, "must have keys and values")
            return {}
        if known is not None:
            self._refuse_unknown(path, value, known)
        return value

    def _refuse_unknown(
        self, path: KeyPath, value: Mapping[str, object], known: Collection[str]
    ) -> None:
        for key in value:
            if key not in known:
                hint = did_you_mean(key, known)
                said = f"unknown key '{shortened(key)}'"
                self._invalid((*path, key), f"{said}; {hint}" if hint else said)

    def _required(self, path: KeyPath, fields: Mapping[str, object], key: str) -> str:
        if fields.get(key) is None:
            self._invalid(path, f"'{key}' is missing")
            return ""
        return self._text((*path, key), fields[key])

    def _text(self, path: KeyPath, value: object) -> str:
        if not isinstance(value, str):
            self._invalid(path, "must be text; put it in quotes")
        elif not value.strip():
            self._invalid(path, "must not be blank")
        else:
            return value.strip()
        return ""

    def _check_id(self, path: KeyPath, name: str, what: str) -> None:
        if not _ID.match(name):
            said = (
                f"'{shortened(name)}' is not a valid {what} id; use letters, digits, '_' and '-', "
                "beginning with a letter or '_'"
            )
            self._wrong("invalid_resource_id", path, said)

    def _invalid(self, path: KeyPath, message: str) -> None:
        self._wrong("invalid_cluster_yaml", path, message)

    def _wrong(self, code: str, path: KeyPath, message: str) -> None:
        self._is_valid = False
        shown = ".".join(map(str, path)) or FILE_NAME
        self._found.error(code, shown, message, self._nearest(path))

    def _nearest(self, path: KeyPath) -> Place | None:
        """The place of a key, or of the one above it if the key is missing."""
        for end in range(len(path), 0, -1):
            if place := self._places.get(path[:end]):
                return place
        return None
