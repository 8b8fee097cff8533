"""The Model Context Protocol with its official client, over HTTP and over standard streams."""

from __future__ import annotations

import asyncio
import json
import socket
import sys
from typing import Any

import httpx2
import pytest
from mcp import ClientSession, MCPError, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from omnigraph.mcp.tools import TOOLS
from tests.server.serving import LIB, environment, library, serving
from tests.server.test_policies import POLICY, TOKENS
from tests.server.test_stored_queries import make_project

COMMAND = "import sys; from omnigraph.cli.entry import run; sys.exit(run())"

INVOKE = """\
  - id: invoke
    allow: {actors: {group: team}, actions: [invoke_query]}
"""


class Agent:
    """A client session, with results as documents."""

    def __init__(self, session):
        self.session = session

    async def tools(self):
        return {tool.name: tool for tool in (await self.session.list_tools()).tools}

    async def call(self, tool, **arguments):
        result = await self.session.call_tool(tool, arguments)
        (content,) = result.content
        document = json.loads(content.text)
        return document | {"is_error": result.is_error}

    async def resource(self, uri):
        (content,) = (await self.session.read_resource(uri)).contents
        return content.text


def over_http(server, story, *, token=None, path="/mcp"):
    """Run a story with an agent on a server."""

    async def run():
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=60) as client,
            streamable_http_client(f"http://{server.address}{path}", http_client=client) as streams,
            ClientSession(*streams[:2]) as session,
        ):
            await session.initialize()
            return await story(Agent(session))

    return asyncio.run(asyncio.wait_for(run(), 90))


def over_streams(arguments, story, env=None):
    """Run a story with an agent on `omnigraph mcp` as its child process."""

    async def run():
        child = StdioServerParameters(
            command=sys.executable,
            args=["-c", COMMAND, "mcp", *map(str, arguments)],
            env=environment(env),
        )
        async with stdio_client(child) as streams, ClientSession(*streams) as session:
            await session.initialize()
            return await story(Agent(session))

    return asyncio.run(asyncio.wait_for(run(), 90))


def post(server, body, path="/mcp", **headers):
    accept = {"Accept": "application/json, text/event-stream"}
    return server.client.post(path, json=body, headers=accept | headers)


LIST_TOOLS = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    """A graph with a policy and stored queries."""
    folder = tmp_path_factory.mktemp("guarded")
    config = make_project(folder, policy=POLICY + INVOKE)
    with serving(folder, library(folder), "--config", config, env=TOKENS) as server:
        yield server


async def the_life_of_a_fact(agent):
    """What an agent does: look, write, compare, merge, look back."""
    schema = await agent.resource("omnigraph://schema")
    assert "born: I32?" in schema
    assert "omnigraph://schema" in await agent.resource("omnigraph://best-practices/index")
    found = await agent.call("query", query=LIB, name="by_slug", params={"slug": "ada"})
    assert found["rows"] == [{"a.slug": "ada", "a.born": 1815}]
    assert found["graphCommitId"]
    change = {"query": LIB, "name": "set_born", "params": {"slug": "cy", "born": 1900}}
    written = await agent.call("mutate", **change, message="found a source")
    branch = written["branch"]
    assert branch.startswith("agent/")
    assert written["affectedNodes"] == 1
    again = {"query": LIB, "name": "add_author", "params": {"slug": "dee", "born": 1}}
    assert (await agent.call("mutate", **again, branch=branch))["branch"] == branch
    changes = (await agent.call("diff", **{"from": "main", "to": branch}))["changes"]
    assert {(one["op"], one["id"]) for one in changes} == {("update", "cy"), ("insert", "dee")}
    preview = await agent.call("branches_merge", source=branch, dryRun=True)
    assert preview["conflicts"] == []
    merged = await agent.call("branches_merge", source=branch, deleteSource=True)
    assert merged["outcome"] == "fast_forward"
    entity = await agent.call("entity_get", type="Author", id="cy")
    assert "1900" in json.dumps(entity)
    history = await agent.call("entity_history", type="Author", id="cy")
    assert [one["op"] for one in history["changes"]].count("update") == 1
    commit = merged["commit"]["graphCommitId"]
    shown = await agent.call("commits_get", commitId=commit)
    assert shown["graphCommitId"] == commit
    reverted = await agent.call("revert", ref=commit, branch="main")
    assert not reverted["is_error"], reverted
    found = await agent.call("query", query=LIB, name="all_authors")
    assert [row["a.slug"] for row in found["rows"]] == ["ada", "bob", "cy"]
    return branch


