"""Publishing: one atomic step, its preconditions, and what happens when two publishers meet."""

from __future__ import annotations

import errno
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier
from typing import Any

import pytest
from lance import LanceDataset
from msgspec import structs

from omnigraph.api.graph import init
from omnigraph.errors import (
    CommitStateUnknown,
    ConflictError,
    ExpectedVersionMismatch,
    HeadMoved,
    InsertConflict,
    LoadIdReused,
    NotFoundError,
    OperationFenced,
    PublishContention,
    StorageError,
    StoreCallFailed,
    SyncFailed,
    TableExists,
)
from omnigraph.history.commits import Commit
from omnigraph.storage.delta import insert_exclusively
from omnigraph.storage.table import Table
from omnigraph.storage.tables import TableStore
from omnigraph.versioning import publish as publishing
from omnigraph.versioning.commits import CommitId, CommitRecord, Counts, LoadNote, TableId
from omnigraph.versioning.manifest import KeyedCommit, ManifestState
from omnigraph.versioning.publish import Publication, publish
from omnigraph.versioning.rows import (
    KEY_COLUMN,
    MANIFEST_PATH,
    TableRegistration,
    TableVersion,
    VersionRef,
    commit_rows,
    rows_table,
)
from tests.behaviour.graphs import COMPANY, PERSON, Backstage, pins
from tests.support.faults import Call, Fail, InjectedFault, armed
from tests.support.receipts import receipt_of_commit

BEFORE, AFTER = "graph_publish.before_manifest_commit", "graph_publish.after_manifest_commit"


def new_registration(type_id: int) -> TableRegistration:
    return TableRegistration(
        TableId(f"node#{type_id}"), f"nodes/{type_id:016x}", "node", type_id, "New"
    )


def new_version(table_id: str, version: int = 1, branch: str | None = None) -> TableVersion:
    return TableVersion(TableId(table_id), version, branch, 0, "{}")


# -- one atomic step -------------------------------------------------------------------------


def test_everything_of_a_publish_appears_in_one_stored_version(graph, backstage):
    entry = graph._snapshot().entry(PERSON)
    changed = backstage.append(entry, ["ada", "bo"])
    before = backstage.tables.open(MANIFEST_PATH).version
    draft = backstage.draft(load_id="nightly", counts={entry.table_id: Counts(inserted=2)})
    publish(backstage.manifest, None, Publication(draft, (changed,)))

    seen = []
    known = {row[KEY_COLUMN] for row in backstage.rows(version=before)}
    for version in range(before + 1, backstage.tables.open(MANIFEST_PATH).version + 1):
        rows = backstage.rows(version=version)
        new = {row[KEY_COLUMN]: row["object_type"] for row in rows if row[KEY_COLUMN] not in known}
        if new:
            seen.append(new)
        known |= set(new)
    assert seen == [
        {
            f"{entry.table_id}$00000000000000000002": "table_version",
            "seq$00000000000000000002": "graph_commit",
            f"op${draft.operation_id}": "operation",
            "load$nightly": "load_id",
        }
    ]


def test_a_publish_moves_the_named_tables_and_nothing_else(graph, backstage):
    before = pins(graph)
    backstage.add(graph, PERSON, ["ada"])
    after = pins(graph)
    assert after.pop(PERSON).version == before[PERSON].version + 1
    assert after == {key: pin for key, pin in before.items() if key != PERSON}
    assert graph._snapshot().entry(PERSON).row_count == 1


def test_a_commit_carries_what_its_draft_says(graph, backstage):
    counts = {graph._snapshot().entry(PERSON).table_id: Counts(inserted=2, deleted=1)}
    draft = backstage.draft(actor_id="act-1", message="zwei dazu", counts=counts, load_id="l")
    made = publish(backstage.manifest, None, Publication(draft))
    stored = graph._core.manifest
    assert stored.find_commit(None, draft.graph_commit_id) == made == stored.commits(None)[-1]
    shown = Commit.of(made, graph.schema.catalog)
    assert graph.commit(draft.graph_commit_id) == shown == graph.log()[0]
    assert shown.counts == {PERSON: Counts(inserted=2, deleted=1)}
    assert made.draft == draft
    assert (made.sequence, made.branch) == (2, None)
    assert made.parent_commit_id == graph.log(reverse=True)[0].id


