"""What we rely on in indexes, compaction and blobs."""

from __future__ import annotations

import lance
import numpy as np
import pyarrow as pa
import pytest
from lance import LanceDataset, LanceOperation, Transaction
from lance.blob import BlobType
from lance.fragment import RowIdSequence, write_fragments
from lance.optimize import Compaction

from omnigraph.storage.failures import Failure, classify
from tests.substrate.people import again, appended, commit, deleted, ids, make, memory


def staged_index(dataset: LanceDataset, column: str = "id") -> Transaction:
    built = dataset.create_index_uncommitted(
        column,
        "BTREE",
        name=f"{column}_idx",
        fragment_ids=[f.fragment_id for f in dataset.get_fragments()],
    )
    return Transaction(dataset.version, LanceOperation.CreateIndex([built], []))


def coverage(dataset: LanceDataset) -> dict[str, set[int]]:
    return {
        index.name: {number for segment in index.segments for number in segment.fragment_ids}
        for index in dataset.describe_indices()
    }


def test_an_index_is_staged_and_committed_like_any_change():
    dataset = make("a", "b")
    indexed = commit(dataset, staged_index(dataset))
    assert (indexed.version, coverage(indexed)) == (2, {"id_idx": {0}})
    assert "ScalarIndexQuery" in indexed.scanner(filter="id = 'a'").explain_plan(True)


def test_two_indexes_of_one_name_conflict():
    dataset = make("a")
    first, second = staged_index(dataset), staged_index(dataset)
    commit(dataset, first)
    with pytest.raises(OSError) as caught:
        commit(dataset, second)
    assert classify(caught.value) is Failure.CONFLICT


def test_appended_rows_are_found_but_not_covered():
    dataset = make("a")
    dataset = commit(dataset, staged_index(dataset))
    dataset = commit(dataset, appended(dataset, "b"))
    assert coverage(dataset) == {"id_idx": {0}}
    assert dataset.to_table(filter="id = 'b'").num_rows == 1


def test_extending_indexes_covers_new_rows_and_does_nothing_when_there_are_none():
    dataset = make("a")
    dataset = commit(dataset, staged_index(dataset))
    dataset = commit(dataset, appended(dataset, "b"))
    dataset.optimize.optimize_indices()
    assert (dataset.version, coverage(dataset)) == (4, {"id_idx": {0, 1}})
    dataset.optimize.optimize_indices()
    assert dataset.version == 4


def test_a_deleted_row_is_not_found_through_an_index_that_knows_it():
    dataset = make("a", "b")
    dataset = commit(dataset, staged_index(dataset))
    dataset = commit(dataset, deleted(dataset, 0, 0))
    assert dataset.to_table(filter="id = 'a'").num_rows == 0


def compacted(dataset: LanceDataset) -> LanceDataset:
    handle = dataset.checkout_version(dataset.version)
    handle.optimize.compact_files()
    return handle


def test_compaction_makes_two_versions_and_keeps_row_ids_and_row_versions():
    dataset = make("a", "b")
    dataset = commit(dataset, appended(dataset, "c"))
    columns = ["id", "_rowid", "_row_created_at_version", "_row_last_updated_at_version"]
    after = compacted(dataset)
    assert after.version == dataset.version + 2
    assert len(after.get_fragments()) == 1
    assert after.to_table(columns=columns) == dataset.to_table(columns=columns)


def test_the_first_version_of_a_compaction_has_no_named_operation():
    dataset = make("a")
    after = compacted(commit(dataset, appended(dataset, "b")))
    reserved = after.read_transaction(3)
    assert reserved is not None
    assert type(reserved.operation) is LanceOperation.BaseOperation


def test_a_compaction_that_rewrote_an_index_cannot_be_read_back():
    dataset = make("a")
    dataset = commit(dataset, appended(dataset, "b"))
    dataset = commit(dataset, staged_index(dataset))
    after = compacted(dataset)
    assert coverage(after) == {"id_idx": {2}}
    with pytest.raises(TypeError, match="RewrittenIndex"):
        after.read_transaction(after.version)


def test_fragments_covered_by_different_indexes_are_not_merged():
    dataset = make("a")
    dataset = commit(dataset, staged_index(dataset))
    dataset = commit(dataset, appended(dataset, "b"))
    assert len(compacted(dataset).get_fragments()) == 2


def test_a_compaction_after_an_append_lands_and_after_a_delete_conflicts():
    for change, lands in ((appended, True), (deleted, False)):
        dataset = make("a", "b")
        dataset = commit(dataset, appended(dataset, "c"))
        plan = Compaction.plan(again(dataset), {})
        handle = again(dataset)
        results = [task.execute(handle) for task in plan.tasks]
        commit(dataset, change(dataset, *(("d",) if lands else (0, 0))))
        if lands:
            Compaction.commit(handle, results)
            assert ids(again(dataset)) == ["a", "b", "c", "d"]
        else:
            with pytest.raises(OSError) as caught:
                Compaction.commit(handle, results)
            assert classify(caught.value) is Failure.CONFLICT


