"""How long a writer waits for a lock."""

from __future__ import annotations

import time
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Deadline:
    """The moment at which waiting ends, on the monotonic clock."""

    at: float

    @classmethod
    def after(cls, wait_ms: int) -> Deadline:
        return cls(time.monotonic() + wait_ms / 1000)

    def remaining_s(self) -> float:
        """Never negative."""
        return max(0.0, self.at - time.monotonic())
