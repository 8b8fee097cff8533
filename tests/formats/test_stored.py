"""What a graph stores as JSON: today's code reads the golden files and writes them byte for byte."""

from __future__ import annotations

import json
import os
import uuid
from itertools import chain
from pathlib import Path

import msgspec
import pyarrow as pa
import pytest

from omnigraph.catalog.compile import build_schema
from omnigraph.catalog.migrate.steps import MigrationPlan
from omnigraph.config.operator import OperatorConfig, read_operator_config
from omnigraph.diff.diff import _cursor, _parse_cursor
from omnigraph.diff.feed import FeedCursor
from omnigraph.errors import ManifestDamaged, SchemaContractBroken
from omnigraph.json_structs import json_line
from omnigraph.language.syntax import Source
from omnigraph.read.text_indexes import _Header
from omnigraph.rows.bindings import bindings, given_bindings
from omnigraph.settings import read_settings
from omnigraph.storage.durability import Durability
from omnigraph.storage.indexes import CHECKSUMS, IndexChecks, IndexFolder
from omnigraph.storage.objects import ObjectStore, open_store
from omnigraph.storage.refs import StoredBranch, parse_ref, rewrite_metadata
from omnigraph.storage.uris import normalise_root
from omnigraph.storage.versions import VersionInfo
from omnigraph.versioning import contract
from omnigraph.versioning.audit import read_audits
from omnigraph.versioning.commits import CommitId, CommitRecord
from omnigraph.versioning.locks.file_lock import _holder
from omnigraph.versioning.locks.lease_object import LeaseNote, LeaseObject
from omnigraph.versioning.manifest import ManifestState, replay
from omnigraph.versioning.manifest_state import Checkpoint, HeadNote
from omnigraph.versioning.recovery.sidecar import Sidecars, UnreadableSidecar
from omnigraph.versioning.rows import (
    Row,
    ancestor_row,
    audit_row,
    checkpoint_row,
    commit_rows,
    registration_row,
    tombstone_row,
    version_row,
)
from omnigraph.versioning.tags import StoredTag, Tags
from tests.formats import stored_values
from tests.formats.golden import golden, read_golden
from tests.unit.catalog.migrate.test_steps import FIRST_STEPS, WIDENING_STEPS


@pytest.fixture
def objects() -> ObjectStore:
    return open_store(normalise_root(f"memory://{uuid.uuid4().hex}"), Durability.NONE)


# -- sidecars -------------------------------------------------------------------------------------

sidecars = pytest.mark.parametrize("name", stored_values.SIDECARS)


@sidecars
def test_a_sidecar_is_written_and_read(objects, name):
    sidecar = stored_values.SIDECARS[name]
    Sidecars(objects).write(sidecar)
    path = f"__recovery/{sidecar.name}"
    text = golden(f"sidecars/{name}.json", objects.read_text(path))
    objects.write_text(path, text)
    read = Sidecars(objects).read(sidecar.name)
    assert read is not None
    Sidecars(objects).write(read)
    assert objects.read_text(path) == text


@sidecars
def test_a_sidecar_without_one_of_its_fields_is_unreadable(objects, name):
    sidecar = stored_values.SIDECARS[name]
    document = json.loads(read_golden(f"sidecars/{name}.json"))
    derived = {"target_schema_hash", "merge_source_commit_id", "pointers"}
    derived |= {"additional_registrations", "tombstones"}
    for field in set(document) - derived:
        damaged = {key: value for key, value in document.items() if key != field}
        objects.write_text(f"__recovery/{sidecar.name}", json.dumps(damaged))
        with pytest.raises(UnreadableSidecar, match=field):
            Sidecars(objects).read(sidecar.name)


def test_a_sidecar_of_a_writer_before_load_notes_and_keys_is_read(objects):
    sidecar = stored_values.SIDECARS["mutation"]
    document = json.loads(read_golden("sidecars/mutation.json"))
    del document["commit"]["load_note"], document["commit"]["write_key"]
    objects.write_text(f"__recovery/{sidecar.name}", json.dumps(document))
    read = Sidecars(objects).read(sidecar.name)
    assert read is not None
    assert read.draft.write_key is None
    assert read.draft.graph_commit_id == sidecar.draft.graph_commit_id


# -- manifest rows --------------------------------------------------------------------------------


