"""Memory that one step of a read has freed is there for the next.

The allocator of glibc gives a freed block of more than 128 KiB back to the system, and asks for it again
at once: the arrays of a search are then new pages each time, which can take half of its time and keeps
other threads waiting. It learns from the largest block freed so far, up to 32 MiB, which blocks to keep.
Tests: tests/unit/engine/test_read_memory.py.
"""

from __future__ import annotations

from functools import cache
from typing import Final

import numpy as np

_LARGEST_KEPT: Final = (32 << 20) - (64 << 10)
"""As much as the allocator learns from, less what it adds to a block of its own."""


@cache
def keep_freed_memory() -> None:
    """Let the allocator keep blocks of all sizes it may keep, in this process from now on."""
    np.empty(_LARGEST_KEPT, np.uint8)
