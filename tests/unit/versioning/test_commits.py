"""Commit records and the rows of the manifest: what is written is what is read."""

from __future__ import annotations

import json
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given

from omnigraph.versioning.commits import CommitRecord, Counts, OperationKind, TableId
from omnigraph.versioning.rows import (
    KEY_COLUMN,
    SCHEMA,
    Row,
    TableVersion,
    checkpoint_row,
    commit_rows,
    registration_row,
    rows_table,
    version_row,
)
from tests.unit.versioning.histories import plain_draft, records, registration

METADATA_KEYS = [
    "graph_commit_id",
    "parent_commit_id",
    "merged_parent_commit_id",
    "actor_id",
    "created_at",
    "operation",
    "operation_id",
    "message",
    "schema_ir_hash",
    "schema_ref",
    "counts",
    "load_id",
    "warnings",
]


@given(records())
def test_a_record_reads_back_from_its_text(record):
    text = record.to_metadata()
    assert CommitRecord.from_metadata(text, record.sequence, record.branch) == record


@given(records())
def test_every_key_is_always_written(record):
    assert list(json.loads(record.to_metadata())) == METADATA_KEYS


@given(records())
def test_a_record_survives_the_table(record):
    rows = stored(commit_rows(record, "committed"))
    row = next(row for row in rows if row["object_type"] == "graph_commit")
    assert (
        CommitRecord.from_metadata(row["metadata"], row["commit_seq"], row["table_branch"])
        == record
    )


def test_a_table_that_did_not_change_is_not_counted():
    counts = {TableId("node#1"): Counts(), TableId("node#2"): Counts(updated=1)}
    record = CommitRecord(replace(plain_draft(2), counts=counts), None, 2, None)
    assert json.loads(record.to_metadata())["counts"] == {
        "node#2": {"inserted": 0, "updated": 1, "deleted": 0}
    }


def test_the_kinds_of_operation_are_those_of_the_format():
    assert {kind.value for kind in OperationKind} == {
        "init", "load", "mutate", "merge", "schema_apply", "embed", "revert", "cherry_pick",
        "ensure_indices", "optimize", "repair", "recovery",
    }  # fmt: skip


# -- rows ------------------------------------------------------------------------------------


def stored(rows: list[Row]) -> list[Row]:
    """Rows as a table of the manifest's schema gives them back."""
    found: list[Row] = rows_table(rows).to_pylist()
    return found


def test_the_manifest_has_the_columns_of_the_format():
    assert [(field.name, str(field.type), field.nullable) for field in SCHEMA] == [
        ("object_id", "string", False),
        ("object_type", "string", False),
        ("location", "string", True),
        ("metadata", "string", True),
        ("base_objects", "list<item: string>", True),
        ("table_key", "string", False),
        ("table_version", "uint64", True),
        ("table_branch", "string", True),
        ("row_count", "uint64", True),
        ("commit_seq", "uint64", False),
    ]
    key = SCHEMA.field(KEY_COLUMN)
    assert key.metadata == {b"lance-schema:unenforced-primary-key": b"true"}
    assert SCHEMA.metadata == {b"omnigraph:internal_schema_version": b"4"}


def only(rows: list[dict[str, object]]) -> dict[str, object]:
    """The single row, without the columns it leaves empty."""
    (row,) = stored(rows)
    return {name: value for name, value in row.items() if value is not None}


def test_a_registration_row_is_keyed_by_the_table():
    assert only([registration_row(registration(TableId("node#3")), 7)]) == {
        "object_id": "node#3",
        "object_type": "table",
        "location": "nodes/0000000000000003",
        "metadata": '{"kind": "node", "type_id": 3, "name": "T3"}',
        "table_key": "node#3",
        "commit_seq": 7,
    }


@pytest.mark.parametrize("branch", [None, "review_s7"])
def test_a_version_row_is_keyed_by_table_and_sequence(branch):
    row = only([version_row(TableVersion(TableId("edge#4"), 9, branch, 12, "{}"), 7)])
    assert row.pop("table_branch", None) == branch
    assert row == {
        "object_id": "edge#4$00000000000000000007",
        "object_type": "table_version",
        "metadata": "{}",
        "table_key": "edge#4",
        "table_version": 9,
        "row_count": 12,
        "commit_seq": 7,
    }


def test_a_commit_takes_the_keys_of_its_sequence_operation_and_load():
    draft = replace(plain_draft(42), load_id="nightly/1")
    rows = stored(commit_rows(CommitRecord(draft, None, 42, "feature"), "rolled_forward"))
    assert [(row["object_id"], row["object_type"]) for row in rows] == [
        ("seq$00000000000000000042", "graph_commit"),
        ("op$O42", "operation"),
        ("load@feature$nightly/1", "load_id"),
    ]
    assert {row["table_key"] for row in rows} == {"commit:C42"}
    assert {row["commit_seq"] for row in rows} == {42}
    assert [row["table_branch"] for row in rows] == ["feature", None, None]
    assert json.loads(rows[1]["metadata"]) == {"outcome": "rolled_forward"}
    assert json.loads(rows[2]["metadata"]) == {"graph_commit_id": "C42"}


def test_a_checkpoint_is_keyed_by_its_sequence():
    row = only([checkpoint_row(64, {"seq": 64})])
    assert row == {
        "object_id": "checkpoint$00000000000000000064",
        "object_type": "checkpoint",
        "metadata": '{"seq": 64}',
        "table_key": "checkpoint",
        "commit_seq": 64,
    }


def test_rows_become_a_table_of_the_manifests_schema():
    table = rows_table([checkpoint_row(1, {})])
    assert isinstance(table, pa.Table)
    assert table.schema.equals(SCHEMA, check_metadata=True)
