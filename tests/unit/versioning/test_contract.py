"""The schema contract: which changes of its files break it, and which words say so."""

from __future__ import annotations

import hashlib
import json
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.catalog.compile import build_schema
from omnigraph.catalog.ir import compact_json
from omnigraph.errors import ConflictError, ObjectMissing, SchemaContractBroken
from omnigraph.language.syntax import Source
from omnigraph.storage.memory_objects import MemoryObjects
from omnigraph.storage.objects import ObjectStore
from omnigraph.storage.uris import normalise_root
from omnigraph.versioning.contract import (
    HISTORY_DIR,
    IR_FILE,
    SOURCE_FILE,
    STATE_FILE,
    SchemaContract,
    check_files,
    history_name,
    read_files,
    read_history,
    write_compiled,
    write_history,
)

SCHEMA = """
node Person {
    name: String @key
    age: I32?
}
node Company { name: String @key }
edge Knows: Person -> Person { since: Date? }
edge WorksAt: Person -> Company
"""
OTHER = "node Person { name: String @key }\n"


def contract_of(source: str) -> SchemaContract:
    return SchemaContract.accept(source, build_schema(Source(SOURCE_FILE, source)))


def written(contract: SchemaContract) -> ObjectStore:
    """A store that holds the files of a contract and nothing else."""
    objects = MemoryObjects(normalise_root(f"memory://{uuid.uuid4().hex}"))
    objects.write_text(SOURCE_FILE, contract.source)
    write_compiled(objects, contract)
    return objects


CONTRACT = contract_of(SCHEMA)


@pytest.fixture
def objects() -> ObjectStore:
    return written(CONTRACT)


def check(objects: ObjectStore) -> SchemaContract:
    return check_files(read_files(objects))


# -- what is written -------------------------------------------------------------------------


def test_a_contract_reads_back_as_it_was_accepted(objects):
    found = check(objects)
    assert (found.source, found.ir, found.hash) == (CONTRACT.source, CONTRACT.ir, CONTRACT.hash)


def test_the_state_file_records_the_hash_and_nothing_else(objects):
    assert json.loads(objects.read_text(STATE_FILE)) == {
        "format_version": 1,
        "schema_ir_hash": CONTRACT.hash,
        "schema_identity_version": 2,
    }
    assert CONTRACT.hash.startswith("sha256:")
    assert len(CONTRACT.hash) == len("sha256:") + 64


def test_ids_are_allocated_in_canonical_order(objects):
    ir = json.loads(objects.read_text(IR_FILE))
    allocated = {}
    for kind in ("interfaces", "nodes", "edges"):
        for declared in ir[kind]:
            allocated[declared["name"]] = declared["type_id"]
            for prop in declared["properties"]:
                allocated[f"{declared['name']}.{prop['name']}"] = prop["prop_id"]
    assert allocated == {
        "Company": 1,
        "Company.name": 2,
        "Person": 3,
        "Person.age": 4,
        "Person.name": 5,
        "Knows": 6,
        "Knows.since": 7,
        "WorksAt": 8,
    }
    assert ir["next_id"] == 9


def test_a_past_schema_is_filed_under_the_hash_of_its_text(objects):
    write_history(objects, CONTRACT.ir)
    write_history(objects, CONTRACT.ir)
    (path,) = objects.list_dir(HISTORY_DIR)
    text = objects.read_text(path)
    assert path == f"{HISTORY_DIR}/{hashlib.sha256(text.encode()).hexdigest()}.json"
    assert text == compact_json(CONTRACT.ir.to_json())
    assert read_history(objects, history_name(CONTRACT.ir)) == CONTRACT.ir


# -- what breaks it --------------------------------------------------------------------------


def broken(objects: ObjectStore) -> str:
    with pytest.raises(SchemaContractBroken, match="manual coordination is required") as caught:
        check(objects)
    assert isinstance(caught.value, ConflictError)
    assert caught.value.kind == "conflict"
    return caught.value.message


