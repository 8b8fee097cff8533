"""Nothing is undocumented: commands, flags, routes, settings, error codes, public names, shell commands."""

from __future__ import annotations

import ast
import re

import click
import pytest

import omnigraph
from omnigraph import pictures
from omnigraph.cli.command_table import COMMANDS
from omnigraph.cli.framework import load_command
from omnigraph.cli.shell.session import COMMANDS as SHELL_COMMANDS
from omnigraph.error_codes import REGISTRY
from omnigraph.server.routes import ROUTES
from omnigraph.settings import VARIABLES
from tests.docs.markdown import ROOT, Page
from tests.docs.test_user_docs import BLOCKS
from tests.surfaces.test_guides import PAGES as RUN_AS_GUIDES

USER = ROOT / "docs" / "user"
RUN_ELSEWHERE = {
    "install.md": "shows an environment without an extra, which this one is not",
    "python.md": "tests/docs/test_python_reference.py",
}
"""Pages whose sessions another test runs, or none can."""


def text(page: str) -> str:
    return Page(USER / page).text


def section(page: str, heading: str) -> str:
    found = text(page).partition(f"\n## `{heading}`\n")[2]
    return found.partition("\n## ")[0]


@pytest.mark.parametrize(
    "entry", [e for e in COMMANDS.values() if not e.hidden], ids=lambda e: e.name
)
def test_every_command_and_each_of_its_options_is_in_the_reference(entry):
    found = section("cli.md", entry.name)
    assert found
    for param in load_command(entry).params:
        if isinstance(param, click.Option) and not param.hidden:
            assert max(param.opts, key=len) in found


def test_every_route_is_in_the_reference():
    page = text("http.md")
    assert [one.path for one in ROUTES if one.is_documented and one.path not in page] == []


def test_every_setting_and_error_code_is_on_its_page():
    settings, errors = text("settings.md"), text("errors.md")
    assert [one.name for one in VARIABLES if f"`{one.name}`" not in settings] == []
    assert [code for code in REGISTRY if code not in errors] == []


def test_every_public_name_is_documented():
    python = text("python.md")
    names = set(omnigraph.__all__) - {"__version__"}
    assert [name for name in sorted(names) if not re.search(rf"\b{name}\b", python)] == []
    assert [name for name in pictures.__all__ if name not in text("pictures.md")] == []


def test_every_command_of_the_shell_is_on_its_page():
    page = text("shell.md")
    assert [name for name in SHELL_COMMANDS if f"`{name}" not in page] == []


def test_every_page_with_a_session_is_run():
    pages = {block.page for block in BLOCKS if block.language in ("console", "pycon")}
    assert pages <= RUN_AS_GUIDES.keys() | RUN_ELSEWHERE.keys()


# The reference of the library shows signatures, not statements.
SHOWN = [b for b in BLOCKS if b.language == "python" and b.page != "python.md"]


@pytest.mark.parametrize("block", SHOWN, ids=str)
def test_python_that_is_shown_is_python(block):
    ast.parse(block.text)
