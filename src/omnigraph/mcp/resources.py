"""The resources: schema and branches of the graph, and short guides to the languages.

The guides are files beside this module. Tests: tests/unit/mcp/test_tools.py runs their examples.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Final

from omnigraph.graph.gate import Action

_GUIDES: Final = "omnigraph://best-practices/"


@dataclass(frozen=True, slots=True)
class ResourceSpec:
    """A resource as it is listed. `action` is what the policy must allow somewhere; None: nothing."""

    uri: str
    name: str
    description: str
    media_type: str
    action: Action | None = None


RESOURCES: Final = (
    ResourceSpec(
        "omnigraph://schema", "schema", "Schema source of the graph.", "text/plain", Action.READ
    ),
    ResourceSpec(
        "omnigraph://branches", "branches", "Names of the branches.", "application/json",
        Action.READ,
    ),
    ResourceSpec(
        "omnigraph://graphs", "graphs", "Graphs of the server.", "application/json",
        Action.GRAPH_LIST,
    ),
    ResourceSpec(
        f"{_GUIDES}index", "best-practices", "How to work with the graph; read this first.",
        "text/markdown",
    ),
    ResourceSpec(
        f"{_GUIDES}queries", "best-practices/queries", "Read queries by example.", "text/markdown"
    ),
    ResourceSpec(
        f"{_GUIDES}changes", "best-practices/changes", "Mutations, branches and merges by example.",
        "text/markdown",
    ),
    ResourceSpec(
        f"{_GUIDES}search", "best-practices/search", "Text, vector and hybrid search by example.",
        "text/markdown",
    ),
)  # fmt: skip

PAGES: Final[Mapping[str, str]] = {
    one.uri: one.uri.removeprefix(_GUIDES) for one in RESOURCES if one.uri.startswith(_GUIDES)
}
"""The guides by URI, with the names of their files."""


def page_text(uri: str) -> str:
    """The text of a guide."""
    return files("omnigraph.mcp").joinpath("pages", f"{PAGES[uri]}.md").read_text("utf-8")
