"""Repair: what an operator is shown, and what happens when they decide."""

from __future__ import annotations

from pathlib import Path

import lance
import pytest
from lance.fragment import DataFile

from omnigraph.api.graph import open as open_graph
from omnigraph.errors import (
    BranchNotFound,
    InputError,
    ManifestDamaged,
    ReadOnlyHandle,
    RecoveryPending,
    TableDrift,
)
from omnigraph.storage.lineage import version_file
from tests.behaviour.graphs import COMPANY, KEYS, PERSON
from tests.crash.recovery.situations import (
    ADD,
    AGE,
    BEFORE_PUBLISH,
    BEFORE_TABLE,
    KNOWS,
    check_recovered,
    drifted,
    head,
    ids,
    interrupted,
    raw_append,
    raw_compaction,
    raw_delete,
    sidecars,
    write_sidecar,
)
from tests.crash.recovery.test_drift import ADD_COMPANY
from tests.crash.recovery.test_quarantine import take_back
from tests.support.faults import Call, armed

FORCE = {"confirm": True, "force": True}
ROLLBACK = {**FORCE, "rollback": True}
BRANCHES = pytest.mark.parametrize("branch", ["main", "feature"])


@pytest.fixture(autouse=True)
def _feature(graph):
    """A branch that owns the people, in more than one piece."""
    graph.mutate(ADD, {"who": "Eve"})
    feature = graph.branches.create("feature")
    feature.mutate(ADD, {"who": "Flo"})


def of(report, key=PERSON):
    (found,) = [table for table in report.tables if table.table_key == key]
    return found


def verdict(report, key=PERSON):
    return of(report, key).drift.value, of(report, key).action.value


def state(graph):
    return [graph._snapshot(name).to_json() for name in list(graph.branches)], len(
        graph.log(reverse=True)
    )


# -- what is found ---------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"confirm": True}, FORCE, ROLLBACK])
def test_nothing_is_done_where_nothing_drifted(graph, options):
    before = state(graph)
    report = graph.maintenance.repair(**options)
    assert [(t.drift.value, t.action.value) for t in report.tables] == [("no_drift", "no_op")] * 4
    assert sorted(t.table_key for t in report.tables) == sorted(KEYS)
    assert (report.commit, report.refused) == (None, ())
    assert state(graph) == before


@BRANCHES
def test_a_compaction_is_shown_and_published_once_confirmed(graph, branch):
    people = ids(graph, branch=branch)
    raw_compaction(graph, branch=branch)
    ((key, (pin, found)),) = drifted(graph, branch).items()
    with pytest.raises(TableDrift):
        graph.mutate(ADD, {"who": "Zoe"}, branch=branch)
    before = state(graph)
    report = graph.maintenance.repair(branch)
    assert verdict(report) == ("verified_maintenance", "preview")
    assert (key, of(report).published, of(report).found) == (PERSON, pin, found)
    assert state(graph) == before
    report = graph.maintenance.repair(branch, confirm=True)
    assert verdict(report) == ("verified_maintenance", "healed")
    commit = graph.commit(report.commit)
    assert commit == report.commit
    assert (commit.actor, commit.operation) == ("omnigraph:repair", "repair")
    assert commit.id == graph.head(branch).id
    assert ids(graph, branch=branch) == people
    assert head(graph, branch=branch).version == found
    check_recovered(graph, "feature")
    graph.mutate(AGE, {"who": "Bob", "age": 4}, branch=branch)


@pytest.mark.acceptance("S-184")
def test_repair_of_a_branch_leaves_main_alone(graph):
    raw_compaction(graph, branch="feature")
    raw_compaction(graph)
    main = graph._snapshot("main").to_json()
    assert verdict(graph.maintenance.repair("feature", confirm=True)) == (
        "verified_maintenance",
        "healed",
    )
    assert graph._snapshot("main").to_json() == main
    assert (drifted(graph, "feature"), list(drifted(graph))) == ({}, [PERSON])
    assert [t.table_key for t in graph.maintenance.repair("feature").tables] == [PERSON]


@BRANCHES
def test_a_deletion_is_refused_and_published_by_force(graph, branch):
    people = ids(graph, branch=branch)
    raw_delete(graph, "Bob", branch=branch)
    before = state(graph)
    report = graph.maintenance.repair(branch, confirm=True)
    assert verdict(report) == ("suspicious", "refused")
    assert report.refused == (of(report),)
    assert state(graph) == before
    report = graph.maintenance.repair(branch, **FORCE)
    assert verdict(report) == ("suspicious", "forced")
    assert report.commit.actor == "omnigraph:repair:force"
    assert ids(graph, branch=branch) == [name for name in people if name != "Bob"]
    check_recovered(graph, "feature")
    graph.mutate(ADD, {"who": "Zoe"}, branch=branch)


