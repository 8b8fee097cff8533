"""A graph in the hands of real processes: what one leaves behind the next one finds."""

from __future__ import annotations

import json
import os
import pty
import shutil
import signal
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.behaviour.graphs import Backstage
from tests.surfaces.test_cli_process import OMNIGRAPH, omnigraph

SCHEMA = "node Author {\n    slug: String @key\n}\n\nedge Knows: Author -> Author\n"
AUTHORS = 30_000
"""More than fits into a pipe that nobody reads."""

STAGES = ["read", "check", "write", "index"]
LOAD = ("load", "--mode", "merge", "--data", "authors.jsonl", "G")


def author(number: int) -> str:
    return json.dumps({"type": "Author", "data": {"slug": f"author-{number:06}"}}) + "\n"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a graph `G` and the data it was loaded with, made by two processes."""
    folder = tmp_path_factory.mktemp("graph")
    (folder / "schema.pg").write_text(SCHEMA)
    (folder / "authors.jsonl").write_text("".join(map(author, range(AUTHORS))))
    for command in (["init", "--schema", "schema.pg", "G"], [*LOAD, "--json"]):
        run = omnigraph(*command, cwd=folder)
        assert run.returncode == 0
    assert [json.loads(line)["stage"] for line in run.stderr.splitlines()] == STAGES
    assert json.loads(run.stdout)["nodes_loaded"] == AUTHORS
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "graph"))


def rows(folder: Path, branch: str) -> int:
    run = omnigraph("snapshot", "G", "--branch", branch, "--json", cwd=folder)
    tables = json.loads(run.stdout)["tables"]
    return sum(table["row_count"] for table in tables)


@pytest.mark.acceptance("U-009", "U-027", "U-028", "U-031")
def test_each_process_finds_what_the_ones_before_it_did(folder):
    (folder / "more.jsonl").write_text(author(AUTHORS))
    merge = ["load", "--mode", "merge", "--data", "more.jsonl", "--branch", "draft"]
    run = omnigraph(*merge, "--from", "main", "--as", "ada", "--json", "G", cwd=folder)
    loaded = json.loads(run.stdout)
    assert (loaded["branch"], loaded["branch_created"]) == ("draft", True)
    assert (rows(folder, "main"), rows(folder, "draft")) == (AUTHORS, AUTHORS + 1)
    shown = omnigraph("commit", "show", loaded["graph_commit_id"], "--uri", "G", cwd=folder)
    assert "actor_id: ada\n" in shown.stdout
    exported = omnigraph("export", "G", "--branch", "draft", cwd=folder)
    assert len(exported.stdout.splitlines()) == AUTHORS + 1


def test_a_reader_of_an_export_that_goes_away_is_not_reported(folder):
    run = subprocess.Popen(
        [OMNIGRAPH, "export", "G"], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert run.stdout is not None
    assert run.stderr is not None
    with run:
        assert run.stdout.readline().startswith(b'{"')
        run.stdout.close()
        assert run.stderr.read() == b""
    assert run.returncode == 1


class Terminal(NamedTuple):
    """A terminal that is the standard error of a process."""

    process: subprocess.Popen[bytes]
    screen: int

    @classmethod
    def starting(cls, *args: str, cwd: Path) -> Terminal:
        screen, stderr = pty.openpty()
        environment = {**os.environ, "TERM": "xterm"}
        process = subprocess.Popen(
            [OMNIGRAPH, *args], cwd=cwd, stdout=subprocess.PIPE, stderr=stderr, env=environment
        )
        os.close(stderr)
        return cls(process, screen)

    def read_until(self, text: str) -> str:
        shown = ""
        while text not in shown:
            shown += os.read(self.screen, 4096).decode()
        return shown


def test_a_load_shows_progress_on_a_terminal_and_nothing_of_it_in_its_answer(folder):
    terminal = Terminal.starting(*LOAD, cwd=folder)
    with terminal.process as load:
        terminal.read_until("loading authors.jsonl")
        out, _ = load.communicate(timeout=60)
    os.close(terminal.screen)
    assert load.returncode == 0
    assert f"{AUTHORS:,}".encode() in out or str(AUTHORS).encode() in out
    assert b"loading" not in out


def test_an_interrupted_load_says_nothing_and_leaves_the_graph_as_it_was(folder):
    before = omnigraph("commit", "list", "G", cwd=folder).stdout
    # Whoever waits for the branch is certainly not done yet.
    with Backstage(folder / "G").locks.hold(None, "test"):
        terminal = Terminal.starting(*LOAD, cwd=folder)
        with terminal.process as load:
            terminal.read_until("loading authors.jsonl")
            load.send_signal(signal.SIGINT)
            out, _ = load.communicate(timeout=60)
    left = os.read(terminal.screen, 65_536).decode()
    os.close(terminal.screen)
    assert (load.returncode, out) == (130, b"")
    assert "Traceback" not in left
    assert "rror" not in left
    assert omnigraph("commit", "list", "G", cwd=folder).stdout == before
    assert omnigraph(*LOAD, cwd=folder).returncode == 0
