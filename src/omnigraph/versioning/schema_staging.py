"""Schema files that wait: written beside the accepted ones, and put in their place after a publish.

Which schema a graph has is decided by its newest commit. The files follow: those that wait for it are
put in place, all others that wait are removed. That holds after any crash, so nobody has to
decide by hand. Callers hold the lock of main.
Tests: tests/unit/versioning/test_schema_staging.py, tests/crash.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from omnigraph.catalog.ir import schema_from_json
from omnigraph.errors import ObjectMissing
from omnigraph.faults import declare
from omnigraph.storage.objects import ObjectStore
from omnigraph.versioning.contract import (
    CONTRACT_FILES,
    IR_FILE,
    SOURCE_FILE,
    STAGED,
    SchemaContract,
    declared_hash,
    history_name,
    recorded_hash,
    write_compiled,
)

AFTER_SOURCE = declare("schema_apply.after_source_staged", "only the schema source waits")
BEFORE_RENAME = declare("schema_apply.before_rename", "before each waiting file is put in place")


@dataclass(frozen=True, slots=True)
class Target:
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


def is_staged(objects: ObjectStore, target: Target) -> bool:
    """Whether every file says the schema, be it waiting or in place."""
    return all(
        any(_says(objects, target, name, suffix) for suffix in (STAGED, ""))
        for name in CONTRACT_FILES
    )


def settle_staging(objects: ObjectStore, target: Target) -> None:
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


def _says(objects: ObjectStore, target: Target, name: str, suffix: str) -> bool:
    try:
        return target.is_said_by(name, objects.read_text(f"{name}{suffix}"))
    except ObjectMissing:
        return False
