"""Fresh identifiers and the present time, the two things a write takes from outside."""

from __future__ import annotations

import hashlib
import os
import time
from datetime import datetime

from ulid import ULID


def made_at(identifier: str) -> datetime | None:
    """When an identifier of `new_ulid` was made; None for any other text."""
    try:
        return ULID.from_str(identifier).datetime
    except ValueError:
        return None


def new_ulid() -> str:
    """A 26-character identifier that sorts by the time it was made."""
    return str(ULID())


_process_identity = new_ulid()


def process_identity() -> str:
    """The name of this process in locks and in notes of unfinished writes; no other one has it."""
    return _process_identity


def _be_another_process() -> None:
    global _process_identity
    _process_identity = new_ulid()


os.register_at_fork(after_in_child=_be_another_process)


def derived_ulid(micros: int, seed: str) -> str:
    """The identifier of a time and a text; the same for every caller."""
    digest = hashlib.sha256(seed.encode()).digest()
    return str(ULID((micros // 1000).to_bytes(6, "big") + digest[:10]))


def now_micros() -> int:
    """Microseconds since the epoch."""
    return time.time_ns() // 1000
