"""The operator config: what commands take from it, what wins over it, and what is wrong with a file."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from omnigraph.spark import session
from tests.unit.cli.conftest import Cli

LOAD = ("load", "--mode", "merge", "--data", "library.jsonl", "--json")
NOBODY = "spark://127.0.0.1:1"

Write = Callable[[str], Path]


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Write]:
    """Writes the file; the environment says nothing about engines and masters."""
    monkeypatch.setenv("OMNIGRAPH_HOME", str(tmp_path / "home"))
    for name in ("OMNIGRAPH_ENGINE", "OMNIGRAPH_SPARK_MASTER"):
        monkeypatch.delenv(name, raising=False)
    # A session of earlier tests in this process would be a reason to use Spark.
    monkeypatch.setattr(session, "running_session", lambda: None)

    def write(text: str) -> Path:
        path = tmp_path / "home" / "config.yaml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        return path

    yield write
    session.prefer(None, {})


def test_without_a_file_everything_is_as_ever(cli: Cli, config, empty):
    code, out, err = cli(*LOAD, empty)
    assert (code, json.loads(out)["engine"]) == (0, "inline"), err


def test_a_master_in_the_file_is_a_reason_to_use_spark(cli: Cli, config, empty):
    config(f"spark:\n  master: {NOBODY}\n")
    code, out, err = cli(*LOAD, empty)
    assert (code, out) == (1, "")
    assert f"the master {NOBODY} cannot be reached" in err


def test_the_engine_in_the_file_is_used(cli: Cli, config, empty):
    config(f"defaults:\n  engine: inline\nspark:\n  master: {NOBODY}\n")
    code, out, err = cli(*LOAD, empty)
    assert (code, json.loads(out)["engine"]) == (0, "inline"), err


def test_variables_win_over_the_file_and_options_over_both(
    cli: Cli, config, empty, monkeypatch: pytest.MonkeyPatch
):
    config(f"defaults:\n  engine: spark\nspark:\n  master: {NOBODY}\n")
    monkeypatch.setenv("OMNIGRAPH_ENGINE", "inline")
    assert cli(*LOAD, empty).code == 0
    monkeypatch.setenv("OMNIGRAPH_SPARK_MASTER", "spark://127.0.0.1:2")
    assert "spark://127.0.0.1:2 cannot" in cli(*LOAD, "--engine", "spark", empty).err
    assert "spark://127.0.0.1:3 cannot" in cli(*LOAD, "--master", "spark://127.0.0.1:3", empty).err


def test_settings_in_the_file_reach_the_session(cli: Cli, config, empty):
    config("spark:\n  conf:\n    spark.speculation: true\n    spark.task.cpus: 2\n")
    assert cli(*LOAD, empty).code == 0
    settings = session.settings_for("local[2]")
    assert (settings["spark.speculation"], settings["spark.task.cpus"]) == ("true", "2")
    assert settings["spark.master"] == "local[2]"


def test_an_unknown_key_is_warned_about_and_ignored(cli: Cli, config, empty):
    path = config("defaults:\n  egnine: spark\ncolour: blue\n")
    code, _, err = cli(*LOAD, empty)
    assert code == 0
    assert f"warning: {path}:2: unknown key defaults.egnine; ignored; did you mean `engine`?" in err
    assert f"warning: {path}:3: unknown key colour; ignored" in err
    assert err.count("unknown key") == 2


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("defaults: [", ":1:12: expected the node content"),
        ("- spark\n", ": the document must have keys and values"),
        ("spark: local\n", ":1:1: spark must have keys and values"),
        ("spark:\n  master: 7077\n", ":2:3: spark.master must be the address of a master"),
        ("spark:\n  conf:\n    spark.jars: [a]\n", ":3:5: spark.conf.spark.jars must be a text"),
        ("defaults:\n  engine: fast\n", ":2:3: defaults.engine must be one of auto, spark, inline"),
    ],
)
def test_a_file_that_cannot_be_used_is_an_error(cli: Cli, config, empty, text, problem):
    path = config(text)
    code, out, err = cli(*LOAD, empty)
    assert (code, out) == (1, "")
    assert f"could not parse operator config {path}{problem}" in err