def every_row() -> list[Row]:
    records = stored_values.RECORDS
    return [
        *(registration_row(entry, 41) for entry in stored_values.REGISTRATIONS),
        *(version_row(entry, 41) for entry in stored_values.VERSIONS),
        tombstone_row(stored_values.TAG, 2, 41),
        *chain.from_iterable(commit_rows(record, "committed") for record in records.values()),
        *commit_rows(records["first"], "rolled_back"),
        ancestor_row(records["keyed"], 50),
        ancestor_row(records["loaded"], 50),
        *(audit_row(audit, records["keyed"]) for audit in stored_values.AUDITS),
        checkpoint_row(41, stored_values.STATE.to_checkpoint()),
    ]


def stored_rows() -> list[Row]:
    rows: list[Row] = json.loads(read_golden("manifest_rows.json"))
    return rows


def of_type(*types: str) -> list[Row]:
    return [row for row in stored_rows() if row["object_type"] in types]


def test_every_row_of_the_manifest_is_written():
    golden("manifest_rows.json", json.dumps(every_row(), indent=2, ensure_ascii=False) + "\n")


def test_commit_rows_are_read():
    rows = of_type("graph_commit")
    assert len(rows) == len(stored_values.RECORDS) + 1
    for row in rows:
        record = CommitRecord.from_metadata(row["metadata"], row["commit_seq"], row["table_branch"])
        again = commit_rows(record, "committed")[0]
        assert again == row


def test_the_commit_of_an_ancestor_row_is_read():
    keyed, loaded = of_type("ancestor_commit")
    assert CommitRecord.from_metadata(keyed["metadata"], 42, None) == CommitRecord.from_metadata(
        of_type("graph_commit")[0]["metadata"], 42, None
    )
    assert json.loads(loaded["metadata"])["seq"] == 43


def test_audit_rows_are_read():
    rows = of_type("recovery_audit")
    read = read_audits(rows)
    assert [audit.graph_commit_id for audit in read] == ["01KV8Z6M4BAAAAAAAAAAAAAAAA"] * 2
    again = [audit.audit.to_metadata(audit.graph_commit_id) for audit in read]
    assert again == [row["metadata"] for row in rows]
    assert read[0].audit == stored_values.AUDITS[0]


@pytest.mark.parametrize(
    "text",
    ["{}", "[]", "{", '{"recovery_kind": "Exploded"}'],
)
def test_a_damaged_audit_row_is_refused(text):
    row = {**of_type("recovery_audit")[0], "metadata": text}
    with pytest.raises(ManifestDamaged, match="a recovery is recorded wrongly"):
        read_audits([row])


def read_checkpoint(text: str) -> ManifestState:
    return ManifestState.from_checkpoint(None, msgspec.json.decode(text, type=Checkpoint))


def test_a_checkpoint_is_read():
    (row,) = of_type("checkpoint")
    state = read_checkpoint(row["metadata"])
    assert state == stored_values.STATE
    assert checkpoint_row(41, state.to_checkpoint()) == row


def test_a_checkpoint_from_before_schema_references_is_read():
    document = json.loads(of_type("checkpoint")[0]["metadata"])
    del document["schema_ref"]
    assert read_checkpoint(json.dumps(document)).schema_ref is None


def test_rows_of_tables_and_commits_are_replayed():
    empty = ManifestState(None, 0, CommitId(""), {}, {})
    rows = of_type("table", "table_version", "table_tombstone", "graph_commit")
    state = replay(empty, rows)
    assert dict(state.tables) == dict(stored_values.STATE.tables)
    assert dict(state.registered) == dict(stored_values.STATE.registered)
    assert (state.sequence, state.schema_ref) == (45, "00.json")


def test_what_storage_says_about_a_version_is_written():
    info = VersionInfo("_versions/4.manifest", 1024, None, "V2")
    assert golden("version_info.json", info.to_json()) == stored_values.INFO


def test_a_head_note_is_written_and_read():
    state = stored_values.STATE.to_checkpoint()
    note = HeadNote(7, '"etag-ä"', stored_values.CREATED_AT, 120, 9, 3, state)
    text = golden("head_note.json", msgspec.json.encode(note).decode())
    read = HeadNote.parse(text)
    assert read is not None
    assert ManifestState.from_checkpoint(None, read.state) == stored_values.STATE
    assert msgspec.json.encode(read).decode() == text


# -- the schema contract --------------------------------------------------------------------------


def declared() -> contract.SchemaContract:
    ir = build_schema(Source("_schema.pg", stored_values.SCHEMA))
    return contract.SchemaContract.accept(stored_values.SCHEMA, ir)


