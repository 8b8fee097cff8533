"""Blobs kept outside of a graph: which addresses may be stored, and followed when bytes are read.

An address must lie under one of the allowed bases, in any spelling. Without bases every address is
refused. Tests: tests/unit/load/test_blob_bases.py.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote

from omnigraph.errors import InputError
from omnigraph.settings import read_settings

SETTING: Final = "OMNIGRAPH_EXTERNAL_BLOBS"
_ADDRESS: Final = re.compile(r"([a-z][a-z0-9+.-]*)://([^/]*)((?:/[^/]*)*)")
_FILE: Final = "file:///"


@dataclass(frozen=True, slots=True)
class BlobBases:
    """The folders and prefixes under which blobs may be kept outside of a graph, in normal form."""

    bases: tuple[str, ...] = ()

    @classmethod
    def of(cls, given: str) -> BlobBases:
        """Bases from a list separated by commas: addresses, or absolute paths of folders.

        Raises `InputError` for one that is neither.
        """
        bases = []
        for base in filter(None, map(str.strip, given.split(","))):
            normal = _normal_form(f"file://{base}" if base.startswith("/") else base)
            if normal is None:
                raise InputError(
                    f"{SETTING}: '{base}' is not a valid blob base; use absolute paths or addresses "
                    "such as s3://bucket/pictures, separated by commas"
                )
            bases.append(normal.rstrip("/") if normal != _FILE else _FILE.rstrip("/"))
        return cls(tuple(bases))

    @classmethod
    def from_environment(cls) -> BlobBases:
        """What the setting allows at this moment. Raises `InputError`."""
        return cls.of(read_settings().external_blobs)

    def allow(self, uri: str) -> bool:
        """Whether an address lies under a base, by its text."""
        normal = _normal_form(uri)
        return normal is not None and any(normal.startswith(f"{b}/") for b in self.bases)

    def allow_reading(self, uri: str) -> bool:
        """Whether a file lies under a base where links have led, too."""
        if not self.allow(uri):
            return False
        path = _local_path(uri)
        if path is None:
            return True
        folders = [os.path.realpath(base) for b in self.bases if (base := _local_path(f"{b}/"))]
        found = os.path.realpath(path)
        return any(found.startswith(f"{folder.rstrip('/')}/") for folder in folders)


NO_BASES: Final = BlobBases()
"""Every address outside of the graph is refused."""


def _normal_form(uri: str) -> str | None:
    """An address with its escapes decoded, or None for an ambiguous one."""
    address = _ADDRESS.fullmatch(uri)
    if address is None:
        return None
    scheme, host, path = address.groups()
    try:
        path = unquote(path, errors="strict")
    except UnicodeDecodeError:
        return None
    if re.search(r"[\x00-\x1f\x7f\\?#@]", host + path) or "%" in path + host:
        return None
    if any(part in (".", "..") for part in path.split("/")) or "//" in path:
        return None
    if scheme == "file":
        return f"file://{path}" if host in ("", "localhost") and path else None
    return f"{scheme}://{host}{path}" if host else None


def _local_path(uri: str) -> str | None:
    normal = _normal_form(uri)
    if normal is None or not normal.startswith(_FILE):
        return None
    return normal.removeprefix("file://")
