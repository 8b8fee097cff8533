"""Fresh identifiers and the present time, the two things a write takes from outside."""

from __future__ import annotations

import time

from ulid import ULID


def new_ulid() -> str:
    """A 26-character identifier that sorts by the time it was made."""
    return str(ULID())


def now_micros() -> int:
    """Microseconds since the epoch."""
    return time.time_ns() // 1000
