"""The page on testing names every suite, and only suites that exist."""

from __future__ import annotations

import re

from tests.docs.markdown import ROOT, Page

PAGE = Page(ROOT / "docs" / "dev" / "testing.md")


def suites() -> set[str]:
    """The folders with tests of their own: those of tests/unit one by one, the others whole."""
    folders = {path.parent for path in (ROOT / "tests").rglob("test_*.py")}
    names = {str(folder.relative_to(ROOT)) for folder in folders}
    return {re.sub(r"^(tests/unit/[^/]+|tests/(?!unit)[^/]+)/.*", r"\1", name) for name in names}


def test_every_suite_has_a_line_that_says_what_it_owns():
    listed = {row[0].strip("`") for row in PAGE.table("Which suite owns what")}
    assert suites() - {"tests/unit"} <= listed


def test_every_listed_suite_exists():
    listed = [row[0].strip("`") for row in PAGE.table("Which suite owns what")]
    assert [name for name in listed if not (ROOT / name).exists()] == []
