"""The reference of the Python API says what the code says, and its examples run."""

from __future__ import annotations

import doctest
import importlib
import inspect
import io
import pkgutil
from collections.abc import Iterator
from contextlib import ExitStack, chdir
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
import omnigraph.api
from omnigraph.api.reference import reference
from tests.docs.team import copy_team, make_team
from tests.server.serving import serving

PAGE = Path(__file__).parents[2] / "docs" / "user" / "python.md"
TOKENS = {"OMNIGRAPH_SERVER_BEARER_TOKENS_JSON": '{"ada": "ada-secret"}'}
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE

CALLS = (
    og.Graph,
    og.GraphAt,
    og.Branches,
    og.Tags,
    og.Schema,
    og.Blobs,
    og.Maintenance,
)
"""The classes whose every public member has an example."""


def test_the_page_is_what_the_code_says():
    assert PAGE.read_text(encoding="utf-8") == reference(), (
        "docs/user/python.md is stale; run: "
        ".venv/bin/python -m omnigraph.api.reference > docs/user/python.md"
    )


def test_the_page_lists_every_public_name():
    text = PAGE.read_text(encoding="utf-8")
    assert [name for name in og.__all__ if f"### `{name}" not in text] == []


def members(cls: type[Any]) -> Iterator[tuple[str, str]]:
    for name in dir(cls):
        if not name.startswith("_"):
            yield name, inspect.getdoc(inspect.getattr_static(cls, name)) or ""


@pytest.mark.parametrize("cls", CALLS, ids=lambda cls: cls.__name__)
def test_every_public_call_has_an_example(cls):
    assert [name for name, text in members(cls) if ">>> " not in text] == []


@pytest.mark.parametrize("name", ["init", "open", "connect"])
def test_opening_has_an_example(name):
    assert ">>> " in (inspect.getdoc(getattr(og, name)) or "")


def examples() -> Iterator[doctest.DocTest]:
    """The examples of all docstrings of the public interface."""
    finder = doctest.DocTestFinder(exclude_empty=True)
    modules = {
        importlib.import_module(f"omnigraph.api.{found.name}")
        for found in pkgutil.iter_modules(omnigraph.api.__path__)
    }
    for name in og.__all__:
        module = inspect.getmodule(getattr(og, name))
        if module is not None and module.__name__.startswith("omnigraph"):
            modules.add(module)
    for module in sorted(modules, key=lambda module: module.__name__):
        for test in finder.find(module):
            if test.examples:
                yield test


EXAMPLES = {f"{test.name}": test for test in examples()}


@pytest.fixture(scope="module")
def team(tmp_path_factory):
    folder = tmp_path_factory.mktemp("team")
    make_team(folder)
    return folder


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_of_a_docstring_runs(name, team, tmp_path):
    with chdir(tmp_path), ExitStack() as running:
        test = EXAMPLES[name]
        root = copy_team(team, tmp_path)
        test.globs = {"og": og, "graph": og.open(root), "Path": Path}
        if "og.connect(" in (test.docstring or ""):
            server = running.enter_context(serving(tmp_path, root, env=TOKENS))
            test.globs["url"] = f"http://{server.address}"
        report = io.StringIO()
        runner = doctest.DocTestRunner(verbose=False, optionflags=FLAGS)
        runner.run(test, out=report.write, clear_globs=False)
        assert report.getvalue() == ""


def test_there_are_examples():
    assert len(EXAMPLES) > 60


def test_an_example_that_prints_something_else_is_found(tmp_path):
    test = doctest.DocTestParser().get_doctest(">>> 1 + 1\n3\n", {}, "wrong", None, 0)
    assert doctest.DocTestRunner(verbose=False, optionflags=FLAGS).run(test, out=str).failed == 1
