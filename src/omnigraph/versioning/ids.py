"""Fresh identifiers and the present time, the two things a write takes from outside."""

from __future__ import annotations

import hashlib
import time
from typing import Final

from ulid import ULID


def new_ulid() -> str:
    """A 26-character identifier that sorts by the time it was made."""
    return str(ULID())


_PROCESS_IDENTITY: Final = new_ulid()


def process_identity() -> str:
    """The name of this process in locks and in notes of unfinished writes; no other one has it."""
    return _PROCESS_IDENTITY


def derived_ulid(micros: int, seed: str) -> str:
    """The identifier that belongs to a time and a text: whoever asks gets the same one."""
    digest = hashlib.sha256(seed.encode()).digest()
    return str(ULID((micros // 1000).to_bytes(6, "big") + digest[:10]))


def now_micros() -> int:
    """Microseconds since the epoch."""
    return time.time_ns() // 1000
