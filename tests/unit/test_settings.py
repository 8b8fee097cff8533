"""Environment variables: every one has a field, a default and a refusal that names it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import omnigraph
from omnigraph.errors import InvalidSetting
from omnigraph.settings import (
    VARIABLES,
    Settings,
    read_settings,
    scoped_settings,
    unknown_variables,
)
from omnigraph.side_by_side import each

PACKAGE = Path(omnigraph.__file__).parent
PASSING_ON = {
    "cli/terminal.py",
    "spark/gateway.py",
    "spark/tasks.py",
    "server/command.py",
    "settings.py",
}
"""Modules that hand the environment to other processes or take secrets out of it, and the one that reads it."""


def test_every_variable_has_a_field_and_every_field_a_variable():
    assert [variable.field for variable in VARIABLES] == list(Settings.__struct_fields__)


def test_nothing_set_gives_the_defaults():
    assert read_settings({}) == Settings()


def test_the_same_environment_gives_the_same_object():
    given = {"OMNIGRAPH_MAX_ROWS": "7", "UNRELATED": "x"}
    assert read_settings(given) is read_settings(dict(given))
    assert read_settings(given).max_rows == 7


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("OMNIGRAPH_DURABILITY", "often"),
        ("OMNIGRAPH_DURABILITY", ""),
        ("OMNIGRAPH_EMBED_RETRY_ATTEMPTS", "0"),
        ("OMNIGRAPH_EMBED_RETRY_BACKOFF_MS", "soon"),
        ("OMNIGRAPH_EMBED_TIMEOUT_MS", "-1"),
        ("OMNIGRAPH_EMBEDDINGS_MOCK", "perhaps"),
        ("OMNIGRAPH_ENGINE", "steam"),
        ("OMNIGRAPH_EXPAND_INDEXED_MAX_FRONTIER", "wide"),
        ("OMNIGRAPH_EXPAND_INDEXED_MAX_HOPS", "1.5"),
        ("OMNIGRAPH_LOCK_WAIT_MS", "9999999999"),
        ("OMNIGRAPH_MAX_BYTES", "1e9"),
        ("OMNIGRAPH_MAX_ROWS", "many"),
        ("OMNIGRAPH_MAX_SECONDS", "9" * 20),
        ("OMNIGRAPH_TRAVERSAL_MODE", "fast"),
    ],
)
def test_a_value_that_cannot_be_used_is_refused_by_name(name, value):
    with pytest.raises(InvalidSetting, match=f"{name} is '{value}'; set it to ") as caught:
        read_settings({name: value})
    assert (caught.value.variable, caught.value.value) == (name, value)
    assert caught.value.code == "OG-I-022"


@pytest.mark.parametrize("variable", VARIABLES, ids=lambda variable: variable.name)
def test_an_empty_value_counts_as_not_set_or_is_refused(variable):
    if variable.kind.allows_empty:
        assert read_settings({variable.name: ""}) == Settings()
    else:
        with pytest.raises(InvalidSetting, match=variable.name):
            read_settings({variable.name: ""})


@pytest.mark.parametrize("variable", VARIABLES, ids=lambda variable: variable.name)
def test_variables_of_other_products_are_never_refused(variable):
    if not variable.name.startswith("OMNIGRAPH_"):
        assert getattr(read_settings({variable.name: "odd value"}), variable.field) == "odd value"


def test_secrets_are_not_shown():
    settings = read_settings({"OPENAI_API_KEY": "sk-1", "AWS_SECRET_ACCESS_KEY": "s3cret"})
    assert "sk-1" not in repr(settings)
    assert "s3cret" not in f"{settings}"


def test_unknown_variables_are_named_with_what_was_meant():
    given = ["HOME", "OMNIGRAPH_MAX_ROW", "OMNIGRAPH_XYZZY", "OMNIGRAPH_ENGINE"]
    assert unknown_variables(given) == [
        "the environment variable OMNIGRAPH_MAX_ROW is not known; "
        "did you mean `OMNIGRAPH_MAX_ROWS`?",
        "the environment variable OMNIGRAPH_XYZZY is not known",
    ]


def environment_reads(source: str) -> list[int]:
    """The lines of a module that touch the environment."""
    return sorted(
        node.lineno
        for node in ast.walk(ast.parse(source))
        if (isinstance(node, ast.Attribute) and node.attr in ("environ", "getenv"))
        or (
            (isinstance(node, ast.ImportFrom) and node.module == "os")
            and {alias.name for alias in node.names} & {"environ", "getenv"}
        )
    )


def test_a_read_of_the_environment_is_noticed():
    assert environment_reads("import os\nx = os.environ.get('A')\ny = os.getenv('B')") == [2, 3]
    assert environment_reads("from os import environ") == [1]


def test_only_the_settings_read_the_environment():
    found = {
        str(path.relative_to(PACKAGE))
        for path in PACKAGE.rglob("*.py")
        if environment_reads(path.read_text())
    }
    assert found <= PASSING_ON


def test_settings_have_other_values_in_a_scope_and_in_calls_made_from_it(monkeypatch):
    monkeypatch.setenv("OMNIGRAPH_EXTERNAL_BLOBS", "/everywhere")
    with scoped_settings({"external_blobs": "/here"}):
        seen = each([lambda: read_settings().external_blobs] * 3)
        assert seen == ["/here"] * 3
    assert read_settings().external_blobs == "/everywhere"