@pytest.mark.acceptance("U-160")
def test_a_story_over_standard_streams(tmp_path):
    root = library(tmp_path)
    branch = over_streams([root, "--as", "ada lovelace"], the_life_of_a_fact)
    assert branch.startswith("agent/ada-lovelace/")


def test_a_story_over_http(guarded):
    branch = over_http(guarded, the_life_of_a_fact, token="t-root")
    assert branch.split("/")[:2] == ["agent", "root"]


def test_a_story_through_a_server(tmp_path):
    with serving(tmp_path, library(tmp_path), "--unauthenticated") as server:
        url = f"http://{server.address}"
        over_streams(["--server", url], the_life_of_a_fact)
        names = over_streams([], lambda agent: agent.tools(), env={"OMNIGRAPH_BASE_URL": url})
        assert "mutate" in names


def test_tools_have_names_and_schemas_that_a_model_can_use(server):
    tools = over_http(server, lambda agent: agent.tools())
    assert set(tools) == {tool.name for tool in TOOLS if tool.is_listed} - {"graphs_list"}
    for tool in tools.values():
        assert tool.description.endswith(".")
        assert tool.input_schema["type"] == "object"
        assert "$ref" not in json.dumps(tool.input_schema)
    assert tools["query"].annotations.read_only_hint
    assert not tools["mutate"].annotations.read_only_hint
    assert tools["load"].input_schema["required"] == ["branch", "mode", "data"]


def test_names_of_the_first_version_can_be_called(server):
    async def story(agent):
        found = await agent.call("read", querySource=LIB, queryName="all_authors")
        assert len(found["rows"]) == 3
        data = '{"type":"Author","data":{"slug":"eve"}}\n'
        loaded = await agent.call("ingest", data=data, branch="old-names", **{"from": "main"})
        assert loaded["branchCreated"]
        given = {"slug": "fay", "born": 1}
        changed = await agent.call(
            "change", querySource=LIB, queryName="add_author", params=given, branch="old-names"
        )
        assert changed["affectedNodes"] == 1

    over_http(server, story)


def test_a_conditional_write_on_a_moved_branch_is_refused(server):
    async def story(agent):
        before = (await agent.call("query", query=LIB, name="all_authors"))["graphCommitId"]
        await agent.call("branches_create", name="moved")
        change = {"query": LIB, "name": "add_author", "branch": "moved"}
        first = await agent.call(
            "mutate", **change, params={"slug": "g", "born": 1}, ifGraphCommit=before
        )
        assert not first["is_error"]
        stale = await agent.call(
            "mutate", **change, params={"slug": "h", "born": 1}, ifGraphCommit=before
        )
        assert (stale["is_error"], stale["status"]) == (True, 412)
        assert "preconditionFailure" in stale["body"]
        assert stale["outcomeUnknown"] is False

    over_http(server, story)


def test_without_a_token_there_is_nothing(guarded):
    for headers in ({}, {"Authorization": "Bearer t-roo"}, {"Authorization": "bearer t-root"}):
        for path in ("/mcp", "/graphs/default/mcp"):
            answer = post(guarded, LIST_TOOLS, path, **headers)
            assert answer.status_code == 401
            assert "tools" not in answer.text
    assert guarded.get("/mcp").status_code == 401


