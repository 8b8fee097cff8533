"""No way around tokens and policies: every route and tool, with everything that is not a valid token."""

from __future__ import annotations

import asyncio
import itertools
import json
from urllib.parse import quote, urlencode

import httpx
import msgspec
import pytest

import omnigraph as og
from omnigraph.errors import PolicyDenied, PolicyUndecided
from omnigraph.graph.gate import Action, OpenGate
from omnigraph.mcp.backend import AppBackend
from omnigraph.mcp.session import AgentSession, UnknownTool
from omnigraph.mcp.tools import TOOLS
from omnigraph.server.app import App
from omnigraph.server.bodies import MSGPACK
from omnigraph.server.call import ServerState
from omnigraph.server.graphs import ReadsOnly, ServedGraph, ServedGraphs
from omnigraph.server.routes import ROUTES, Scope
from omnigraph.server.tokens import Tokens
from omnigraph.stored_queries.registry import QueryEntry, read_registry
from tests.server.calls import (
    CALLS,
    CHANGE,
    LIB,
    READ,
    ROWS,
    SCHEMA,
    TOOL_CALLS,
    is_public,
    unlisted,
)
from tests.server.serving import H

TOKEN = "t-root"
ROOT = [("Authorization", f"Bearer {TOKEN}")]
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT")

NOT_A_TOKEN = {
    "nothing": [],
    "empty": [("Authorization", "")],
    "another token": [("Authorization", "Bearer t-rooT")],
    "a prefix of the token": [("Authorization", "Bearer t-roo")],
    "the token and more": [("Authorization", "Bearer t-root t-root")],
    "the scheme alone": [("Authorization", "Bearer")],
    "the scheme and a space": [("Authorization", "Bearer ")],
    "the scheme in lower case": [("Authorization", "bearer t-root")],
    "the scheme in upper case": [("Authorization", "BEARER t-root")],
    "another scheme": [("Authorization", "Basic dC1yb290")],
    "two spaces": [("Authorization", "Bearer  t-root")],
    "a tab": [("Authorization", "Bearer\tt-root")],
    "no scheme": [("Authorization", TOKEN)],
    "the actor as the token": [("Authorization", "Bearer root")],
    "two headers, the second valid": [("Authorization", "Bearer x"), *ROOT],
    "two headers, the first valid": [*ROOT, ("Authorization", "Bearer x")],
    "the same header twice": [*ROOT, *ROOT],
    "headers that name an actor": [("X-Actor-Id", "root"), ("X-Forwarded-User", "root")],
    "headers that proxies set": [("X-Forwarded-For", "127.0.0.1"), ("Forwarded", "for=127.0.0.1")],
    "another header": [("Proxy-Authorization", f"Bearer {TOKEN}"), ("X-Api-Key", TOKEN)],
    "a cookie": [("Cookie", f"token={TOKEN}; Authorization=Bearer {TOKEN}")],
}


class Recorder:
    """A gate that allows everything and remembers what it was asked."""

    def __init__(self):
        self.asked = []

    def check(self, request):
        self.asked.append((request.action, request.branch, request.target_branch))


class Denier:
    def check(self, request):
        raise PolicyDenied("no", "root", request.action.value, request.branch, None)


class Undecided:
    def check(self, request):
        raise PolicyUndecided(request.action.value, "the policy is broken")


@pytest.fixture(scope="module", autouse=True)
def _quick_writes():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMNIGRAPH_DURABILITY", "none")
        yield


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    file = tmp_path_factory.mktemp("queries") / "lib.gq"
    file.write_text(LIB)
    return read_registry([QueryEntry(READ, file), QueryEntry(CHANGE, file)])


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    path = tmp_path_factory.mktemp("graph") / "g.omni"
    with og.init(path, schema=SCHEMA) as graph:
        graph.load(ROWS.encode(), "overwrite")
    return path


@pytest.fixture(scope="module")
def owner(root):
    """A handle that no gate guards."""
    with og.open(root) as graph:
        yield graph