@pytest.mark.parametrize(
    "source",
    [
        SCHEMA.replace("age: I32?", "age: I64?"),
        SCHEMA.replace("age: I32?", "age: I32"),
        SCHEMA.replace("name: String @key", "name: String", 1),
        SCHEMA.replace("WorksAt", "EmployedAt"),
        SCHEMA + "node Extra { name: String @key }",
        OTHER,
        "",
        "this is no schema",
        SCHEMA.replace("}", "", 1),
    ],
)
def test_a_source_that_means_something_else_is_refused(objects, source):
    objects.write_text(SOURCE_FILE, source)
    assert "current _schema.pg no longer matches the accepted compiled schema" in broken(objects)


@pytest.mark.parametrize(
    "source",
    [
        "// a comment\n" + SCHEMA,
        SCHEMA + "\n/* the end */",
        SCHEMA.replace("age: I32?", "age: I32? // in years"),
        SCHEMA.replace("\n", "\n\n"),
        SCHEMA.replace("node Company { name: String @key }\n", "")
        + "node Company { name: String @key }\n",
    ],
)
def test_an_edit_that_means_the_same_is_harmless(objects, source):
    assert source != SCHEMA
    objects.write_text(SOURCE_FILE, source)
    found = check(objects)
    assert found.source == source
    assert found.ir == CONTRACT.ir


@pytest.mark.parametrize(
    "text",
    ["", "nope", "[]", "null", "1", "{}", '{"ir_version": 2}', '{"ir_version": 99}', "[[[["],
)
def test_an_unreadable_compiled_schema_is_named(objects, text):
    objects.write_text(IR_FILE, text)
    message = broken(objects)
    assert "accepted compiled schema contract in _schema.ir.json is invalid" in message


@given(st.binary(max_size=40), st.integers(0, 2000), st.integers(0, 60))
def test_no_damage_to_the_compiled_schema_goes_unnoticed_or_leaks_another_error(junk, at, cut):
    objects = written(CONTRACT)
    text = objects.read_text(IR_FILE)
    damaged = text[:at] + junk.decode("latin-1") + text[at + cut :]
    objects.write_text(IR_FILE, damaged)
    try:
        found = check(objects)
    except SchemaContractBroken:
        return
    assert found.hash == CONTRACT.hash


@pytest.mark.parametrize(
    "text",
    ["", "x", "[]", "null", "{}", '{"format_version": 2, "schema_ir_hash": "x"}', '{"format_version": 1}'],
)  # fmt: skip
def test_an_unreadable_state_is_refused(objects, text):
    objects.write_text(STATE_FILE, text)
    assert STATE_FILE in broken(objects)


def test_a_compiled_schema_that_is_not_the_recorded_one_is_refused(objects):
    other = contract_of(OTHER)
    objects.write_text(IR_FILE, json.dumps(other.ir.to_json()))
    message = broken(objects)
    assert "accepted compiled schema does not match the recorded schema state" in message


def test_a_recorded_hash_that_is_not_the_compiled_schemas_is_refused(objects):
    state = json.loads(objects.read_text(STATE_FILE))
    state["schema_ir_hash"] = contract_of(OTHER).hash
    objects.write_text(STATE_FILE, json.dumps(state))
    message = broken(objects)
    assert "accepted compiled schema does not match the recorded schema state" in message


@pytest.mark.parametrize("missing", [IR_FILE, STATE_FILE])
def test_half_of_the_compiled_contract_is_refused(objects, missing):
    objects.delete(missing)
    assert "must either both exist or both be absent" in broken(objects)


def test_a_contract_without_compiled_files_is_refused(objects):
    objects.delete(IR_FILE)
    objects.delete(STATE_FILE)
    assert "missing persisted schema state" in broken(objects)


def test_a_contract_without_source_is_refused(objects):
    objects.delete(SOURCE_FILE)
    assert SOURCE_FILE in broken(objects)


def test_a_past_schema_that_is_not_filed_is_missing(objects):
    with pytest.raises(ObjectMissing):
        read_history(objects, history_name(CONTRACT.ir))


@given(st.permutations(SCHEMA.strip().replace("\n    ", " ").replace("\n}", " }").split("\n")))
def test_the_order_of_declarations_changes_neither_hash_nor_ids(lines):
    shuffled = contract_of("\n".join(lines))
    assert shuffled.hash == CONTRACT.hash
    assert shuffled.ir == CONTRACT.ir