def test_a_denied_tool_is_unknown(guarded):
    """amy may change unprotected branches alone, eve may do nothing."""

    async def amy(agent):
        tools = await agent.tools()
        assert {"mutate", "load", "branches_create", "query", "find_author"} <= set(tools)
        assert not {"branches_merge", "branches_delete", "graphs_list"} & set(tools)
        for name in ("branches_merge", "schema_apply", "graphs_list", "no_such_tool"):
            with pytest.raises(MCPError, match=f"unknown tool '{name}'"):
                await agent.session.call_tool(name, {"source": "x", "schemaSource": "x"})
        change = {"query": LIB, "name": "add_author", "params": {"slug": "amys", "born": 1}}
        denied = await agent.call("mutate", **change, branch="main")
        assert (denied["status"], denied["code"]) == (403, "forbidden")
        written = await agent.call("mutate", **change)
        assert written["branch"].startswith("agent/amy/")
        commits = await agent.call("commits_list", branch=written["branch"], limit=1)
        assert commits["commits"][0]["actorId"] == "amy"

    async def eve(agent):
        assert set(await agent.tools()) == {"health"}
        with pytest.raises(MCPError, match="unknown tool 'query'"):
            await agent.session.call_tool("query", {"query": LIB, "name": "all_authors"})
        listed = (await agent.session.list_resources()).resources
        assert not {"omnigraph://schema", "omnigraph://branches"} & {str(r.uri) for r in listed}
        with pytest.raises(MCPError, match="unknown resource"):
            await agent.session.read_resource("omnigraph://schema")

    over_http(guarded, amy, token="t-amy")
    over_http(guarded, eve, token="t-eve")


def test_a_failed_write_leaves_no_branch(guarded):
    async def story(agent):
        before = (await agent.call("branches_list"))["branches"]
        failed = await agent.call("mutate", query="query q() { insert Nope { a: 1 } }")
        assert (failed["is_error"], failed["status"]) == (True, 400)
        assert "Nope" in failed["error"]
        assert (await agent.call("branches_list"))["branches"] == before

    over_http(guarded, story, token="t-root")


def test_stored_queries_are_tools(guarded):
    async def story(agent):
        tools = await agent.tools()
        schema = tools["find_author"].input_schema
        assert schema["properties"]["params"]["required"] == ["slug"]
        assert "all_authors" not in tools
        found = await agent.call("find_author", params={"slug": "ada"})
        assert found["rows"] == [{"a.slug": "ada", "a.born": 1815}]
        added = await agent.call("add_author", params={"slug": "stored", "born": 1})
        assert added["branch"].split("/")[:2] == ["agent", "root"]
        wrong = await agent.call("find_author", params={"slug": 1})
        assert (wrong["is_error"], wrong["status"]) == (True, 400)
        with pytest.raises(MCPError, match="unknown tool 'all_authors'"):
            await agent.session.call_tool("all_authors", {})

    over_http(guarded, story, token="t-root")


def test_stored_mutations_do_not_exist_for_one_who_may_not_change(tmp_path):
    reads_alone = POLICY.replace("change", "export") + INVOKE
    config = make_project(tmp_path, policy=reads_alone)

    async def story(agent):
        assert "find_author" in await agent.tools()
        assert not {"add_author", "mutate"} & set(await agent.tools())
        with pytest.raises(MCPError, match="unknown tool 'add_author'"):
            await agent.session.call_tool("add_author", {"params": {"slug": "x", "born": 1}})

    with serving(tmp_path, library(tmp_path), "--config", config, env=TOKENS) as running:
        over_http(running, story, token="t-root")


def test_many_stored_queries_are_two_tools(graph_root, tmp_path):
    names = [f"q{i}" for i in range(25)]
    text = "".join(
        f"query {name}() {{ match {{ $a: Author }} return {{ count($a) as n }} }}\n"
        for name in names
    )
    (tmp_path / "many.gq").write_text(text)
    listed = "".join(f"  {name}: {{file: many.gq}}\n" for name in names)
    config = tmp_path / "omnigraph.yaml"
    config.write_text(f"queries:\n{listed}")

    async def story(agent):
        tools = await agent.tools()
        assert {"queries_list", "query_run"} <= set(tools)
        assert not set(names) & set(tools)
        assert len((await agent.call("queries_list"))["queries"]) == 25
        assert (await agent.call("query_run", name="q7"))["rows"] == [{"n": 3}]
        with pytest.raises(MCPError, match="unknown tool"):
            await agent.session.call_tool("query_run", {"name": "q99"})

    with serving(tmp_path, graph_root, "--config", config, "--unauthenticated") as running:
        over_http(running, story)


OTHER = "01M7R60000000000000000000A"
"""The id of a commit of another graph."""

