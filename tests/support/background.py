"""Waiting for what writers do in the background."""

from __future__ import annotations

import threading


def wait_for_compaction() -> None:
    """Return when no handle of this process is compacting."""
    for thread in threading.enumerate():
        if thread.name == "omnigraph-compact":
            thread.join()
