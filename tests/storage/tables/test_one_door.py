"""Only storage knows the table library, and it never uses what would break its own promises."""

from __future__ import annotations

import re
from pathlib import Path

import omnigraph

PACKAGE = Path(omnigraph.__file__).parent
IMPORT = re.compile(r"^\s*(import|from) lance\b", re.MULTILINE)
COMMITTING = re.compile(r"\b(execute_uncommitted|commit_lock|commit_batch|detached)\b")


def test_only_storage_imports_the_table_library():
    importers = {
        str(path.relative_to(PACKAGE)).split("/")[0]
        for path in PACKAGE.rglob("*.py")
        if IMPORT.search(path.read_text())
    }
    assert importers == {"storage"}


def test_calls_that_lose_the_key_check_or_the_atomic_commit_are_not_used():
    for path in PACKAGE.rglob("*.py"):
        assert not COMMITTING.search(path.read_text()), path.name
