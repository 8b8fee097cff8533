"""Columns that come and go, and versions that are removed: what the library makes of them."""

from __future__ import annotations

import os
import pickle
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
from lance import LanceDataset, LanceOperation
from lance.fragment import write_fragments
from lance.schema import LanceSchema

ROWS = pa.table({"id": ["a", "b"], "n": pa.array([1, 2], pa.int32())})


def made(folder: Path) -> LanceDataset:
    return lance.write_dataset(ROWS, str(folder / "t"), enable_stable_row_ids=True)


def commit(dataset: LanceDataset, operation: LanceOperation.BaseOperation) -> LanceDataset:
    transaction = lance.Transaction(dataset.version, operation, transaction_properties={"k": "v"})
    return LanceDataset.commit(dataset, transaction, max_retries=0)


def stored(schema: LanceSchema) -> list[Any]:
    """What a schema is pickled as."""
    reduced: Any = schema.__reduce__()
    assert reduced[0] == LanceSchema._from_protos
    return list(reduced[1])


def test_a_schema_is_pickled_as_its_metadata_and_the_stored_form_of_each_field(tmp_path):
    nested = pa.schema([("id", pa.utf8()), ("l", pa.list_(pa.int32())), ("n", pa.int32())])
    schema = LanceSchema.from_pyarrow(nested)
    metadata, *fields = stored(schema)
    assert metadata == "{}"
    assert len(fields) == 4
    without = LanceSchema._from_protos(metadata, fields[0], fields[3])
    assert [(f.name(), f.id()) for f in without.fields()] == [("id", 0), ("n", 3)]
    assert pickle.loads(pickle.dumps(schema)) == schema


def test_one_merge_drops_a_column_and_adds_others_with_and_without_values(tmp_path):
    dataset = made(tmp_path)
    dataset.create_scalar_index("id", "BTREE")
    dataset.delete("id = 'a'")
    metadata, *fields = stored(dataset.lance_schema)
    first = dataset.max_field_id + 1
    new = [pa.field("v", pa.utf8(), nullable=False), pa.field("e", pa.int64())]
    padding = [pa.field(str(number), pa.int8()) for number in range(first)]
    added = stored(LanceSchema.from_pyarrow(pa.schema([*padding, *new])))[1 + first :]
    values = pa.schema(new[:1])

    def compute(batch: pa.RecordBatch) -> pa.RecordBatch:
        return pa.record_batch([pa.array(["x"] * batch.num_rows)], schema=values)

    udf = lance.batch_udf(output_schema=values)(compute)
    fragments = [f.merge_columns(udf, columns=["id"])[0] for f in dataset.get_fragments()]
    schema = LanceSchema._from_protos(metadata, fields[0], *added)
    changed = commit(dataset, LanceOperation.Merge(fragments, schema))
    assert changed.version == dataset.version + 1
    transaction = changed.read_transaction(changed.version)
    assert transaction is not None
    assert transaction.transaction_properties == {"k": "v"}
    rows = changed.to_table(columns=["id", "v", "e", "_rowid"]).to_pylist()
    assert rows == [{"id": "b", "v": "x", "e": None, "_rowid": 1}]
    assert [index.field_names for index in changed.describe_indices()] == [["id"]]
    changed.validate()


def test_named_versions_go_and_those_of_branches_and_tags_stay(tmp_path):
    dataset = made(tmp_path)
    for _ in range(5):
        dataset = lance.write_dataset(ROWS, dataset.uri, mode="append")
    dataset.create_branch("b", 2)
    dataset.tags.create("t", 3)
    wanted = [1, 2, 3, 4, 6]
    planned = dataset.explain_cleanup_old_versions(
        versions=wanted, error_if_tagged_old_versions=False
    ).stats
    done = dataset.cleanup_old_versions(versions=wanted, error_if_tagged_old_versions=False)
    assert (planned.old_versions, planned.bytes_removed) == (done.old_versions, done.bytes_removed)
    assert [v["version"] for v in lance.dataset(dataset.uri).versions()] == [2, 3, 5, 6]


def test_files_of_no_version_go_after_a_week(tmp_path):
    dataset = made(tmp_path)
    old, new = (write_fragments(ROWS, dataset, mode="append")[0].files[0] for _ in range(2))
    data = tmp_path / "t" / "data"
    long_ago = time.time() - 8 * 86400
    os.utime(data / old.path, (long_ago, long_ago))
    done = dataset.cleanup_old_versions(older_than=timedelta(days=36500))
    assert (done.old_versions, done.data_files_removed) == (0, 1)
    assert not (data / old.path).exists()
    assert (data / new.path).exists()
