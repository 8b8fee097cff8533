"""The page on dependencies, the project file and the pins agree."""

from __future__ import annotations

import re
import tomllib

import pytest

from tests.docs.markdown import ROOT, Page

PAGE = Page(ROOT / "docs" / "dev" / "dependencies.md")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PINS = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()


def name_of(requirement: str) -> str:
    match = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert match is not None
    return re.sub(r"[-_.]+", "-", match[0]).lower()


DECLARED = {
    "Runtime": PROJECT["project"]["dependencies"],
    "Development": PROJECT["project"]["optional-dependencies"]["dev"],
    "Benchmarks": PROJECT["project"]["optional-dependencies"]["bench"],
    "Build": PROJECT["build-system"]["requires"],
}


@pytest.mark.parametrize("section", DECLARED)
def test_the_page_lists_exactly_what_is_declared(section):
    listed = [row[0].strip("`") for row in PAGE.table(section)]
    assert listed == [name_of(requirement) for requirement in DECLARED[section]]


@pytest.mark.parametrize("section", DECLARED)
def test_every_dependency_has_its_reason(section):
    for name, reason, *_ in PAGE.table(section):
        assert len(reason.split()) >= 4, name


def test_every_pin_is_exact_and_names_no_address():
    pins = [line for line in PINS if line and not line.startswith("#")]
    assert [pin for pin in pins if not re.fullmatch(r"[\w.-]+==[\w.]+( ; .+)?", pin)] == []


def test_everything_we_name_is_pinned():
    pinned = {name_of(line) for line in PINS if "==" in line}
    assert {
        name_of(r)
        for section in ("Runtime", "Development", "Benchmarks")
        for r in DECLARED[section]
    } <= (pinned)
