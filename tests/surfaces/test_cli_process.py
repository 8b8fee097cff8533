"""The installed `omnigraph` command as a shell sees it: real processes, streams and exit codes.

Each run costs a start of the interpreter, so only what cannot be seen from inside is tested here.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from omnigraph._version import __version__
from omnigraph.cli.command_table import COMMANDS
from tests.support.fork_server import ForkServer

OMNIGRAPH = Path(sys.executable).with_name("omnigraph")

HEAVY = {"pyarrow", "numpy", "rich", "pandas", "lance", "pyspark"}
OURS = {
    "omnigraph",
    "omnigraph._version",
    "omnigraph.cli",
    "omnigraph.cli.command_table",
    "omnigraph.cli.context",
    "omnigraph.cli.exits",
    "omnigraph.cli.framework",
    "omnigraph.cli.main",
    "omnigraph.interrupts",
}


def omnigraph(
    *args: object,
    cwd: Path | None = None,
    stdout: int = subprocess.PIPE,
    env: dict[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [OMNIGRAPH, *map(str, args)],
        cwd=cwd,
        stdout=stdout,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        env=env,
        timeout=60,
        check=False,
    )


@pytest.fixture(scope="module")
def light() -> Iterator[ForkServer]:
    """Makes processes that have imported what every command line needs, and nothing else."""
    server = ForkServer(["omnigraph.cli.main"])
    yield server
    server.close()


@pytest.fixture
def modules_after(light: ForkServer, tmp_path: Path) -> Callable[..., set[str]]:
    """Names of all modules a new process has loaded after running the command line."""

    def run(*args: str) -> set[str]:
        names, printed = tmp_path / "modules", tmp_path / "printed"
        given = [args, str(names), os.getcwd()]
        work = "tests.surfaces.loaded_modules:run"
        process = light.start(work, given, os.environ, str(printed))
        assert process.wait(60) == 0, printed.read_text()
        return set(names.read_text().splitlines())

    return run


@pytest.mark.acceptance("U-001")
def test_the_installed_command_prints_its_version():
    run = omnigraph("--version")
    assert (run.returncode, run.stdout, run.stderr) == (0, f"omnigraph {__version__}\n", "")


@pytest.mark.parametrize(
    ("args", "commands"),
    [
        (["--help"], set()),
        (["branch", "--help"], set()),
        (
            ["version"],
            {"omnigraph.cli.commands", "omnigraph.cli.commands.version", "omnigraph.limits"},
        ),
    ],
)
def test_version_and_help_load_nothing_heavy(modules_after, args, commands):
    modules = modules_after(*args)
    assert not {name.partition(".")[0] for name in modules} & HEAVY
    ours = {name for name in modules if name.partition(".")[0] == "omnigraph"}
    assert {name for name in ours if not name.startswith("omnigraph.errors.")} == OURS | commands


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_a_command_does_not_wait_for_the_storage_engine(modules_after, name):
    modules = modules_after(*name.split(), "--help")
    assert not {module.partition(".")[0] for module in modules} & HEAVY
    assert "omnigraph.api.graph" not in modules


def test_exit_codes_and_streams_reach_the_shell(tmp_path):
    failed = omnigraph("fmt", "missing.pg", cwd=tmp_path)
    assert (failed.returncode, failed.stdout) == (1, "")
    assert failed.stderr == "error[OG-I-001]: missing.pg: no such file; check the path\n"
    misused = omnigraph("lint", cwd=tmp_path)
    assert (misused.returncode, misused.stdout) == (2, "")
    assert "--query" in misused.stderr


def test_a_reader_that_goes_away_is_not_reported():
    reader, writer = os.pipe()
    os.close(reader)
    try:
        run = omnigraph("errors", "--json", stdout=writer)
    finally:
        os.close(writer)
    assert (run.returncode, run.stderr) == (1, "")


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_output_that_cannot_be_written_is_an_error(tmp_path, unbuffered):
    # A limit on the size of files plays the full disk.
    run = subprocess.run(
        ["sh", "-c", 'ulimit -f 0; exec "$0" version >out', OMNIGRAPH],
        cwd=tmp_path,
        env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
        stderr=subprocess.PIPE,
        text=True,
    )
    assert (run.returncode, run.stderr) == (1, "io: File too large\n")


def test_a_closed_standard_output_is_no_defect():
    run = subprocess.run(
        ["sh", "-c", '"$0" errors >&-', OMNIGRAPH], stderr=subprocess.PIPE, text=True
    )
    assert (run.returncode, run.stderr) == (0, "")


def test_text_is_utf8_whatever_the_locale(tmp_path):
    (tmp_path / "a.pg").write_text("// Größe\n\n\nnode A {k:String@key}\n", encoding="utf-8")
    ascii_only = {"LC_ALL": "C", "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    run = omnigraph("fmt", "--diff", "a.pg", cwd=tmp_path, env=ascii_only)
    assert run.returncode == 0, run.stderr
    assert "Größe" in run.stdout


def test_without_configuration_files_yaml_is_not_loaded(modules_after, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    modules = modules_after("profile", "list")
    assert "omnigraph.config.operator" in modules
    assert not {"yaml", "lance", "pyarrow", "numpy"} & modules
