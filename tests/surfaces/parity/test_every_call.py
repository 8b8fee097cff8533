"""A program that uses every public call runs, and leaves none out."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.api.protocol import MaintenanceProtocol
from omnigraph.errors import EmbeddedOnly
from tests.docs.markdown import ROOT, Page
from tests.surfaces.parity import every_call
from tests.surfaces.parity.implementations import EMBEDDED_ONLY
from tests.surfaces.parity.test_protocol import PAIRS

SOURCE = Path(every_call.__file__).read_text()
OTHERS = {"Progress", "Branches", "Tags", "Schema", "Blobs", "Maintenance", "GraphAt"}
"""Names that stand for what the calls return or take, and are used through those."""

NEEDS_SPARK = {"spark"}
"""Used in tests/spark, which have a session."""


def test_every_call_of_a_graph_works(graph):
    every_call.use_graph(graph)


def test_the_calls_of_an_embedded_graph_work(team_folder):
    with og.open(team_folder) as graph:
        every_call.use_embedded_graph(graph)


@pytest.mark.parametrize("call", EMBEDDED_ONLY)
def test_a_remote_graph_says_what_it_does_not_offer(shared_server, call):
    with og.connect(shared_server) as graph, pytest.raises(EmbeddedOnly) as caught:
        EMBEDDED_ONLY[call](graph)
    assert caught.value.call == call


def test_connecting_works(shared_server):
    every_call.use_server(shared_server)


def test_the_package_works(tmp_path):
    every_call.use_package(tmp_path)


def test_the_page_lists_what_only_embedded_graphs_offer():
    rows = Page(ROOT / "docs" / "user" / "remote.md").table(
        "Only on a graph opened from its storage"
    )
    listed = {row[0].strip("`") for row in rows if row[0].count("`") == 2 and " " not in row[0]}
    assert listed == EMBEDDED_ONLY.keys()


def test_every_call_is_remote_or_embedded_only():
    (common,) = (
        node
        for node in ast.parse(SOURCE).body
        if isinstance(node, ast.FunctionDef) and node.name == "use_graph"
    )
    used = {node.attr for node in ast.walk(common) if isinstance(node, ast.Attribute)}
    calls = {name for name in dir(og.GraphProtocol) if not name.startswith("_")}
    calls |= {name for name in dir(MaintenanceProtocol) if not name.startswith("_")}
    only = {name.rpartition(".")[2] for name in EMBEDDED_ONLY}
    assert calls - used == only | {"close", "closed"} - used


def test_every_public_name_is_used():
    used = {
        node.attr
        for node in ast.walk(ast.parse(SOURCE))
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "og"
    }
    assert set(og.__all__) - used == OTHERS | NEEDS_SPARK


def test_every_public_call_is_used():
    used = {node.attr for node in ast.walk(ast.parse(SOURCE)) if isinstance(node, ast.Attribute)}
    for implementation, _ in PAIRS:
        missing = {name for name in dir(implementation) if not name.startswith("_")} - used
        assert missing == set(), implementation.__name__
