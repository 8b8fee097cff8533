"""Sidecars: what is written down before a table moves, and what counts as unreadable."""

from __future__ import annotations

import json
import uuid
from dataclasses import replace

import pytest

from omnigraph.storage.durability import Durability
from omnigraph.storage.objects import ObjectStore, open_store
from omnigraph.storage.uris import normalise_root
from omnigraph.versioning.commits import (
    CommitDraft,
    CommitId,
    Counts,
    LoadNote,
    OperationId,
    OperationKind,
    TableId,
    Warning,
)
from omnigraph.versioning.recovery.sidecar import (
    Sidecar,
    Sidecars,
    SidecarTable,
    UnreadableSidecar,
    WriterKind,
)
from omnigraph.versioning.rows import VersionRef

OPERATION = "01KV8Z6M3Q9V2X4T7B5N0C1D2E"
DRAFT = CommitDraft(
    graph_commit_id=CommitId("01KV8Z6M4BAAAAAAAAAAAAAAAA"),
    operation=OperationKind.LOAD,
    operation_id=OperationId(OPERATION),
    created_at=1781443200000000,
    schema_ir_hash="sha256:00",
    schema_ref="00.json",
    actor_id="act-lena",
    message="Grüße",
    counts={TableId("node#1"): Counts(inserted=3)},
    load_id="job-1",
    load_note=LoadNote("merge", {"node:Person": 3}, 0),
    warnings=(Warning("unknown_property", "nick is no property", 2),),
)
SIDECAR = Sidecar(
    owner="01KV8YRZ0A7M3B6C9D1E2F4G5H",
    branch="review/7",
    physical="review_s7",
    base_sequence=41,
    writer_kind=WriterKind.LOAD,
    tables=(
        SidecarTable.of(
            "node:Person", TableId("node#1"), "nodes/aa", VersionRef(4, "review_s7"), "review_s7"
        ),
        SidecarTable.of(
            "edge:Knows",
            TableId("edge#2"),
            "edges/bb",
            VersionRef(7, None),
            "review_s7",
            forks=True,
        ),
        SidecarTable.of(
            "node:Tag", TableId("node#3"), "nodes/cc", VersionRef(2, None), None, data_commits=0
        ),
    ),
    draft=DRAFT,
)
DOCUMENT = json.loads(SIDECAR.to_text())


@pytest.fixture
def objects() -> ObjectStore:
    return open_store(normalise_root(f"memory://{uuid.uuid4().hex}"), Durability.NONE)


@pytest.fixture
def sidecars(objects: ObjectStore) -> Sidecars:
    return Sidecars(objects)


def test_a_sidecar_is_read_back_as_it_was_written(sidecars):
    sidecars.write(SIDECAR)
    assert sidecars.names() == [f"{OPERATION}.json"]
    assert sidecars.read(f"{OPERATION}.json") == SIDECAR


def test_the_file_names_the_operation_its_tables_and_the_commit_to_be(sidecars, objects):
    sidecars.write(SIDECAR)
    document = json.loads(objects.read_text(f"__recovery/{OPERATION}.json"))
    assert document["schema_version"] == 2
    assert document["started_at"] == "1781443200000000"
    assert (document["branch"], document["branch_physical"]) == ("review/7", "review_s7")
    assert document["base_seq"] == 41
    assert document["commit"]["counts"] == {"node#1": {"inserted": 3, "updated": 0, "deleted": 0}}
    own, forked, upkeep = document["tables"]
    assert own == {
        "table_key": "node:Person",
        "table_id": "node#1",
        "table_path": "nodes/aa",
        "expected_version": 4,
        "expected_branch": "review_s7",
        "table_branch": "review_s7",
        "data_commits": 1,
        "post_commit_pin": 5,
    }
    assert forked["fork_from"] == {"table_version": 7}
    assert "expected_branch" not in forked
    assert upkeep["data_commits"] == 0
    assert "table_branch" not in upkeep


def test_sidecars_are_listed_oldest_first_and_other_files_are_not(sidecars, objects):
    later = replace(DRAFT, operation_id=OperationId("01KV8Z6M3Q9V2X4T7B5N0C1D2F"))
    sidecars.write(replace(SIDECAR, draft=later))
    sidecars.write(SIDECAR)
    objects.write_text("__recovery/.DS_Store", "junk")
    assert sidecars.names() == [SIDECAR.name, f"{later.operation_id}.json"]


def test_a_sidecar_that_has_gone_is_none_and_deleting_it_again_is_fine(sidecars):
    sidecars.write(SIDECAR)
    sidecars.delete(SIDECAR.name)
    sidecars.delete(SIDECAR.name)
    assert sidecars.read(SIDECAR.name) is None
    assert sidecars.names() == []


def test_unknown_keys_are_ignored(sidecars, objects):
    document = DOCUMENT | {"colour": "red"}
    objects.write_text(f"__recovery/{OPERATION}.json", json.dumps(document))
    assert sidecars.read(SIDECAR.name) == SIDECAR


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "is not valid JSON"),
        ("{", "is not valid JSON"),
        ("[]", "not a usable sidecar"),
        ("null", "not a usable sidecar"),
        (json.dumps(DOCUMENT | {"schema_version": 99}), "its format is 99"),
        (json.dumps({"schema_version": 2}), "not a usable sidecar"),
        (json.dumps(DOCUMENT | {"writer_kind": "Painter"}), "Painter"),
        (json.dumps(DOCUMENT | {"tables": [{}]}), "not a usable sidecar"),
        (json.dumps(DOCUMENT | {"operation_id": "other"}), "describes operation other"),
    ],
)
def test_a_file_that_is_no_sidecar_is_named_with_the_reason(sidecars, objects, text, reason):
    objects.write_text(f"__recovery/{OPERATION}.json", text)
    with pytest.raises(UnreadableSidecar, match=reason) as caught:
        sidecars.read(SIDECAR.name)
    assert caught.value.name == SIDECAR.name
    assert SIDECAR.name in caught.value.reason


def test_main_is_null_in_a_sidecar_whichever_way_it_is_spelled(sidecars, objects):
    on_main = replace(SIDECAR, branch=None, physical=None)
    spelled = json.loads(on_main.to_text()) | {"branch": "main"}
    objects.write_text(f"__recovery/{OPERATION}.json", json.dumps(spelled))
    assert sidecars.read(SIDECAR.name) == on_main