class Site:
    """An application in this process, and values for calls of it."""

    def __init__(self, root, stored, owner, gate, *, is_multi=True, tokens=TOKEN):
        self.owner = owner
        self._unused = None
        self.is_multi = is_multi
        self.graph = og.open(root, policy=gate)
        served = ServedGraph("default", str(root), self.graph, gate, stored)
        graphs = ServedGraphs([served], is_multi=is_multi)
        state = ServerState(graphs, server_gate=gate)
        self.app = App(state, Tokens({"root": tokens} if tokens else {}))

    def __enter__(self):
        self._runner = asyncio.Runner()
        return self

    def __exit__(self, *_):
        self._runner.close()
        self.graph.close()

    def values(self):
        """A branch, its newest commit and a name, which one call may use up."""
        number = next(_numbers)
        branch = self.owner.branches.create(f"b{number}")
        done = branch.insert("Author", [{"slug": f"s{number}"}])
        head = done.receipt.graph_commit_id
        return {"<branch>": f"b{number}", "<head>": head, "<new>": f"n{number}"}

    def unused(self):
        """The same for calls that must not have an effect."""
        if self._unused is None:
            self._unused = self.values()
        return self._unused

    def state(self):
        """What a call must not change."""
        names = sorted(self.owner.branches)
        return names, [self.owner.head(name).id for name in ("main", names[0], names[-1])]

    def path(self, call, route, version, values):
        path = route.path
        for name, value in call.path.items():
            path = path.replace(f"{{{name}}}", quote(filled(value, values), safe=""))
        is_nested = route.scope is Scope.GRAPH and (self.is_multi or version == "0.13")
        return f"/graphs/default{path}" if is_nested else path

    def send(self, call, route, version, values, headers, query=()):
        path = self.path(call, route, version, values)
        given = list(headers) + list(filled(call.headers, values).items())
        given += H.items() if version == "0.13" else ()
        content = None
        if call.body is not None:
            given.append(("Content-Type", route.body_media))
            body = filled(call.body, values)
            content = body if isinstance(body, str) else encode_as(route.body_media, body)
        params = [*filled(call.query, values).items(), *query]
        return self.request(route.method, path, headers=given, params=params, content=content)

    def request(self, method, path, **given):
        return self.run(self._request(method, path, **given))

    def run(self, answering):
        return self._runner.run(answering)

    async def _request(self, method, path, *, headers=(), params=(), content=None):
        """The application itself, without a client in between that would correct a request."""
        pairs = headers.items() if isinstance(headers, dict) else headers
        scope = {
            "type": "http",
            "method": method,
            "path": path,
            "raw_path": path.encode(),
            "query_string": urlencode(params).encode(),
            "headers": [(name.lower().encode(), value.encode()) for name, value in pairs],
        }
        body = content.encode() if isinstance(content, str) else content or b""
        waiting = [{"type": "http.request", "body": body, "more_body": False}]
        sent = []

        async def receive():
            if not waiting:
                await asyncio.Event().wait()
            return waiting.pop()

        async def send(message):
            sent.append(message)

        await self.app(scope, receive, send)
        begin, *parts = sent
        return httpx.Response(
            begin["status"],
            headers=begin["headers"],
            content=b"".join(part.get("body", b"") for part in parts),
        )


_numbers = itertools.count()


def filled(value, values):
    """A value with the names that stand in it."""
    if isinstance(value, str):
        for name, text in values.items():
            value = value.replace(name, text)
        return value
    if isinstance(value, bytes):
        return filled(value.decode(), values).encode()
    if isinstance(value, dict):
        return {key: filled(one, values) for key, one in value.items()}
    if isinstance(value, list):
        return [filled(one, values) for one in value]
    return value


def encode_as(media, body):
    return msgspec.msgpack.encode(body) if media == MSGPACK else msgspec.json.encode(body)


