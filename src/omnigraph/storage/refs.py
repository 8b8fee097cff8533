"""Branches of single tables: making, listing and reclaiming them, and telling what is left of one.

The library cannot force the removal of a branch, and a late writer can bring back the files of a
removed one without its ref. So reclaiming also removes files by their prefix. Whoever makes or
reclaims a branch holds the lock of the graph branch it belongs to.
Tests: tests/substrate/test_branches.py, tests/storage/tables/test_refs.py.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

import lance
import msgspec
from lance.file import LanceFileSession
from msgspec import Struct

from omnigraph.errors import ForkInUse, ObjectMissing
from omnigraph.storage.conflicts import Failure, classify, is_vanished_ref, naming_failures
from omnigraph.storage.objects import ObjectStore

_NAME: Final = re.compile(r"[\w.-]+(/[\w.-]+)*", re.ASCII)
"""Graphs of older formats have names with slashes. New names are flat: the files of `a/b` lie inside
the folder of an `a`, so that `a` could not be removed without a remainder.
"""

REFS_DIR: Final = "_refs/branches"

_ATTEMPTS: Final = 20
"""How often a call is made again because somebody has deleted another branch meanwhile."""

_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class StoredBranch:
    """A branch of a table as its ref describes it. `parent` None is the main line."""

    parent: str | None
    parent_version: int
    metadata: Mapping[str, str]


def check_branch_name(name: str) -> str:
    if not _NAME.fullmatch(name) or name == "main" or {".", ".."} & set(name.split("/")):
        raise ValueError(f"{name!r} cannot be the name of a table's branch")
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
    ref = msgspec.json.decode(text, type=_Ref)
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