HOSTILE: dict[str, tuple[str, dict[str, Any]]] = {
    "another graph": ("commits_get", {"commitId": "../../graphs/other/commits"}),
    "a commit of another graph": ("commits_get", {"commitId": OTHER}),
    "the changes of another graph": ("commits_changes", {"commitId": OTHER}),
    "a state of another graph": ("query", {"query": LIB, "name": "all_authors", "snapshot": OTHER}),
    "a difference to another graph": ("diff", {"from": "main", "to": OTHER}),
    "an undo in another graph": ("revert", {"ref": OTHER}),
    "a place in another feed": ("changes_poll", {"cursor": "bm90IGEgY3Vyc29y"}),
    "a page of another list": ("changes_poll", {"start": "beginning", "pageToken": "e30"}),
    "a path": ("entity_get", {"type": "../..", "id": "etc/passwd"}),
    "a branch with a path": ("snapshot", {"branch": "../main"}),
    "a new branch with a path": ("branches_create", {"name": "agent/../../main"}),
    "a source with a path": ("branches_merge", {"source": "../other"}),
    "a query string": ("snapshot", {"branch": "main&branch=other"}),
    "a header": (
        "mutate",
        {"query": LIB, "name": "x", "branch": "main", "ifGraphCommit": "a\r\nX: y"},
    ),
    "query text in a name": ("query", {"query": LIB, "name": "all_authors() {} query x"}),
    "query text in a type": ("entity_get", {"type": "Author } return { 1", "id": "ada"}),
    "query text in a parameter's name": (
        "query",
        {"query": LIB, "name": "by_slug", "params": {"slug) { match": "ada"}},
    ),
    "two queries in one": ("query", {"query": "query a() { match { $a: Author } } delete Author"}),
    "a write as a read": ("query", {"query": LIB, "name": "add_author"}),
    "SQL": ("query", {"query": "'; DROP TABLE Author; --"}),
    "a deep query": ("query", {"query": "query q() { match { " + "not { " * 5_000}),
    "a huge limit": ("query", {"query": LIB, "name": "all_authors", "maxRows": 10**9}),
    "a limit beyond every integer": ("commits_list", {"limit": 10**30}),
    "a limit of text": ("commits_list", {"limit": "50; drop"}),
    "a huge page": ("changes_poll", {"start": "beginning", "limit": 10**6}),
    "a negative limit": ("commits_list", {"limit": -1}),
    "a wrong type": ("query", {"query": ["not", "text"]}),
    "an unknown argument": ("query", {"query": LIB, "name": "all_authors", "actor": "root"}),
    "another actor": ("mutate", {"query": LIB, "name": "x", "actor": "root", "branch": "main"}),
    "a NUL character": ("entity_get", {"type": "Author", "id": "a\0b"}),
    "a lone surrogate's neighbour": ("branches_delete", {"name": "\ud7ff"}),
    "an empty name": ("branches_delete", {"name": ""}),
    "a long name": ("branches_create", {"name": "x" * 100_000}),
    "the main branch": ("branches_delete", {"name": "main"}),
}


async def refuses_what_is_hostile(agent):
    before = (await agent.call("branches_list"))["branches"]
    head = await agent.call("commits_list", limit=1)
    for why, (tool, arguments) in HOSTILE.items():
        refused = await agent.call(tool, **arguments)
        assert refused["is_error"], (why, refused)
        assert 400 <= refused["status"] < 500, (why, refused)
        assert "Traceback" not in json.dumps(refused), why
        assert len(json.dumps(refused)) < 100_000, why
    with pytest.raises(MCPError, match="unknown tool") as caught:
        await agent.session.call_tool("query\0" + "x" * 10_000, {})
    assert len(str(caught.value)) < 200
    for uri in ("omnigraph://schema/../../etc", "file:///etc/passwd", "omnigraph://graphs/other"):
        with pytest.raises(MCPError, match="unknown resource"):
            await agent.session.read_resource(uri)
    assert (await agent.call("branches_list"))["branches"] == before
    assert await agent.call("commits_list", limit=1) == head
    assert (await agent.call("health"))["status"] == "ok"


def test_hostile_arguments_are_errors_of_the_tool_over_http(server):
    over_http(server, refuses_what_is_hostile)


def test_hostile_arguments_are_errors_of_the_tool_over_standard_streams(tmp_path):
    over_streams([library(tmp_path), "--as", "ada"], refuses_what_is_hostile)


