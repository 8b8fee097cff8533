"""The files that a declaration names: on disk, or as texts in a bundle that a client has sent.

A bundle is never asked for a path outside of itself. Tests: tests/cluster/test_validate.py,
tests/server/test_deployments.py.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from omnigraph.cluster.documents import FILE_NAME
from omnigraph.errors import SourceUnreadable
from omnigraph.read.source_files import read_source


class PathRefused(Exception):
    """A path that a declaration must not name; `code` is that of the diagnostic."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class DeclarationFiles(Protocol):
    """Where the texts of a declaration come from."""

    def locate(self, written: str) -> Path:
        """The file of a path as the declaration writes it. Raises `PathRefused`."""

    def is_directory(self, path: Path) -> bool: ...

    def query_files(self, path: Path) -> list[str]:
        """The names of the `.gq` files in a directory, sorted. Raises `OSError`."""

    def text(self, path: Path) -> str:
        """Raises `SourceUnreadable`."""

    def on_disk(self, path: Path) -> Path | None:
        """The file to read again before its text is used, if there is one."""


class FilesOnDisk:
    """The files below the directory of a `cluster.yaml`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def locate(self, written: str) -> Path:
        """A relative path stays in the directory and goes through no link."""
        given = Path(written)
        if given.is_absolute():
            return given
        if ".." in given.parts:
            message = f"'{written}' leads out of the directory of {FILE_NAME}"
            raise PathRefused("config_path_escape", message)
        located = self._folder
        for part in given.parts:
            located = located / part
            if os.path.islink(located):
                message = f"'{written}' goes through the symbolic link {located}"
                raise PathRefused("config_path_symlink", message)
        return located

    def is_directory(self, path: Path) -> bool:
        return os.path.isdir(path)

    def query_files(self, path: Path) -> list[str]:
        return sorted(file.name for file in path.iterdir() if file.suffix == ".gq")

    def text(self, path: Path) -> str:
        return read_source(path).text

    def on_disk(self, path: Path) -> Path | None:
        return path


class FilesInBundle:
    """Texts by the path that the declaration writes."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = {Path(path): text for path, text in texts.items()}

    def locate(self, written: str) -> Path:
        return Path(written)

    def is_directory(self, path: Path) -> bool:
        return path not in self._texts

    def query_files(self, path: Path) -> list[str]:
        return sorted(
            file.name for file in self._texts if file.parent == path and file.suffix == ".gq"
        )

    def text(self, path: Path) -> str:
        found = self._texts.get(path)
        if found is None:
            raise SourceUnreadable(str(path), "it is not in the bundle", "capture it again")
        return found

    def on_disk(self, path: Path) -> Path | None:
        return None
