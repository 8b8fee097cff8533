"""Folders an export writes to: one that appears when it is full, and one that is gone in the end."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from omnigraph.errors import ExportError
from omnigraph.temporary import remove_folder


@contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """A folder to fill, which gets its name when it is full. Raises `ExportError`."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ExportError(f"{folder}: exists and is no empty folder; name a new one")
    target = folder.resolve()
    with scratch_folder(target.parent, target.name) as place:
        try:
            yield place
            os.replace(place, target)
        except OSError as error:
            raise ExportError(f"{folder}: cannot be written: {error.strerror}") from None


@contextmanager
def scratch_folder(parent: Path, name: str) -> Iterator[Path]:
    """A folder for a while. Raises `ExportError` when it cannot be made."""
    # Not one of `tempfile`, which nobody but this user may enter: tasks may be somebody else.
    place = parent / f".{name}.{secrets.token_hex(4)}"
    try:
        try:
            place.mkdir(parents=True)
        except OSError as error:
            raise ExportError(f"{parent / name}: cannot be made: {error.strerror}") from None
        yield place
    finally:
        remove_folder(place)
