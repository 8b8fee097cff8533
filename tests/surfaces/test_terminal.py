"""Commands on a terminal: a pager for long output, a line about long waits, none of it in a pipe."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import omnigraph as og
from tests.surfaces.test_shell import COMMAND, SCHEMA, Terminal

MANY = "query many() { match { $p: Person } return { $p.name } order { $p.name } }"
FEW = 'query few() { match { $p: Person { name: "p7" } } return { $p.name } }'
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
PAGER = f"{sys.executable} -c \"import sys; print('paged', len(sys.stdin.readlines()), 'lines')\""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("terminal")
    with og.init(str(path / "G"), schema=SCHEMA) as graph:
        graph.insert("Person", [{"name": f"p{number}"} for number in range(100)])
    return path


@pytest.fixture
def run(folder):
    def started(*words: str, pager: str = PAGER) -> Terminal:
        return Terminal(list(words), folder, PAGER=pager)

    return started


def test_output_longer_than_the_screen_goes_through_the_pager(run):
    terminal = run("query", "G", "-e", MANY)
    assert terminal.read_until("paged 103 lines")
    assert terminal.wait() == 0
    terminal.close()


@pytest.mark.parametrize(("query", "pager"), [(FEW, PAGER), (MANY, "cat"), (MANY, "no-such-pager")])
def test_short_output_and_no_pager_go_to_the_terminal(run, query, pager):
    terminal = run("query", "G", "-e", query, pager=pager)
    out = terminal.read_until("p7")
    assert "paged" not in out
    assert terminal.wait() == 0
    terminal.close()


def test_a_pager_that_is_left_early_is_no_error(run):
    terminal = run("query", "G", "-e", MANY, pager="head -n 2")
    terminal.read_until("100 rows")
    assert terminal.wait() == 0
    terminal.close()


def test_a_pipe_gets_plain_text(folder):
    done = subprocess.run(
        [*COMMAND, "query", "G", "-e", MANY],
        cwd=folder,
        env={**os.environ, "PAGER": PAGER},
        capture_output=True,
        text=True,
        check=True,
    )
    assert (done.stdout.count("\n"), "\x1b" in done.stdout, done.stderr) == (103, False, "")


def test_a_long_wait_is_shown_and_removed(folder):
    start = "import sys, time, omnigraph.cli.terminal as t; w = t.Waiting('query', sys.stderr)"
    code = f"{start}; time.sleep(1.6); w.end(); print('done')"
    terminal = Terminal(["version"], folder, command=(sys.executable, "-c", code))
    out = terminal.read_until("done")
    assert "query: 1 s" in out
    terminal.close()


def test_every_colour_goes_with_no_color(folder):
    coloured = Terminal(["query", "G", "-e", FEW], folder, keeps_escapes=True)
    assert COLOUR.search(coloured.read_until("p7"))
    coloured.close()
    plain = Terminal(["query", "G", "-e", FEW], folder, keeps_escapes=True, NO_COLOR="1")
    assert not COLOUR.search(plain.read_until("p7"))
    plain.close()
