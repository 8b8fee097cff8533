"""What a power loss may take from a disk: whatever a writer had not yet synced when it died.

A file that was not synced may be empty, and an entry of a directory that was not synced since may be
gone. What was synced stays.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

LOCKS = "__locks"
"""Lock files are never synced; their text is for messages only."""


@dataclass(frozen=True, slots=True)
class Losses:
    """The paths below a graph that could be lost, newest last."""

    empty: tuple[str, ...]
    """Files whose content may be lost."""
    gone: tuple[str, ...]
    """Files and directories that may not be there at all."""

    def newest(self) -> tuple[str, ...]:
        """The file written last, of those that may be empty."""
        return tuple(path for path in self.empty if not path.startswith(LOCKS))[-1:]


def inodes(root: Path) -> set[int]:
    return {path.lstat().st_ino for path in [root, *root.rglob("*")]} if root.exists() else set()


def possible_losses(root: Path, before: set[int], notes: Path) -> Losses:
    """What is new since `before` and not on the disk, as the notes of the writer say."""
    synced: dict[int, int] = {}
    for line in notes.read_text().splitlines() if notes.exists() else ():
        if line[0].isdigit():
            inode, moment = map(int, line.split())
            synced[inode] = moment
    new = [path for path in root.rglob("*") if path.lstat().st_ino not in before]
    new.sort(key=lambda path: path.lstat().st_ctime_ns)
    empty = [p for p in new if p.is_file() and p.lstat().st_ino not in synced]
    gone = [p for p in new if _may_be_gone(p, synced)]
    return Losses(
        tuple(str(path.relative_to(root)) for path in empty),
        tuple(str(path.relative_to(root)) for path in gone),
    )


def _may_be_gone(path: Path, synced: Mapping[int, int]) -> bool:
    directory = synced.get(path.parent.lstat().st_ino, 0)
    # With an entry on the disk after its content, it can only have been renamed since.
    renamed = directory >= synced.get(path.lstat().st_ino, directory + 1)
    return _made_at(path) > directory and not renamed


def _made_at(path: Path) -> int:
    """The latest moment at which the entry of a path can have been made."""
    if path.is_file():
        return path.lstat().st_ctime_ns
    inside = [found.lstat().st_ctime_ns for found in path.rglob("*") if found.is_file()]
    return min(inside, default=0)


def truncate(root: Path, paths: Iterable[str]) -> None:
    for path in paths:
        if (root / path).is_file():
            os.truncate(root / path, 0)


def remove(root: Path, paths: Iterable[str]) -> None:
    for path in paths:
        if (root / path).is_dir():
            shutil.rmtree(root / path)
        else:
            (root / path).unlink(missing_ok=True)