@BRANCHES
@pytest.mark.parametrize("drift", [raw_append, raw_delete, raw_compaction])
def test_rollback_brings_back_what_the_graph_knows(graph, branch, drift):
    people = ids(graph, branch=branch)
    arguments = () if drift is raw_compaction else ("Bob",)
    drift(graph, *arguments, branch=branch)
    report = graph.maintenance.repair(branch, **ROLLBACK)
    assert of(report).action.value == "forced"
    assert report.commit.actor == "omnigraph:repair:force"
    assert ids(graph, branch=branch) == people
    check_recovered(graph, "feature")
    graph.mutate(AGE, {"who": "Bob", "age": 4}, branch=branch)


def raw_index(graph):
    head(graph).writable_handle().create_scalar_index("name", "BTREE")


def raw_restore(graph):
    head(graph).writable_handle().checkout_version(1).restore()


def raw_config(graph):
    head(graph).writable_handle().update_config({"a": "b"})


def raw_replacement(graph):
    """Other values under the same row ids, in place of a file of a fragment."""
    table = head(graph).writable_handle()
    fragment = table.get_fragments()[0].metadata
    file = fragment.files[0]
    donor = table.get_fragments()[-1].metadata.files[0]
    replacement = DataFile(
        donor.path,
        file.fields,
        file.column_indices,
        file.file_major_version,
        file.file_minor_version,
    )
    operation = lance.LanceOperation.DataReplacement(
        [lance.LanceOperation.DataReplacementGroup(fragment.id, replacement)]
    )
    lance.LanceDataset.commit(table, operation, read_version=table.version)


@pytest.mark.parametrize("drift", [raw_index, raw_restore, raw_config, raw_replacement])
def test_whatever_is_no_compaction_is_suspicious(graph, drift):
    drift(graph)
    assert verdict(graph.maintenance.repair(confirm=True)) == ("suspicious", "refused")


def test_a_compaction_on_top_of_a_deletion_vouches_for_nothing(graph):
    raw_delete(graph, "Bob")
    raw_compaction(graph)
    report = graph.maintenance.repair(confirm=True)
    assert verdict(report) == ("suspicious", "refused")
    assert len(of(report).operations) > 1


@pytest.mark.parametrize("uri", ["local"], indirect=True)
def test_a_history_that_cannot_be_read_is_unverifiable(graph):
    raw_append(graph, "Mallory")
    raw_append(graph, "Mallory2")
    lost = head(graph).version - 1
    Path(head(graph).lineage.file(version_file(lost))).unlink()
    report = graph.maintenance.repair(confirm=True)
    assert verdict(report) == ("unverifiable", "refused")
    assert of(report).error


def test_one_refused_table_does_not_keep_another_from_being_repaired(graph):
    graph.mutate(ADD_COMPANY, {"n": "Bolt"})
    raw_compaction(graph, key=COMPANY)
    raw_append(graph, "Mallory")
    report = graph.maintenance.repair(confirm=True)
    assert verdict(report, COMPANY) == ("verified_maintenance", "healed")
    assert verdict(report) == ("suspicious", "refused")
    assert report.commit.actor == "omnigraph:repair"
    assert list(drifted(graph)) == [PERSON]
    assert verdict(graph.maintenance.repair(), KNOWS) == ("no_drift", "no_op")


def test_several_tables_are_published_together(graph):
    graph.mutate(ADD_COMPANY, {"n": "Bolt"})
    raw_compaction(graph, key=COMPANY)
    raw_append(graph, "Mallory")
    before = len(graph.log(reverse=True))
    report = graph.maintenance.repair(**FORCE)
    assert len(graph.log(reverse=True)) == before + 1
    assert report.commit.actor == "omnigraph:repair:force"
    assert verdict(report, COMPANY)[1] == "healed"
    check_recovered(graph)


# -- what is refused -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [{"force": True}, {"rollback": True}, {"rollback": True, "confirm": True}],
)
def test_options_that_go_further_need_those_before_them(graph, options):
    with pytest.raises(InputError, match="confirm"):
        graph.maintenance.repair(**options)


