"""The storage root of a cluster: ledger, lock, sidecars, approvals and the catalog, as objects.

All of it goes through the object adapter, so a directory and an `s3://` address behave the same. The ledger is
replaced only if it is still what the command has read. The lock is a record that one command creates and
removes; it does not expire. Catalog files are named after their content and never deleted.
Tests: tests/cluster/test_records.py.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import Final, Literal, TypeAlias, TypeVar

import msgspec
from msgspec import Struct

from omnigraph.cluster.documents import ClusterStop, Diagnostics, StateObservations
from omnigraph.cluster.ledger import (
    EMPTY,
    RECORD_VERSION,
    VERSION,
    Approval,
    ApprovalRecord,
    Ledger,
    LockRecord,
    Sidecar,
    ledger_text,
    now,
    state_cas,
    text_digest,
)
from omnigraph.errors import ObjectMissing, StorageError, StoreCallFailed
from omnigraph.faults import declare
from omnigraph.json_structs import described, json_lines
from omnigraph.settings import read_settings
from omnigraph.storage.durability import Durability
from omnigraph.storage.objects import VersionToken, open_store, probe_store
from omnigraph.storage.uris import GraphRoot
from omnigraph.versioning.ids import new_ulid

STATE_PATH: Final = "__cluster/state.json"
LOCK_PATH: Final = "__cluster/lock.json"
_RECOVERIES: Final = "__cluster/recoveries"
_APPROVALS: Final = "__cluster/approvals"
_RESOURCES: Final = "__cluster/resources"
_SUFFIXES: Final = {"query": "gq", "policy": "yaml", "provider": "json"}
"""The kinds of resources that the catalog keeps."""

AFTER_LOCK = declare("cluster.after_lock_created", "the lock is held, nothing is read yet")
BEFORE_STATE = declare("cluster.before_state_write", "the work is done, the ledger is not written")
AFTER_STATE = declare("cluster.after_state_write", "the ledger is written, records are not removed")

S = TypeVar("S", bound=Struct)


class StoredLedger(Struct, frozen=True):
    """A ledger as it was read or written, and what a write must find unchanged."""

    ledger: Ledger
    cas: str
    token: VersionToken


class StoredSidecar(Struct, frozen=True):
    """A sidecar and the object it is in."""

    path: str
    sidecar: Sidecar


PayloadState: TypeAlias = Literal["present", "missing", "mismatch"]


class ClusterStore:
    """What a storage root records of a cluster."""

    def __init__(self, root: GraphRoot) -> None:
        self.root = root
        self._objects = open_store(root, Durability(read_settings().durability))

    def graph_uri(self, graph_id: str) -> str:
        """Where a graph of the cluster is."""
        return self.root.join(_graph_path(graph_id))

    def has_graph(self, graph_id: str) -> bool:
        """Whether anything is stored where the graph belongs."""
        return self._objects.exists(_graph_path(graph_id))

    def delete_graph(self, graph_id: str) -> None:
        """Remove a graph with all its history."""
        self._objects.delete_prefix(_graph_path(graph_id))

    # -- ledger -----------------------------------------------------------------------------

    def read_ledger(self) -> StoredLedger | None:
        """The ledger, if there is one. Raises `ClusterStop`."""
        where = self.root.join(STATE_PATH)
        try:
            text, token = self._objects.read_text_versioned(STATE_PATH)
        except ObjectMissing:
            return None
        except StorageError as error:
            raise ClusterStop("state_read_error", where, str(error)) from error
        return StoredLedger(_parse_ledger(text, where), state_cas(text), token)

    def write_ledger(self, base: StoredLedger | None, ledger: Ledger) -> StoredLedger:
        """Replace the ledger that was read. Raises `ClusterStop` if it has changed since."""
        where, text = self.root.join(STATE_PATH), ledger_text(ledger)
        BEFORE_STATE.hit()
        try:
            if base is None:
                probe_store(self._objects, self.root)
                token = self._objects.write_text_if_absent(STATE_PATH, text)
            else:
                token = self._objects.write_text_if_match(STATE_PATH, text, base.token)
        except StorageError as error:
            raise ClusterStop("state_write_error", where, str(error)) from error
        if token is None:
            message = (
                "another process has changed the ledger since it was read; run the command again"
            )
            raise ClusterStop("state_cas_mismatch", where, message)
        AFTER_STATE.hit()
        return StoredLedger(ledger, state_cas(text), token)

    # -- lock -------------------------------------------------------------------------------

    @contextmanager
    def locked(
        self, operation: str, found: Diagnostics, *, is_enabled: bool
    ) -> Iterator[str | None]:
        """Hold the lock; its id. Raises `ClusterStop` if another command holds it."""
        if not is_enabled:
            message = "state.lock is false; commands that run at the same time may fail"
            found.warning("state_lock_disabled", "state.lock", message)
            yield None
            return
        lock_id = self._acquire(operation)
        try:
            AFTER_LOCK.hit()
            yield lock_id
        finally:
            self._release(lock_id, found)

    def _acquire(self, operation: str) -> str:
        where = self.root.join(LOCK_PATH)
        lock = LockRecord(RECORD_VERSION, new_ulid(), operation, now(), os.getpid())
        try:
            is_ours = self._objects.write_text_if_absent(LOCK_PATH, json_lines(lock)) is not None
        except StorageError as error:
            # The write may have happened all the same, and no other process would remove that lock.
            with suppress(ClusterStop):
                if self.read_lock() == lock:
                    return lock.lock_id
            raise ClusterStop("state_lock_error", where, str(error)) from error
        if is_ours:
            return lock.lock_id
        holder = self.read_lock()
        if holder is None:
            message = "another command has just released it; run the command again"
            raise ClusterStop("state_lock_held", where, message)
        raise ClusterStop(
            "state_lock_held",
            where,
            f"`cluster {holder.operation}` of process {holder.pid} holds the lock since "
            f"{holder.created_at}; if that process is gone, run `cluster force-unlock {holder.lock_id}`",
        )

    def _release(self, lock_id: str, found: Diagnostics) -> None:
        try:
            holder = self.read_lock()
            if holder is not None and holder.lock_id == lock_id:
                self._objects.delete(LOCK_PATH)
        except ClusterStop as stop:
            found.add(stop.diagnostic)
        except StorageError as error:
            found.error("state_lock_error", self.root.join(LOCK_PATH), str(error))

    def read_lock(self) -> LockRecord | None:
        """Who holds the lock. Raises `ClusterStop`."""
        where = self.root.join(LOCK_PATH)
        try:
            text = self._objects.read_text(LOCK_PATH)
        except ObjectMissing:
            return None
        except StorageError as error:
            raise ClusterStop("state_lock_read_error", where, str(error)) from error
        try:
            lock = msgspec.json.decode(text, type=described(LockRecord))
        except msgspec.DecodeError as error:
            raise ClusterStop("invalid_state_lock", where, f"{error}") from None
        if lock.version != RECORD_VERSION:
            message = f"the lock has version {lock.version}; this version knows {RECORD_VERSION}"
            raise ClusterStop("unsupported_state_lock_version", where, message)
        return lock

    def force_unlock(self, lock_id: str) -> None:
        """Remove the lock of that id. Raises `ClusterStop`."""
        where, lock = self.root.join(LOCK_PATH), self.read_lock()
        if lock is None:
            raise ClusterStop("state_lock_missing", where, "there is no lock")
        if lock.lock_id != lock_id:
            message = f"the lock has the id {lock.lock_id}, not {lock_id}"
            raise ClusterStop("state_lock_id_mismatch", where, message)
        try:
            self._objects.delete(LOCK_PATH)
        except StorageError as error:
            raise ClusterStop("state_lock_error", where, str(error)) from error

    def observations(
        self, stored: StoredLedger | None, *, acquired: str | None = None
    ) -> StateObservations:
        """The ledger as given and the lock as it is now. Raises `ClusterStop`."""
        lock = self.read_lock()
        ledger = EMPTY if stored is None else stored.ledger
        return StateObservations(
            state_path=self.root.join(STATE_PATH),
            lock_path=self.root.join(LOCK_PATH),
            state_found=stored is not None,
            applied_config_digest=ledger.applied_revision.config_digest,
            state_revision=ledger.state_revision,
            state_cas=None if stored is None else stored.cas,
            resource_count=len(ledger.resources),
            locked=lock is not None,
            lock_id=None if lock is None else lock.lock_id,
            lock_acquired=acquired is not None,
            acquired_lock_id=acquired,
            lock_operation=None if lock is None else lock.operation,
            lock_created_at=None if lock is None else lock.created_at,
            lock_pid=None if lock is None else lock.pid,
            lock_age_seconds=None if lock is None else _age_seconds(lock.created_at),
        )

    # -- sidecars ---------------------------------------------------------------------------

    def sidecars(self, found: Diagnostics) -> list[StoredSidecar]:
        """The sidecars, oldest first. One that cannot be read is reported and stays."""
        listed = self._records(_RECOVERIES, "recovery_sidecar_read_error", found)
        return [
            StoredSidecar(path, sidecar)
            for path, text in listed
            if (sidecar := self._record(path, text, Sidecar, _SIDECAR_CODES, found)) is not None
        ]

    def write_sidecar(self, sidecar: Sidecar) -> StoredSidecar:
        """Write or replace a sidecar. Raises `ClusterStop`."""
        path = f"{_RECOVERIES}/{sidecar.operation_id}.json"
        try:
            self._objects.write_text(path, json_lines(sidecar))
        except StorageError as error:
            where = self.root.join(path)
            raise ClusterStop("recovery_sidecar_write_error", where, str(error)) from error
        return StoredSidecar(path, sidecar)

    def remove_sidecar(self, stored: StoredSidecar, found: Diagnostics) -> None:
        """Remove a sidecar; if that fails, the next sweep does it."""
        try:
            self._objects.delete(stored.path)
        except StorageError as error:
            found.warning("recovery_sidecar_write_error", self.root.join(stored.path), str(error))

    # -- approvals --------------------------------------------------------------------------

    def approvals(self, found: Diagnostics) -> list[Approval]:
        """All approvals, oldest first. One that cannot be read is reported."""
        listed = self._records(_APPROVALS, "approval_read_error", found)
        return [
            approval
            for path, text in listed
            if (approval := self._record(path, text, Approval, _APPROVAL_CODES, found)) is not None
        ]

    def write_approval(self, approval: Approval) -> None:
        """Write or replace an approval. Raises `ClusterStop`."""
        path = f"{_APPROVALS}/{approval.approval_id}.json"
        try:
            self._objects.write_text(path, json_lines(approval))
        except StorageError as error:
            raise ClusterStop("approval_write_error", self.root.join(path), str(error)) from error

    def consume_approvals(
        self,
        approvals: list[Approval],
        records: Mapping[str, ApprovalRecord],
        found: Diagnostics,
    ) -> None:
        """Note in the approvals themselves that the ledger has them as used."""
        for approval in approvals:
            record = records.get(approval.approval_id)
            if record is None or approval.consumed_at is not None:
                continue
            used = msgspec.structs.replace(
                approval,
                consumed_at=record.consumed_at,
                consumed_by_operation=record.consumed_by_operation,
            )
            try:
                self.write_approval(used)
            except ClusterStop as stop:
                # The ledger counts; the next run notes it again.
                found.warning(stop.diagnostic.code, stop.diagnostic.path, stop.diagnostic.message)

    # -- catalog ----------------------------------------------------------------------------

    def payload_state(self, address: str, digest: str) -> PayloadState:
        """Whether the catalog has the content of a resource. Raises `StorageError`."""
        text = self.read_payload(address, digest)
        if text is None:
            return "missing"
        return "present" if text_digest(text) == digest else "mismatch"

    def read_payload(self, address: str, digest: str) -> str | None:
        """A content of the catalog, unchecked. Raises `StorageError`."""
        try:
            return self._objects.read_text(payload_path(address, digest))
        except ObjectMissing:
            return None
        except StoreCallFailed as error:
            if isinstance(error.__cause__, UnicodeDecodeError):
                return "\0"  # No text that was ever stored.
            raise

    def write_payload(self, address: str, digest: str, text: str) -> None:
        """Put a content into the catalog unless it is there. Raises `StorageError`."""
        if self.payload_state(address, digest) != "present":
            self._objects.write_text(payload_path(address, digest), text)

    def where(self, path: str) -> str:
        """The address of an object, for messages."""
        return self.root.join(path)

    # -- records ----------------------------------------------------------------------------

    def _records(self, folder: str, code: str, found: Diagnostics) -> list[tuple[str, str]]:
        """The texts of a directory, by name. What cannot be read is reported."""
        try:
            paths = sorted(p for p in self._objects.list_dir(folder) if p.endswith(".json"))
        except StorageError as error:
            raise ClusterStop(code, self.root.join(folder), str(error)) from error
        texts = []
        for path in paths:
            try:
                texts.append((path, self._objects.read_text(path)))
            except ObjectMissing:
                continue
            except StorageError as error:
                found.error(code, self.root.join(path), str(error))
        return texts

    def _record(
        self, path: str, text: str, made: type[S], codes: tuple[str, str], found: Diagnostics
    ) -> S | None:
        invalid, unsupported = codes
        where = self.root.join(path)
        try:
            version = msgspec.json.decode(text, type=described(_Versioned)).schema_version
            if version != RECORD_VERSION:
                message = f"it has version {version}; this version knows {RECORD_VERSION}"
                found.warning(unsupported, where, message)
                return None
            return msgspec.json.decode(text, type=described(made))
        except msgspec.DecodeError as error:
            found.warning(invalid, where, f"{error}")
            return None


_SIDECAR_CODES: Final = ("invalid_recovery_sidecar", "unsupported_recovery_sidecar_version")
_APPROVAL_CODES: Final = ("invalid_approval_artifact", "unsupported_approval_version")


class _Versioned(Struct, frozen=True):
    schema_version: int


class _LedgerVersion(Struct, frozen=True):
    version: int


def payload_path(address: str, digest: str) -> str:
    """Where the catalog keeps the content of a query, policy or provider."""
    kind, _, rest = address.partition(".")
    return f"{_RESOURCES}/{kind}/{rest.replace('.', '/')}/{digest}.{_SUFFIXES[kind]}"


def is_in_catalog(address: str) -> bool:
    """Whether the catalog keeps the content of a resource."""
    return address.partition(".")[0] in _SUFFIXES


def _graph_path(graph_id: str) -> str:
    return f"graphs/{graph_id}.omni"


def _parse_ledger(text: str, where: str) -> Ledger:
    try:
        version = msgspec.json.decode(text, type=described(_LedgerVersion)).version
        if version not in (1, VERSION):
            message = f"the ledger has version {version}; this version knows 1 and {VERSION}"
            raise ClusterStop("unsupported_state_version", where, message)
        ledger = msgspec.json.decode(text, type=described(Ledger))
    except msgspec.DecodeError as error:
        raise ClusterStop("invalid_state_json", where, f"{error}") from None
    if (version == VERSION) != (ledger.ledger_id is not None):
        message = (
            f"a ledger of version {version} has {'no' if version == VERSION else 'a'} ledger_id"
        )
        raise ClusterStop("invalid_state_json", where, message)
    return ledger


def _age_seconds(created_at: str) -> int | None:
    try:
        created = datetime.fromisoformat(created_at)
        return max(0, int((datetime.now(UTC) - created).total_seconds()))
    except (ValueError, TypeError):
        return None
