"""Schema files that wait: which of them are put in place, and which are removed."""

from __future__ import annotations

import itertools

import pytest

from omnigraph.catalog.compile import build_schema
from omnigraph.language.syntax import Source
from omnigraph.storage.durability import Durability
from omnigraph.storage.objects import ObjectStore, open_store
from omnigraph.storage.uris import normalise_root
from omnigraph.versioning.contract import (
    CONTRACT_FILES,
    IR_FILE,
    SOURCE_FILE,
    STAGED,
    SchemaContract,
    StagedSchema,
    check_files,
    has_staging,
    is_staged,
    place_staged_files,
    read_files,
    read_staged_or_accepted_files,
    stage_schema,
    write_compiled,
)


def contract(text: str) -> SchemaContract:
    return SchemaContract.accept(text, build_schema(Source("schema", text)))


OLD = contract("node Person { name: String @key }\n")
NEW = contract("node Person { name: String @key  age: I32? }\n")


def target(of: SchemaContract) -> StagedSchema:
    return StagedSchema(of.hash, of.reference)


@pytest.fixture
def objects(tmp_path) -> ObjectStore:
    store = open_store(normalise_root(str(tmp_path)), Durability.NONE)
    store.write_text(SOURCE_FILE, OLD.source)
    write_compiled(store, OLD)
    return store


def test_without_files_that_wait_there_is_nothing_to_do(objects):
    assert not has_staging(objects)
    assert is_staged(objects, target(OLD))
    assert not is_staged(objects, target(NEW))


def test_files_of_the_newest_commit_are_put_in_place(objects):
    stage_schema(objects, NEW)
    assert has_staging(objects)
    assert is_staged(objects, target(NEW))
    place_staged_files(objects, target(NEW))
    assert not has_staging(objects)
    assert check_files(read_files(objects)).ir == NEW.ir


def test_files_of_a_schema_that_never_came_are_removed(objects):
    stage_schema(objects, NEW)
    place_staged_files(objects, target(OLD))
    assert not has_staging(objects)
    assert check_files(read_files(objects)).ir == OLD.ir


@pytest.mark.parametrize("missing", [*CONTRACT_FILES])
def test_a_set_that_lacks_a_file_is_not_complete(objects, missing):
    stage_schema(objects, NEW)
    objects.delete(f"{missing}{STAGED}")
    assert not is_staged(objects, target(NEW))


def test_a_file_of_another_schema_or_of_none_does_not_count(objects):
    stage_schema(objects, NEW)
    for text in ("{", OLD.source, '{"ir_version": 2}'):
        objects.write_text(f"{IR_FILE}{STAGED}", text)
        assert not is_staged(objects, target(NEW))


@pytest.mark.parametrize("placed", [1, 2])
def test_a_reader_between_two_renames_reads_the_new_schema(objects, placed):
    stage_schema(objects, NEW)
    for name in itertools.islice(CONTRACT_FILES, placed):
        objects.rename_text(f"{name}{STAGED}", name)
    assert check_files(read_staged_or_accepted_files(objects)).ir == NEW.ir
    place_staged_files(objects, target(NEW))
    assert check_files(read_files(objects)).ir == NEW.ir


def test_compiled_files_that_are_gone_are_left_to_the_next_writer_of_them(objects):
    stage_schema(objects, NEW)
    objects.delete(IR_FILE)
    place_staged_files(objects, target(NEW))
    assert has_staging(objects)
