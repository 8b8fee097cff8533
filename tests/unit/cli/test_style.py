"""When text is coloured."""

from __future__ import annotations

import io
import sys

import pytest

from omnigraph.cli.exits import Style, report, warn
from omnigraph.errors import NotFoundError


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    return Terminal()


def test_a_terminal_gets_colour_and_a_pipe_does_not(terminal):
    assert Style.of(terminal).ok("OK") == "\x1b[32mOK\x1b[0m"
    assert Style.of(io.StringIO()).ok("OK") == "OK"


@pytest.mark.parametrize(("variable", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_the_environment_can_switch_colour_off(terminal, monkeypatch, variable, value):
    monkeypatch.setenv(variable, value)
    assert Style.of(terminal).error("x") == "x"


def test_an_empty_no_color_counts_as_unset(terminal, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "")
    assert Style.of(terminal).enabled


def test_only_the_headline_of_an_error_is_red(terminal, monkeypatch):
    monkeypatch.setattr(sys, "stderr", terminal)
    report(NotFoundError("headline\n  detail"))
    assert terminal.getvalue() == "\x1b[31merror[OG-N-000]: headline\x1b[0m\n  detail\n"


def test_only_the_label_of_a_warning_is_yellow(terminal, monkeypatch):
    monkeypatch.setattr(sys, "stderr", terminal)
    warn("old spelling")
    assert terminal.getvalue() == "\x1b[33mwarning:\x1b[0m old spelling\n"