@pytest.fixture(scope="module")
def site(root, stored, owner):
    with Site(root, stored, owner, Recorder()) as with_token:
        yield with_token


def every_call(*, public=False):
    for call in CALLS:
        for route, version in call.routes():
            if public or not is_public(route):
                yield call, route, version


def test_every_route_is_listed():
    assert unlisted() == []


@pytest.mark.parametrize("how", NOT_A_TOKEN)
@pytest.mark.acceptance("U-068")
def test_without_a_valid_token_nothing_happens(site, how):
    values = site.unused()
    before = site.state()
    site.graph._shared.gate.asked.clear()
    for call, route, version in every_call():
        query = [("access_token", TOKEN), ("token", TOKEN), ("actor", "root")]
        answer = site.send(call, route, version, values, NOT_A_TOKEN[how], query)
        where = f"{route.method} {route.path} {version}"
        assert answer.status_code == 401, where
        assert answer.json()["code"] == "unauthorized", where
        assert answer.headers["www-authenticate"] == "Bearer", where
        assert TOKEN not in answer.text, where
    assert site.graph._shared.gate.asked == []
    assert site.state() == before


def test_public_routes_need_no_token(site):
    for call in CALLS:
        for route, version in call.routes():
            if is_public(route):
                answer = site.send(call, route, version, {}, [])
                assert answer.status_code == call.status, route.path


def test_no_method_of_any_path_works_without_a_token(site):
    values = site.unused()
    before = site.state()
    public = {"/healthz", "/readyz", "/openapi.json", "/.well-known/oauth-protected-resource"}
    seen = set()
    for call, route, version in every_call(public=True):
        path = site.path(call, route, version, values)
        if (path, version) in seen:
            continue
        seen.add((path, version))
        for method in METHODS:
            given = H if version == "0.13" else {}
            answer = site.request(method, path, headers=given, content=b"{}")
            allowed = {401, 404, 405} | ({200} if path in public else set())
            assert answer.status_code in allowed, f"{method} {path}"
    assert site.state() == before


@pytest.mark.acceptance("U-069", "U-340")
def test_every_route_asks_the_policy_what_the_table_says(site):
    gate = site.graph._shared.gate
    for call, route, version in every_call():
        values = site.values()
        gate.asked.clear()
        spoofed = [*ROOT, ("X-Actor-Id", "eve")]
        answer = site.send(call, route, version, values, spoofed, [])
        where = f"{route.method} {route.path} {version}"
        assert answer.status_code == call.status, f"{where}: {answer.text}"
        expected = {tuple(filled(part, values) for part in asked) for asked in call.asks}
        assert set(gate.asked) == expected, where
        assert '"eve"' not in answer.text, where


# -- MCP ------------------------------------------------------------------------------------


def test_every_tool_is_listed():
    assert {tool.name for tool in TOOLS} == TOOL_CALLS.keys()


def agent_on(site, may):
    """The tools of the actor whose token it is, of which `may` says which exist."""
    authorization = f"Bearer {TOKEN}".encode()
    backend = AppBackend(site.app, "default", is_multi=site.is_multi, authorization=authorization)
    return AgentSession(backend, actor="root", may=may)


def every_tool(values):
    """Every tool with arguments that it accepts."""
    own = {"branches_delete": {"name": "<branch>"}}
    for name, arguments in (TOOL_CALLS | own).items():
        yield name, filled(arguments or {}, values)


def test_a_tool_exists_where_what_it_asks_the_policy_is_allowed(site):
    gate = site.graph._shared.gate
    session = agent_on(site, lambda action: True)
    actions = {tool.name: tool.action for tool in TOOLS}
    stored = {READ: (Action.READ, {}), CHANGE: (Action.CHANGE, {"params": {"slug": "<new>"}})}
    for name in (*actions, *stored):
        values = site.values()
        wanted, arguments = stored.get(name, (actions.get(name), {}))
        given = filled(arguments, values) if name in stored else dict(every_tool(values))[name]
        gate.asked.clear()
        result = site.run(session.call(name, given))
        assert not result.is_error or name == "schema_apply", (name, result.text)
        assert wanted is None or wanted in {action for action, _, _ in gate.asked}, name


