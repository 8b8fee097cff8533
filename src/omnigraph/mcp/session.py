"""The tools and resources of one caller: what is listed, and what a call does.

A tool that the policy allows nowhere does not exist for the caller: it is not listed, and calling it is the
error of an unknown name. Tests: tests/server/test_mcp.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from ulid import ULID

from omnigraph.graph.gate import Action
from omnigraph.json_structs import described
from omnigraph.mcp import documents
from omnigraph.mcp.backend import Backend, ToolReply, ToolRequest
from omnigraph.mcp.resources import PAGES, page_text
from omnigraph.mcp.tools import (
    MAX_STORED_TOOLS,
    TOOLS,
    StoredArguments,
    ToolSpec,
    input_schema,
    queries_list_tool,
    stored_request,
)

_BY_NAME: Final = {tool.name: tool for tool in TOOLS}
_NOT_IN_BRANCH_NAMES: Final = re.compile(r"[^A-Za-z0-9._-]+")


class UnknownTool(Exception):
    """There is no such tool, or the policy denies it."""


class UnknownResource(Exception):
    """There is no such resource, or the policy denies it."""


@dataclass(frozen=True, slots=True)
class Listed:
    """A tool as it is listed."""

    name: str
    description: str
    input_schema: dict[str, Any]
    is_write: bool
    is_destructive: bool


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The text of a result, and whether it is an error."""

    text: str
    is_error: bool = False


class AgentSession:
    """One caller's tools on one graph.

    `may` tells whether the policy allows an action on any branch. `default_branch` is used where a call
    names none; with `is_read_only` the tools that write do not exist.
    """

    def __init__(
        self,
        backend: Backend,
        *,
        actor: str | None = None,
        default_branch: str | None = None,
        is_read_only: bool = False,
        may: Callable[[Action], bool] = lambda action: True,
    ) -> None:
        self._backend = backend
        self._actor = actor
        self._default_branch = default_branch
        self._is_read_only = is_read_only
        self.may = may

    # -- tools ------------------------------------------------------------------------------

    async def tools(self) -> list[Listed]:
        """The tools that exist for the caller."""
        found = [tool for tool in TOOLS if tool.is_listed and self._exists(tool)]
        stored = await self._stored()
        if len(stored) > MAX_STORED_TOOLS:
            listed = [_listed(tool) for tool in (*found, queries_list_tool())]
            return [*listed, _QUERY_RUN]
        return [_listed(tool) for tool in found] + [_stored_tool(one) for one in stored.values()]

    async def call(self, name: str, arguments: Mapping[str, Any] | None) -> ToolResult:
        """Call a tool. Raises `UnknownTool`."""
        try:
            return await self._called(name, arguments)
        except msgspec.ValidationError as error:
            problem = {"error": f"the arguments of {name} are not valid: {error}", "status": 400}
            return ToolResult(documents.text_of(problem), is_error=True)

    async def _called(self, name: str, arguments: Mapping[str, Any] | None) -> ToolResult:
        tool = _BY_NAME.get(name)
        if tool is not None and self._exists(tool):
            parsed = tool.parsed(self._with_branch(tool, arguments))
            if tool.makes_branch and parsed.branch is None:
                return await self._on_own_branch(
                    lambda branch: tool.request(msgspec.structs.replace(parsed, branch=branch))
                )
            reply = await self._backend.send(tool.request(parsed))
            return _result(reply, getattr(parsed, "max_rows", None))
        if tool is None:
            return await self._call_stored(name, arguments)
        raise UnknownTool(name)

    def _exists(self, tool: ToolSpec) -> bool:
        if tool.is_write and self._is_read_only:
            return False
        return tool.action is None or self.may(tool.action)

    def _with_branch(
        self, tool: ToolSpec, arguments: Mapping[str, Any] | None
    ) -> Mapping[str, Any]:
        given = dict(arguments or {})
        has_branch = "branch" in tool.arguments.__struct_fields__
        if self._default_branch is None or not has_branch or "snapshot" in given:
            return given
        return {"branch": self._default_branch} | given

    async def _on_own_branch(self, request: Callable[[str], ToolRequest]) -> ToolResult:
        """Run a write on a new branch of the agent, which is deleted again if the write fails."""
        branch = f"agent/{_name_of(self._actor)}/{str(ULID()).lower()}"
        body = {"name": branch, "from": "main"}
        made = await self._backend.send(
            ToolRequest("POST", ("branches",), body=body, is_write=True)
        )
        if made.is_error:
            return _result(made)
        reply = await self._backend.send(request(branch))
        if reply.is_error and not reply.is_outcome_unknown:
            await self._backend.send(ToolRequest("DELETE", ("branches", branch), is_write=True))
        return _result(reply)

    # -- stored queries ---------------------------------------------------------------------

    async def _stored(self) -> dict[str, Mapping[str, Any]]:
        """The stored queries of the graph by tool name, as the catalog lists them."""
        if not self.may(Action.INVOKE_QUERY):
            return {}
        reply = await self._backend.send(ToolRequest("GET", ("queries",)))
        if reply.is_error or not isinstance(reply.body, dict):
            return {}
        return {
            one["tool_name"]: one
            for one in reply.body["queries"]
            if one["tool_name"] not in _BY_NAME and self._may_run(one)
        }

    def _may_run(self, stored: Mapping[str, Any]) -> bool:
        if stored["mutation"]:
            return not self._is_read_only and self.may(Action.CHANGE)
        return self.may(Action.READ)

    async def _call_stored(self, name: str, arguments: Mapping[str, Any] | None) -> ToolResult:
        stored = await self._stored()
        if name == "queries_list" and self.may(Action.INVOKE_QUERY):
            return _result(await self._backend.send(ToolRequest("GET", ("queries",))))
        given = dict(arguments or {})
        if name == _QUERY_RUN.name:
            parsed = msgspec.convert(given, described(StoredArguments))
            by_name = {one["name"]: one for one in stored.values()}
            query = by_name.get(parsed.name)
        else:
            query = stored.get(name)
            if query is not None:
                parsed = msgspec.convert(
                    given | {"name": query["name"]}, described(StoredArguments)
                )
        if query is None:
            raise UnknownTool(name)
        is_mutation = query["mutation"]
        branch = parsed.branch or (None if parsed.snapshot else self._default_branch)
        parsed = msgspec.structs.replace(parsed, branch=branch)
        if is_mutation and branch is None:
            return await self._on_own_branch(
                lambda own: stored_request(
                    msgspec.structs.replace(parsed, branch=own), is_mutation=True
                )
            )
        reply = await self._backend.send(stored_request(parsed, is_mutation=is_mutation))
        return _result(reply, None if is_mutation else parsed.max_rows)

    # -- resources --------------------------------------------------------------------------

    async def read(self, uri: str) -> tuple[str, str]:
        """The text of a resource and its media type. Raises `UnknownResource`."""
        if uri in PAGES:
            return page_text(uri), "text/markdown"
        if uri == "omnigraph://schema" and self.may(Action.READ):
            reply = await self._backend.send(ToolRequest("GET", ("schema",)))
            if not reply.is_error:
                return reply.body["schema_source"], "text/plain"
        if uri == "omnigraph://branches" and self.may(Action.READ):
            reply = await self._backend.send(ToolRequest("GET", ("branches",)))
            if not reply.is_error:
                return documents.text_of(reply.body["branches"]), "application/json"
        if uri == "omnigraph://graphs" and self.may(Action.GRAPH_LIST):
            reply = await self._backend.send(ToolRequest("GET", ("graphs",), is_server=True))
            if not reply.is_error:
                return documents.text_of(documents.camel_case(reply.body)), "application/json"
        raise UnknownResource(uri)


