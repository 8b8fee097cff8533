"""Branches of single tables: create, list and reclaim them, and find those left half made.

The library cannot force the removal of a branch, and a late writer can bring back the files of a
removed branch without its ref. So reclaiming also deletes files by prefix. The caller holds the lock of
the graph branch that the table branch belongs to.

The library writes the first version of a branch and then its ref, and syncs neither. A branch is
acknowledged once both are on disk, so one with either incomplete was never acknowledged. Only a power
loss on a local disk leaves such branches.
Tests: tests/substrate/test_branches.py, tests/storage/tables/test_refs.py, test_torn_branches.py.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Literal, TypeVar
from urllib.parse import unquote

import lance
import msgspec
from lance.file import LanceFileSession
from msgspec import Struct

from omnigraph.errors import FileDamaged, ForkInUse, ObjectMissing, StoreCallFailed
from omnigraph.json_structs import described
from omnigraph.storage.failures import Failure, classify, is_vanished_ref, naming_failures
from omnigraph.storage.lineage import version_file
from omnigraph.storage.objects import ObjectStore

_NAME: Final = re.compile(r"[\w.-]+(/[\w.-]+)*", re.ASCII)
"""Graphs of older formats have names with slashes. New names are flat: the files of `a/b` lie inside
the folder of an `a`, so that `a` could not be removed without a remainder.
"""

REFS_DIR: Final = "_refs/branches"

_ATTEMPTS: Final = 20
"""Retries of a call that failed because another branch was deleted meanwhile."""

_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class StoredBranch:
    """A branch of a table as its ref describes it. `parent` None is the main line."""

    parent: str | None
    parent_version: int
    metadata: Mapping[str, str]


def check_branch_name(name: str) -> str:
    if not _NAME.fullmatch(name) or name == "main" or {".", ".."} & set(name.split("/")):
        raise ValueError(f"{name!r} is not a valid table branch name")
    return name


def tree_of(name: str) -> str:
    return f"tree/{check_branch_name(name)}"


def ref_of(name: str) -> str:
    return f"{REFS_DIR}/{check_branch_name(name).replace('/', '%2F')}.json"


def list_refs(dataset: lance.LanceDataset, uri: str) -> dict[str, StoredBranch]:
    with naming_failures("list the branches", uri):
        listed = _patiently(dataset.branches.list)
    return {
        name: StoredBranch(ref["parent_branch"], ref["parent_version"], ref["metadata"])
        for name, ref in listed.items()
    }


def _patiently(call: Callable[[], _Result]) -> _Result:
    """The library lists the files of all refs first, and fails if one goes before it is read."""
    for _ in range(_ATTEMPTS):
        try:
            return call()
        except (OSError, ValueError) as error:
            if not is_vanished_ref(error):
                raise
    return call()


def set_metadata(
    dataset: lance.LanceDataset, uri: str, name: str, values: Mapping[str, str]
) -> None:
    """Replace what is noted about a branch in its ref."""
    with naming_failures("describe a branch", uri):
        _patiently(lambda: dataset.branches.replace_metadata(name, dict(values)))


def rewrite_metadata(path: str, name: str, values: Mapping[str, str], objects: ObjectStore) -> None:
    """The same without the library: the new ref is complete on the disk before it counts."""
    file = f"{path}/{ref_of(name)}"
    ref = json.loads(objects.read_text(file))
    objects.write_text(file, json.dumps({**ref, "metadata": dict(values)}, indent=2))


def read_ref(path: str, name: str, objects: ObjectStore) -> StoredBranch | None:
    """A branch by its ref, without the library; an error of parsing for a ref that is damaged."""
    try:
        return parse_ref(objects.read_text(f"{path}/{ref_of(name)}"))
    except ObjectMissing:
        return None


def parse_ref(text: str | bytes) -> StoredBranch:
    """What a ref says. Raises `ValueError` for one that is damaged."""
    ref = msgspec.json.decode(text, type=described(_Ref))
    return StoredBranch(ref.parent_branch, ref.parent_version, ref.metadata or {})


class _Ref(Struct, frozen=True, rename="camel"):
    """What is used of the JSON object of a ref, which the library writes."""

    parent_branch: str | None
    parent_version: int
    metadata: dict[str, str] | None = None


def delete_ref(dataset: lance.LanceDataset, path: str, uri: str, name: str) -> None:
    """Remove a branch through the library; a missing one is fine. Raises `ForkInUse`."""
    with naming_failures("delete a branch", uri):
        try:
            _patiently(lambda: dataset.branches.delete(name))
        except (OSError, ValueError) as error:
            match classify(error):
                case Failure.NOT_FOUND:
                    return
                case Failure.BRANCH_IN_USE:
                    raise ForkInUse(path, name) from error
                case _:
                    raise


def remains(files: LanceFileSession, uri: str, name: str) -> bool:
    """Whether there is any file of a branch, with or without its ref."""
    with naming_failures("look for a branch", uri):
        return bool(files.list(tree_of(name)))


def encloses(name: str, others: Iterable[str]) -> bool:
    """Whether the files of other branches lie inside the folder of this one."""
    return any(other.startswith(f"{name}/") for other in others)


def trees(files: LanceFileSession, uri: str) -> set[str]:
    """The first part of the names of all branches of which there are files."""
    with naming_failures("list the branches", uri):
        found = files.list_with_delimiter("tree").common_prefixes
    return {prefix.rpartition("/")[2] for prefix in found}


def remove_files(path: str, name: str, objects: ObjectStore) -> None:
    """Remove everything a branch may have left. The ref goes first: it must not name what is gone."""
    remove_ref_file(path, name, objects)
    objects.delete_prefix(f"{path}/{tree_of(name)}")


def remove_ref_file(path: str, name: str, objects: ObjectStore) -> None:
    objects.delete(f"{path}/{ref_of(name)}")


def remove_memory_files(files: LanceFileSession, name: str) -> None:
    """The same for tables in memory, which no object store can reach."""
    for file in [*files.list(tree_of(name)), ref_of(name)]:
        if files.contains(file):
            files.delete_file(file)


_SUFFIX: Final = ".json"

_DAMAGED: Final = "damaged"
"""A ref that is there to its end and says nothing: no power loss did that."""

_RefState = StoredBranch | Literal["cut off", "damaged"]


def list_whole_branches(dataset: lance.LanceDataset, uri: str) -> dict[str, StoredBranch]:
    """The branches of a local table, without those that are half made."""
    try:
        listed = list_refs(dataset, uri)
    except StoreCallFailed as error:
        for name, ref in _read_refs(uri):
            if ref is _DAMAGED:
                raise FileDamaged(_ref_file(uri, name), "a branch", error.cause) from error
        if not torn_branches(uri):
            # Another process may have just removed the torn ref. Any other failure repeats.
            return list_refs(dataset, uri)
        listed = {name: ref for name, ref in _read_refs(uri) if isinstance(ref, StoredBranch)}
    return {name: ref for name, ref in listed.items() if not _is_torn(uri, name, ref)}


def torn_branches(uri: str) -> set[str]:
    """The half-made branches of a local table."""
    return {name for name, ref in _read_refs(uri) if _is_torn(uri, name, ref)}


def oldest_branch(uri: str) -> str | None:
    """The branch of a local table with the oldest ref file, found without reading any."""
    refs: list[tuple[float, str]] = []
    with suppress(FileNotFoundError), os.scandir(f"{uri}/{REFS_DIR}") as files:
        for file in files:
            if file.name.endswith(_SUFFIX):
                with suppress(FileNotFoundError):
                    refs.append((file.stat().st_mtime, file.name))
    return unquote(min(refs)[1].removesuffix(_SUFFIX)) if refs else None


def _read_refs(uri: str) -> Iterator[tuple[str, _RefState]]:
    """Every ref file by the name of its branch."""
    with suppress(FileNotFoundError):
        for file in os.listdir(f"{uri}/{REFS_DIR}"):
            # A ref may be deleted meanwhile.
            with suppress(FileNotFoundError):
                if file.endswith(_SUFFIX):
                    name = unquote(file.removesuffix(_SUFFIX))
                    yield name, _read_ref(f"{uri}/{REFS_DIR}/{file}")


def _ref_file(uri: str, name: str) -> str:
    return f"{uri}/{ref_of(name)}"


def _read_ref(path: str) -> _RefState:
    with open(path, "rb") as file:
        content = file.read()
    try:
        return parse_ref(content)
    except ValueError:
        ends_in_zeros = not any(content[-1:])
        is_open = content.startswith(b"{") and content.count(b"{") > content.count(b"}")
        return "cut off" if ends_in_zeros or is_open else _DAMAGED


def _is_torn(uri: str, name: str, ref: _RefState) -> bool:
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
