"""Idempotency keys: which ones a caller may choose, and what tells two requests apart.

Every write has a key. One that the caller did not choose is the operation's id, which
`CommitStateUnknown` names, so that a call whose outcome is unknown can be repeated without writing
twice.
Tests: tests/behaviour/test_idempotency.py.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from hashlib import sha256

from omnigraph.diagnostics import shortened
from omnigraph.errors import IdempotencyKeyReused, InputError
from omnigraph.versioning.commits import CommitDraft, CommitRecord, WriteKey
from omnigraph.versioning.manifest import KeyedCommit, Manifest


@dataclass(frozen=True, slots=True)
class KeyedRequest:
    """What a caller asked for: the key it chose, if any, and a digest of everything else."""

    key: str | None
    digest: str

    def earlier(self, manifest: Manifest, branch: str | None) -> CommitRecord | None:
        """The commit an earlier call with the key made on a branch. Raises `IdempotencyKeyReused`."""
        found = None if self.key is None else manifest.find_keyed(branch, self.key)
        return None if found is None else self.same(found)

    def same(self, found: KeyedCommit) -> CommitRecord:
        """The commit found under the key, if it did what is asked for now."""
        stored = found.commit.draft.write_key
        if stored is None or stored.digest != self.digest:
            raise IdempotencyKeyReused(self.key or "", found.commit.graph_commit_id)
        return found.commit

    def on(self, draft: CommitDraft, **answer: object) -> CommitDraft:
        """The draft with its key. A repeat of the call is given the answer again."""
        key = WriteKey(self.key or draft.operation_id, self.digest, answer)
        return replace(draft, write_key=key)


def keyed_request(key: str | None, *asked: object) -> KeyedRequest:
    """Raises `InputError` for a key that cannot be used."""
    if key is not None:
        check_key("idempotency key", key)
    text = json.dumps(asked, sort_keys=True, ensure_ascii=False, default=_plain)
    return KeyedRequest(key, sha256(text.encode(errors="surrogatepass")).hexdigest())


def keyed_text(text: str) -> str:
    """A query or schema as a key is bound to it: files end with a line break, texts in code often do not."""
    return text if text.endswith("\n") else text + "\n"


def check_key(what: str, key: str) -> None:
    """Raises `InputError` for an idempotency key or load id that cannot be used."""
    plain = key.isascii() and all(c.isalnum() or c in "._:-" for c in key)
    if not 1 <= len(key) <= 128 or not plain:
        message = "1 to 128 letters, digits and the characters `._:-`"
        raise InputError(f"{what} {shortened(repr(key))} is not usable; it has {message}")


def _plain(value: object) -> str:
    return sha256(value).hexdigest() if isinstance(value, bytes) else str(value)
