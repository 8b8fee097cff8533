import asyncio
import json
import os
import sys
from pathlib import Path

from mcp import ClientSession, StdioServerParameters, stdio_client


async def work(graph: str) -> None:
    command = ["mcp", graph, "--as", "archivist"]
    server = StdioServerParameters(command="omnigraph", args=command, env=dict(os.environ))
    async with stdio_client(server) as streams, ClientSession(*streams) as session:
        await session.initialize()

        async def call(tool, **arguments):
            result = await session.call_tool(tool, arguments)
            return json.loads(result.content[0].text)

        print("tools:", *[tool.name for tool in (await session.list_tools()).tools])
        queries = Path("queries.gq").read_text()
        slug = {"slug": "article-42"}
        found = await call("query", query=queries, name="article", params=slug)
        print("query:", found["rows"])
        title = slug | {"title": "What the agent calls it"}
        written = await call("mutate", query=queries, name="retitle", params=title)
        print("mutate: wrote to the branch", written["branch"])
        changes = await call("diff", **{"from": "main", "to": written["branch"]})
        print("diff:", [(one["op"], one["id"]) for one in changes["changes"]])


asyncio.run(work(sys.argv[1]))
