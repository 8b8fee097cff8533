"""A process that runs one writer and is meant to die in it.

It notes what it has brought onto the disk, and when: by inode, as files are written under one name
and then linked or renamed to another.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping

from omnigraph.faults import FAULT_POINTS, FaultPoint
from omnigraph.testing.faults import arm_from_environment
from tests.crash.kinds import KINDS, LEASED_KINDS


def run(kind: str, uri: str, notes: str) -> None:
    out = os.open(notes, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def note(_point: FaultPoint, context: Mapping[str, object]) -> None:
        inode = os.stat(str(context["path"])).st_ino
        os.write(out, b"%d %d\n" % (inode, time.time_ns()))

    # Set before the trap that kills, so that what was synced at that very point counts as synced.
    FAULT_POINTS["durability.after_fsync"].set_trap(note)
    arm_from_environment()
    (KINDS | LEASED_KINDS)[kind].run(uri)


if __name__ == "__main__":
    run(*sys.argv[1:])
