"""The accepted schema of an open graph, compiled once.

On a local disk and in memory every use looks at its files, so that an edit of them by hand is found out
at once: by their stamps, and only if these tell of a change by reading them. On an object store they are read when a graph is opened, and again when the newest commit
was made under another schema: reading them takes three requests.
`KnownSchema` is what an open graph knows of a branch without reading storage.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from threading import Lock

from omnigraph.catalog.model import Catalog
from omnigraph.errors import SchemaContractBroken
from omnigraph.storage.objects import ObjectStore
from omnigraph.versioning.contract import (
    CONTRACT_FILES,
    ContractFiles,
    SchemaContract,
    check_files,
    read_files,
    read_history,
    read_staged_or_accepted_files,
)
from omnigraph.versioning.manifest import ManifestState


class SchemaCache:
    """Schemas of one graph, present and past. Thread-safe."""

    def __init__(
        self, objects: ObjectStore, read: Callable[[], ContractFiles] | None = None
    ) -> None:
        """`read` says what the files hold, for a graph that is not stored as it is read."""
        self._objects = objects
        self._read = read or partial(read_files, objects)
        self._stamp = None if read else partial(objects.stamp, CONTRACT_FILES)
        self.is_converted = read is not None
        self._stand_in: ContractFiles | None = None
        self._lock = Lock()
        self._known: tuple[ContractFiles, SchemaContract] | None = None
        self._stamped: tuple[Hashable, SchemaContract] | None = None
        """The contract of files that show without being read whether they are as they were."""
        self.past = lru_cache(maxsize=32)(self._read_past)
        self.past_under = lru_cache(maxsize=32)(self._restate)

    def stand_in(self, files: ContractFiles) -> None:
        """From now on, use the given compiled files until both are written."""
        self._stand_in = files

    def contract_of(self, reference: str | None) -> SchemaContract:
        """The contract for a state that was made under the schema of this reference.

        It is that of another schema only while a change of the schema is being completed or undone.
        """
        return self.known(reference) or self.contract()

    def known(self, reference: str | None) -> SchemaContract | None:
        """The same if it was read before and is relied on without reading its files again."""
        with self._lock:
            known = self._known
        relies = self._objects.is_remote and not self.is_converted
        if relies and known is not None and known[1].reference == reference:
            return known[1]
        return None

    def has_compiled_files(self) -> bool:
        """Whether both compiled files were in their place when the contract was last read."""
        with self._lock:
            known = self._known
        return known is not None and None not in (known[0].ir, known[0].state)

    def contract(self, read: Callable[[], ContractFiles] | None = None) -> SchemaContract:
        """The contract as its files say now. Raises `SchemaContractBroken`.

        `read` is another way to read them, for one who has just listed them.
        """
        stamp = None if self._stamp is None or read else self._stamp()
        stamped = self._stamped
        if stamp is not None and stamped is not None and stamped[0] == stamp:
            return stamped[1]
        contract = self._newest(read)
        if stamp is not None:
            self._stamped = stamp, contract
        return contract

    def _newest(self, read: Callable[[], ContractFiles] | None) -> SchemaContract:
        files = (read or self._read)()
        if self._stand_in is not None and None in (files.ir, files.state):
            files = replace(self._stand_in, source=files.source)
        with self._lock:
            known = self._known
        if known is not None and known[0] == files:
            return known[1]
        contract = self._checked(files)
        with self._lock:
            self._known = (files, contract)
        return contract

    def _checked(self, files: ContractFiles) -> SchemaContract:
        """The contract of the files. While a schema apply puts them in place, one after the other,
        those that wait complete those that are there. Files that another process is changing at this
        moment are read again; those that stay as they are and do not agree are broken."""
        while True:
            try:
                return check_files(files)
            except SchemaContractBroken as broken:
                with suppress(SchemaContractBroken):
                    return check_files(read_staged_or_accepted_files(self._objects))
                again = self._read()
                if again == files:
                    raise broken
                files = again

    def _read_past(self, reference: str) -> Catalog:
        """The schema that commits name by this reference."""
        return Catalog.from_ir(read_history(self._objects, reference, may_be_kept=True))

    def _restate(self, reference: str, present: str) -> Catalog:
        """An earlier schema under the names of the present one."""
        from omnigraph.catalog.migrate.identities import under_present_names

        now = self.past(present)
        return Catalog.from_ir(under_present_names(self.past(reference).ir, now.ir))


@dataclass(frozen=True, slots=True)
class KnownSchema:
    """The state of a branch that was read or written last, and the schema it was made under."""

    state: ManifestState
    contract: SchemaContract
