"""Ctrl-C and requests to end, at any moment of a command: one line, and nothing is left behind."""

from __future__ import annotations

import itertools
import json
import os
import random
import signal
import subprocess
import sys
import time
import tomllib
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import omnigraph as og
from tests.behaviour.graphs import Backstage

ENTRY = "omnigraph.cli.entry:run"
COMMAND = (sys.executable, "-c", "import sys, omnigraph.cli.entry as e; sys.exit(e.run())")

SCHEMA = """
node Author { slug: String @key  age: I32? }
edge Knows: Author -> Author
"""
QUERIES = """
query all() { match { $a: Author  $a knows $b } return { $a.slug, $b.slug } order { $a.slug } limit 50 }
query older($slug: String, $age: I32) { update Author set { age: $age } where slug = $slug }
"""
AUTHORS = 2_000
INSTANTS = 40

PARAMS = '{"slug": "a1", "age": 3}'
COMMANDS = {
    "version": ("version",),
    "query": ("query", "G", "--query", "q.gq", "--name", "all"),
    "mutate": ("mutate", "G", "--query", "q.gq", "--name", "older", "--params", PARAMS),
    "load": ("load", "G", "--mode", "merge", "--data", "authors.jsonl"),
    "export": ("export", "G"),
    "merge": ("merge", "side", "--uri", "G"),
    "optimize": ("optimize", "G"),
    "load on Spark": (
        "load",
        "G",
        "--mode",
        "merge",
        "--data",
        "authors.jsonl",
        "--engine",
        "spark",
    ),
    "export on Spark": ("export", "G", "--engine", "spark"),
}
LINES = {
    signal.SIGINT: (130, "interrupted\n"),
    signal.SIGTERM: (143, "terminated\n"),
    signal.SIGHUP: (129, "hung up\n"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a graph `G` that has a branch, and an empty one for temporary files.

    All tests use the same: none of them may leave anything that the next one would stumble over.
    """
    tmp_path = tmp_path_factory.mktemp("interrupts")
    (tmp_path / "q.gq").write_text(QUERIES)
    people = [{"type": "Author", "data": {"slug": f"a{n}", "age": n}} for n in range(AUTHORS)]
    pairs = itertools.pairwise(range(AUTHORS))
    known = [{"edge": "Knows", "from": f"a{a}", "to": f"a{b}"} for a, b in pairs]
    (tmp_path / "authors.jsonl").write_text("".join(f"{json.dumps(r)}\n" for r in people + known))
    graph = og.init(str(tmp_path / "G"), SCHEMA)
    graph.load(tmp_path / "authors.jsonl", "merge")
    graph.branches.create("side")
    graph.load(b'{"type": "Author", "data": {"slug": "extra"}}', "merge", branch="side")
    graph.maintenance.wait()
    (tmp_path / "tmp").mkdir()
    return tmp_path


class Run(NamedTuple):
    """A command in a session of its own, as a terminal starts it."""

    process: subprocess.Popen[str]
    mark: str
    folder: Path

    @classmethod
    def starting(cls, folder: Path, *args: str, closed_stderr: bool = False) -> Run:
        mark = uuid.uuid4().hex
        shell = ("sh", "-c", 'exec "$0" "$@" 2>&-') if closed_stderr else ()
        process = subprocess.Popen(
            [*shell, *COMMAND, *args],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            env={**os.environ, "TMPDIR": str(folder / "tmp"), "MARK": mark},
            start_new_session=True,
        )
        return cls(process, mark, folder)

    def wait_until_it_answers_signals(self) -> None:
        """Return when its handlers are in place: before that, what happens is Python's affair."""
        terminate = 1 << (signal.SIGTERM - 1)
        while self.process.poll() is None:
            status = Path(f"/proc/{self.process.pid}/status").read_text()
            if int(status.partition("SigCgt:")[2].split()[0], 16) & terminate:
                return
            time.sleep(0.0005)

    def send(self, number: int, *, whole_group: bool) -> None:
        if self.process.poll() is None:
            (os.killpg if whole_group else os.kill)(self.process.pid, number)

    def check_manners(self, number: int) -> int:
        """What holds whenever the signal came; returns the exit code."""
        out, err = self.process.communicate(timeout=600)
        code = self.process.returncode
        expected = LINES[signal.Signals(number)]
        assert (code, err) in ((0, ""), expected), (code, err, out[:200])
        assert os.listdir(self.folder / "tmp") == []
        deadline = time.monotonic() + 20
        while left := list(processes_of(self.mark)):
            assert time.monotonic() < deadline, left
            time.sleep(0.02)
        assert os.listdir(self.folder / "tmp") == []
        return code


def processes_of(mark: str) -> Iterator[str]:
    """The command lines of all processes that were started by the run of that mark."""
    for place in Path("/proc").glob("[0-9]*"):
        try:
            ours = f"MARK={mark}".encode() in (place / "environ").read_bytes()
            if ours and (command := (place / "cmdline").read_bytes()):
                yield command.replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue


def check_graph(folder: Path) -> None:
    """All rows are there, whole, and the next write works."""
    graph = og.open(str(folder / "G"))
    age = time.monotonic_ns() % 100
    graph.mutate(QUERIES, {"slug": "a7", "age": age}, name="older")
    graph.mutate(QUERIES, {"slug": "extra", "age": age}, name="older", branch="side")
    counts = {t["table_key"]: t["row_count"] for t in graph._snapshot().to_json()["tables"]}
    assert counts["node:Author"] in (AUTHORS, AUTHORS + 1)
    assert counts["edge:Knows"] >= AUTHORS - 1
    graph.maintenance.wait()


def test_the_installed_command_starts_where_signals_are_answered():
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    assert project["project"]["scripts"]["omnigraph"] == ENTRY


def interrupt(folder: Path, name: str, after: float, number: int, whole_group: bool) -> int:
    run = Run.starting(folder, *COMMANDS[name])
    try:
        run.wait_until_it_answers_signals()
        time.sleep(after)
        run.send(number, whole_group=whole_group)
        return run.check_manners(number)
    finally:
        run.process.kill()
        run.process.wait()


@pytest.mark.parametrize("after", [0.0, 0.1, 0.3, 0.8])
def test_an_interrupt_while_a_command_starts_gives_one_line(folder, after):
    interrupt(folder, "query", after, signal.SIGINT, whole_group=True)
    check_graph(folder)


def waiting(folder: Path, *args: str) -> Run:
    """A command that has begun and cannot end, because the branch it wants to write is taken."""
    run = Run.starting(folder, *args)
    run.wait_until_it_answers_signals()
    assert run.process.stderr is not None
    # The last stage that is over before a load waits for the lock.
    while '"check"' not in run.process.stderr.readline():
        assert run.process.poll() is None
    return run


@pytest.mark.parametrize(
    ("number", "times"), [(signal.SIGINT, 5), (signal.SIGTERM, 2), (signal.SIGHUP, 1)]
)
def test_a_signal_that_is_repeated_at_once_is_answered_once(folder, number, times):
    with Backstage(folder / "G").locks.hold(None, "test"):
        run = waiting(folder, *COMMANDS["load"], "--json")
        for _ in range(times):
            run.send(number, whole_group=True)
            time.sleep(0.01)
        assert run.check_manners(number) == LINES[number][0]
    check_graph(folder)


def test_a_signal_that_the_caller_ignores_is_ignored(folder):
    """As with `nohup`."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        run = Run.starting(folder, *COMMANDS["query"])
        run.wait_until_it_answers_signals()
        run.send(signal.SIGHUP, whole_group=True)
        assert run.check_manners(signal.SIGHUP) == 0
    finally:
        signal.signal(signal.SIGHUP, before)


def test_an_interrupt_does_not_wait_for_a_reader_that_stopped_reading(folder):
    """As with a pager."""
    run = Run.starting(folder, *COMMANDS["export"])
    assert run.process.stdout is not None
    assert run.process.stdout.readline().startswith('{"')
    run.send(signal.SIGINT, whole_group=True)
    assert run.process.wait(60) == 130
    assert run.check_manners(signal.SIGINT) == 130


def test_an_interrupt_on_a_closed_standard_error_is_an_interrupt(folder):
    run = Run.starting(folder, *COMMANDS["query"], closed_stderr=True)
    run.wait_until_it_answers_signals()
    time.sleep(0.2)
    run.send(signal.SIGINT, whole_group=True)
    assert (run.process.communicate(timeout=60)[1], run.process.returncode) == ("", 130)


@pytest.mark.parametrize("after", [pytest.param(0.5, marks=pytest.mark.slow), 3.0])
def test_an_interrupted_load_on_spark_leaves_no_process_and_no_folder(folder, after):
    interrupt(folder, "load on Spark", after, signal.SIGINT, whole_group=True)
    check_graph(folder)


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_an_interrupt_at_any_moment_gives_one_line_and_leaves_nothing(folder, name):
    chance = random.Random(name)
    run = Run.starting(folder, *COMMANDS[name])
    run.wait_until_it_answers_signals()
    started = time.monotonic()
    run.check_manners(signal.SIGINT)
    longest = time.monotonic() - started
    codes = []
    for _ in range(INSTANTS):
        number = chance.choice([*LINES, signal.SIGINT])
        after = chance.uniform(0, longest)
        codes.append(interrupt(folder, name, after, number, chance.random() < 0.5))
        check_graph(folder)
    assert set(codes) - {0}
