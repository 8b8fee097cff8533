"""The documentation site builds, strictly, from the pages that are there, and needs no network."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.markdown import ROOT


def build(root: Path, target: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(target)],
        cwd=root,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_site_builds_without_a_warning_and_loads_nothing_from_elsewhere(tmp_path):
    done = build(ROOT, tmp_path / "site")
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    pages = {str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md")}
    built = {
        str(page.relative_to(tmp_path / "site")) for page in (tmp_path / "site").rglob("*.html")
    }
    assert {page.removesuffix(".md") + ".html" for page in pages} <= built
    assert "CHANGELOG.html" in built
    for page in (tmp_path / "site").rglob("*.html"):
        loaded = re.findall(
            r'<(?:script|link|img)[^>]+(?:src|href)="(https?:)?//', page.read_text()
        )
        assert loaded == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "link", ["[x](user/gone.md)", "[x](user/queries.md#gone)", "[x](../gone.md)"]
)
def test_a_broken_link_fails_the_build(tmp_path, link):
    for name in ("docs", "tools"):
        shutil.copytree(ROOT / name, tmp_path / name)
    for name in ("mkdocs.yml", "CHANGELOG.md"):
        shutil.copy(ROOT / name, tmp_path / name)
    index = tmp_path / "docs" / "index.md"
    index.write_text(f"{index.read_text()}\n{link}\n")
    done = build(tmp_path, tmp_path / "site")
    assert done.returncode != 0
    assert "gone" in done.stdout + done.stderr