def test_sequences_are_gapless_and_each_parent_is_the_one_before(graph, backstage):
    for _ in range(5):
        backstage.publish()
    commits = graph.log(reverse=True)
    assert [commit.number for commit in commits] == [1, 2, 3, 4, 5, 6]
    assert [c.parents for c in commits] == [(), *((c.id,) for c in commits[:-1])]


def test_a_publish_that_fails_before_its_step_leaves_nothing(graph, backstage):
    before = backstage.rows()
    with armed(BEFORE, Fail()), pytest.raises(InjectedFault, match=BEFORE):
        backstage.publish()
    assert backstage.rows() == before
    assert backstage.publish().sequence == 2


def test_a_publish_that_fails_after_its_step_is_complete(graph, backstage):
    with armed(AFTER, Fail()), pytest.raises(InjectedFault, match=AFTER):
        backstage.publish()
    assert graph._snapshot().version == 2
    assert backstage.publish().sequence == 3


# -- the same operation again ----------------------------------------------------------------


@pytest.mark.acceptance("S-188")
def test_publishing_an_operation_twice_returns_the_first_commit(graph, backstage):
    entry = graph._snapshot().entry(PERSON)
    publication = Publication(
        backstage.draft(),
        (backstage.append(entry, ["ada"]),),
        expected={entry.table_id: entry.version_ref},
    )
    first = publish(backstage.manifest, None, publication)
    backstage.publish()
    rows = backstage.rows()
    again = replace(publication, draft=replace(publication.draft, graph_commit_id=CommitId("new")))
    for repeated in (publication, again, replace(again, expected_head=CommitId("long ago"))):
        assert publish(Backstage(graph.uri).manifest, None, repeated) == first
    assert backstage.rows() == rows
    assert receipt_of_commit(graph, first.graph_commit_id).manifest_version == 2


@pytest.mark.parametrize("outcome", ["rolled_back", "discarded"])
def test_an_operation_that_recovery_undid_is_fenced(graph, backstage, outcome):
    draft = backstage.draft()
    recovery = CommitRecord(
        backstage.draft(operation_id=draft.operation_id), graph.head().id, 2, None
    )
    manifest = backstage.tables.open(MANIFEST_PATH)
    insert_exclusively(manifest, rows_table(commit_rows(recovery, outcome)))
    with pytest.raises(OperationFenced) as caught:
        publish(backstage.manifest, None, Publication(draft))
    assert caught.value.operation_id == draft.operation_id
    assert graph._snapshot().version == 2


def test_an_operation_that_recovery_finished_returns_that_commit(graph, backstage):
    draft = backstage.draft()
    recovery = CommitRecord(
        backstage.draft(operation_id=draft.operation_id), graph.head().id, 2, None
    )
    manifest = backstage.tables.open(MANIFEST_PATH)
    insert_exclusively(manifest, rows_table(commit_rows(recovery, "rolled_forward")))
    assert publish(backstage.manifest, None, Publication(draft)) == recovery


def test_a_load_id_is_used_once_on_a_branch(graph, backstage):
    graph.branches.create("feature")
    note = LoadNote("append", {}, 0)
    first = backstage.publish(load_id="nightly", load_note=note)
    with pytest.raises(LoadIdReused) as caught:
        backstage.publish(load_id="nightly", load_note=note)
    assert (caught.value.load_id, caught.value.commit_id) == ("nightly", first.graph_commit_id)
    found = backstage.manifest.find_keyed(None, "nightly")
    stored = backstage.manifest.find_commit(None, first.graph_commit_id)
    assert stored is not None
    assert found == KeyedCommit(stored, note)
    assert graph._snapshot().version == 2
    assert backstage.publish("feature", load_id="nightly", load_note=note).sequence == 2


# -- preconditions ---------------------------------------------------------------------------


@pytest.mark.acceptance("S-145", partly="over HTTP, which tests/server has")
def test_the_expected_head_must_be_the_head(graph, backstage):
    head = graph.head().id
    first = publish(backstage.manifest, None, Publication(backstage.draft(), expected_head=head))
    rows = backstage.rows()
    with pytest.raises(HeadMoved) as caught:
        publish(backstage.manifest, None, Publication(backstage.draft(), expected_head=head))
    error = caught.value
    assert (error.branch, error.expected, error.actual) == ("main", head, first.graph_commit_id)
    assert isinstance(error, ConflictError)
    assert backstage.rows() == rows


