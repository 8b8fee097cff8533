"""Compiled schema files that are gone when a graph is opened, and schema files that are no text."""

from __future__ import annotations

from pathlib import Path

import pytest

from omnigraph.api.graph import init
from omnigraph.api.graph import open as open_graph
from omnigraph.errors import ConflictError, SchemaContractBroken
from omnigraph.versioning.contract import CONTRACT_FILES, IR_FILE, SOURCE_FILE, STATE_FILE
from tests.behaviour.graphs import KEYS, OTHER_SCHEMA, PERSON, SCHEMA, Backstage, tree
from tests.support.faults import Fail, InjectedFault, armed

COMPILED = (IR_FILE, STATE_FILE)


def lose(backstage: Backstage) -> dict[str, str]:
    """Remove the compiled files; returns what they held."""
    held = {name: backstage.objects.read_text(name) for name in COMPILED}
    for name in COMPILED:
        backstage.objects.delete(name)
    return held


@pytest.mark.acceptance("S-009")
def test_opening_for_writing_makes_the_files_again(graph, backstage):
    backstage.add(graph, PERSON, ["ada"])
    held = lose(backstage)
    again = open_graph(graph.uri)
    assert {name: backstage.objects.read_text(name) for name in COMPILED} == held
    assert list(again._snapshot().entries) == KEYS
    assert (
        again.load(b'{"type": "Person", "data": {"name": "bo"}}', "merge").receipt.manifest_version
        == 3
    )
    assert graph._snapshot().version == 3


@pytest.mark.acceptance("S-009")
def test_opening_for_reading_works_and_writes_nothing(local_uri):
    graph = init(local_uri, SCHEMA)
    catalog = graph.schema.catalog
    held = lose(Backstage(local_uri))
    before = tree(Path(local_uri))
    reader = open_graph(local_uri, read_only=True)
    assert reader.schema.catalog == catalog
    assert list(reader._snapshot().entries) == KEYS
    assert tree(Path(local_uri)) == before
    # Files that come back are used again, and an edit is noticed all the same.
    for name, text in held.items():
        Backstage(local_uri).objects.write_text(name, text)
    assert reader.schema.catalog == catalog
    Backstage(local_uri).objects.write_text(SOURCE_FILE, OTHER_SCHEMA)
    with pytest.raises(SchemaContractBroken, match="no longer matches"):
        reader._snapshot()


@pytest.mark.acceptance("S-010")
@pytest.mark.parametrize("read_only", [False, True])
def test_other_branches_keep_the_files_from_being_made_again(graph, backstage, read_only):
    graph.branches.create("feature")
    lose(backstage)
    with pytest.raises(ConflictError, match="public branches block schema evolution entirely"):
        open_graph(graph.uri, read_only=read_only)
    assert not any(backstage.objects.exists(name) for name in COMPILED)


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize("source", [OTHER_SCHEMA, "node {"])
def test_a_source_that_says_something_else_is_refused(graph, backstage, source, read_only):
    lose(backstage)
    backstage.objects.write_text(SOURCE_FILE, source)
    with pytest.raises(SchemaContractBroken, match="manual coordination is required"):
        open_graph(graph.uri, read_only=read_only)
    assert not any(backstage.objects.exists(name) for name in COMPILED)


def test_a_graph_that_lost_its_old_schemas_too_is_refused(graph, backstage):
    lose(backstage)
    backstage.objects.delete_prefix("__schema_history")
    with pytest.raises(SchemaContractBroken, match="manual coordination is required"):
        open_graph(graph.uri)


def test_a_handle_that_was_open_before_goes_on_refusing(graph, backstage):
    lose(backstage)
    with pytest.raises(SchemaContractBroken, match="missing persisted schema state"):
        graph._snapshot()


def test_a_reader_whose_files_vanish_later_refuses_too(graph, backstage):
    reader = open_graph(graph.uri, read_only=True)
    lose(backstage)
    with pytest.raises(SchemaContractBroken, match="missing persisted schema state"):
        reader._snapshot()


def test_a_failure_before_the_files_are_written_is_overcome_by_the_next_opening(graph, backstage):
    lose(backstage)
    with armed("bootstrap.before_write", Fail()), pytest.raises(InjectedFault):
        open_graph(graph.uri)
    assert open_graph(graph.uri)._snapshot().version == 1


@pytest.mark.parametrize("hit", range(1, 9))
def test_a_crash_while_the_files_are_written_is_overcome_by_the_next_opening(
    local_uri, monkeypatch, hit
):
    monkeypatch.setenv("OMNIGRAPH_DURABILITY", "fsync")
    graph = init(local_uri, SCHEMA)
    backstage = Backstage(local_uri)
    before = {name: backstage.objects.read_text(name) for name in COMPILED}
    lose(backstage)
    with armed("durability.after_fsync", Fail(), first=hit), pytest.raises(InjectedFault):
        open_graph(graph.uri)
    assert open_graph(graph.uri, read_only=True)._snapshot().version == 1
    assert open_graph(graph.uri)._snapshot().version == 1
    assert {name: backstage.objects.read_text(name) for name in COMPILED} == before
    assert not list(Path(local_uri).glob("*.staging"))


@pytest.mark.parametrize("name", CONTRACT_FILES)
@pytest.mark.parametrize("read_only", [False, True])
def test_a_schema_file_that_is_no_text_breaks_the_contract(local_graph, name, read_only):
    (Path(local_graph.uri) / name).write_bytes(b"node \xff\xfe {")
    for use in (local_graph._snapshot, lambda: open_graph(local_graph.uri, read_only=read_only)):
        with pytest.raises(SchemaContractBroken, match=f"{name} is not UTF-8 text"):
            use()
