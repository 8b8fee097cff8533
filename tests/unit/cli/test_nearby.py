"""One way to name the graph everywhere: by place, `--uri`, OMNIGRAPH_URI or the current folder."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from omnigraph.cli.command_table import COMMANDS
from omnigraph.cli.framework import load_command

READS = [
    ("snapshot",), ("log",), ("status",), ("branch", "list"), ("schema", "show"), ("changes",),
    ("commit", "list"), ("verify",), ("tag", "list"), ("lint", "--query", "lib.gq"),
]  # fmt: skip


def origin(cli, *words: str) -> tuple[str | None, str | None]:
    """What `profile show` says commands select, and why."""
    shown = json.loads(cli("profile", "show", *words, "--json").out)
    return shown.get("address"), shown.get("selected_by")


@pytest.mark.parametrize("words", READS, ids=" ".join)
def test_every_way_to_name_the_graph_gives_the_same_answer(cli, full, words, monkeypatch):
    by_place = cli(*words, "G", "--json")
    assert by_place.code == 0, by_place.err
    by_name = cli(*words, "--uri", "G", "--json")
    here = cli(*words, "--json")
    monkeypatch.setenv("OMNIGRAPH_URI", "G")
    from_environment = cli(*words, "--json")
    assert by_name == by_place
    assert here == by_place
    assert from_environment == by_place


def test_the_current_folder_may_be_the_graph_itself(cli, full, monkeypatch):
    monkeypatch.chdir("G")
    assert cli("snapshot").code == 0
    assert origin(cli) == (".", "the current folder")


def test_the_environment_wins_over_the_current_folder(cli, full, monkeypatch):
    monkeypatch.setenv("OMNIGRAPH_URI", "elsewhere")
    assert origin(cli) == ("elsewhere", "OMNIGRAPH_URI")
    assert "no graph at" in cli("snapshot").err
    assert cli("snapshot", "G").code == 0


def test_a_profile_on_the_command_line_wins_over_the_environment(cli, full, monkeypatch, tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    (home / "config.yaml").write_text(f"profiles: {{mine: {{store: {os.getcwd()}/G}}}}\n")
    monkeypatch.setenv("OMNIGRAPH_HOME", str(home))
    monkeypatch.setenv("OMNIGRAPH_URI", "elsewhere")
    assert cli("snapshot", "--profile", "mine").code == 0


def test_several_graphs_in_a_folder_are_listed_and_none_is_chosen(cli, full):
    assert cli("init", "--schema", "library.pg", "other").code == 0
    code, out, err = cli("snapshot")
    assert (code, out) == (1, "")
    assert "several graphs (G, other); name one of them" in err


def test_the_graph_given_twice_is_a_usage_error(cli, full):
    code, _, err = cli("log", "G", "--uri", "G")
    assert code == 2
    assert "the graph is given twice" in err


def test_init_takes_its_graph_from_the_option_and_the_environment(cli, library, monkeypatch):
    assert cli("init", "--schema", "library.pg", "--uri", "one").code == 0
    monkeypatch.setenv("OMNIGRAPH_URI", "two")
    made = cli("init", "--schema", "library.pg", "--json")
    assert json.loads(made.out)["uri"] == "two"
    assert Path("two/_schema.pg").exists()
    monkeypatch.delenv("OMNIGRAPH_URI")
    assert cli("init", "--schema", "library.pg").code == 2


def test_commands_about_a_graph_all_take_the_option():
    without = {
        entry.name
        for entry in COMMANDS.values()
        if entry.plane.value in ("data", "storage")
        and "--uri" not in {flag for param in load_command(entry).params for flag in param.opts}
    }
    assert without == {"alias"}


# -- parameters -----------------------------------------------------------------------------


def rows(outcome) -> list[dict[str, object]]:
    assert outcome.code == 0, outcome.err
    found: list[dict[str, object]] = json.loads(outcome.out)["rows"]
    return found


BY_SLUG = ("query", "G", "--query", "lib.gq", "--name", "by_slug", "--json")


def test_a_parameter_is_given_by_name_and_value(cli, full):
    assert rows(cli(*BY_SLUG, "-p", "slug=ada")) == [{"a.slug": "ada", "a.born": 1815}]
    assert (
        rows(cli(*BY_SLUG, "--params", '{"slug": "bob"}', "-p", "slug=ada"))[0]["a.slug"] == "ada"
    )
    assert rows(cli(*BY_SLUG, "-p", "$slug=ada"))[0]["a.slug"] == "ada"


def test_a_value_is_read_by_the_type_of_its_parameter(cli, full):
    add = ("mutate", "G", "--query", "lib.gq", "--name", "add_author", "--json")
    assert cli(*add, "-p", "slug=42", "-p", "born=1990").code == 0
    assert rows(cli(*BY_SLUG, "-p", "slug=42")) == [{"a.slug": "42", "a.born": 1990}]
    code, _, err = cli(*add, "-p", "slug=x", "-p", "born=soon")
    assert code == 1
    assert "born" in err


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["-p", "slug"], "NAME=VALUE"),
        (["-p", "slug=a", "-p", "slug=b"], "twice"),
    ],
)
def test_a_parameter_that_is_not_one_is_wrong_use(cli, full, given, said):
    code, _, err = cli(*BY_SLUG[:-1], *given)
    assert code == 2
    assert said in err


def test_an_unknown_parameter_is_named(cli, full):
    code, _, err = cli(*BY_SLUG[:-1], "-p", "slg=ada")
    assert code == 1
    assert "slg" in err
