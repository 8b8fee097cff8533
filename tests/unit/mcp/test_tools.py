"""Tools: arguments, schemas, requests, and the guides."""

from __future__ import annotations

import re

import msgspec
import pytest

import omnigraph as og
from omnigraph.mcp.resources import PAGES, RESOURCES, page_text
from omnigraph.mcp.tools import TOOLS

BY_NAME = {tool.name: tool for tool in TOOLS}
EXAMPLE = re.compile(r"^```gq\n(.*?)^```$", re.MULTILINE | re.DOTALL)

SCHEMA = """\
node Person { email: String @key  name: String  age: I64? }
node Note { slug: String @key  text: String @index  vec: Vector(4)? }
edge Knows: Person -> Person
edge Wrote: Person -> Note
"""


def test_names_are_unique():
    assert len(BY_NAME) == len(TOOLS)
    assert len({one.uri for one in RESOURCES}) == len(RESOURCES)


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_unknown_arguments_are_refused(tool):
    with pytest.raises(msgspec.ValidationError, match=r"unknown field `nope`|missing required"):
        tool.parsed({"nope": 1})


def test_a_write_without_a_branch_is_known_by_its_argument():
    for tool in TOOLS:
        if tool.makes_branch:
            assert "branch" in tool.arguments.__struct_fields__


def test_paths_are_encoded_segment_by_segment():
    tool = BY_NAME["branches_delete"]
    assert (
        tool.request(tool.parsed({"name": "a/../b?c"})).encoded_path == "/branches/a%2F..%2Fb%3Fc"
    )


def test_arguments_that_are_not_given_are_not_sent():
    tool = BY_NAME["query"]
    assert tool.request(tool.parsed({"query": "q"})).body == {"query": "q"}
    poll = BY_NAME["changes_poll"]
    assert poll.request(poll.parsed({"cursor": "c"})).parameters == [
        ("cursor", "c"),
        ("limit", "100"),
    ]


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    with og.init(tmp_path_factory.mktemp("guides") / "g.omni", schema=SCHEMA) as graph:
        people = [{"email": "ada@x.org", "name": "Ada", "age": 36}]
        graph.insert("Person", [*people, {"email": "bo@x.org", "name": "Bo", "age": 40}])
        graph.insert("Note", [{"slug": "n1", "text": "cold pump", "vec": [1.0, 0.0, 0.0, 0.0]}])
        graph.insert("Knows", [{"from": "ada@x.org", "to": "bo@x.org"}])
        graph.insert("Wrote", [{"from": "ada@x.org", "to": "n1"}])
        yield graph


ARGUMENTS = {
    "friends": {"email": "ada@x.org"},
    "by_words": {"text": "pump"},
    "add_note": {"email": "bo@x.org", "slug": "n2", "text": "warm pump"},
    "rename": {"email": "bo@x.org", "name": "Bob"},
    "forget": {"slug": "n2"},
}


@pytest.mark.parametrize("uri", PAGES)
def test_examples_of_the_guides_run(graph, uri):
    for text in EXAMPLE.findall(page_text(uri)):
        (name,) = re.findall(r"^query (\w+)", text)
        if uri.endswith("changes"):
            assert graph.mutate(text, ARGUMENTS[name]).receipt.graph_commit_id
        elif name == "by_both":
            graph.explain(text.replace("$text)", "[1.0, 0.0, 0.0, 0.0])", 1), {"text": "pump"})
        else:
            assert len(graph.query(text, ARGUMENTS.get(name, {}))) > 0
