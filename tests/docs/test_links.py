"""What the pages point at exists: files, headings, modules, make targets."""

from __future__ import annotations

import re

import pytest

from tests.docs.markdown import ROOT, Page, pages

MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
TARGETS = frozenset(re.findall(r"^([a-z][a-z-]*):", MAKEFILE, re.MULTILINE))


def broken_links(page: Page) -> list[str]:
    broken = []
    for link in page.links():
        if re.match(r"[a-z]+:", link):
            continue
        target, _, anchor = link.partition("#")
        path = (page.path.parent / target).resolve() if target else page.path
        missing = not path.is_relative_to(ROOT) or not path.exists()
        if missing or (anchor and path.suffix == ".md" and anchor not in Page(path).anchors()):
            broken.append(link)
    return broken


def unknown_targets(page: Page) -> set[str]:
    mentioned = (re.findall(r"(?:^|\s)make ([a-z][a-z-]*)", code) for code in page.code())
    return {target for targets in mentioned for target in targets} - TARGETS


def module_exists(name: str) -> bool:
    """Modules of the package may be named from its root, everything else from the repository's."""
    return (ROOT / name).exists() or (ROOT / "src" / "omnigraph" / name).exists()


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_every_relative_link_resolves(page):
    assert broken_links(page) == []


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_every_make_target_mentioned_exists(page):
    assert unknown_targets(page) == set()


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_every_module_named_exists(page):
    named = {code for code in page.code() if re.fullmatch(r"[a-z_]+(/[a-z_]+)*\.py", code)}
    assert sorted(name for name in named if not module_exists(name)) == []


def test_every_test_file_that_a_module_names_exists():
    named = {
        (path.relative_to(ROOT).as_posix(), test)
        for path in sorted((ROOT / "src").rglob("*.py"))
        for test in re.findall(r"tests/[a-z0-9_/*]+(?:\.py)?", path.read_text(encoding="utf-8"))
    }
    assert len(named) > 100
    missing = [(module, test) for module, test in sorted(named) if not any(ROOT.glob(test))]
    assert missing == []


def test_every_make_target_describes_itself():
    described = re.findall(r"^([a-z][a-z-]*):.*## \S", MAKEFILE, re.MULTILINE)
    assert set(described) == TARGETS


def test_a_broken_link_or_target_is_found(tmp_path, monkeypatch):
    monkeypatch.setattr("tests.docs.test_links.ROOT", tmp_path)
    (tmp_path / "other.md").write_text("# Other page\n")
    scratch = tmp_path / "scratch.md"
    scratch.write_text(
        "# Scratch\n\n[a](other.md) [b](gone.md) [c](other.md#other-page) [d](other.md#gone)\n"
        "[e](#scratch) [f](../outside.md) [g](https://example.org) `[h](code.md)`\n\n"
        "Make sure to `make test` and `make coffee`.\n\n```sh\nmake tea\n```\n"
    )
    assert broken_links(Page(scratch)) == ["gone.md", "other.md#gone", "../outside.md"]
    assert unknown_targets(Page(scratch)) == {"coffee", "tea"}
