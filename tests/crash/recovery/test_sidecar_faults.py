"""Sidecars that cannot be written, deleted or listed, and publishes that fail or only seem to."""

from __future__ import annotations

import json

import pytest

from omnigraph.api.graph import open as open_graph
from omnigraph.errors import CommitStateUnknown, OmnigraphError, StorageError
from omnigraph.storage.delta import insert_exclusively
from omnigraph.versioning import publish as publishing
from omnigraph.versioning.manifest import Manifest
from tests.behaviour.graphs import COMPANY, PERSON
from tests.crash.recovery.situations import (
    ADD,
    AFTER_TABLE,
    BEFORE_PUBLISH,
    BEFORE_TABLE,
    EVERYBODY,
    HIRE,
    WITH_SIDECAR,
    check_recovered,
    content,
    drifted,
    head,
    ids,
    interrupted,
    kinds,
    people,
    read_sidecar,
    sidecars,
)
from tests.support.faults import Fail, FailStorage, InjectedFault, armed

EITHER_ERROR = (OmnigraphError, InjectedFault)
EITHER = pytest.mark.parametrize("fault", [Fail(), FailStorage()], ids=["crash", "storage"])


@EITHER
def test_a_write_whose_sidecar_cannot_be_written_leaves_nothing(graph, fault):
    before = (graph._snapshot().to_json(), head(graph).version)
    with armed("recovery.sidecar_write", fault, times=1), pytest.raises(EITHER_ERROR):
        graph.load(people("Eve").encode(), "merge")
    assert (graph._snapshot().to_json(), head(graph).version) == before
    assert sidecars(graph) == []
    graph.load(people("Eve").encode(), "merge")
    assert ids(graph) == [*EVERYBODY, "Eve"]


@pytest.mark.acceptance("S-082")
def test_a_write_whose_sidecar_cannot_be_deleted_has_succeeded(graph):
    with armed("recovery.sidecar_delete", FailStorage(), times=1):
        receipt = graph.load(people("Eve").encode(), "merge").receipt
    assert graph.head().id == receipt.graph_commit_id
    assert len(sidecars(graph)) == 1
    graph.load(people("Flo").encode(), "merge")
    assert ids(graph) == [*EVERYBODY, "Eve", "Flo"]
    assert graph.maintenance.recoveries() == []
    assert [c.operation for c in graph.log(reverse=True)[-2:]] == ["load", "load"]
    check_recovered(graph)


@pytest.mark.acceptance("S-083")
@EITHER
def test_nothing_is_written_or_opened_while_sidecars_cannot_be_listed(graph, fault):
    interrupted(BEFORE_PUBLISH, lambda: graph.mutate(ADD, {"who": "Eve"}))
    for call in (
        lambda: graph.mutate(ADD, {"who": "Flo"}),
        lambda: open_graph(graph.uri),
        lambda: graph.maintenance.repair(),
        lambda: graph.maintenance.recover(),
    ):
        with (
            armed("recovery.sidecar_list", fault),
            pytest.raises(EITHER_ERROR, match=r"recovery\.sidecar_list"),
        ):
            call()
        assert len(sidecars(graph)) == 1
        assert ids(graph) == EVERYBODY
    assert ids(open_graph(graph.uri)) == [*EVERYBODY, "Eve"]
    check_recovered(graph)


@pytest.mark.acceptance("S-083")
def test_a_reader_never_lists_sidecars(graph):
    with armed("recovery.sidecar_list", Fail()) as record:
        assert ids(open_graph(graph.uri, read_only=True)) == EVERYBODY
    assert record.count() == 0


def test_a_sidecar_says_what_its_write_is_about(graph):
    feature = graph.branches.create("review/7")
    interrupted(
        WITH_SIDECAR,
        lambda: feature.as_actor("act-lena").load(
            people("Eve").encode(), "merge", load_id="nightly"
        ),
    )
    (name,) = sidecars(graph)
    document = read_sidecar(graph, name)
    assert document["schema_version"] == 2
    assert f"{document['operation_id']}.json" == name
    assert (document["branch"], document["branch_physical"]) == ("review/7", "review_s7")
    assert document["base_seq"] == graph._snapshot("review/7").version
    assert (document["actor_id"], document["writer_kind"]) == ("act-lena", "Load")
    assert document["started_at"].isdecimal()
    assert document["commit"]["load_id"] == "nightly"
    (table,) = document["tables"]
    entry = graph._snapshot("review/7").entry(PERSON)
    assert table == {
        "table_key": PERSON,
        "table_id": entry.table_id,
        "table_path": entry.location,
        "expected_version": entry.version,
        "table_branch": "review_s7",
        "data_commits": 1,
        "post_commit_pin": entry.version + 1,
        "fork_from": {"table_version": entry.version},
    }
    text = graph._core.objects.read_text(f"__recovery/{name}")
    assert text == json.dumps(document, indent=2, ensure_ascii=False) + "\n"