def test_a_head_that_moves_during_the_publish_is_noticed(graph, backstage):
    head, other = graph.head().id, Backstage(graph.uri)

    def overtake(_hit: object) -> None:
        other.publish()

    publication = Publication(backstage.draft(), expected_head=head)
    with armed(BEFORE, Call(overtake), times=1), pytest.raises(HeadMoved):
        publish(backstage.manifest, None, publication)
    assert graph._snapshot().version == 2


@pytest.mark.acceptance("S-062")
def test_a_table_that_is_only_read_must_not_have_moved_either(graph, backstage):
    person, company = (graph._snapshot().entry(key) for key in (PERSON, COMPANY))
    changed = backstage.append(person, ["ada"])
    backstage.add(graph, COMPANY, ["acme"])
    rows = backstage.rows()
    publication = Publication(
        backstage.draft(),
        (changed,),
        expected={person.table_id: person.version_ref, company.table_id: company.version_ref},
    )
    with pytest.raises(ExpectedVersionMismatch) as caught:
        publish(backstage.manifest, None, publication)
    error = caught.value
    assert (error.table, error.expected, error.actual) == (COMPANY, 1, 2)
    assert "stale view of 'node:Company'" in error.message
    assert "refresh and retry" in error.message
    assert backstage.rows() == rows


@pytest.mark.acceptance("S-063")
def test_of_two_publishers_of_one_table_on_one_base_one_wins(graph, backstage):
    person = graph._snapshot().entry(PERSON)
    together = Barrier(2)

    def attempt(version: int) -> CommitRecord | ExpectedVersionMismatch:
        own = Backstage(graph.uri)
        publication = Publication(
            own.draft(),
            (new_version(person.table_id, version),),
            expected={person.table_id: person.version_ref},
        )
        try:
            return publish(own.manifest, None, publication)
        except ExpectedVersionMismatch as error:
            return error

    def meet(_hit: object) -> None:
        together.wait(10)

    with armed(BEFORE, Call(meet), times=2), ThreadPoolExecutor(2) as threads:
        results = list(threads.map(attempt, (2, 3)))
    (won,) = [result for result in results if isinstance(result, CommitRecord)]
    (lost,) = [result for result in results if isinstance(result, ExpectedVersionMismatch)]
    assert graph.head().id == won.graph_commit_id
    assert graph._snapshot().version == 2
    assert (lost.table, lost.expected) == (PERSON, 1)
    assert lost.actual == graph._snapshot().entry(PERSON).version


def test_a_table_on_another_lineage_is_another_version(graph, backstage):
    person = graph._snapshot().entry(PERSON)
    publication = Publication(
        backstage.draft(), expected={person.table_id: VersionRef(person.version, "feature")}
    )
    with pytest.raises(ExpectedVersionMismatch):
        publish(backstage.manifest, None, publication)


def test_a_table_that_must_not_exist_has_version_zero(graph, backstage):
    nobody, person = TableId("node#99"), graph._snapshot().entry(PERSON).table_id
    absent = {nobody: VersionRef(0, None)}
    publish(backstage.manifest, None, Publication(backstage.draft(), expected=absent))
    with pytest.raises(ExpectedVersionMismatch):
        publish(
            backstage.manifest,
            None,
            Publication(backstage.draft(), expected={person: VersionRef(0, None)}),
        )


def test_a_lost_publish_is_checked_again_on_what_it_lost_to(graph, backstage):
    other, seen = Backstage(graph.uri), []

    def check(state: ManifestState) -> None:
        seen.append(state.sequence)
        if state.sequence > 1:
            raise ConflictError("no longer right")

    def overtake(_hit: object) -> None:
        other.publish()

    with armed(BEFORE, Call(overtake), times=1), pytest.raises(ConflictError, match="no longer"):
        publish(backstage.manifest, None, Publication(backstage.draft(), revalidate=check))
    assert seen == [1, 2]
    assert graph._snapshot().version == 2


# -- changes that make no sense --------------------------------------------------------------