def _result(reply: ToolReply, max_rows: int | None = None) -> ToolResult:
    if reply.is_error:
        return ToolResult(documents.text_of(documents.error_document(reply)), is_error=True)
    document = documents.bounded(reply.body, max_rows)
    text = documents.text_of(documents.camel_case(document))
    if documents.too_large(text):
        problem = {
            "error": f"the answer has {len(text):,} characters; ask for less, for example fewer "
            "properties, one type or a smaller limit",
            "status": reply.status,
        }
        return ToolResult(documents.text_of(problem), is_error=True)
    return ToolResult(text)


def _listed(tool: ToolSpec) -> Listed:
    return Listed(
        tool.name, tool.description, tool.input_schema, tool.is_write, tool.is_destructive
    )


def _stored_tool(stored: Mapping[str, Any]) -> Listed:
    """A stored query as a tool: its parameters are those of the query."""
    schema = input_schema(StoredArguments)
    properties = {k: v for k, v in schema["properties"].items() if k != "name"}
    properties["params"] = _params_schema(stored["params"])
    needs_params = "required" in properties["params"]
    schema |= {"properties": properties, "required": ["params"] if needs_params else []}
    about = [stored.get("description"), stored.get("instruction")]
    kind = "mutation" if stored["mutation"] else "query"
    description = "\n".join(one for one in about if one) or f"Run the stored {kind}."
    return Listed(stored["tool_name"], description, schema, stored["mutation"], False)


_KINDS: Final[Mapping[str, Mapping[str, Any]]] = {
    "bool": {"type": "boolean"},
    "int": {"type": "integer"},
    "bigint": {"type": ["integer", "string"]},
    "float": {"type": "number"},
    "date": {"type": "string", "format": "date"},
    "datetime": {"type": "string", "format": "date-time"},
}


def _params_schema(params: list[Mapping[str, Any]]) -> dict[str, Any]:
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {one["name"]: _param_schema(one) for one in params},
        "additionalProperties": False,
    }
    required = [one["name"] for one in params if not one["nullable"]]
    return schema | ({"required": required} if required else {})


def _param_schema(param: Mapping[str, Any]) -> dict[str, Any]:
    kind = param["kind"]
    if kind == "list":
        found: dict[str, Any] = {
            "type": "array",
            "items": dict(_KINDS.get(param.get("item_kind", ""), {"type": "string"})),
        }
    elif kind == "vector":
        found = {"type": ["array", "string"], "items": {"type": "number"}}
    else:
        found = dict(_KINDS.get(kind, {"type": "string"}))
    if param["nullable"]:
        given = found["type"]
        found["type"] = [*(given if isinstance(given, list) else [given]), "null"]
    return found


_QUERY_RUN: Final = Listed(
    "query_run",
    "Run a stored query; `queries_list` shows their names and parameters.",
    input_schema(StoredArguments),
    is_write=True,
    is_destructive=False,
)


def _name_of(actor: str | None) -> str:
    """An actor as a segment of a branch name."""
    return _NOT_IN_BRANCH_NAMES.sub("-", actor or "").strip("-.") or "anonymous"
