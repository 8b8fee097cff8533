"""The schema contract: the files that record which schema a graph has accepted.

Three files must agree: the source text, the compiled form with its identities, and the recorded hash. A
fourth, one per schema a graph ever had, keeps old compiled forms for time travel.

A schema change stages its files beside the accepted ones. The newest commit decides which schema a graph
has, and the files follow: staged files of that schema are put in place, all other staged files are
deleted. That holds after any crash. The caller holds the lock of main.
Tests: tests/unit/versioning/test_schema_staging.py, tests/crash.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct

from omnigraph.catalog.compile import build_declared
from omnigraph.catalog.ir import SchemaIR, compact_json, schema_from_json
from omnigraph.catalog.model import Catalog
from omnigraph.errors import LanguageError, ObjectMissing, SchemaContractBroken, StoreCallFailed
from omnigraph.faults import declare
from omnigraph.json_structs import described, json_lines
from omnigraph.language.syntax import Source
from omnigraph.side_by_side import each
from omnigraph.storage.objects import ObjectStore, VersionToken

SOURCE_FILE: Final = "_schema.pg"
IR_FILE: Final = "_schema.ir.json"
STATE_FILE: Final = "__schema_state.json"
HISTORY_DIR: Final = "__schema_history"
STAGED: Final = ".staging"
"""Ends the names of files that wait to take the place of those without it."""
CONTRACT_FILES: Final = (SOURCE_FILE, IR_FILE, STATE_FILE)

_IDENTITY_VERSION: Final = 2


@dataclass(frozen=True)
class SchemaContract:
    """An accepted schema: its source and its compiled form, which agree."""

    source: str
    ir: SchemaIR
    catalog: Catalog

    @classmethod
    def accept(cls, source: str, ir: SchemaIR) -> SchemaContract:
        return cls(source, ir, Catalog.from_ir(ir))

    @property
    def hash(self) -> str:
        return self.catalog.hash

    @cached_property
    def reference(self) -> str:
        """The name of the compiled form's file in the history."""
        return history_name(self.ir)


def history_name(ir: SchemaIR) -> str:
    """A compiled schema is filed under the hash of its own text, identities included."""
    digest = hashlib.sha256(compact_json(ir.to_json()).encode()).hexdigest()
    return f"{digest}.json"


def write_history(objects: ObjectStore, ir: SchemaIR) -> None:
    """File a compiled schema; a file that exists holds the same text."""
    text = compact_json(ir.to_json())
    objects.write_text_if_absent(f"{HISTORY_DIR}/{history_name(ir)}", text)


def read_history(objects: ObjectStore, reference: str, *, may_be_kept: bool = False) -> SchemaIR:
    """The compiled schema a commit was made under; `may_be_kept` allows a cached copy."""
    path = f"{HISTORY_DIR}/{reference}"
    text = objects.read_text_of(path, None) if may_be_kept else objects.read_text(path)
    return schema_from_json(json.loads(text))


def write_compiled(objects: ObjectStore, contract: SchemaContract, suffix: str = "") -> None:
    """Write the compiled form and, last, the record that makes it count."""
    objects.write_text(f"{IR_FILE}{suffix}", _ir_text(contract))
    objects.write_text(f"{STATE_FILE}{suffix}", _state_text(contract))


def _ir_text(contract: SchemaContract) -> str:
    return _pretty(contract.ir.to_json())


def _state_text(contract: SchemaContract) -> str:
    return json_lines(_SchemaState(1, contract.hash, _IDENTITY_VERSION))


class _SchemaState(Struct, frozen=True):
    """The JSON object of the recorded state."""

    format_version: Literal[1]
    schema_ir_hash: str
    schema_identity_version: int = _IDENTITY_VERSION


@dataclass(frozen=True, slots=True)
class ContractFiles:
    """The texts of the three files; a compiled file that does not exist is None."""

    source: str
    ir: str | None
    state: str | None


def read_files(objects: ObjectStore) -> ContractFiles:
    """Read the contract's files as they are now."""
    source, ir, state = _read_together(objects, CONTRACT_FILES)
    if source is None:
        raise SchemaContractBroken(f"{SOURCE_FILE} is missing")
    return ContractFiles(source, ir, state)


def read_listed_files(
    objects: ObjectStore, listed: Mapping[str, VersionToken | None]
) -> ContractFiles:
    """The files as a listing of the graph's root has just found them, of which some may be kept."""
    reads = [partial(_read_if_there, objects, name, listed.get(name)) for name in CONTRACT_FILES]
    source, ir, state = each(reads)
    if source is None:
        raise SchemaContractBroken(f"{SOURCE_FILE} is missing")
    return ContractFiles(source, ir, state)


def read_staged_or_accepted_files(objects: ObjectStore) -> ContractFiles:
    """What the files hold once those that wait are in place."""
    live = read_files(objects)
    staged = [f"{name}{STAGED}" for name in CONTRACT_FILES]
    source, ir, state = _read_together(objects, staged)
    return ContractFiles(source or live.source, ir or live.ir, state or live.state)


