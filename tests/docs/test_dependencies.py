"""The page on dependencies, the project file and the pins agree."""

from __future__ import annotations

import re
import tomllib

import pytest

from tests.docs.markdown import ROOT, Page, pages

PAGE = Page(ROOT / "docs" / "dev" / "dependencies.md")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PINS = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()


def name_of(requirement: str) -> str:
    match = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert match is not None
    return re.sub(r"[-_.]+", "-", match[0]).lower()


EXTRAS = PROJECT["project"]["optional-dependencies"]
FOR_DEVELOPERS = {"dev": "Development", "bench": "Benchmarks"}
FEATURES = [name for name in EXTRAS if name not in {*FOR_DEVELOPERS, "all"}]
DECLARED = {
    "Runtime": PROJECT["project"]["dependencies"],
    **{f"Extra `{name}`": EXTRAS[name] for name in FEATURES},
    **{section: EXTRAS[name] for name, section in FOR_DEVELOPERS.items()},
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


def test_all_is_every_extra_for_users():
    assert EXTRAS["all"] == [f"omnigraph[{','.join(FEATURES)}]"]


def test_the_page_for_users_lists_the_extras():
    page = Page(ROOT / "docs" / "user" / "install.md")
    listed = [row[0].strip("`") for row in page.table("Extras")]
    assert listed == ["the base", *FEATURES, "all"]


def test_no_page_installs_from_an_index():
    """Nothing of that name is ours there."""
    for page in pages():
        found = re.findall(r"pip install [^\n`]*", page.text)
        assert [
            line for line in found if re.search(r"""[ '"]omnigraph(?! @|\[\w+\] @)""", line)
        ] == []


def test_every_pin_is_exact_and_names_no_address():
    pins = [line for line in PINS if line and not line.startswith("#")]
    assert [pin for pin in pins if not re.fullmatch(r"[\w.-]+==[\w.]+( ; .+)?", pin)] == []


def test_everything_we_name_is_pinned():
    pinned = {name_of(line) for line in PINS if "==" in line}
    named = {name_of(r) for name, declared in DECLARED.items() if name != "Build" for r in declared}
    assert named <= pinned
