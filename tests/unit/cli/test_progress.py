"""The sign of life during a long command."""

from __future__ import annotations

import io
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
