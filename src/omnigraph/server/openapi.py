"""The OpenAPI documents, made from the route table and the structs of the documents.

Tests: tests/server/test_openapi.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from http import HTTPStatus
from typing import Any, Final, get_args

import msgspec

from omnigraph._version import __version__
from omnigraph.server.call import Answer, Call
from omnigraph.server.router import GRAPH_PREFIX
from omnigraph.server.routes import ROUTES, QueryParameter, Route, Scope
from omnigraph.wire.contracts import HEADER, VERSION_13
from omnigraph.wire.documents07 import ParamKind
from omnigraph.wire.errors import (
    ErrorCode,
    ErrorOutput07,
    ErrorOutput13,
    MergeConflictKindOutput,
)
from omnigraph.wire.requests import LoadMode

_REF: Final = "#/components/schemas/{name}"
_BODY_STATUSES: Final = (408, 413, 415)
_CONDITION: Final = "Omnigraph-If-Graph-Commit"
_ENUMERATIONS: Final = {
    frozenset(get_args(kind)): name
    for name, kind in {
        "ErrorCode": ErrorCode,
        "LoadMode": LoadMode,
        "MergeConflictKindOutput": MergeConflictKindOutput,
        "ParamKind": ParamKind,
    }.items()
}
"""Sets of words that have a name of their own."""


def _show(call: Call) -> Answer:
    """Show the OpenAPI document of this server."""
    state = call.state
    document = openapi_document(
        ROUTES,
        call.contract.version,
        is_multi=state.graphs.is_multi,
        has_tokens=state.requires_token,
    )
    return Answer(document)


OPENAPI: Final = Route(
    "GET", "/openapi.json", "openapi", "health", _show, scope=Scope.PUBLIC, action="none"
)
"""The route of the document itself, which it leaves out."""


@lru_cache(maxsize=16)
def openapi_document(
    routes: tuple[Route, ...], version: str, *, is_multi: bool, has_tokens: bool
) -> dict[str, Any]:
    """The document of one contract, for a server for one graph or for several."""
    shown = [route for route in routes if version in route.contracts and route.is_documented]
    is_13 = version == VERSION_13
    is_nested = is_multi or is_13
    components = _Components(shown, version)
    paths: dict[str, dict[str, Any]] = {}
    for route in shown:
        operation = _operation(route, version, components, is_nested=is_nested)
        if has_tokens and route.scope is not Scope.PUBLIC:
            operation["security"] = [{"bearer_token": []}]
        entry = paths.setdefault(_path(route, is_nested), {})
        entry[route.method.lower()] = operation
        if is_13 and route.path in ("/healthz", "/blob"):
            head = dict(operation) | {"operationId": f"{operation['operationId']}Head"}
            entry["head"] = head
    document: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {
            "title": "Omnigraph API",
            "version": __version__,
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "paths": paths,
        "components": {"schemas": components.schemas},
    }
    if has_tokens:
        scheme = {"type": "http", "scheme": "bearer"}
        document["components"]["securitySchemes"] = {"bearer_token": scheme}
    return document


class _Components:
    """The schemas of all documents of a contract, each under the name of its struct."""

    def __init__(self, routes: Sequence[Route], version: str) -> None:
        self.error = ErrorOutput13 if version == VERSION_13 else ErrorOutput07
        kinds: list[Any] = [self.error]
        for route in routes:
            kinds += _documents(route, version)
        found, schemas = msgspec.json.schema_components(kinds, ref_template=_REF)
        names = {name: _plain(name) for name in schemas}
        self._refs = {
            _key(kind): _renamed(schema, names) for kind, schema in zip(kinds, found, strict=True)
        }
        self.schemas = {
            names[name]: _renamed(schema, names) for name, schema in schemas.items()
        } | {name: {"enum": sorted(words)} for words, name in _ENUMERATIONS.items()}
        self.schemas = dict(sorted(self.schemas.items()))

    def of(self, kind: Any) -> dict[str, Any]:
        """The reference to the schema of a document."""
        if isinstance(kind, tuple):
            return {"oneOf": [self.of(one) for one in kind]}
        return dict(self._refs[_key(kind)])


def _documents(route: Route, version: str) -> Iterable[Any]:
    body, answer = route.body_for(version), route.answer_for(version)
    if body not in (None, bytes):
        yield body
    if answer is not None:
        yield from answer if isinstance(answer, tuple) else (answer,)


def _key(kind: Any) -> str:
    return str(kind)


def _plain(name: str) -> str:
    """The name of a component: that of its struct, without the contract."""
    return name.removesuffix("07").removesuffix("13").lstrip("_")


def _renamed(schema: Any, names: dict[str, str]) -> Any:
    if isinstance(schema, dict):
        if name := _ENUMERATIONS.get(frozenset(map(str, schema.get("enum", ())))):
            return {"$ref": _REF.format(name=name)}
        changed = {key: _renamed(value, names) for key, value in schema.items()}
        if isinstance(schema.get("$ref"), str):
            name = schema["$ref"].rpartition("/")[2]
            changed["$ref"] = _REF.format(name=names.get(name, name))
        if "title" in changed and isinstance(changed["title"], str):
            changed["title"] = _plain(changed["title"])
        return changed
    if isinstance(schema, list):
        return [_renamed(value, names) for value in schema]
    return schema


def _path(route: Route, is_nested: bool) -> str:
    prefix = "/" + "/".join(GRAPH_PREFIX) if is_nested and route.scope is Scope.GRAPH else ""
    return prefix + route.path


def _operation(
    route: Route, version: str, components: _Components, *, is_nested: bool
) -> dict[str, Any]:
    is_13 = version == VERSION_13
    is_graph = route.scope is Scope.GRAPH
    prefix = "cluster_" if is_nested and is_graph else ""
    operation: dict[str, Any] = {
        "operationId": prefix + route.operation,
        "summary": route.summary,
        "tags": [route.tag],
    }
    names = [
        segment.strip("{}")
        for segment in _path(route, is_nested).split("/")
        if segment.startswith("{")
    ]
    parameters: list[dict[str, Any]] = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in names
    ]
    parameters += map(_query_parameter, route.query)
    parameters += _header_parameters(route, is_13)
    if parameters:
        operation["parameters"] = parameters
    body = route.body_for(version)
    if body is not None:
        schema = {"type": "string"} if body is bytes else components.of(body)
        operation["requestBody"] = {
            "required": route.body_required,
            "content": {route.body_media: {"schema": schema}},
        }
    operation["responses"] = _responses(route, version, components)
    if route.successor is not None:
        operation["deprecated"] = True
    return operation


def _query_parameter(given: QueryParameter) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": given.kind}
    return {
        "name": given.name,
        "in": "query",
        "required": given.required,
        "description": given.meaning,
        "schema": {"type": "array", "items": schema} if given.repeats else schema,
    }


def _header_parameters(route: Route, is_13: bool) -> Iterable[dict[str, Any]]:
    if is_13 and route.scope is not Scope.PUBLIC:
        yield {
            "name": HEADER.lower(),
            "in": "header",
            "required": True,
            "schema": {"type": "string", "enum": [VERSION_13]},
        }
    if route.path.endswith("/if-graph-commit"):
        yield {
            "name": _CONDITION,
            "in": "header",
            "required": True,
            "schema": {"type": "string"},
        }
    if route.is_write and route.scope is Scope.GRAPH:
        yield {
            "name": "Idempotency-Key",
            "in": "header",
            "required": False,
            "schema": {"type": "string"},
        }


def _responses(route: Route, version: str, components: _Components) -> dict[str, Any]:
    is_13 = version == VERSION_13
    stamp = {HEADER.lower(): {"schema": {"type": "string", "enum": [VERSION_13]}}}
    headers = {"headers": stamp} if is_13 else {}
    answer = route.answer_for(version)
    responses: dict[str, Any] = {}
    if answer is not None or route.media != "application/json":
        schema = {"type": "string"} if answer is None else components.of(answer)
        content = {route.media: {"schema": schema}}
        responses["200"] = {"description": "OK", "content": content, **headers}
    for status in sorted(_statuses(route, is_13)):
        described: dict[str, Any] = {"description": HTTPStatus(status).phrase, **headers}
        if status == 202 and answer is not None:
            described["content"] = {route.media: {"schema": components.of(answer)}}
        if status >= 400:
            error = components.of(components.error)
            described["content"] = {"application/json": {"schema": error}}
        if status == 503 and route.answer_for(version) is not None and route.path == "/readyz":
            described["content"] = {
                "application/json": {"schema": components.of(route.answer_for(version))}
            }
        responses[str(status)] = described
    return responses


def _statuses(route: Route, is_13: bool) -> set[int]:
    found = set(route.statuses)
    if route.scope is Scope.PUBLIC:
        return found
    found |= {400, 401, 500, 503}
    if route.body is not None:
        found |= set(_BODY_STATUSES)
        if not is_13:
            found.add(422)
    return found