def test_no_tool_does_what_the_policy_denies(root, stored, owner):
    """Not even one that was wrongly offered: what it asks for is denied again."""
    site = Site(root, stored, owner, Denier())
    values = site.unused()
    before = site.state()
    with site:
        offered = agent_on(site, lambda action: True)
        denied = agent_on(site, lambda action: False)
        assert [tool.name for tool in site.run(denied.tools())] == ["health"]
        for name, arguments in every_tool(values):
            if name == "health":
                continue
            result = site.run(offered.call(name, arguments))
            assert result.is_error, name
            assert json.loads(result.text)["status"] in (403, 404), (name, result.text)
            with pytest.raises(UnknownTool):
                site.run(denied.call(name, arguments))
        for session, name in itertools.product((offered, denied), (READ, CHANGE)):
            with pytest.raises(UnknownTool):
                site.run(session.call(name, {}))
    assert site.state() == before


# -- policies -------------------------------------------------------------------------------


@pytest.mark.parametrize("is_multi", [False, True], ids=["single", "multi"])
@pytest.mark.acceptance("U-074", "U-107")
def test_a_policy_that_denies_everything_denies_every_route(root, stored, owner, is_multi):
    site = Site(root, stored, owner, Denier(), is_multi=is_multi)
    values = site.unused()
    before = site.state()
    with site:
        for call, route, version in every_call():
            answer = site.send(call, route, version, values, ROOT)
            where = f"{route.method} {route.path} {version}"
            expected = 405 if route.operation == "listGraphs" and not is_multi else call.denied
            assert answer.status_code == expected, f"{where}: {answer.text}"
            if expected == 403:
                assert answer.json()["code"] == "forbidden", where
    assert site.state() == before


@pytest.mark.acceptance("U-074")
def test_a_graph_without_a_policy_allows_reads_only(root, stored, owner):
    site = Site(root, stored, owner, ReadsOnly(), is_multi=False)
    values = site.unused()
    before = site.state()
    with site:
        for call, route, version in every_call():
            if route.scope is not Scope.GRAPH:
                continue
            reads = all(action is Action.READ for action, _, _ in call.asks)
            answer = site.send(call, route, version, values, ROOT)
            expected = call.status if reads else call.denied
            assert answer.status_code == expected, f"{route.path} {version}: {answer.text}"
    assert site.state() == before


def test_a_policy_that_cannot_be_evaluated_is_no_permission(root, stored, owner):
    site = Site(root, stored, owner, Undecided())
    values = site.unused()
    before = site.state()
    with site:
        for call, route, version in every_call():
            answer = site.send(call, route, version, values, ROOT)
            expected = {"metrics": 200, "getCaller": 200, "discoverGraphs": 403}.get(
                route.operation, 404 if route.path.startswith("/cluster/") else 500
            )
            assert answer.status_code == expected, f"{route.path} {version}: {answer.text}"
    assert site.state() == before


def test_an_open_server_has_no_actor(root, stored, owner):
    site = Site(root, stored, owner, OpenGate(), is_multi=False, tokens=None)
    values = site.unused()
    with site:
        for call in CALLS:
            if call.operation == "mutate":
                ((route, version), *_) = call.routes()
                given = [*ROOT, ("X-Actor-Id", "root")]
                answer = site.send(call, route, version, values, given)
                assert answer.json()["actor_id"] is None
                break


def test_the_table_and_the_reference_page_agree():
    """Every action that a call asks for is named in the route's entry of the reference page."""
    actions = {route.operation: route.action for route in ROUTES}
    for call in CALLS:
        written = actions[call.operation]
        if written.startswith("as `/load`"):
            written = actions["load"]
        for action, _, _ in call.asks:
            assert f"`{action.value}" in written, call.operation
