"""The declared resources of a cluster: files read, digests, dependencies, and every rule a declaration obeys.

Nothing of the storage root is read here. Tests: tests/cluster/test_validate.py.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct, field

from omnigraph.catalog.compile import check_reserved_names, compile_schema
from omnigraph.catalog.model import Catalog
from omnigraph.cluster.config import ClusterConfig, provider_text, read_config
from omnigraph.cluster.documents import (
    FILE_NAME,
    Dependency,
    Diagnostics,
    ResourceSummary,
    ValidateOutput,
)
from omnigraph.cluster.files import DeclarationFiles, FilesOnDisk, PathRefused
from omnigraph.cluster.ledger import AppliedResource, composite_digest, text_digest
from omnigraph.documents import Place
from omnigraph.errors import (
    CatalogError,
    LanguageError,
    PolicyInvalid,
    SourceUnreadable,
)
from omnigraph.language.query.ast import QueryFile
from omnigraph.language.query.parse import parse_queries
from omnigraph.language.syntax import Source
from omnigraph.plan.compile import compile_checked
from omnigraph.policy.document import PolicyKind, parse_policy
from omnigraph.read.source_files import read_source

CLUSTER_SCOPE: Final = "cluster"
_KIND_MARKER: Final = "kind"
"""A key of policies that says what their rules say as well."""
_KINDS: Final = ("graph", "schema", "query", "policy", "provider")


class Resource(Struct, frozen=True):
    """A declared resource and what is recorded when it is applied."""

    address: str
    kind: str
    applied: AppliedResource
    path: str | None = None
    """The file, as the declaration names it."""
    file: Path | None = None
    text: str | None = None

    @property
    def digest(self) -> str:
        return self.applied.digest


class Desired(Struct, frozen=True):
    """A valid declaration: what a cluster is to be."""

    folder: Path
    config: ClusterConfig
    resources: Mapping[str, Resource]
    dependencies: Sequence[Dependency]
    config_digest: str

    @property
    def digests(self) -> dict[str, str]:
        return {address: found.digest for address, found in self.resources.items()}

    def schema_digest(self, graph_id: str) -> str | None:
        found = self.resources.get(f"schema.{graph_id}")
        return None if found is None else found.digest


def validate(folder: Path) -> ValidateOutput:
    """Check a declaration with all its files. Reads nothing of the storage root."""
    found = Diagnostics()
    config = read_config(folder, found)
    resources = {} if config is None else _Files(FilesOnDisk(folder), config, found).resources()
    return ValidateOutput(
        ok=found.ok,
        config_dir=str(folder),
        config_file=str(folder / FILE_NAME),
        resource_digests={address: one.digest for address, one in resources.items()},
        resources=[
            ResourceSummary(one.address, one.kind, one.digest, one.path)
            for one in resources.values()
        ],
        dependencies=dependencies_of({a: one.applied for a, one in resources.items()}),
        diagnostics=list(found),
    )


def read_desired(folder: Path, found: Diagnostics) -> Desired | None:
    """What a directory declares; None if it has a problem, which is then in `found`."""
    config = read_config(folder, found)
    return None if config is None else make_desired(folder, config, FilesOnDisk(folder), found)


def make_desired(
    folder: Path, config: ClusterConfig, files: DeclarationFiles, found: Diagnostics
) -> Desired | None:
    """What a config and the files it names declare; None if there is a problem."""
    resources = _Files(files, config, found).resources()
    if not found.ok:
        return None
    digest = hashlib.sha256(f"cluster-config\0{config.semantics()}\0".encode())
    for address, resource in resources.items():
        digest.update(f"{address}\0{resource.digest}\0".encode())
    applied = {address: one.applied for address, one in resources.items()}
    return Desired(folder, config, resources, dependencies_of(applied), digest.hexdigest())


def dependencies_of(resources: Mapping[str, AppliedResource]) -> list[Dependency]:
    """What needs what, among declared or applied resources."""
    return sorted(_dependencies(resources), key=lambda one: (one.source, one.target))


def _dependencies(resources: Mapping[str, AppliedResource]) -> Iterator[Dependency]:
    for address, resource in resources.items():
        kind, _, rest = address.partition(".")
        if kind == "schema":
            yield Dependency(address, f"graph.{rest}")
        elif kind == "query":
            graph_id = rest.partition(".")[0]
            yield Dependency(address, f"graph.{graph_id}")
            yield Dependency(address, f"schema.{graph_id}")
        elif kind == "policy":
            for scope in resource.applies_to or ():
                if scope != CLUSTER_SCOPE:
                    yield Dependency(address, scope)
        elif kind == "graph" and resource.embedding_provider is not None:
            yield Dependency(address, f"provider.{resource.embedding_provider}")


def read_again(resource: Resource) -> str | None:
    """The present text of a resource's file; None if it is not the one that was validated."""
    if resource.file is None:
        return resource.text
    try:
        text = read_source(resource.file).text
    except SourceUnreadable:
        return None
    return text if text_digest(text) == resource.digest else None


class _Declared(Struct, frozen=True):
    """A file that the declaration names: where, as what, and its text."""

    path: str
    file: Path | None
    source: Source