def half_a_request(server, path="/mcp"):
    """A connection whose client has sent the beginning of a body."""
    host, _, port = server.address.partition(":")
    connection = socket.create_connection((host, int(port)))
    head = f"POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
    connection.sendall(f"{head}Content-Length: 1000\r\n\r\n{{".encode())
    return connection


def test_bodies_that_are_slow_large_or_cut_off_are_no_failures_of_the_server(graph_root, tmp_path):
    given = "--unauthenticated", "--body-timeout-seconds", "0.5"
    with serving(tmp_path, graph_root, *given) as running:
        with half_a_request(running) as slow:
            assert b" 408 " in slow.recv(4096).partition(b"\r\n")[0]
        half_a_request(running).close()
        large = LIST_TOOLS | {"params": {"cursor": "x" * 5_000_000}}
        assert post(running, large).status_code == 413
        assert post(running, LIST_TOOLS).status_code == 200
        assert "Traceback" not in running.log


def test_answers_are_bounded(tmp_path):
    root = library(tmp_path)
    lines = "".join(
        json.dumps({"type": "Book", "data": {"isbn": f"x{i:05}", "title": "t" * 600}}) + "\n"
        for i in range(1_500)
    )
    query = "query q() { match { $b: Book } return { $b.isbn, $b.title } }"

    async def story(agent):
        loaded = await agent.call("load", branch="main", mode="merge", data=lines)
        assert not loaded["is_error"]
        few = await agent.call("query", query=query)
        assert (few["rowCount"], len(few["rows"]), few["truncated"]) == (1_502, 100, True)
        many = await agent.call("query", query=query, maxRows=1_000)
        assert many["truncated"]
        assert 100 < len(many["rows"]) == many["shown"] < 1_000

    over_streams([root], story)


def test_read_only_sessions_have_no_tool_that_writes(tmp_path):
    async def story(agent):
        assert all(tool.annotations.read_only_hint for tool in (await agent.tools()).values())
        with pytest.raises(MCPError, match="unknown tool 'mutate'"):
            await agent.session.call_tool("mutate", {"query": LIB})

    over_streams([library(tmp_path), "--read-only"], story)


def test_the_branch_of_a_session_is_used_where_a_call_names_none(tmp_path):
    async def story(agent):
        await agent.call("branches_create", name="work")
        change = {"query": LIB, "name": "add_author", "params": {"slug": "w", "born": 1}}
        assert (await agent.call("mutate", **change))["branch"] == "work"
        on_branch = await agent.call("query", query=LIB, name="all_authors")
        on_main = await agent.call("query", query=LIB, name="all_authors", branch="main")
        assert len(on_branch["rows"]) == len(on_main["rows"]) + 1

    over_streams([library(tmp_path), "--branch", "work"], story)


def test_several_graphs_have_an_endpoint_each(tmp_path):
    roots = {name: library(tmp_path / name) for name in _made(tmp_path, "one", "two")}
    config = tmp_path / "omnigraph.yaml"
    listed = "".join(f"  {name}: {{uri: {root}}}\n" for name, root in roots.items())
    config.write_text(f"graphs:\n{listed}")

    async def story(agent):
        change = {"query": LIB, "name": "add_author", "params": {"slug": "only-one", "born": 1}}
        await agent.call("mutate", **change, branch="main")

    async def count(agent):
        return len((await agent.call("query", query=LIB, name="all_authors"))["rows"])

    with serving(tmp_path, "--config", config, "--unauthenticated") as running:
        over_http(running, story, path="/graphs/one/mcp")
        assert over_http(running, count, path="/graphs/one/mcp") == 4
        assert over_http(running, count, path="/graphs/two/mcp") == 3
        assert post(running, LIST_TOOLS, "/graphs/three/mcp").status_code == 404
        assert post(running, LIST_TOOLS).status_code == 404


def _made(folder, *names):
    for name in names:
        (folder / name).mkdir()
    return names


def test_the_contract_without_a_header_has_no_endpoint(graph_root, tmp_path):
    with serving(tmp_path, graph_root, "--unauthenticated", "--http-api", "0.7") as running:
        assert post(running, LIST_TOOLS).status_code == 404
