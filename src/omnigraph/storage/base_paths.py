"""Where a branch of a table was made.

A branch shares the files of the table it was made from, and the table library stores the absolute
address of that table with every version of the branch. In a graph that was moved or copied the branch
would still read the files at the old address, which are gone or another graph's.
Tests: tests/behaviour/test_moved_graphs.py.
"""

from __future__ import annotations

import os
import re
from typing import Final
from urllib.parse import unquote

import lance

from omnigraph.storage.lineage import Lineage

_TREE: Final = re.compile(r"/tree/.*")
_FILE_SCHEME: Final = re.compile(r"\Afile(?:-object-store)?://")


def other_root(lineage: Lineage, dataset: lance.LanceDataset) -> str | None:
    """Where the graph was when a branch was made, if that is not where it is now.

    What is stored is compared as text. On a local disk another text may still mean the same folder.
    """
    here = lineage.uri.removesuffix(f"/{lineage.folder}")
    for base in dataset.base_paths().values():
        address = base.path
        if _FILE_SCHEME.match(address):
            address = unquote(_FILE_SCHEME.sub("", address))
        table = _TREE.sub("", address.removeprefix(here)) if address.startswith(here) else None
        if table == f"/{lineage.path}":
            continue
        root = _root_of(address, lineage.path)
        if root is not None and not (lineage.is_local and _is_same_folder(root, here)):
            return root
    return None


def line_of_base(lineage: Lineage, base: str) -> str:
    """The line of versions that a branch was made from, where the table is now.

    The library stores an absolute path, escaped in some cases; only what follows the table counts.
    """
    table = lineage.uri.removesuffix("" if lineage.branch is None else f"/tree/{lineage.branch}")
    return f"{table}{base.rpartition(lineage.path)[2]}"


def _root_of(address: str, path: str) -> str | None:
    """The root of the graph in whose table, or in a branch of that, an address lies."""
    root, found, rest = address.rpartition(f"/{path}")
    return root if found and (not rest or _TREE.fullmatch(rest)) else None


def _is_same_folder(one: str, other: str) -> bool:
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False
