"""The object behind a lease: its text, the conditional writes that change it, and its timing.

Every text has a fresh nonce. It makes each text unique, so a token never stands for two moments, and it
lets a writer recognise its own text after an answer was lost.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Final

import msgspec
from msgspec.structs import replace

from omnigraph.errors import ObjectMissing, StoreCallFailed
from omnigraph.json_structs import Document, described
from omnigraph.limits import LEASE_LOSS_SECONDS, LEASE_RENEW_SECONDS, LEASE_TTL_SECONDS
from omnigraph.storage.objects import ObjectStore, VersionToken
from omnigraph.versioning.ids import new_ulid, now_micros
from omnigraph.versioning.locks.process_lock import lock_name

LEASES_DIR: Final = "__leases"
LEASE_VERSION: Final = 1


class LeaseNote(
    Document,
    frozen=True,
    tag=LEASE_VERSION,
    tag_field="lease_version",
    omit_defaults=True,
    forbid_unknown_fields=True,
):
    """The text of a lease. Its times say what one machine's clock showed; they are never compared."""

    name: str
    owner: str | None
    operation: str | None
    term: int
    nonce: str
    acquired_at: int
    expires_at: int
    head: str | None = None
    """What its last holder knew of the branch, for readers (`Manifest.head_note`)."""

    @classmethod
    def new(
        cls,
        name: str,
        owner: str,
        operation: str,
        term: int,
        ttl_s: float,
        head: str | None = None,
    ) -> LeaseNote:
        now = _now_ms()
        return cls(name, owner, operation, term, new_ulid(), now, now + int(ttl_s * 1000), head)

    def renewed(self, ttl_s: float) -> LeaseNote:
        return replace(self, nonce=new_ulid(), expires_at=_now_ms() + int(ttl_s * 1000))

    def released(self, head: str | None = None) -> LeaseNote:
        """The marker of a lease that is free."""
        return replace(
            self, owner=None, operation=None, nonce=new_ulid(), expires_at=_now_ms(), head=head
        )

    def to_text(self) -> str:
        return json.dumps(self.to_json())


def held_leases(objects: ObjectStore) -> list[LeaseNote]:
    """Held and abandoned leases, by name. A disk has none."""
    names = (path.rpartition("/")[2] for path in objects.list_dir(LEASES_DIR))
    seen = [LeaseObject(objects, name.removesuffix(".json")).read() for name in sorted(names)]
    return [lease.note for lease in seen if lease is not None and lease.note and not lease.is_free]


def read_head(objects: ObjectStore, branch: str | None) -> str | None:
    """What the last holder of a branch's lease knew of the branch, if that is stored."""
    seen = LeaseObject(objects, lock_name(branch)).read()
    return None if seen is None or seen.note is None else seen.note.head


@dataclass(frozen=True, slots=True)
class SeenLease:
    """A lease as it was read. `note` is None for an unknown format."""

    token: VersionToken
    note: LeaseNote | None

    @property
    def is_free(self) -> bool:
        return self.note is not None and self.note.owner is None

    @property
    def term(self) -> int:
        return 0 if self.note is None else self.note.term


class LeaseObject:
    """The lease of one branch in the store."""

    def __init__(self, objects: ObjectStore, name: str) -> None:
        self.name = name
        self._objects = objects
        self._path = f"{LEASES_DIR}/{name}.json"

    def read(self) -> SeenLease | None:
        """What the store holds; None if there is no lease."""
        try:
            text, token = self._objects.read_text_versioned(self._path)
        except ObjectMissing:
            return None
        return SeenLease(token, _parse(text))

    def write(self, note: LeaseNote, instead_of: VersionToken | None) -> VersionToken | None:
        """Write a text in place of exactly the one seen, or where there was none.

        None: another process was faster. Raises `StoreCallFailed` when the text is not there and
        nothing is known about it.
        """
        try:
            if instead_of is not None:
                return self.replace(note, instead_of)
            return self._objects.write_text_if_absent(self._path, note.to_text())
        except StoreCallFailed:
            # Only the answer may have got lost.
            token = self.token_of(note)
            if token is None:
                raise
            return token

    def replace(self, note: LeaseNote, seen: VersionToken) -> VersionToken | None:
        """The same without a second look when the store fails."""
        return self._objects.write_text_if_match(self._path, note.to_text(), seen)

    def token_of(self, note: LeaseNote) -> VersionToken | None:
        """The token of a text of our own, if that is what the store holds."""
        seen = self.read()
        if seen is None or seen.note is None or seen.note.nonce != note.nonce:
            return None
        return seen.token


def _parse(text: str) -> LeaseNote | None:
    try:
        return msgspec.json.decode(text, type=described(LeaseNote))
    except ValueError:
        return None


def _now_ms() -> int:
    return now_micros() // 1000


@dataclass(frozen=True, slots=True)
class LeaseTiming:
    """The three times of a lease. All processes of a graph use the same ones."""

    ttl_s: float = LEASE_TTL_SECONDS
    renew_s: float = LEASE_RENEW_SECONDS
    loss_s: float = LEASE_LOSS_SECONDS

    def __post_init__(self) -> None:
        # A holder must give up before another process may take over, and renew before it gives up.
        if not 0 < self.renew_s < self.loss_s < self.ttl_s:
            raise ValueError("a lease is renewed before it counts as lost, and lost before its end")