def test_the_files_of_a_schema_are_written_and_read():
    files = contract.files_of(declared())
    golden("schema/_schema.pg", files.source)
    ir = golden("schema/_schema.ir.json", files.ir or "")
    state = golden("schema/__schema_state.json", files.state or "")
    read = contract.check_files(contract.ContractFiles(stored_values.SCHEMA, ir, state))
    assert contract.files_of(read) == files


def test_the_history_of_a_schema_is_written_and_read(objects):
    ir = declared().ir
    contract.write_history(objects, ir)
    (path,) = objects.list_dir("__schema_history")
    name = path.rpartition("/")[2]
    golden("schema/history_name.txt", f"{name}\n")
    golden("schema/history.json", objects.read_text(path))
    assert contract.read_history(objects, name) == ir


@pytest.mark.parametrize(
    "damage",
    [
        {"ir_version": 3},
        {"next_id": "many"},
        {"nodes": 7},
        {"nodes": [{}]},
        {"edges": [{"name": "E"}]},
        {"interfaces": [7]},
        {"interfaces": None},
    ],
    ids=json.dumps,
)
def test_a_damaged_schema_file_is_refused(damage):
    document = json.loads(read_golden("schema/_schema.ir.json")) | damage
    state = read_golden("schema/__schema_state.json")
    files = contract.ContractFiles(stored_values.SCHEMA, json.dumps(document), state)
    with pytest.raises(SchemaContractBroken, match="accepted compiled schema contract"):
        contract.check_files(files)


@pytest.mark.parametrize("text", ["", "[]", "null", "{}", '{"format_version": 2}'])
def test_a_damaged_schema_state_is_refused(text):
    ir = read_golden("schema/_schema.ir.json")
    with pytest.raises(SchemaContractBroken, match="the recorded schema state"):
        contract.check_files(contract.ContractFiles(stored_values.SCHEMA, ir, text))


def test_every_migration_step_is_written():
    later = MigrationPlan(tuple(step for step, _, _ in WIDENING_STEPS))
    golden("widening_plan.json", json.dumps(later.to_json(), indent=2, ensure_ascii=False) + "\n")
    plan = MigrationPlan(tuple(step for step, _, _ in FIRST_STEPS))
    golden("migration_plan.json", json.dumps(plan.to_json(), indent=2, ensure_ascii=False) + "\n")
    document = plan.document("g.omni")
    golden("schema_plan.json", json.dumps(document, indent=2, ensure_ascii=False) + "\n")


# -- small objects --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "note"),
    [
        ("held", LeaseNote("main", "owner-ä", "mutate", 3, "01KV", 1781443200000, 1781443230000)),
        ("free", LeaseNote("main", None, None, 4, "01KW", 1781443200000, 1781443230000)),
        (
            "free_with_head",
            LeaseNote("a_sb", None, None, 4, "01KW", 1781443200000, 1781443230000, '{"v":1}'),
        ),
    ],
)
def test_a_lease_is_written_and_read(objects, name, note):
    lease = LeaseObject(objects, note.name)
    lease.write(note, None)
    path = f"__leases/{note.name}.json"
    golden(f"leases/{name}.json", objects.read_text(path))
    seen = lease.read()
    assert seen is not None
    assert seen.note == note


@pytest.mark.parametrize(
    "damage",
    [{"lease_version": 2}, {"term": "3"}, {"term": None}, {"colour": "red"}],
    ids=json.dumps,
)
def test_a_text_that_is_not_a_lease_of_this_version_has_no_note(objects, damage):
    document = json.loads(read_golden("leases/held.json")) | damage
    objects.write_text("__leases/main.json", json.dumps(document))
    seen = LeaseObject(objects, "main").read()
    assert seen is not None
    assert seen.note is None


@pytest.mark.parametrize(
    "tag",
    [
        StoredTag("v1.0", CommitId("01KV8Z6M4B0000000000000000"), 41, 1781443200000000, None),
        StoredTag(
            "q3", CommitId("01KV8Z6M4B0000000000000000"), 41, 1781443200000000, "Zoë", "r_s7"
        ),
    ],
    ids=lambda tag: tag.name,
)
def test_a_tag_is_written_and_read(objects, tag):
    Tags(objects).add(tag)
    golden(f"tags/{tag.name}.json", objects.read_text(f"__pins/{tag.name}.json"))
    assert Tags(objects).find(tag.name) == tag
    assert Tags(objects).list() == [tag]