@pytest.mark.acceptance("S-064")
@pytest.mark.parametrize(
    ("versions", "registrations", "error", "text"),
    [
        pytest.param(["node#99"], [], NotFoundError, "node#99", id="an unknown table"),
        pytest.param(["node#3"], [], ConflictError, "already exists", id="an unchanged table"),
        pytest.param([], [3], TableExists, "already exists", id="a table registered before"),
    ],
)
def test_one_bad_change_rejects_the_whole_publish(
    graph, backstage, versions, registrations, error, text
):
    company = graph._snapshot().entry(COMPANY)
    good = backstage.append(company, ["acme"])
    publication = Publication(
        backstage.draft(),
        (good, *map(new_version, versions)),
        tuple(map(new_registration, registrations)),
    )
    rows = backstage.rows()
    with pytest.raises(error, match=text):
        publish(backstage.manifest, None, publication)
    assert backstage.rows() == rows
    assert graph._snapshot().version == 1
    alone = Publication(backstage.draft(), (good,))
    assert publish(backstage.manifest, None, alone).sequence == 2


def test_a_table_appears_once_per_publish(graph, backstage):
    twice = (new_version("node#3", 2), new_version("node#3", 3))
    with pytest.raises(ConflictError):
        publish(backstage.manifest, None, Publication(backstage.draft(), twice))
    registrations = (new_registration(20), structs.replace(new_registration(21), location="nodes/" + f"{20:016x}"))  # fmt: skip
    with pytest.raises(TableExists):
        publish(
            backstage.manifest,
            None,
            Publication(backstage.draft(), registrations=registrations),
        )
    assert graph._snapshot().version == 1


def test_a_table_can_be_registered_and_moved_in_one_publish(graph, backstage):
    publication = Publication(
        backstage.draft(), (new_version("node#20", 1),), (new_registration(20),)
    )
    publish(backstage.manifest, None, publication)
    assert graph._snapshot().entry("node:New").table_id == "node#20"


# -- publishers that meet --------------------------------------------------------------------


@pytest.mark.acceptance("S-144")
def test_publishers_of_different_tables_both_succeed_one_after_the_other(graph, backstage):
    changes = [
        (graph._snapshot().entry(key), backstage.append(graph._snapshot().entry(key), ["x"]))
        for key in (PERSON, COMPANY)
    ]
    together = Barrier(2)

    def run(change: tuple[Any, TableVersion]) -> CommitRecord:
        entry, version = change
        own = Backstage(graph.uri)
        publication = Publication(
            own.draft(), (version,), expected={entry.table_id: entry.version_ref}
        )
        return publish(own.manifest, None, publication)

    def meet(_hit: object) -> None:
        together.wait(10)

    with armed(BEFORE, Call(meet), times=2), ThreadPoolExecutor(2) as threads:
        made = sorted(threads.map(run, changes), key=lambda commit: commit.sequence)
    assert [commit.sequence for commit in made] == [2, 3]
    assert made[1].parent_commit_id == made[0].graph_commit_id == graph.log(reverse=True)[1].id
    assert graph.head().id == made[1].graph_commit_id
    assert pins(graph)[PERSON].version == pins(graph)[COMPANY].version == 2


def test_publishers_of_different_branches_do_not_meet(graph, backstage):
    graph.branches.create("feature")
    other = Backstage(graph.uri)

    def publish_elsewhere(_hit: object) -> None:
        other.publish("feature")

    with armed(BEFORE, Call(publish_elsewhere), times=1) as record:
        backstage.publish("main")
    assert record.count() == 2
    assert graph._snapshot("main").version == graph._snapshot("feature").version == 2


def test_many_threads_publish_a_linear_history(graph, backstage):
    def run(worker: int) -> list[str]:
        own = Backstage(graph.uri)
        return [own.publish(actor_id=f"act-{worker}").graph_commit_id for _ in range(6)]

    with ThreadPoolExecutor(4) as threads:
        made = [commit_id for ids in threads.map(run, range(4)) for commit_id in ids]
    commits = graph.log(reverse=True)
    assert [commit.number for commit in commits] == list(range(1, 26))
    assert {commit.id for commit in commits[1:]} == set(made)
    assert [commit.parents for commit in commits[1:]] == [(c.id,) for c in commits[:-1]]


def test_one_manifest_serves_many_threads(graph, backstage):
    def run(_worker: int) -> list[int]:
        return [backstage.publish().sequence for _ in range(4)]

    with ThreadPoolExecutor(4) as threads:
        made = [sequence for numbers in threads.map(run, range(4)) for sequence in numbers]
    assert sorted(made) == list(range(2, 18))


