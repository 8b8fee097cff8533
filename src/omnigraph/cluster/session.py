"""What one command works with: the declaration, the storage root, and the problems it has found."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from omnigraph.cluster.config import ClusterConfig, read_config, storage_root
from omnigraph.cluster.documents import (
    ClusterStop,
    DesiredRevision,
    Diagnostics,
    StateObservations,
)
from omnigraph.cluster.ledger import EMPTY, Ledger
from omnigraph.cluster.resources import Desired, read_desired
from omnigraph.cluster.store import ClusterStore, StoredLedger


class Session:
    """One command on one cluster. Problems end up in `found`, never as exceptions."""

    def __init__(self, folder: Path, operation: str) -> None:
        self.folder = folder
        self.operation = operation
        self.found = Diagnostics()
        self.desired: Desired | None = None
        self.stored: StoredLedger | None = None
        self._config: ClusterConfig | None = None
        self._store: ClusterStore | None = None
        self._acquired: str | None = None

    @classmethod
    def of_desired(cls, desired: Desired, store: ClusterStore, operation: str) -> Session:
        """A command on a declaration that was read already."""
        made = cls(desired.folder, operation)
        made.desired, made._config, made._store = desired, desired.config, store
        return made

    @property
    def ledger(self) -> Ledger:
        """The ledger as it was read or written last; an empty one if there is none."""
        return EMPTY if self.stored is None else self.stored.ledger

    @property
    def store(self) -> ClusterStore:
        assert self._store is not None, "the config was read"
        return self._store

    @property
    def lock_id(self) -> str | None:
        """The lock that this command has taken."""
        return self._acquired

    @contextmanager
    def stops_reported(self) -> Iterator[None]:
        """Turn what ends a command early into a diagnostic."""
        try:
            yield
        except ClusterStop as stop:
            self.found.add(stop.diagnostic)

    def open_config(self) -> bool:
        """Read `cluster.yaml` alone, without the files it names. False if that failed."""
        self._config = read_config(self.folder, self.found)
        return self._open_store()

    def open_declaration(self) -> Desired | None:
        """Read the whole declaration; None if it has problems."""
        self.desired = read_desired(self.folder, self.found)
        if self.desired is None:
            return None
        self._config = self.desired.config
        return self.desired if self._open_store() else None

    def _open_store(self) -> bool:
        if self._config is None:
            return False
        with self.stops_reported():
            self._store = ClusterStore(storage_root(self._config, self.folder))
        return self._store is not None

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the lock and read the ledger. Raises `ClusterStop`."""
        assert self._config is not None
        is_enabled = self._config.lock
        with self.store.locked(self.operation, self.found, is_enabled=is_enabled) as lock_id:
            self._acquired = lock_id
            self.stored = self.store.read_ledger()
            yield

    def observations(self) -> StateObservations | None:
        """The ledger and the lock at the end of a command; None if the config is not valid."""
        if self._store is None:
            return None
        try:
            return self._store.observations(self.stored, acquired=self._acquired)
        except ClusterStop as stop:
            self.found.add(stop.diagnostic)
            return None

    def revision(self) -> DesiredRevision:
        return DesiredRevision(None if self.desired is None else self.desired.config_digest)
