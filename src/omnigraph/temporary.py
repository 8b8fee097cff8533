"""Folders that are gone in the end, whatever interrupts the process meanwhile.

Tests: tests/unit/test_interrupts.py.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Final

from omnigraph.interrupts import uninterrupted

_REMOVE_SECONDS: Final = 5.0


class TemporaryFolder(tempfile.TemporaryDirectory[str]):
    """A temporary directory that an interrupt leaves behind neither half made nor half removed."""

    def __init__(self, prefix: str, parent: str | os.PathLike[str] | None = None) -> None:
        try:
            uninterrupted(partial(super().__init__, prefix=prefix, dir=parent))
        except BaseException:
            if hasattr(self, "name"):  # The interrupt came when it was made.
                self.cleanup()
            raise

    def cleanup(self) -> None:
        uninterrupted(super().cleanup)


def remove_folder(folder: Path) -> None:
    """Remove a folder with all its content, also when processes that are ending still write to it.

    What cannot be removed within some seconds stays.
    """

    def remove() -> None:
        deadline = time.monotonic() + _REMOVE_SECONDS
        shutil.rmtree(folder, ignore_errors=True)
        while folder.exists() and time.monotonic() < deadline:
            time.sleep(0.02)
            shutil.rmtree(folder, ignore_errors=True)

    uninterrupted(remove)
