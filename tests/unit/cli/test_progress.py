"""The signs of life during a long command."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
import time

import pytest

from omnigraph.cli.progress import progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown_on_a_terminal(monkeypatch: pytest.MonkeyPatch, text: str) -> str:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with progress(text):
        time.sleep(0.2)
    return terminal.getvalue()


def test_a_terminal_shows_what_is_done_and_then_nothing_of_it(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    shown = shown_on_a_terminal(monkeypatch, "loading [red]big.jsonl")
    assert "loading [red]big.jsonl" in shown
    assert "0:00:00" in shown
    # The last thing written erases the line.
    assert shown.endswith("\x1b[2K")


def test_a_terminal_shows_a_bar_for_every_stage_with_rows_and_rate(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with progress("loading") as shown:
        shown.stage("read")
        shown.advance(1500)
        shown.stage("write", 3000)
        shown.advance(1000)
        time.sleep(0.2)
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", terminal.getvalue())
    assert re.search(r"loading: read.* 1,500 rows, [\d,]+/s", text)
    assert re.search(r"loading: write.* 1,000 rows, [\d,]+/s", text)


def test_every_stage_that_is_over_is_a_line_of_json(capsys):
    with progress("loading", as_json=True) as shown:
        shown.stage("read")
        shown.advance(2)
        shown.advance(3)
        assert capsys.readouterr().err == ""
        shown.stage("write", 5)
        (line,) = capsys.readouterr().err.splitlines()
        stage = json.loads(line)
        assert (stage["stage"], stage["rows"]) == ("read", 5)
        assert stage["seconds"] >= 0
    (line,) = capsys.readouterr().err.splitlines()
    assert json.loads(line)["stage"] == "write"


def test_a_terminal_that_cannot_erase_shows_nothing(monkeypatch):
    monkeypatch.setenv("TERM", "dumb")
    assert shown_on_a_terminal(monkeypatch, "loading") == ""


def test_a_pipe_gets_nothing_and_rich_is_not_even_imported():
    script = (
        "import sys\n"
        "from omnigraph.cli.progress import progress\n"
        "with progress('loading'): pass\n"
        "assert 'rich' not in sys.modules\n"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    assert (run.stdout, run.stderr) == (b"", b"")