def test_a_publisher_that_always_loses_gives_up_with_a_typed_conflict(
    graph, backstage, monkeypatch
):
    monkeypatch.setattr(publishing, "PUBLISH_BUDGET_SECONDS", 0.05)
    other = Backstage(graph.uri)

    overtaking: list[bool] = []

    def overtake(_hit: object) -> None:
        # The other publisher reaches the same point, and must not overtake itself.
        if not overtaking:
            overtaking.append(True)
            other.publish()
            overtaking.clear()

    draft = backstage.draft()
    with armed(BEFORE, Call(overtake)), pytest.raises(PublishContention) as caught:
        publish(backstage.manifest, None, Publication(draft))
    assert caught.value.branch == "main"
    assert caught.value.attempts == graph._snapshot().version - 1
    assert draft.graph_commit_id not in [c.id for c in graph.log(reverse=True)]


def test_a_publish_is_confirmed_without_reading_its_rows_back(graph, backstage, monkeypatch):
    backstage.publish()
    read: list[str] = []
    scan = Table.scan

    def note(table: Table, *args: Any, **kwargs: Any) -> Any:
        read.append(table.path)
        return scan(table, *args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(Table, "scan", note)
        made = [
            publish(backstage.manifest, None, Publication(backstage.draft(), begun_at=sequence))
            for sequence in (2, 3, 4)
        ]
    assert read == []
    known = backstage.manifest.current(None)
    assert (known.head, known.sequence) == (made[-1].graph_commit_id, 5)
    assert known == Backstage(graph.uri).manifest.current(None)


# -- a store that fails ----------------------------------------------------------------------


def fails(*_args: Any, **_kwargs: Any) -> Any:
    raise StoreCallFailed("insert", "somewhere", "connection reset")


def test_an_insert_that_failed_is_reported_and_nothing_is_visible(graph, backstage, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(publishing, "insert_exclusively", fails)
        with pytest.raises(StoreCallFailed, match="connection reset"):
            backstage.publish()
    assert graph._snapshot().version == 1
    assert backstage.publish().sequence == 2


@pytest.mark.parametrize("error", [StoreCallFailed("a", "b", "c"), InsertConflict("a", "b")])
def test_an_insert_that_only_seemed_to_fail_is_a_success(graph, backstage, monkeypatch, error):
    def insert(*args: Any) -> None:
        insert_exclusively(*args)
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(publishing, "insert_exclusively", insert)
        made = backstage.publish()
    assert graph.head().id == made.graph_commit_id
    assert graph._snapshot().version == made.sequence == 2


def test_an_outcome_that_cannot_be_read_back_is_unknown_and_can_be_looked_up(
    graph, backstage, monkeypatch
):
    draft = backstage.draft()
    with monkeypatch.context() as patch:

        def insert_and_lose_the_store(*args: Any) -> None:
            insert_exclusively(*args)
            patch.setattr(TableStore, "open", fails)
            fails()

        patch.setattr(publishing, "insert_exclusively", insert_and_lose_the_store)
        with pytest.raises(CommitStateUnknown) as caught:
            publish(backstage.manifest, None, Publication(draft))
    error = caught.value
    assert isinstance(error, StorageError)
    assert (error.operation_id, error.commit_id) == (draft.operation_id, draft.graph_commit_id)
    assert graph.head().id == draft.graph_commit_id
    assert publish(backstage.manifest, None, Publication(draft)).sequence == 2
    assert graph._snapshot().version == 2


def test_a_publish_the_disk_does_not_confirm_is_not_acknowledged(tmp_path, monkeypatch):
    monkeypatch.setenv("OMNIGRAPH_DURABILITY", "fsync")
    graph = init(tmp_path / "g", "node Person { name: String @key }\n")
    backstage = Backstage(tmp_path / "g")
    real_sync = os.fsync
    inserted: list[bool] = []

    def refuse_after_the_insert(handle: int) -> None:
        if inserted:
            raise OSError(errno.EIO, "Input/output error")
        real_sync(handle)

    real_commit = LanceDataset.commit

    def commit(*arguments: Any, **options: Any) -> Any:
        done = real_commit(*arguments, **options)
        inserted.append(True)
        return done

    monkeypatch.setattr(LanceDataset, "commit", commit)
    monkeypatch.setattr(os, "fsync", refuse_after_the_insert)
    with pytest.raises(CommitStateUnknown) as caught:
        backstage.publish()
    assert isinstance(caught.value.__cause__, SyncFailed)
    assert graph.head().id == caught.value.commit_id
