"""How long a writer waits for a lock."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from omnigraph.errors import InputError
from omnigraph.limits import LOCK_WAIT_MS

LOCK_WAIT_VARIABLE: Final = "OMNIGRAPH_LOCK_WAIT_MS"

# Nine digits are eleven days; much longer times do not fit the clock calls.
_MILLISECONDS: Final = re.compile(r"[0-9]{1,9}", re.ASCII)


def lock_wait_from_environment(environment: Mapping[str, str] = os.environ) -> int:
    """The setting of `OMNIGRAPH_LOCK_WAIT_MS`, or 30 s. Raises `InputError` for what is no time."""
    value = environment.get(LOCK_WAIT_VARIABLE)
    if value is None:
        return LOCK_WAIT_MS
    if not _MILLISECONDS.fullmatch(value):
        raise InputError(
            f"{LOCK_WAIT_VARIABLE} is '{value}'; set it to a number of milliseconds from 0 to "
            "999999999"
        )
    return int(value)


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
