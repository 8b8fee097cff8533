"""Help: tasks, examples that parse, suggestions, and `--json` on every command."""

from __future__ import annotations

import json
import shlex

import click
import pytest

from omnigraph.cli.command_table import COMMANDS, TASKS
from omnigraph.cli.examples import EXAMPLES
from omnigraph.cli.framework import load_command
from omnigraph.cli.main import root

VISIBLE = [entry for entry in COMMANDS.values() if not entry.hidden]


def command_of(words: list[str]) -> tuple[str, click.Command, list[str]]:
    """The command that words begin with, and the rest of them."""
    name = " ".join(words[:2])
    if name not in COMMANDS:
        name = words[0]
    return name, load_command(COMMANDS[name]), words[len(name.split()) :]


@pytest.mark.parametrize("entry", VISIBLE, ids=lambda entry: entry.name)
def test_every_command_has_examples_that_its_help_ends_with(cli, entry):
    assert EXAMPLES[entry.name]
    shown = cli(*entry.name.split(), "--help").out.partition("\nExamples:\n")[2]
    assert [line.strip() for line in shown.splitlines()] == list(EXAMPLES[entry.name])


EVERY_EXAMPLE = [(name, line) for name, lines in EXAMPLES.items() for line in lines]


@pytest.mark.parametrize(("name", "line"), EVERY_EXAMPLE, ids=[line for _, line in EVERY_EXAMPLE])
def test_an_example_has_only_options_that_its_command_takes(name, line):
    program, *words = shlex.split(line.partition(" > ")[0].partition(" < ")[0])
    found, command, arguments = command_of(words)
    assert (program, found) == ("omnigraph", name)
    parent = click.Context(root, info_name="omnigraph")
    command.make_context(name, arguments, parent=parent)


def test_every_first_word_has_a_task():
    named = [name for names in TASKS.values() for name in names]
    assert len(named) == len(set(named))
    assert {entry.family for entry in VISIBLE} <= set(named)


@pytest.mark.parametrize("entry", COMMANDS.values(), ids=lambda entry: entry.name)
def test_every_command_prints_json_and_takes_the_global_options(entry):
    flags = {flag for param in load_command(entry).params for flag in param.opts}
    # The standard output of `mcp` belongs to the protocol.
    json_flag = set() if entry.name == "mcp" else {"--json"}
    assert json_flag | {"--quiet", "--as", "--store", "--profile"} <= flags
    if "uri" in {param.name for param in load_command(entry).params}:
        assert "--uri" in flags


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["query", "--quer", "q.gq"], "--query"),
        (["load", "--cascad"], "--cascade"),
        (["branch", "delete", "x", "--yess"], "--yes"),
        (["--stor", "x", "log"], "--store"),
    ],
)
def test_a_misspelt_option_gets_the_close_name(cli, words, meant):
    code, out, err = cli(*words)
    assert (code, out) == (2, "")
    assert f"Did you mean `{meant}`?" in err or f"Did you mean '{meant}'?" in err


def test_an_option_like_no_other_gets_no_suggestion(cli):
    code, _, err = cli("log", "--frobnicate")
    assert code == 2
    assert err.endswith("Error: No such option '--frobnicate'.\n")


def test_with_json_an_error_is_a_document_on_standard_error(cli, library):
    code, out, err = cli("log", "nowhere", "--json")
    assert (code, out) == (1, "")
    document = json.loads(err)
    assert document["error_code"] == "OG-N-001"
    assert "no graph at" in document["error"]
    assert "omnigraph init" in document["hint"]


def test_with_json_wrong_use_is_a_document_too(cli):
    code, out, err = cli("log", "--frobnicate", "--json")
    assert (code, out) == (2, "")
    assert json.loads(err) == {"error": "No such option '--frobnicate'."}


def test_the_version_is_a_document_with_json(cli):
    assert json.loads(cli("version", "--json").out).keys() == {
        "version",
        "storage_format",
        "GQ_LANGUAGE",
    }