@pytest.mark.parametrize("damage", [{"pin_version": 2}, {"colour": "red"}], ids=json.dumps)
def test_a_tag_of_another_version_is_refused(objects, damage):
    document = json.loads(read_golden("tags/v1.0.json")) | damage
    objects.write_text("__pins/v1.0.json", json.dumps(document))
    with pytest.raises(ManifestDamaged, match=r"tag 'v1\.0' cannot be read"):
        Tags(objects).list()


def test_the_checksums_of_an_index_are_written_and_compared(tmp_path):
    (tmp_path / "page_data.lance").write_bytes(b"abc")
    folder = IndexFolder("u-1", str(tmp_path), 3)
    IndexChecks(is_local=True, options=None, sync=None).write_one(folder)
    text = golden("index_checksums.json", (tmp_path / CHECKSUMS).read_text())
    checks = IndexChecks(is_local=True, options=None, sync=None)
    assert checks._compare(folder) is None
    (tmp_path / "page_data.lance").write_bytes(b"abd")
    assert checks._compare(folder) == "page_data.lance is not what was written"
    damages = ["[]", "7", '{"page_data.lance": 7}', '{"page_data.lance": ["a", "b"]}', "{"]
    for damaged in [*damages, text[:-1]]:
        (tmp_path / CHECKSUMS).write_text(damaged)
        assert checks._compare(folder) == f"{CHECKSUMS} is not what was written"


@pytest.mark.parametrize(
    ("name", "header"),
    [
        ("header", _Header("01KV.lance", {"a.lance": "1:2", "b.lance": "3:4"}, 123456)),
        ("header_without_checksum", _Header("01KV.lance", {}, None)),
    ],
)
def test_the_header_of_a_stored_text_index_is_written_and_read(name, header):
    text = golden(f"text_index/{name}.json", json_line(header))
    assert _Header.parse(text.encode()) == header


def test_the_header_of_a_text_index_before_checksums_is_read():
    document = json.loads(read_golden("text_index/header.json"))
    del document["checksum"]
    assert _Header.parse(json.dumps(document).encode()).checksum is None


def test_the_note_in_a_lock_file_is_read(tmp_path):
    note = tmp_path / "lock"
    note.write_text(read_golden("file_lock.json"))
    handle = os.open(note, os.O_RDONLY)
    try:
        holder = _holder(handle)
    finally:
        os.close(handle)
    assert holder is not None
    assert (holder.owner, holder.operation) == ("01KV8YRZ0A7M3B6C9D1E2F4G5H", "load")


def test_the_description_in_a_branch_ref_is_replaced(objects):
    text = read_golden("branch_ref.json")
    objects.write_text("t/_refs/branches/review_s7.json", text)
    assert parse_ref(text) == StoredBranch(None, 7, {"omnigraph:origin": "01KV"})
    rewrite_metadata("t", "review_s7", {"omnigraph:origin": "01KW"}, objects)
    golden("branch_ref_described.json", objects.read_text("t/_refs/branches/review_s7.json"))


def test_vectors_are_bound_to_their_texts():
    texts = pa.array(["Grüße", "", None])
    vectors = pa.array([[1.0], None, [2.0]])
    bound = [*bindings(texts, "m-1").to_pylist(), *given_bindings(vectors, texts).to_pylist()]
    golden("vector_bindings.json", json.dumps(bound, indent=2) + "\n")


def test_cursors_are_written_and_read():
    place, feed = ("kö/1", "01KV"), FeedCursor(42, CommitId("01KV8Z6M4B0000000000000000"))
    stored = golden("cursors.json", json.dumps([_cursor(place), str(feed)]) + "\n")
    of_diff, of_feed = json.loads(stored)
    assert _parse_cursor(of_diff) == place
    assert FeedCursor.parse(of_feed) == feed


def test_operator_preferences_are_read(tmp_path: Path, monkeypatch):
    monkeypatch.setenv("OMNIGRAPH_HOME", str(tmp_path))
    path = tmp_path / "config.yaml"
    path.write_text(read_golden("operator_config.yaml"))
    assert read_operator_config(read_settings()) == OperatorConfig(
        path,
        engine="inline",
        spark_master="spark://host:7077",
        spark_conf={
            "spark.executor.memory": "4g",
            "spark.cores.max": "8",
            "spark.speculation": "true",
        },
    )