class TestBlobs:
    @pytest.fixture
    def dataset(self):
        schema = pa.schema([pa.field("id", pa.utf8()), pa.field("b", BlobType())])
        cells = lance.blob_array([b"x", b"", None, b"y" * 100_000])
        table = pa.table({"id": list("wxyz"), "b": cells}, schema=schema)
        return lance.write_dataset(table, memory(), enable_stable_row_ids=True)

    def test_scans_return_descriptors(self, dataset):
        described = dataset.to_table().column("b").to_pylist()
        assert [d and d["size"] for d in described] == [1, 0, None, 100_000]
        assert [d and d["kind"] for d in described] == [0, 0, None, 1]

    def test_bytes_are_returned_with_row_addresses_not_row_ids(self, dataset):
        more = pa.table({"id": ["v"], "b": lance.blob_array([b"late"])}, schema=dataset.schema)
        dataset = lance.write_dataset(more, dataset, mode="append")
        assert dataset.read_blobs("b", ids=[4]) == [(1 << 32, b"late")]

    def test_descriptors_cannot_be_written_back(self, dataset):
        with pytest.raises((OSError, ValueError)):
            lance.write_dataset(dataset.to_table(), dataset, mode="append")

    def test_compaction_keeps_the_bytes(self, dataset):
        more = pa.table({"id": ["v"], "b": lance.blob_array([b"late"])}, schema=dataset.schema)
        dataset = compacted(lance.write_dataset(more, dataset, mode="append"))
        assert len(dataset.get_fragments()) == 1
        read = dict(dataset.read_blobs("b", indices=[0, 1, 2, 3, 4]))
        assert sorted(filter(None, read.values())) == [b"late", b"x", b"y" * 100_000]


def test_parts_of_a_btree_over_different_fragments_become_one_index():
    dataset = make("a", "b")
    for person in ("c", "d"):
        dataset = commit(dataset, appended(dataset, person))
    parts = [
        dataset.create_index_uncommitted("id", "BTREE", name="id_idx", fragment_ids=[number])
        for number in (2, 0, 1)
    ]
    joined = dataset.merge_existing_index_segments(parts)
    dataset = commit(
        dataset, Transaction(dataset.version, LanceOperation.CreateIndex([joined], []))
    )
    assert coverage(dataset) == {"id_idx": {0, 1, 2}}
    for person in ids(dataset):
        found = dataset.scanner(columns=["id"], filter=f"id = '{person}'")
        assert "ScalarIndexQuery" in found.explain_plan()
        assert found.to_table().column("id").to_pylist() == [person]


# -- indexes of vectors ---------------------------------------------------------------------------


def vectors(*numbers: float) -> pa.Table:
    kind = pa.list_(pa.float32(), 2)
    return pa.table({"vec": pa.array([[number, 1.0] for number in numbers], kind)})


def indexed_vectors(*numbers: float) -> LanceDataset:
    dataset = lance.write_dataset(vectors(*numbers), memory(), enable_stable_row_ids=True)
    built = dataset.create_index_uncommitted(
        "vec",
        "IVF_FLAT",
        name="vec_idx",
        metric="cosine",
        num_partitions=1,
        ivf_centroids=np.array([[0.0, 1.0]], np.float32),
        fragment_ids=[0],
    )
    return commit(dataset, Transaction(dataset.version, LanceOperation.CreateIndex([built], [])))


def nearest_to(dataset: LanceDataset, number: float) -> int:
    wanted = {"column": "vec", "q": [number, 1.0], "k": 1, "metric": "cosine"}
    scanner = dataset.scanner(
        columns=["_rowid", "_distance"], nearest=wanted, disable_scoring_autoprojection=True
    )
    return int(scanner.to_table().column("_rowid")[0].as_py())


@pytest.mark.parametrize("named", [False, True])
def test_rewritten_rows_count_as_indexed_unless_their_fields_are_named(named):
    dataset = indexed_vectors(0.0, 1.0, 2.0)
    part = dataset.get_fragment(0)
    assert part is not None
    left = part.delete_rows([0])
    assert left is not None
    written = write_fragments(vectors(9.0), dataset)
    written[0].row_id_meta = RowIdSequence([0]).to_inline_metadata()
    fields = [field.id() for field in dataset.lance_schema.fields()]
    operation = LanceOperation.Update(
        updated_fragments=[left],
        new_fragments=written,
        update_mode="rewrite_rows",
        fields_for_preserving_frag_bitmap=fields if named else [],
    )
    changed = commit(dataset, Transaction(dataset.version, operation))
    assert coverage(changed) == {"vec_idx": {0} if named else {0, 1}}
    assert nearest_to(changed, 9.0) == (0 if named else 2)


@pytest.mark.parametrize(("merged", "parts"), [(None, 3), (0, 3), (1, 2), (2, 1)])
def test_parts_of_an_index_of_vectors_are_merged_only_on_request(merged, parts):
    dataset = indexed_vectors(0.0, 1.0)
    for number in (5.0, 7.0):
        dataset = lance.write_dataset(vectors(number), dataset.uri, mode="append")
        more = {} if merged is None or number == 5.0 else {"num_indices_to_merge": merged}
        dataset.optimize.optimize_indices(**more)
    [index] = dataset.describe_indices()
    assert (len(index.segments), coverage(dataset)) == (parts, {"vec_idx": {0, 1, 2}})
    assert [nearest_to(dataset, number) for number in (0.0, 5.0, 7.0)] == [0, 2, 3]
