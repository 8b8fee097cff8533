"""Requests that are generated from the OpenAPI documents: whatever is sent, the answer is a documented one."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import msgspec
import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from omnigraph.server.openapi import openapi_document
from omnigraph.server.routes import ROUTES
from tests.server.serving import LIB, ROWS, SCHEMA, H, library, serving
from tests.server.test_policies import POLICY, TOKENS

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
MODES = (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)
FEW, MANY = 3, 150

PLAUSIBLE: dict[str, list[Any]] = {
    "query": [LIB, "query q() { match { $a: Author } return { $a } }", "branch list"],
    "query_source": [LIB],
    "name": ["by_slug", "all_authors", "add_author", "made"],
    "query_name": ["all_authors", "set_born"],
    "params": [{"slug": "ada"}, {"slug": "zoe", "born": 1}],
    "branch": ["main", "made", " main "],
    "from": ["main", "made"],
    "to": ["main"],
    "source": ["made", "main"],
    "target": ["main", "made"],
    "data": [ROWS, '{"type":"Author","data":{"slug":"new"}}\n'],
    "schema_source": [SCHEMA],
    "type_names": [["Author"], ["Wrote"]],
    "type_name": ["Author", "Wrote"],
    "type": ["Author"],
    "entity": ["node", "edge"],
    "entity_id": ["ada"],
    "id": ["ada"],
    "snapshot": ["main", "made"],
    "since": ["main"],
    "start": ["beginning", "now", "after:main"],
    "commit_id": ["main", "made"],
    "limit": [1, 8192],
}
"""Values that reach further into the server than generated ones."""


def document_of(version, has_tokens):
    return openapi_document(ROUTES, version, is_multi=False, has_tokens=has_tokens)


@cache
def operations(version, has_tokens):
    document = document_of(version, has_tokens)
    # As a client reads it.
    schema = schemathesis.openapi.from_dict(json.loads(json.dumps(document)))
    valid = (found.ok() for found in schema.get_all_operations() if isinstance(found, Ok))
    return {operation.label: operation for operation in valid}


CASES = [
    (version, f"{method.upper()} {path}")
    for version in ("0.7", "0.13")
    for path, methods in document_of(version, False)["paths"].items()
    for method in methods
]
ALTERNATING = [
    pytest.param(*case, marks=() if number % 2 else pytest.mark.slow)
    for number, case in enumerate(CASES)
]


@pytest.fixture(scope="module")
def open_server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("open")
    with serving(folder, library(folder), "--unauthenticated") as server:
        yield server
        assert "Traceback" not in server.log


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("guarded")
    (folder / "policy.yaml").write_text(POLICY)
    config = folder / "omnigraph.yaml"
    config.write_text("policy:\n  file: policy.yaml\n")
    with serving(folder, library(folder), "--config", config, env=TOKENS) as server:
        yield server
        assert "Traceback" not in server.log


@st.composite
def cases(draw, operation, mode, headers):
    """A generated request, some of whose values are replaced by plausible ones."""
    case = draw(operation.as_strategy(generation_mode=mode))
    if "{graph_id}" in operation.path and case.path_parameters:
        case.path_parameters["graph_id"] = "default"
    given = {
        name: value for name, value in (case.headers or {}).items() if name.lower() not in FIXED
    }
    case.headers = {**given, **headers}
    for values in (case.body, case.query, case.path_parameters):
        if isinstance(values, dict):
            for name in values:
                if name in PLAUSIBLE and draw(st.booleans()):
                    values[name] = draw(st.sampled_from(PLAUSIBLE[name]))
    return case


FIXED = frozenset(["omnigraph-http-api", "authorization"])


@schemathesis.serializer("application/x-ndjson")
def json_lines(context, value):
    """A body of JSON Lines: text as it is, any other value as one line."""
    return (
        value.encode("utf-8", "replace") if isinstance(value, str) else json.dumps(value).encode()
    )


@schemathesis.serializer("application/msgpack")
def message_pack(context, value):
    return msgspec.msgpack.encode(value)


def check(server, operation, headers, examples):
    with requests.Session() as session:
        session.trust_env = False
        for mode in MODES:

            @given(cases(operation, mode, headers))
            @settings(
                max_examples=examples,
                database=None,
                phases=[Phase.generate],
                suppress_health_check=list(HealthCheck),
            )
            def send(case):
                answer = case.call(base_url=f"http://{server.address}", session=session, timeout=60)
                try:
                    case.validate_response(answer, checks=CHECKS, headers=headers)
                except BaseExceptionGroup as failures:
                    raise AssertionError(f"{failures}\n{answer.text[:500]}") from None

            try:
                send()
            except Unsatisfiable:
                assert mode is GenerationMode.NEGATIVE, "nothing about the operation can be wrong"


@pytest.mark.parametrize(("version", "label"), CASES, ids=map(" ".join, CASES))
def test_an_open_server_answers_as_documented(open_server, version, label):
    check(open_server, operations(version, False)[label], H if version == "0.13" else {}, FEW)


@pytest.mark.parametrize(("version", "label"), ALTERNATING, ids=map(" ".join, CASES))
def test_a_guarded_server_answers_as_documented(guarded, version, label):
    headers = (H if version == "0.13" else {}) | {"Authorization": "Bearer t-amy"}
    check(guarded, operations(version, True)[label], headers, FEW)


@pytest.mark.slow
@pytest.mark.parametrize(("version", "label"), CASES, ids=map(" ".join, CASES))
def test_many_requests_are_answered_as_documented(open_server, version, label):
    check(open_server, operations(version, False)[label], H if version == "0.13" else {}, MANY)
