"""A process that runs one writer and is meant to die in it.

It notes what it has brought onto the disk, and when: by inode, as files are written under one
name and then linked or renamed to another. And it notes when it has published something.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path

from omnigraph.faults import FAULT_POINTS, FaultPoint
from tests.crash.kinds import KINDS, LEASED_KINDS, PUBLISHED
from tests.support.faults import arm_from_environment

PUBLISHED_NOTE = "published"


def publishes_noted(notes: Path) -> int:
    """How often a process had published something when it died."""
    return notes.read_text().split().count(PUBLISHED_NOTE) if notes.exists() else 0


def run(kind: str, uri: str, notes: str) -> None:
    out = os.open(notes, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def note(_point: FaultPoint, context: Mapping[str, object]) -> None:
        inode = os.stat(str(context["path"])).st_ino
        os.write(out, b"%d %d\n" % (inode, time.time_ns()))

    def note_publish(_point: FaultPoint, _context: Mapping[str, object]) -> None:
        os.write(out, PUBLISHED_NOTE.encode() + b"\n")

    # Set before the trap that kills, so that what was done at that very point counts as done.
    FAULT_POINTS["durability.after_fsync"].set_trap(note)
    FAULT_POINTS[PUBLISHED].set_trap(note_publish)
    arm_from_environment()
    (KINDS | LEASED_KINDS)[kind].run(uri)
