"""The shell on a real terminal: typing, completion, history, several lines, Ctrl-C, and how quick it answers."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

import omnigraph as og

COMMAND = (sys.executable, "-c", "import sys, omnigraph.cli.entry as e; sys.exit(e.run())")
SCHEMA = "node Person { name: String @key  age: I32? }\nedge Knows: Person -> Person\n"
# A leader of a session that opens a terminal is controlled by it, so that Ctrl-C reaches it.
CONTROLLED = (sys.executable, "-c", "import os, sys; os.open(os.ttyname(0), os.O_RDWR); "
              "import omnigraph.cli.entry as e; sys.exit(e.run())")  # fmt: skip
_ESCAPE = re.compile(r"\x1b(?:\[[0-9;?]*[A-Za-z]|\][^\x07]*\x07|[()][A-Z0-9]|[=>78])")
PATIENCE_SECONDS = 20.0


class Terminal:
    """A process on a pseudo-terminal of 40 lines."""

    def __init__(
        self,
        arguments: list[str],
        folder: Path,
        *,
        command: Sequence[str] | None = None,
        keeps_escapes: bool = False,
        **environment: str,
    ) -> None:
        self._keeps_escapes = keeps_escapes
        self._terminal, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        kept = ("PATH", "PYTHONPATH", "COVERAGE_PROCESS_START")
        variables = {name: os.environ[name] for name in kept if name in os.environ}
        variables |= {"TERM": "xterm", "LANG": "C.UTF-8", "OMNIGRAPH_HOME": str(folder / "home")}
        variables |= {"PROMPT_TOOLKIT_NO_CPR": "1", "OMNIGRAPH_DURABILITY": "none"}
        variables |= environment
        self._process = subprocess.Popen(
            [*(command or CONTROLLED), *arguments],
            cwd=folder,
            env=variables,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
        os.close(theirs)
        self.seen = ""

    def write(self, text: str) -> None:
        os.write(self._terminal, text.encode())

    def read_until(self, pattern: str) -> str:
        """All that was printed since the last call, up to a match. Fails when it does not come."""
        ends = time.monotonic() + PATIENCE_SECONDS
        while not (match := re.search(pattern, self.seen)):
            assert time.monotonic() < ends, f"{pattern!r} did not come; seen: {self.seen!r}"
            if select.select([self._terminal], [], [], 0.2)[0]:
                try:
                    text = os.read(self._terminal, 65536).decode()
                    self.seen += text if self._keeps_escapes else _ESCAPE.sub("", text)
                except OSError:
                    raise AssertionError(f"ended before {pattern!r}: {self.seen!r}") from None
        found, self.seen = self.seen[: match.end()], self.seen[match.end() :]
        return found

    def wait(self) -> int:
        ends = time.monotonic() + PATIENCE_SECONDS
        while self._process.poll() is None and time.monotonic() < ends:
            if select.select([self._terminal], [], [], 0.1)[0]:
                try:
                    os.read(self._terminal, 65536)
                except OSError:
                    break
        return self._process.wait(PATIENCE_SECONDS)

    def close(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        os.close(self._terminal)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("shell")
    with og.init(str(path / "G"), schema=SCHEMA) as graph:
        graph.insert("Person", [{"name": f"p{number}", "age": number} for number in range(50)])
        graph.branches.create("review/x")
    return path


@pytest.fixture
def terminal(folder: Path) -> Iterator[Terminal]:
    shell = Terminal(["shell", "G"], folder)
    try:
        shell.read_until("main>")
        yield shell
    finally:
        shell.close()


def test_a_query_is_typed_over_several_lines_and_answered_with_its_time(terminal):
    terminal.write('match { $p: Person { name: "p7" } }\r')
    terminal.read_until(r"\.\.\.")
    terminal.write("return { $p.age }\r")
    out = terminal.read_until(r"\(\d+\.\d ms\)")
    assert "1 row from branch main" in out
    assert re.search(r"\n7 ", out)


def test_tab_completes_words_types_and_properties(terminal):
    terminal.write("match { $p: Pers\t")
    terminal.read_until("Person")
    terminal.write(' { name: "p3" } } return { $p.ag\t')
    terminal.read_until(r"\.age")
    terminal.write(" }\r")
    out = terminal.read_until(r"\(\d+\.\d ms\)")
    assert re.search(r"\n3 ", out)


def test_an_error_is_shown_in_place_and_the_shell_goes_on(terminal):
    terminal.write('match { $p: Person { nam: "p7" } } return { $p.age }\r')
    out = terminal.read_until("did you mean `name`")
    assert "^^^" in out
    terminal.write(".branches\r")
    assert "* main" in terminal.read_until("review/x")


def test_ctrl_c_drops_an_input_and_ctrl_d_leaves(terminal):
    terminal.write("match { $p: Person")
    terminal.read_until("Person")
    terminal.write("\x03")
    terminal.read_until("main>")
    terminal.write(".checkout review/x\r")
    terminal.read_until("on branch review/x")
    terminal.read_until("review/x>")
    terminal.write("\x04")
    assert terminal.wait() == 0


def test_earlier_inputs_are_kept_for_the_next_session(folder, terminal):
    terminal.write(".schema Person\r")
    terminal.read_until("name: String @key")
    terminal.read_until("main>")
    terminal.write(".quit\r")
    assert terminal.wait() == 0
    history = folder / "home" / "shell_history"
    assert ".schema Person" in history.read_text()
    assert history.stat().st_mode & 0o077 == 0
    again = Terminal(["shell", "G"], folder)
    again.read_until("main>")
    again.write("\x1b[A\x1b[A\r")
    again.read_until("name: String @key")
    again.close()