def files_of(contract: SchemaContract) -> ContractFiles:
    """The files that would say just this."""
    return ContractFiles(contract.source, _ir_text(contract), _state_text(contract))


def check_files(files: ContractFiles) -> SchemaContract:
    """The contract, if its parts agree. Raises `SchemaContractBroken`."""
    if (files.ir is None) != (files.state is None):
        cause = f"{IR_FILE} and {STATE_FILE} must either both exist or both be absent"
        raise SchemaContractBroken(cause)
    if files.ir is None or files.state is None:
        raise SchemaContractBroken(f"missing persisted schema state ({IR_FILE}, {STATE_FILE})")
    ir = _read_ir(files.ir)
    recorded = _read_state(files.state)
    if ir.hash != recorded:
        cause = "accepted compiled schema does not match the recorded schema state"
        raise SchemaContractBroken(cause)
    if declared_hash(files.source) != recorded:
        raise SchemaContractBroken(
            f"current {SOURCE_FILE} no longer matches the accepted compiled schema"
        )
    return SchemaContract.accept(files.source, ir)


def _read_together(objects: ObjectStore, names: Sequence[str]) -> list[str | None]:
    """The texts of files; on an object store the requests are made side by side."""
    reads = [partial(_read_if_there, objects, name) for name in names]
    return each(reads) if objects.is_remote else [read() for read in reads]


def _read_if_there(
    objects: ObjectStore, path: str, token: VersionToken | None = None
) -> str | None:
    try:
        return objects.read_text(path) if token is None else objects.read_text_of(path, token)
    except ObjectMissing:
        return None
    except StoreCallFailed as error:
        if isinstance(error.__cause__, UnicodeDecodeError):
            raise SchemaContractBroken(f"{path} is not UTF-8 text") from error
        raise


def declared_hash(source: str) -> str | None:
    """The hash a schema text compiles to, or None when it does not compile."""
    try:
        return build_declared(Source(SOURCE_FILE, source)).hash
    except LanguageError:
        return None


def _read_ir(text: str) -> SchemaIR:
    try:
        return schema_from_json(json.loads(text))
    except ValueError as error:
        cause = f"accepted compiled schema contract in {IR_FILE} is invalid ({error})"
        raise SchemaContractBroken(cause) from error


def _read_state(text: str) -> str:
    try:
        return recorded_hash(text)
    except ValueError as error:
        cause = f"the recorded schema state in {STATE_FILE} is invalid ({error})"
        raise SchemaContractBroken(cause) from error


def recorded_hash(text: str) -> str:
    """The hash a recorded state names. Raises `ValueError`."""
    return msgspec.json.decode(text, type=described(_SchemaState)).schema_ir_hash


def _pretty(document: Any) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


AFTER_SOURCE = declare("schema_apply.after_source_staged", "only the schema source waits")
BEFORE_RENAME = declare("schema_apply.before_rename", "before each waiting file is put in place")


@dataclass(frozen=True, slots=True)
class StagedSchema:
    """A schema that files may say: its hash, and its compiled form with identities."""

    hash: str
    reference: str

    def is_said_by(self, name: str, text: str) -> bool:
        """Whether the text of one of the three files belongs to the schema."""
        try:
            if name == SOURCE_FILE:
                return declared_hash(text) == self.hash
            if name == IR_FILE:
                return history_name(schema_from_json(json.loads(text))) == self.reference
            return recorded_hash(text) == self.hash
        except ValueError:
            return False


def stage_schema(objects: ObjectStore, contract: SchemaContract) -> None:
    """Write all three files beside the accepted ones."""
    objects.write_text(f"{SOURCE_FILE}{STAGED}", contract.source)
    AFTER_SOURCE.hit()
    write_compiled(objects, contract, suffix=STAGED)


def is_staged(objects: ObjectStore, target: StagedSchema) -> bool:
    """Whether every file says the schema, be it waiting or in place."""
    return all(
        any(_says(objects, target, name, suffix) for suffix in (STAGED, ""))
        for name in CONTRACT_FILES
    )


def place_staged_files(objects: ObjectStore, target: StagedSchema) -> None:
    """Put files that wait for the schema of the newest commit in place, and remove the others."""
    if not all(objects.exists(name) for name in CONTRACT_FILES):
        return  # Compiled files that are gone are made again when the graph is opened.
    for name in CONTRACT_FILES:
        staged = f"{name}{STAGED}"
        if not objects.exists(staged):
            continue
        if _says(objects, target, name, STAGED):
            BEFORE_RENAME.hit(file=name)
            objects.rename_text(staged, name)
        else:
            objects.delete(staged)


def has_staging(objects: ObjectStore) -> bool:
    """Whether any file waits."""
    waiting = {f"{name}{STAGED}" for name in CONTRACT_FILES}
    return not waiting.isdisjoint(path.rpartition("/")[2] for path in objects.list_dir(""))


def _says(objects: ObjectStore, target: StagedSchema, name: str, suffix: str) -> bool:
    try:
        return target.is_said_by(name, objects.read_text(f"{name}{suffix}"))
    except ObjectMissing:
        return False
