"""Three agents record what they read; a reviewer decides what becomes part of the graph.

Run it in this folder: `python agents.py`. It makes a cluster here and serves it on this machine. Each agent has
a token of its own and works through MCP, as an agent with a model does; `read` stands for the model.
"""

import asyncio
import json
import os
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client

import omnigraph as og

TOKENS = {name: f"token-of-{name}" for name in ("press", "registry", "forum", "rita")}


@contextmanager
def serving() -> Iterator[str]:
    """The cluster of this folder on a free port; the result is the address."""
    tokens = {"OMNIGRAPH_SERVER_BEARER_TOKENS_JSON": json.dumps(TOKENS)}
    with subprocess.Popen(
        ["omnigraph-server", "--cluster", ".", "--bind", "127.0.0.1:0", "--log-level", "error"],
        env=os.environ | tokens,
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        try:
            address = "http://" + server.stdout.readline().strip().partition("=")[2]
            for _ in range(300):  # The port opens first, and the graphs behind it.
                if httpx2.get(f"{address}/readyz").is_success:
                    break
                time.sleep(0.1)
            yield address
        finally:
            server.terminate()


# -- agents ---------------------------------------------------------------------------------


def read(text: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The tools to call after reading a text, with their parameters: what a model would decide."""
    if found := re.match(r"(.+?) employs ([\d,]+)", text):
        employees = int(found[2].replace(",", ""))
        yield "set_employees", {"name": found[1], "employees": employees}
    if found := re.match(r"(.+?) is led by (\w+ \w+)", text):
        yield "set_chief", {"name": found[1], "chief": found[2]}


async def agent(name: str, documents: dict[str, str], address: str) -> str:
    """Read documents and record what is new. Returns the branch that has it."""
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {TOKENS[name]}"}, timeout=60) as http,
        streamable_http_client(f"{address}/graphs/companies/mcp", http_client=http) as streams,
        ClientSession(*streams[:2]) as session,
    ):
        await session.initialize()

        async def call(tool: str, **arguments: Any) -> dict[str, Any]:
            result = await session.call_tool(tool, arguments)
            document = json.loads(result.content[0].text)
            assert not result.is_error, document["error"]
            return document

        branch = {}
        for url, text in documents.items():
            for tool, fact in read(text):
                [known] = (await call("company", params={"name": fact["name"]}))["rows"]
                if fact.items() <= known.items():
                    print(f"{name}: knew it already: {text}")
                    continue
                # Without a branch, the first write makes one of the agent's own.
                source = {"url": url, "text": text}
                written = await call(tool, params=fact | source, message=text, **branch)
                branch = {"branch": written["branch"]}
        return branch["branch"]


async def work(address: str) -> dict[str, str]:
    """All agents at once. Returns the branch of each."""
    documents = json.loads(Path("documents.json").read_text())
    branches = await asyncio.gather(*(agent(name, documents[name], address) for name in documents))
    return dict(zip(documents, branches, strict=True))


# -- the reviewer ---------------------------------------------------------------------------


def show(diff: og.Diff) -> None:
    """The values that a branch would change."""
    for change in diff.to_json(rows=True)["changes"]:
        if change["op"] == "update":
            before, after = change["before"], change["after"]
            for key in sorted(key for key in after if after[key] != before[key]):
                print(f"  {change['id']}: {key} {before[key]} → {after[key]}")


def review(graph: og.Graph, branches: dict[str, str]) -> None:
    """See what the agents propose, and merge it."""
    for name, branch in branches.items():
        print(f"{name} proposes, on {branch}:")
        show(graph.diff("main", branch))
    for name, branch in branches.items():
        try:
            merged = graph.merge(branch, delete_source=True, message=f"reviewed: {name}")
        except og.errors.MergeConflicts as conflict:
            [row] = conflict.conflicts
            print(
                f"{row.row_id}: main has {row.ours['employees']}, {name} {row.theirs['employees']}"
            )
            print("The registry is the better source, so its numbers win.")
            merged = graph.merge(
                branch,
                granularity="property",
                strategy={"Company.employees": "theirs"},
                delete_source=True,
                message=f"reviewed: {name} corrects the press",
            )
        print(f"merged {name}: {merged.outcome.value}")


def history(graph: og.Graph, company: str) -> None:
    """Who wrote what about a company, when and why."""
    for change in graph.history("Company", company):
        known = change.after or {}
        made = f"{change.commit.actor or '-':<9}{change.commit.message or '-'}"
        print(f"  {known.get('employees'):>6}  {known.get('chief'):<12}  {made}")


subprocess.run(["omnigraph", "cluster", "apply", "--as", "rita"], check=True)
with og.open("graphs/companies.omni") as storage:
    storage.load("data.jsonl", mode="merge", message="the companies we follow")

with serving() as address:
    branches = asyncio.run(work(address))
    with og.connect(address, token=TOKENS["rita"], graph="companies") as graph:
        print()
        review(graph, branches)

        print("\nA check finds what the reviewer overlooked:")
        print(graph.query("queries.gq", name="outliers"))
        print("The history of the fact:")
        history(graph, "Aster Labs")
        [*_, wrong] = graph.history("Company", "Aster Labs")
        graph.revert(wrong.commit.id, message="nobody else says so")
        print("Reverted:")
        history(graph, "Aster Labs")

        print("\nThe history of another, and its evidence:")
        history(graph, "Harbor Foods")
        print(graph.query("queries.gq", {"name": "Harbor Foods"}, name="evidence"))
