"""Waiting for what writers do in the background."""

from __future__ import annotations

import threading


def wait_for_folds() -> None:
    """Return when nothing is being folded in this process, through whichever handle."""
    for thread in threading.enumerate():
        if thread.name == "omnigraph-compact":
            thread.join()
