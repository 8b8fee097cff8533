"""The protocol: sessions as a server of the official SDK, over standard streams or HTTP.

The only importer of the SDK. Tests: tests/server/test_mcp.py, with the SDK's client.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError

from omnigraph._version import __version__
from omnigraph.mcp.resources import RESOURCES
from omnigraph.mcp.session import AgentSession, Listed, UnknownResource, UnknownTool

SessionOf = Callable[[Any], AgentSession]
"""The session of a request: `ctx.request` of the SDK, None on standard streams."""

INSTRUCTIONS: Final = (
    "A typed property graph with branches. Read the resource omnigraph://best-practices/index first and "
    "omnigraph://schema second. Writes without a branch go to a new branch of yours."
)


def protocol_server(session_of: SessionOf) -> Server[Any]:
    """A server whose tools and resources are those of the caller of each request."""

    async def list_tools(ctx: Any, params: Any) -> types.ListToolsResult:
        listed = await session_of(ctx.request).tools()
        return types.ListToolsResult(tools=[_tool(one) for one in listed])

    async def call_tool(ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        session = session_of(ctx.request)
        try:
            result = await session.call(params.name, params.arguments)
        except UnknownTool as unknown:
            message = f"unknown tool '{str(unknown)[:64]}'"
            raise MCPError(types.INVALID_PARAMS, message) from None
        content = types.TextContent(type="text", text=result.text)
        return types.CallToolResult(content=[content], is_error=result.is_error)

    async def list_resources(ctx: Any, params: Any) -> types.ListResourcesResult:
        session = session_of(ctx.request)
        found = [
            types.Resource(
                uri=one.uri,
                name=one.name,
                description=one.description,
                mime_type=one.media_type,
            )
            for one in RESOURCES
            if one.action is None or session.may(one.action)
        ]
        return types.ListResourcesResult(resources=found)

    async def read_resource(
        ctx: Any, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        uri = str(params.uri)
        try:
            text, media_type = await session_of(ctx.request).read(uri)
        except UnknownResource:
            raise MCPError(types.INVALID_PARAMS, f"unknown resource '{uri[:64]}'") from None
        contents = types.TextResourceContents(uri=uri, text=text, mime_type=media_type)
        return types.ReadResourceResult(contents=[contents])

    return Server(
        "omnigraph",
        version=__version__,
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_read_resource=read_resource,
    )


def _tool(listed: Listed) -> types.Tool:
    hints = types.ToolAnnotations(
        read_only_hint=not listed.is_write,
        destructive_hint=listed.is_destructive,
        open_world_hint=False,
    )
    return types.Tool(
        name=listed.name,
        description=listed.description,
        input_schema=listed.input_schema,
        annotations=hints,
    )


def http_manager(session_of: SessionOf, max_bytes: int) -> StreamableHTTPSessionManager:
    """The transport over HTTP: one POST, one JSON answer, nothing kept between requests."""
    return StreamableHTTPSessionManager(
        protocol_server(session_of),
        json_response=True,
        stateless=True,
        max_request_body_size=max_bytes,
    )


async def serve_standard_streams(session: AgentSession) -> None:
    """Serve one client on standard input and output until it closes them."""
    server = protocol_server(lambda request: session)
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())