# -- errors that are no crash ----------------------------------------------------------------


@pytest.mark.acceptance("S-173")
@pytest.mark.parametrize("branch", ["main", "feature"])
@pytest.mark.parametrize(
    ("point", "first"),
    [
        (BEFORE_TABLE, 1),
        (BEFORE_TABLE, 2),
        (AFTER_TABLE, 1),
        (AFTER_TABLE, 3),
        (BEFORE_PUBLISH, 1),
        ("graph_publish.before_manifest_commit", 1),
    ],
)
def test_a_writer_that_fails_undoes_what_it_did(graph, branch, point, first):
    graph.branches.create("feature")
    handle = open_graph(graph.uri, branch=branch)
    before = content(graph, branch)
    with (
        armed(point, FailStorage(), first=first, times=1),
        pytest.raises(StorageError, match="injected failure"),
    ):
        handle.mutate(HIRE, {"who": "Eve", "company": "Bolt"})
    assert content(graph, branch) == before
    check_recovered(graph, "feature")
    handle.mutate(HIRE, {"who": "Eve", "company": "Bolt"})
    assert ids(graph, branch=branch) == [*EVERYBODY, "Eve"]
    assert ids(graph, COMPANY, branch) == ["Acme", "Bolt"]


def test_a_writer_that_cannot_undo_leaves_it_to_the_next_one(graph):
    with (
        armed(BEFORE_PUBLISH, FailStorage()),
        armed("recovery.before_publish", FailStorage(), times=1),
        pytest.raises(CommitStateUnknown, match=r"injected failure at mutation\.post_finalize"),
    ):
        graph.mutate(ADD, {"who": "Eve"})
    assert len(sidecars(graph)) == 1
    graph.mutate(ADD, {"who": "Flo"})
    # It was being undone: nobody finishes it any more.
    assert ids(graph) == [*EVERYBODY, "Flo"]
    assert kinds(graph) == ["RolledBack"]
    check_recovered(graph)


@pytest.mark.acceptance("S-174")
def test_a_publish_that_landed_counts_whatever_the_call_reported(graph, monkeypatch):
    insert = insert_exclusively

    def lose_the_answer(*arguments):
        insert(*arguments)
        raise StorageError("the answer was lost")

    before = len(graph.log(reverse=True))
    monkeypatch.setattr(publishing, "insert_exclusively", lose_the_answer)
    receipt = graph.mutate(ADD, {"who": "Eve"}).receipt
    monkeypatch.undo()
    assert graph.head().id == receipt.graph_commit_id
    assert len(graph.log(reverse=True)) == before + 1
    assert ids(graph) == [*EVERYBODY, "Eve"]
    assert graph.maintenance.recoveries() == []
    check_recovered(graph)


def test_a_publish_that_cannot_be_looked_up_leaves_its_sidecar_to_recovery(graph, monkeypatch):
    insert, opened = insert_exclusively, Manifest.open

    def vanish(*arguments):
        insert(*arguments)
        monkeypatch.setattr(Manifest, "open", unreachable)
        raise StorageError("the answer was lost")

    def unreachable(self, branch):
        raise StorageError("the store is gone")

    monkeypatch.setattr(publishing, "insert_exclusively", vanish)
    with pytest.raises(CommitStateUnknown) as caught:
        graph.mutate(ADD, {"who": "Eve"})
    monkeypatch.setattr(Manifest, "open", opened)
    monkeypatch.setattr(publishing, "insert_exclusively", insert)
    (name,) = sidecars(graph)
    assert name == f"{caught.value.operation_id}.json"
    graph.mutate(ADD, {"who": "Flo"})
    assert ids(graph) == [*EVERYBODY, "Eve", "Flo"]
    assert graph.maintenance.recoveries() == []
    check_recovered(graph)


def test_an_injected_fault_is_a_crash_and_nothing_is_undone(graph):
    with armed(BEFORE_PUBLISH, Fail(), times=1), pytest.raises(InjectedFault):
        graph.mutate(ADD, {"who": "Eve"})
    assert len(sidecars(graph)) == 1
    assert list(drifted(graph)) == [PERSON]
