"""What we rely on when datasets are created, opened and read."""

from __future__ import annotations

import os
import subprocess
import sys

import lance
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from lance.dataset import ColumnOrdering

from tests.substrate.people import SCHEMA, again, appended, commit, ids, make, memory


def test_a_dataset_is_created_with_stable_row_ids_format_2_2_and_no_automatic_cleanup():
    dataset = make("a", data_storage_version="2.2")
    assert dataset.has_stable_row_ids
    assert dataset.data_storage_version == "2.2"
    assert dataset.config() == {}


def test_schema_and_field_metadata_are_part_of_the_first_commit():
    schema = SCHEMA.with_metadata({"stamp": "4"})
    dataset = lance.write_dataset(schema.empty_table(), memory())
    assert dataset.version == 1
    assert dataset.schema.metadata == {b"stamp": b"4"}
    assert dataset.schema.field("id").metadata == SCHEMA.field("id").metadata


def test_configuration_cannot_be_part_of_the_first_commit():
    dataset = make("a", auto_cleanup_options={"interval": 1, "older_than_seconds": 1, "mine": "x"})
    assert "mine" not in dataset.config()


def test_an_existing_dataset_is_not_replaced_by_create():
    dataset = make("a")
    with pytest.raises(OSError, match="Dataset already exists"):
        make("b", uri=dataset.uri)


def test_shared_memory_is_one_store_for_the_whole_process():
    dataset = make("a")
    assert ids(again(dataset)) == ["a"]


def test_one_session_serves_many_datasets_and_sees_new_commits(tmp_path):
    session = lance.lance._Session()
    uri = str(tmp_path / "t")
    make("a", uri=uri)
    first = lance.dataset(uri, session=session)
    commit(again(first), appended(again(first), "b"))
    assert first.latest_version == 2
    assert ids(lance.dataset(uri, session=session)) == ["a", "b"]


def test_a_session_does_not_serve_a_version_that_was_made_again(tmp_path):
    uri = str(tmp_path / "t")
    session = lance.lance._Session()
    make("a", uri=uri)
    assert ids(lance.dataset(uri, version=1, session=session)) == ["a"]
    lance.LanceDataset.drop(uri)
    make("b", uri=uri)
    assert ids(lance.dataset(uri, version=1, session=session)) == ["b"]


def test_a_missing_dataset_version_and_branch_are_reported_as_not_found():
    dataset = make("a")
    for uri, version in (
        (f"{dataset.uri}-gone", None),
        (dataset.uri, 9),
        (f"{dataset.uri}/tree/gone", None),
    ):
        with pytest.raises((ValueError, OSError), match="was not found"):
            lance.dataset(uri, version=version)


def test_writes_through_a_handle_leave_other_handles_at_their_version():
    dataset = make("a")
    other = dataset.checkout_version(1)
    other.update_config({"a": "b"})
    assert (dataset.version, other.version) == (1, 2)


def test_row_ids_addresses_and_row_versions_are_columns_that_can_be_read_and_filtered():
    dataset = make("a")
    dataset = commit(dataset, appended(dataset, "b"))
    names = ["_rowid", "_rowaddr", "_row_created_at_version", "_row_last_updated_at_version"]
    found = dataset.to_table(columns=names, filter="_row_last_updated_at_version > 1")
    assert [found.column(name)[0].as_py() for name in names] == [1, 1 << 32, 2, 2]


def test_rows_can_be_ordered_and_limited():
    scanner = make("b", "a", "c").scanner(columns=["id"], order_by=[ColumnOrdering("id")], limit=2)
    assert scanner.to_table().column("id").to_pylist() == ["a", "b"]


def test_rows_are_taken_by_row_id_in_the_order_asked_for():
    taken = make("a", "b", "c")._take_rows([2, 0], columns=["id", "_rowid"])
    assert taken.column("id").to_pylist() == ["c", "a"]


def test_versions_are_files_whose_names_count_down(tmp_path):
    make("a", uri=str(tmp_path / "t"))
    assert "18446744073709551614.manifest" in os.listdir(tmp_path / "t" / "_versions")


def test_a_wrong_hint_about_the_newest_version_does_no_harm(tmp_path):
    uri = str(tmp_path / "t")
    dataset = make("a", uri=uri)
    hint = tmp_path / "t" / "_versions" / "latest_version_hint.json"
    written = hint.read_text()
    commit(dataset, appended(dataset, "b"))
    for text in (written, written.replace("1", "7"), ""):
        hint.write_text(text)
        assert lance.dataset(uri).version == 2


@pytest.mark.parametrize(
    ("name", "usable"),
    [("camelCase", True), ("with space", True), ("it's", True), ('a "b"', True), ("a`b", False)],
)
def test_a_back_quoted_column_keeps_its_spelling_in_filter_text(name, usable):
    dataset = lance.write_dataset(pa.table({name: [1, 2]}), memory())
    if usable:
        assert dataset.to_table(filter=f"`{name}` = 2").num_rows == 1
    else:
        with pytest.raises(ValueError):
            dataset.to_table(filter="`a``b` = 2")


@pytest.mark.parametrize("kind", [pa.uint32(), pa.uint64(), pa.date64()], ids=str)
def test_unsigned_integers_and_datetimes_are_beyond_expression_objects(kind):
    table = pa.table({"x": pa.array([None], kind)})
    dataset = lance.write_dataset(table, memory())
    with pytest.raises(ValueError, match="not yet supported by Substrait"):
        dataset.to_table(filter=pc.field("x") == pa.scalar(0, pa.int64()).cast(kind))


@pytest.mark.parametrize("condition", ["n = 5000000000", "n = 5.5", "id = 5", "d = '2024-03-01'"])
def test_a_literal_of_another_type_is_an_error_and_not_an_empty_answer(condition):
    table = pa.table({"id": ["a"], "n": pa.array([1], pa.int32()), "d": pa.array([1], pa.date32())})
    dataset = lance.write_dataset(table, memory())
    with pytest.raises(ValueError):
        dataset.to_table(filter=condition)


@pytest.mark.slow
def test_the_library_never_syncs(tmp_path):
    """Counted from outside, because the calls would be made by native code."""
    strace = subprocess.run(["sh", "-c", "command -v strace"], capture_output=True, check=False)
    if strace.returncode:
        pytest.skip("strace is not installed")
    log = tmp_path / "log"
    script = (
        "import lance, pyarrow as pa, sys\n"
        "d = lance.write_dataset(pa.table({'a': [1]}), sys.argv[1])\n"
        "lance.write_dataset(pa.table({'a': [2]}), d, mode='append')\n"
    )
    command = ["strace", "-f", "-e", "trace=fsync,fdatasync,sync_file_range", "-o", str(log)]
    subprocess.run([*command, sys.executable, "-c", script, str(tmp_path / "t")], check=True)
    assert "sync" not in log.read_text()


def test_rows_of_a_smaller_type_are_not_widened_by_the_library():
    narrow = pa.table({"id": ["b"], "n": pa.array([1], pa.int8())})
    dataset = make("a")
    with pytest.raises(OSError, match="Append with different schema"):
        lance.write_dataset(narrow, dataset, mode="append")
