"""Compiled schema files that are gone: made again from what the newest commit was written under.

Only when a graph is opened. Files that disappear under an open handle are a reason to stop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from omnigraph.errors import ObjectMissing, SchemaContractBroken
from omnigraph.faults import declare
from omnigraph.storage.objects import ObjectStore
from omnigraph.versioning.branches import Branches
from omnigraph.versioning.contract import (
    IR_FILE,
    SOURCE_FILE,
    STAGED,
    STATE_FILE,
    ContractFiles,
    SchemaContract,
    declared_hash,
    files_of,
    read_files,
    read_history,
    write_compiled,
)
from omnigraph.versioning.manifest import Manifest

if TYPE_CHECKING:
    from omnigraph.versioning.locks import WriterLocks

_COMPILED: Final = (IR_FILE, STATE_FILE)

BEFORE_WRITE = declare("bootstrap.before_write", "before missing schema files are written again")


class Bootstrap:
    """Deriving the missing files of one graph."""

    def __init__(self, objects: ObjectStore, manifest: Manifest, branches: Branches) -> None:
        self._objects = objects
        self._manifest = manifest
        self._branches = branches

    def restore(self, locks: WriterLocks) -> None:
        """Write the files again if both are missing, or if an interrupted process wrote only one."""
        if not self._is_needed():
            return
        with locks.hold(None, "restore the schema files") as lock:
            if self._is_needed():
                contract = self._derived()
                BEFORE_WRITE.hit()
                lock.check()
                self._write(contract)

    def stand_in(self) -> ContractFiles | None:
        """What the files would hold, for reading without writing them; None if they are there."""
        return files_of(self._derived()) if self._is_needed() else None

    def _write(self, contract: SchemaContract) -> None:
        """Both files are there under other names before either counts: half of them is refused."""
        write_compiled(self._objects, contract, suffix=STAGED)
        for name in _COMPILED:
            self._objects.rename_text(f"{name}{STAGED}", name)

    def _is_needed(self) -> bool:
        missing = [name for name in _COMPILED if not self._objects.exists(name)]
        if len(missing) < len(_COMPILED):
            return any(self._objects.exists(f"{name}{STAGED}") for name in missing)
        return True

    def _derived(self) -> SchemaContract:
        """The contract the newest commit was made under, if the source still says the same."""
        source = read_files(self._objects).source
        if len(self._branches.list()) > 1:
            cause = "the compiled schema is missing, and public branches block schema evolution entirely"
            raise SchemaContractBroken(cause)
        head = self._manifest.current(None).head
        commit = self._manifest.find_commit(None, head)
        if commit is None:
            raise SchemaContractBroken(f"the newest commit {head} is missing")
        try:
            ir = read_history(self._objects, commit.draft.schema_ref)
        except (ObjectMissing, ValueError) as error:
            cause = f"the compiled schema is missing, and so is its copy {commit.draft.schema_ref}"
            raise SchemaContractBroken(cause) from error
        if ir.hash != declared_hash(source):
            cause = f"current {SOURCE_FILE} no longer matches the accepted compiled schema"
            raise SchemaContractBroken(cause)
        return SchemaContract.accept(source, ir)
