"""Sidecars that recovery cannot decide about stay, are named, and stop only what they may concern."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from omnigraph.api.graph import open as open_graph
from omnigraph.errors import RecoveryPending, RecoveryQuarantined
from omnigraph.storage.lineage import version_file
from omnigraph.versioning.ids import new_ulid
from tests.behaviour.graphs import COMPANY, PERSON
from tests.crash.recovery.situations import (
    ADD,
    BEFORE_PUBLISH,
    EVERYBODY,
    check_recovered,
    ids,
    interrupted,
    raw_append,
    read_sidecar,
    sidecar_for,
    sidecars,
    write_sidecar,
)
from tests.crash.recovery.test_drift import ADD_COMPANY

NAME = "01KV8Z6M3Q9V2X4T7B5N0C1D2E.json"


def without(document, key):
    return {name: value for name, value in document.items() if name != key}


def spoilt(graph, how):
    """A sidecar under `NAME` that cannot be used."""
    operation = NAME.removesuffix(".json")
    sidecar_for(graph, operation_id=operation, expected=graph._snapshot().entry(PERSON).version)
    document = read_sidecar(graph, NAME)
    texts = {
        "garbage": "\x00 no json",
        "empty": "",
        "a list": [],
        "a number": 7,
        "newer": {**document, "schema_version": 99},
        "newer and otherwise unknown": {"schema_version": 99},
        "without owner": without(document, "owner"),
        "without tables": without(document, "tables"),
        "without commit": without(document, "commit"),
        "of another operation": {**document, "operation_id": new_ulid()},
        "of an unknown writer": {**document, "writer_kind": "Sculptor"},
        "with a table that is a word": {**document, "tables": ["Person"]},
    }
    write_sidecar(graph, NAME, texts[how])


SPOILT = [
    "garbage", "empty", "a list", "a number", "newer", "newer and otherwise unknown",
    "without owner", "without tables", "without commit", "of another operation",
    "of an unknown writer", "with a table that is a word",
]  # fmt: skip


@pytest.mark.acceptance("S-079")
@pytest.mark.parametrize("how", SPOILT)
def test_an_unreadable_sidecar_is_named_and_stops_only_drifted_tables(graph, how, caplog):
    spoilt(graph, how)
    with caplog.at_level(logging.WARNING):
        again = open_graph(graph.uri)
    assert NAME in caplog.text
    (found,) = again._core.recovery.status().quarantined
    assert found.name == NAME
    assert NAME in found.reason
    assert ids(again) == EVERYBODY
    receipt = again.mutate(ADD, {"who": "Eve"}).receipt
    (warning,) = [w for w in receipt.warnings if w.code == "recovery_quarantined"]
    assert NAME in warning.message
    raw_append(again, "Mallory")
    with pytest.raises(RecoveryQuarantined, match=NAME) as caught:
        again.mutate(ADD, {"who": "Flo"})
    assert (caught.value.sidecar, caught.value.table_key) == (NAME, PERSON)
    assert "inspect it with graph.maintenance.repair()" in str(caught.value)
    again.mutate(ADD_COMPANY, {"n": "Bolt"})
    with pytest.raises(RecoveryPending, match=NAME):
        again.maintenance.optimize()
    reader = open_graph(graph.uri, read_only=True)
    assert (ids(reader), ids(reader, COMPANY)) == ([*EVERYBODY, "Eve"], ["Acme", "Bolt"])
    assert sidecars(again) == [NAME]


@pytest.mark.parametrize("how", ["garbage", "newer"])
def test_the_reason_says_what_is_wrong_with_the_file(graph, how):
    spoilt(graph, how)
    (found,) = graph._core.recovery.status().quarantined
    assert {"garbage": "is not valid JSON", "newer": "99"}[how] in found.reason


def test_bytes_that_are_no_text_are_quarantined_too(local_graph, tmp_path):
    (tmp_path / "graph" / "__recovery").mkdir(exist_ok=True)
    (tmp_path / "graph" / "__recovery" / NAME).write_bytes(b"\xff\xfe\x00")
    again = open_graph(local_graph.uri)
    (found,) = again._core.recovery.status().quarantined
    assert (found.name, "is not valid JSON" in found.reason) == (NAME, True)
    again.mutate(ADD, {"who": "Eve"})


def test_unknown_keys_in_a_sidecar_are_ignored(graph):
    interrupted(BEFORE_PUBLISH, lambda: graph.mutate(ADD, {"who": "Eve"}))
    (name,) = sidecars(graph)
    document = read_sidecar(graph, name)
    tables = [{**table, "colour": "blue"} for table in document["tables"]]
    write_sidecar(graph, name, {**document, "tables": tables, "mood": "good"})
    assert ids(open_graph(graph.uri)) == [*EVERYBODY, "Eve"]
    check_recovered(graph)


def test_an_unreadable_sidecar_does_not_keep_others_from_being_recovered(graph):
    interrupted(BEFORE_PUBLISH, lambda: graph.mutate(ADD, {"who": "Eve"}))
    write_sidecar(graph, "00000000000000000000000000.json", "{")
    write_sidecar(graph, "ZZZZZZZZZZZZZZZZZZZZZZZZZZ.json", "{")
    again = open_graph(graph.uri)
    assert ids(again) == [*EVERYBODY, "Eve"]
    assert len(sidecars(again)) == 2


@pytest.mark.acceptance("S-080")
@pytest.mark.parametrize("name", [".DS_Store", "notes.txt", "01KV8Z6M3Q9V2X4T7B5N0C1D2E.json.tmp"])
def test_files_that_are_no_sidecars_are_ignored(graph, name, caplog):
    write_sidecar(graph, name, "whatever")
    with caplog.at_level(logging.WARNING):
        again = open_graph(graph.uri)
    again.mutate(ADD, {"who": "Eve"})
    assert caplog.text == ""
    assert again._core.recovery.status().to_json() == {"pending": [], "quarantined": []}
    assert sidecars(again) == [name]


@pytest.mark.acceptance("S-076")
@pytest.mark.parametrize("recover_by", ["open", "refresh", "write"])
def test_a_table_behind_the_graph_is_named_and_others_stay_writable(local_graph, recover_by):
    graph = local_graph
    graph.mutate(ADD, {"who": "Eve"})
    pin = graph._snapshot().entry(PERSON).version
    name = sidecar_for(graph, operation_id=new_ulid(), expected=pin)
    take_back(graph)
    if recover_by == "open":
        graph = open_graph(graph.uri)
    elif recover_by == "refresh":
        graph.maintenance.recover()
    graph.mutate(ADD_COMPANY, {"n": "Bolt"})
    assert ids(graph, COMPANY) == ["Acme", "Bolt"]
    (found,) = graph._core.recovery.status().quarantined
    assert found.name == name
    with pytest.raises(RecoveryQuarantined, match=name):
        graph.mutate(ADD, {"who": "Flo"})
    assert sidecars(graph) == [name]
    assert graph.maintenance.recoveries() == []


def take_back(graph):
    """Lose the newest version of the people, which the graph knows."""
    entry = graph._snapshot().entry(PERSON)
    folder = Path(graph.uri, entry.location)
    (folder / version_file(entry.version)).unlink()
    (folder / "_versions" / "latest_version_hint.json").unlink(missing_ok=True)
