"""Branches that a power loss left half made: finding them, and listing the others around them.

The library makes the first version of a branch and then its ref, and syncs neither. A branch is
acknowledged once both are on the disk, so nobody was ever promised one of which either is
incomplete. Only local disks leave such branches.
Tests: tests/storage/tables/test_torn_branches.py.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from typing import Final, Literal
from urllib.parse import unquote

import lance

from omnigraph.errors import FileDamaged, StoreCallFailed
from omnigraph.storage.lineage import version_file
from omnigraph.storage.refs import REFS_DIR, StoredBranch, list_refs, parse_ref, ref_of

_SUFFIX: Final = ".json"

_DAMAGED: Final = "damaged"
"""A ref that is there to its end and says nothing: no power loss did that."""

_Ref = StoredBranch | Literal["cut off", "damaged"]


def list_whole_branches(dataset: lance.LanceDataset, uri: str) -> dict[str, StoredBranch]:
    """The branches of a local table, without those that are half made."""
    try:
        listed = list_refs(dataset, uri)
    except StoreCallFailed as error:
        for name, ref in _read_refs(uri):
            if ref is _DAMAGED:
                raise FileDamaged(_ref_file(uri, name), "a branch", error.cause) from error
        if not torn_branches(uri):
            # Somebody may have removed the torn ref just now. Any other failure comes again.
            return list_refs(dataset, uri)
        listed = {name: ref for name, ref in _read_refs(uri) if isinstance(ref, StoredBranch)}
    return {name: ref for name, ref in listed.items() if not _is_torn(uri, name, ref)}


def torn_branches(uri: str) -> set[str]:
    """The half-made branches of a local table."""
    return {name for name, ref in _read_refs(uri) if _is_torn(uri, name, ref)}


def oldest_branch(uri: str) -> str | None:
    """The branch of a local table whose ref was written first, told without reading any."""
    refs: list[tuple[float, str]] = []
    with suppress(FileNotFoundError), os.scandir(f"{uri}/{REFS_DIR}") as files:
        for file in files:
            if file.name.endswith(_SUFFIX):
                with suppress(FileNotFoundError):
                    refs.append((file.stat().st_mtime, file.name))
    return unquote(min(refs)[1].removesuffix(_SUFFIX)) if refs else None


def _read_refs(uri: str) -> Iterator[tuple[str, _Ref]]:
    """Every ref file by the name of its branch."""
    with suppress(FileNotFoundError):
        for file in os.listdir(f"{uri}/{REFS_DIR}"):
            # One that was deleted meanwhile is no ref any more.
            with suppress(FileNotFoundError):
                if file.endswith(_SUFFIX):
                    name = unquote(file.removesuffix(_SUFFIX))
                    yield name, _read_ref(f"{uri}/{REFS_DIR}/{file}")


def _ref_file(uri: str, name: str) -> str:
    return f"{uri}/{ref_of(name)}"


def _read_ref(path: str) -> _Ref:
    with open(path, "rb") as file:
        content = file.read()
    try:
        return parse_ref(content)
    except ValueError:
        ends_in_zeros = not any(content[-1:])
        is_open = content.startswith(b"{") and content.count(b"{") > content.count(b"}")
        return "cut off" if ends_in_zeros or is_open else _DAMAGED


def _is_torn(uri: str, name: str, ref: _Ref) -> bool:
    """Whether a branch never came to be. One that has ever been written to has come to be."""
    from omnigraph.storage.torn import is_whole_version

    tree = f"{uri}/tree/{name}"
    if ref is _DAMAGED:
        return False
    if isinstance(ref, StoredBranch) and is_whole_version(
        f"{tree}/{version_file(ref.parent_version)}"
    ):
        return False
    versions: list[str] = []
    with suppress(FileNotFoundError):
        versions = [file for file in os.listdir(f"{tree}/_versions") if file.endswith(".manifest")]
    if len(versions) > 1:
        return False
    if not isinstance(ref, StoredBranch):
        return True
    return not any(is_whole_version(f"{tree}/_versions/{file}") for file in versions)
