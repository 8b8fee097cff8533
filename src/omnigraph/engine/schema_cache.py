"""The accepted schema of an open graph: its files are read at every use, and compiled once."""

from __future__ import annotations

from functools import lru_cache
from threading import Lock

from omnigraph.catalog.model import Catalog
from omnigraph.storage.objects import ObjectStore
from omnigraph.versioning.contract import (
    ContractFiles,
    SchemaContract,
    check_files,
    read_files,
    read_history,
)


class SchemaCache:
    """Schemas of one graph, present and past. Thread-safe."""

    def __init__(self, objects: ObjectStore) -> None:
        self._objects = objects
        self._lock = Lock()
        self._known: tuple[ContractFiles, SchemaContract] | None = None
        self.past = lru_cache(maxsize=32)(self._read_past)

    def contract(self) -> SchemaContract:
        """The contract as its files say now. Raises `SchemaContractBroken`."""
        files = read_files(self._objects)
        with self._lock:
            known = self._known
        if known is not None and known[0] == files:
            return known[1]
        contract = check_files(files)
        with self._lock:
            self._known = (files, contract)
        return contract

    def _read_past(self, reference: str) -> Catalog:
        return Catalog.from_ir(read_history(self._objects, reference))