@pytest.mark.parametrize("options", [{}, {"confirm": True}, FORCE])
def test_repair_waits_for_recovery(graph, options):
    interrupted(BEFORE_PUBLISH, lambda: graph.mutate(ADD, {"who": "Zoe"}))
    (name,) = sidecars(graph)
    with pytest.raises(RecoveryPending, match="requires a clean recovery state") as caught:
        graph.maintenance.repair(**options)
    assert name in str(caught.value)
    assert sidecars(graph) == [name]
    assert graph.maintenance.repair("feature", **options).tables
    graph.maintenance.recover()
    assert graph.maintenance.repair(**options).commit is None


@pytest.mark.parametrize("uri", ["local"], indirect=True)
def test_a_table_behind_the_graph_is_no_case_for_repair(graph):
    take_back(graph)
    with pytest.raises(ManifestDamaged, match=PERSON):
        graph.maintenance.repair(**FORCE)


def test_a_reader_and_an_unknown_branch_are_refused(graph):
    with pytest.raises(ReadOnlyHandle):
        open_graph(graph.uri, read_only=True).maintenance.repair()
    with pytest.raises(BranchNotFound):
        graph.maintenance.repair("nowhere")


# -- sidecars that recovery cannot decide about ------------------------------------------------


def foreign(graph, branch="main"):
    """A sidecar whose table was moved by somebody else."""
    interrupted(BEFORE_TABLE, lambda: graph.mutate(ADD, {"who": "Zoe"}, branch=branch))
    raw_append(graph, "Mallory", branch=branch)
    (name,) = sidecars(graph)
    return name


@BRANCHES
def test_a_quarantined_sidecar_is_listed_until_it_is_forced_away(graph, branch):
    name = foreign(graph, branch)
    for options in ({}, {"confirm": True}):
        report = graph.maintenance.repair(branch, **options)
        assert [found.name for found in report.quarantined] == [name]
        assert (report.removed_sidecars, sidecars(graph)) == ((), [name])
    people = ids(graph, branch=branch)
    report = graph.maintenance.repair(branch, **FORCE)
    assert (report.removed_sidecars, report.quarantined) == ((name,), ())
    assert ids(graph, branch=branch) == sorted([*people, "Mallory"])
    check_recovered(graph, "feature")
    graph.mutate(ADD, {"who": "Zoe"}, branch=branch)
    # What an operator has published must not be called rolled back later.
    assert graph.maintenance.recoveries(branch) == []


@BRANCHES
def test_a_quarantined_sidecar_goes_with_a_rollback(graph, branch):
    name = foreign(graph, branch)
    people = ids(graph, branch=branch)
    assert graph.maintenance.repair(branch, **ROLLBACK).removed_sidecars == (name,)
    assert ids(graph, branch=branch) == people
    assert graph.maintenance.recoveries(branch) == []
    check_recovered(graph, "feature")
    graph.mutate(ADD, {"who": "Zoe"}, branch=branch)


def test_repair_of_one_branch_keeps_the_quarantined_sidecars_of_others(graph):
    name = foreign(graph, "feature")
    report = graph.maintenance.repair("main", **FORCE)
    assert (report.removed_sidecars, sidecars(graph)) == ((), [name])
    assert [found.name for found in report.quarantined] == [name]


def test_an_unreadable_sidecar_is_removed_when_no_table_needs_it(graph):
    write_sidecar(graph, "01KV8Z6M3Q9V2X4T7B5N0C1D2E.json", "{")
    assert graph.maintenance.repair(confirm=True).removed_sidecars == ()
    assert len(sidecars(graph)) == 1
    assert len(graph.maintenance.repair(**FORCE).removed_sidecars) == 1
    check_recovered(graph)


def test_an_unreadable_sidecar_stays_while_a_table_of_another_branch_has_drifted(graph):
    write_sidecar(graph, "01KV8Z6M3Q9V2X4T7B5N0C1D2E.json", "{")
    raw_append(graph, "Mallory", branch="feature")
    report = graph.maintenance.repair("main", **FORCE)
    assert report.removed_sidecars == ()
    assert len(sidecars(graph)) == 1
    assert len(graph.maintenance.repair("feature", **FORCE).removed_sidecars) == 1
    check_recovered(graph, "feature")


def test_a_repair_that_died_is_made_again(graph):
    raw_delete(graph, "Bob")
    people = ids(graph)

    class Death(Exception):
        pass

    def die(_hit):
        raise Death

    with (
        armed("graph_publish.before_manifest_commit", Call(die), times=1),
        pytest.raises(Death),
    ):
        graph.maintenance.repair(**ROLLBACK)
    assert ids(graph) == people
    assert list(drifted(graph)) == [PERSON]
    graph.maintenance.repair(**ROLLBACK)
    assert ids(graph) == people
    check_recovered(graph)