class _QueryFile(Struct, frozen=True):
    declared: _Declared
    queries: QueryFile = field(default_factory=lambda: QueryFile(()))


class _Files:
    """Reads the files of a declaration and collects what is wrong with them."""

    def __init__(self, files: DeclarationFiles, config: ClusterConfig, found: Diagnostics) -> None:
        self._files = files
        self._config = config
        self._found = found
        self._parsed: dict[Path, _QueryFile | None] = {}

    def resources(self) -> dict[str, Resource]:
        """All resources that could be read, by address."""
        made: list[Resource] = []
        for graph_id in self._config.graphs:
            made += self._graph(graph_id)
        made += self._policies()
        for name, provider in self._config.providers.items():
            text = provider_text(provider)
            applied = AppliedResource(digest=text_digest(text))
            made.append(Resource(f"provider.{name}", "provider", applied, text=text))
        return {one.address: one for one in sorted(made, key=lambda one: one.address)}

    # -- graphs -----------------------------------------------------------------------------

    def _graph(self, graph_id: str) -> Iterator[Resource]:
        graph = self._config.graphs[graph_id]
        path = f"graphs.{graph_id}.schema"
        place = self._config.place("graphs", graph_id, "schema")
        schema = self._file(graph.schema, path, place, "schema_file_missing")
        catalog = None if schema is None else self._catalog(schema, path)
        queries = self._queries(graph_id)
        self._check_queries(graph_id, queries, catalog)
        digests: dict[str, str] = {}
        if schema is not None:
            made = _resource(f"schema.{graph_id}", "schema", schema)
            digests[made.address] = made.digest
            yield made
        for name, found in queries.items():
            made = _resource(f"query.{graph_id}.{name}", "query", found.declared)
            digests[made.address] = made.digest
            yield made
        applied = AppliedResource(
            digest=composite_digest(graph_id, digests),
            embedding_provider=graph.embedding_provider,
            external_blobs=graph.external_blobs,
        )
        yield Resource(f"graph.{graph_id}", "graph", applied)

    def _catalog(self, schema: _Declared, path: str) -> Catalog | None:
        try:
            check_reserved_names(schema.source)
            return compile_schema(schema.source)
        except CatalogError as error:
            self._found.error("schema_catalog_error", path, str(error))
        except LanguageError as error:
            self._found.error("schema_parse_error", path, str(error))
        return None

    def _queries(self, graph_id: str) -> dict[str, _QueryFile]:
        """The files of the stored queries of a graph, by query name."""
        written = self._config.graphs[graph_id].queries
        path = f"graphs.{graph_id}.queries"
        found: dict[str, _QueryFile] = {}
        if isinstance(written, Mapping):
            for name, file in written.items():
                self._keyed_query(graph_id, name, file, found)
            return found
        for at, entry in enumerate((written,) if isinstance(written, str) else written):
            keys = ("graphs", graph_id, "queries", *(() if isinstance(written, str) else (at,)))
            place = self._config.place(*keys)
            for file in self._query_files(entry, path, place):
                parsed = self._parse(file, path, place)
                for query in () if parsed is None else parsed.queries.queries:
                    self._register(query.name.text, parsed, path, place, found)
        return found

    def _keyed_query(
        self, graph_id: str, name: str, file: str, found: dict[str, _QueryFile]
    ) -> None:
        path = f"graphs.{graph_id}.queries.{name}"
        place = self._config.place("graphs", graph_id, "queries", name, "file")
        parsed = self._parse(file, f"{path}.file", place)
        if parsed is None:
            return
        declared = sorted(query.name.text for query in parsed.queries.queries)
        if name in declared:
            found[name] = parsed
            return
        listed = f"declares {', '.join(declared)}" if declared else "declares no query"
        message = f"{file} {listed}; the key must match the query symbol"
        place = self._config.place("graphs", graph_id, "queries", name)
        self._found.error("query_key_mismatch", path, message, place)

    def _register(
        self,
        name: str,
        parsed: _QueryFile | None,
        path: str,
        place: Place | None,
        found: dict[str, _QueryFile],
    ) -> None:
        assert parsed is not None
        earlier = found.get(name)
        if earlier is None:
            found[name] = parsed
        elif earlier is not parsed:
            files = f"{earlier.declared.path} and {parsed.declared.path}"
            self._found.error("duplicate_query_name", path, f"query '{name}' is in {files}", place)

    def _query_files(self, entry: str, path: str, place: Place | None) -> Iterator[str]:
        """The files that an entry stands for: itself, or those of a directory."""
        directory = self._locate(entry, path, place)
        if directory is None or not self._files.is_directory(directory):
            if directory is not None:
                yield entry
            return
        try:
            names = self._files.query_files(directory)
        except OSError as error:
            message = f"{entry}: {(error.strerror or 'unreadable').lower()}"
            self._found.error("query_dir_unreadable", path, message, place)
            return
        if not names:
            self._found.warning("query_dir_empty", path, f"{entry} has no .gq file", place)
        yield from (f"{entry.rstrip('/')}/{name}" for name in names)

    def _parse(self, file: str, path: str, place: Place | None) -> _QueryFile | None:
        located = self._locate(file, path, place)
        if located is None:
            return None
        if located not in self._parsed:
            self._parsed[located] = self._parse_new(file, path, place)
        return self._parsed[located]

    def _parse_new(self, file: str, path: str, place: Place | None) -> _QueryFile | None:
        declared = self._file(file, path, place, "query_file_missing")
        if declared is None:
            return None
        try:
            return _QueryFile(declared, parse_queries(declared.source))
        except LanguageError as error:
            self._found.error("query_parse_error", path, str(error))
            return None

    def _check_queries(
        self, graph_id: str, queries: Mapping[str, _QueryFile], catalog: Catalog | None
    ) -> None:
        if catalog is None:
            if queries:
                message = "the queries were not checked, because the schema is not valid"
                self._found.warning(
                    "query_typecheck_skipped", f"graphs.{graph_id}.queries", message
                )
            return
        for name, found in queries.items():
            query = next(q for q in found.queries.queries if q.name.text == name)
            try:
                compile_checked(found.declared.source, catalog, query)
            except LanguageError as error:
                path = f"graphs.{graph_id}.queries.{name}"
                self._found.error("query_typecheck_error", path, str(error))

    # -- policies ---------------------------------------------------------------------------

    def _policies(self) -> Iterator[Resource]:
        bound: dict[str, str] = {}
        for name, policy in self._config.policies.items():
            path = f"policies.{name}"
            scopes = self._scopes(name)
            for scope in scopes:
                if scope in bound:
                    message = f"policies '{bound[scope]}' and '{name}' both apply to {scope}"
                    place = self._config.place("policies", name, "applies_to")
                    self._found.error(
                        "duplicate_policy_binding", f"{path}.applies_to", message, place
                    )
                bound.setdefault(scope, name)
            place = self._config.place("policies", name, "file")
            declared = self._file(policy.file, f"{path}.file", place, "policy_file_missing")
            if declared is None:
                continue
            self._check_policy(name, declared, scopes)
            applied = AppliedResource(digest=text_digest(declared.source.text), applies_to=scopes)
            yield Resource(
                f"policy.{name}",
                "policy",
                applied,
                declared.path,
                declared.file,
                declared.source.text,
            )

    def _scopes(self, name: str) -> tuple[str, ...]:
        """What a policy applies to, as `cluster` and `graph.<id>`, sorted."""
        scopes = set()
        for at, written in enumerate(self._config.policies[name].applies_to):
            path = f"policies.{name}.applies_to"
            place = self._config.place("policies", name, "applies_to", at)
            kind, dot, rest = written.partition(".")
            if written == CLUSTER_SCOPE:
                scopes.add(written)
            elif dot and kind != "graph":
                known = f"; '{kind}' resources have no policy" if kind in _KINDS else ""
                message = f"'{written}' is not `cluster`, a graph id or `graph.<id>`{known}"
                self._found.error("wrong_kind_reference", path, message, place)
            elif (graph_id := rest if dot else written) in self._config.graphs:
                scopes.add(f"graph.{graph_id}")
            else:
                message = f"there is no graph '{graph_id}' under graphs"
                self._found.error("dangling_graph_reference", path, message, place)
        return tuple(sorted(scopes))

    def _check_policy(self, name: str, declared: _Declared, scopes: Sequence[str]) -> None:
        path = f"policies.{name}.file"
        if CLUSTER_SCOPE in scopes and len(scopes) > 1:
            message = "a bundle applies to the cluster or to graphs, not to both; split it"
            place = self._config.place("policies", name, "applies_to")
            self._found.error("policy_invalid", f"policies.{name}.applies_to", message, place)
            return
        kind = None
        if scopes:
            kind = PolicyKind.SERVER if scopes[0] == CLUSTER_SCOPE else PolicyKind.GRAPH
        try:
            policy = parse_policy(declared.source.text, declared.path, kind)
        except PolicyInvalid as error:
            for problem in error.problems:
                self._found.error("policy_invalid", path, f"{declared.path}: {problem}")
            return
        for key in policy.unknown_keys:
            if key == _KIND_MARKER:
                continue
            self._found.error("policy_invalid", path, f"{declared.path}: unknown key {key}")

    # -- files ------------------------------------------------------------------------------

    def _file(self, written: str, path: str, place: Place | None, missing: str) -> _Declared | None:
        located = self._locate(written, path, place)
        if located is None:
            return None
        try:
            text = self._files.text(located)
        except SourceUnreadable as error:
            self._found.error(missing, path, str(error), place)
            return None
        # Messages about the text name the file as the declaration does.
        return _Declared(written, self._files.on_disk(located), Source(written, text))

    def _locate(self, written: str, path: str, place: Place | None) -> Path | None:
        try:
            return self._files.locate(written)
        except PathRefused as refused:
            self._found.error(refused.code, path, str(refused), place)
            return None


def _resource(address: str, kind: str, declared: _Declared) -> Resource:
    text = declared.source.text
    applied = AppliedResource(digest=text_digest(text))
    return Resource(address, kind, applied, declared.path, declared.file, text)
