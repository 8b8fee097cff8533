"""Branches that a power loss left half made: finding them, and listing the others around them.

The library makes the first version of a branch and then its ref, and syncs neither. A branch is
acknowledged once both are on the disk, so nobody was ever promised one of which either is
incomplete. Only local disks leave such branches.
Tests: tests/storage/tables/test_torn_branches.py.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from urllib.parse import unquote

import lance

from omnigraph.errors import StoreCallFailed
from omnigraph.storage.lineage import version_file
from omnigraph.storage.refs import StoredBranch, list_refs
from omnigraph.storage.torn import ends_like_a_table_file

_SUFFIX = ".json"


def list_whole_branches(dataset: lance.LanceDataset, uri: str) -> dict[str, StoredBranch]:
    """The branches of a local table, without those that are half made."""
    try:
        listed = list_refs(dataset, uri)
    except StoreCallFailed:
        if not torn_branches(uri):
            # Somebody may have removed the torn ref just now. Any other failure comes again.
            return list_refs(dataset, uri)
        listed = {name: ref for name, ref in _read_refs(uri) if ref is not None}
    return {name: ref for name, ref in listed.items() if not _is_torn(uri, name, ref)}


def torn_branches(uri: str) -> set[str]:
    """The half-made branches of a local table."""
    return {name for name, ref in _read_refs(uri) if _is_torn(uri, name, ref)}


def _read_refs(uri: str) -> Iterator[tuple[str, StoredBranch | None]]:
    """Every ref file by the name of its branch, None for one that holds no ref."""
    folder = f"{uri}/_refs/branches"
    with suppress(FileNotFoundError):
        for file in os.listdir(folder):
            # One that was deleted meanwhile is no ref any more.
            with suppress(FileNotFoundError):
                if file.endswith(_SUFFIX):
                    name = unquote(file.removesuffix(_SUFFIX))
                    yield name, _read_ref(os.path.join(folder, file))


def _read_ref(path: str) -> StoredBranch | None:
    with open(path, "rb") as file:
        content = file.read()
    try:
        ref = json.loads(content)
        return StoredBranch(ref["parentBranch"], ref["parentVersion"], ref.get("metadata") or {})
    except (ValueError, KeyError, TypeError):
        return None


def _is_torn(uri: str, name: str, ref: StoredBranch | None) -> bool:
    """Whether a branch never came to be. One that has ever been written to has come to be."""
    tree = f"{uri}/tree/{name}"
    if ref is not None and _is_whole(f"{tree}/{version_file(ref.parent_version)}"):
        return False
    versions: list[str] = []
    with suppress(FileNotFoundError):
        versions = [file for file in os.listdir(f"{tree}/_versions") if file.endswith(".manifest")]
    if len(versions) > 1:
        return False
    return ref is None or not any(_is_whole(f"{tree}/_versions/{file}") for file in versions)


def _is_whole(path: str) -> bool:
    try:
        return ends_like_a_table_file(path)
    except FileNotFoundError:
        return False
