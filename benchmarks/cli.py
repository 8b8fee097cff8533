"""What a new process costs: user CPU and wall time of commands, beside those of `import lance`.

Every command is a process of its own, as on a terminal or in a Spark worker. The goal is about what
is ours: user CPU of `omnigraph query` on a small local graph minus that of `import lance` in the same
environment, at most 0.25 s. A command that asks a server loads neither Lance nor Arrow: its user CPU is
compared with that of `omnigraph --help`, the goal is at most twice as much. `--help` itself is compared with
an interpreter that imports click, at most 1.5 times as much. In the shell on a graph of 100,000 rows the second
answer has to come within 20 ms. `--python` names the interpreters of environments to measure in the same
run, say one without pandas and Spark. All commands of all environments run in turns, so that a busy
moment of the machine meets all of them; the middle run counts.

The package is measured as if installed: a copy of it, whose bytecode the first, uncounted turn
writes. With `--no-bytecode` every start compiles it, as in a checkout whose interpreter writes none.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import omnigraph
from benchmarks.support.timing import readable

GOAL_SECONDS = 0.25
GOAL_OF_HELP = 2.0
GOAL_OF_CLICK = 1.5
GOAL_OF_SHELL_MS = 20.0
SHELL_PEOPLE = 50_000
"""As many edges: together 100,000 rows."""

REMOTE = ("remote query", "remote branch list")
ROUNDS = 11
PEOPLE = 100

SCHEMA = """
node Person { name: String @key  age: I32?  city: String? }
edge Knows: Person -> Person { since: Date? }
"""
QUERIES = """
query friends($name: String) {
    match {
        $p: Person { name: $name }
        $p knows $f
        $f.age >= 18
    }
    return { $f.name as name, $f.age as age }
    order { age desc, name }
    limit 10
}
query add($name: String, $age: I32) { insert Person { name: $name, age: $age } }
"""
MAKE = """
import sys, omnigraph
for graph in sys.argv[3:]:
    omnigraph.init(graph, sys.argv[1]).load(sys.argv[2].encode(), "merge", engine="inline")
"""
MAKE_LARGER = """
import sys, omnigraph
count = int(sys.argv[3])
with omnigraph.init(sys.argv[2], sys.argv[1]) as graph:
    graph.insert("Person", [{"name": f"p{n}", "age": 20 + n % 60} for n in range(count)])
    graph.insert("Knows", [{"from": f"p{n}", "to": f"p{(n * 7 + 1) % count}"} for n in range(count)])
"""
COMMAND = "import sys; from omnigraph.cli.entry import run; sys.exit(run())"
SERVE = "import sys; from omnigraph.server.command import run; sys.exit(run(sys.argv[1:]))"
LIBRARY = """
import sys, omnigraph
omnigraph.open(sys.argv[1]).query(sys.argv[2], {"name": "p3"}, name="friends").to_dicts()
"""
COUNT = """
import sys
from omnigraph.cli.entry import run
run()
ours = {name: module for name, module in sys.modules.items() if name.startswith("omnigraph")}
classes = {
    value
    for name, module in ours.items()
    for value in vars(module).values()
    if isinstance(value, type) and value.__module__ == name
}
made = [found for found in classes if "__dataclass_fields__" in vars(found)]
print(len(ours), len(made), len(sys.modules), file=sys.stderr)
"""


@dataclass(frozen=True, slots=True)
class Cost:
    """What one process took."""

    user: float
    wall: float


@dataclass(slots=True)
class Command:
    """A command of an environment, and what its runs took."""

    name: str
    argv: list[str]
    runs: list[Cost] = field(default_factory=list)

    @property
    def user(self) -> float:
        return statistics.median(run.user for run in self.runs)

    @property
    def wall(self) -> float:
        return statistics.median(run.wall for run in self.runs)


class Environment:
    """An interpreter with its libraries, our package on its path, and graphs to ask."""

    def __init__(self, python: str, number: int, folder: Path, *, bytecode: bool) -> None:
        self.python = python
        self._folder = folder / str(number)
        package = self._folder / "package" / "omnigraph"
        shutil.copytree(
            Path(omnigraph.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__")
        )
        self._variables = {**os.environ, "PYTHONPATH": str(package.parent), "LANCE_LOG": "error"}
        self._variables.pop("PYTHONDONTWRITEBYTECODE", None)
        if not bytecode:
            self._variables["PYTHONDONTWRITEBYTECODE"] = "1"
        self._queries = self._folder / "queries.gq"
        self._queries.write_text(QUERIES)
        self._asked, self._changed = (str(self._folder / name) for name in ("asked", "changed"))
        self._call([python, "-c", MAKE, SCHEMA, _records(), self._asked, self._changed])
        self._server = subprocess.Popen(
            [python, "-c", SERVE, self._asked, "--unauthenticated", "--bind", "127.0.0.1:0"],
            env=self._variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self._server.stdout is not None
        self._url = "http://" + self._server.stdout.readline().strip().partition("=")[2]
        self.commands = [Command(name, argv) for name, argv in self._commands().items()]

    def take_turn(self, *, counted: bool) -> None:
        for command in self.commands:
            cost = self._cost(command.argv)
            if counted:
                command.runs.append(cost)

    def close(self) -> None:
        self._server.terminate()
        self._server.wait()

    def loaded_by_a_query(self) -> tuple[int, int, int]:
        """Modules of ours, dataclasses of ours and all modules that a query has loaded."""
        shown = self._call([self.python, "-c", COUNT, *self._query()])
        ours, dataclasses, modules = (int(word) for word in shown.split()[-3:])
        return ours, dataclasses, modules

    def answers_of_a_shell(self) -> list[float]:
        """How many milliseconds ten answers to one question took, in one shell on a larger graph."""
        graph = str(self._folder / "larger")
        self._call([self.python, "-c", MAKE_LARGER, SCHEMA, graph, str(SHELL_PEOPLE)])
        ask = f".read {self._queries}\n.timing on\n" + ".run friends name=p3\n" * 10
        done = subprocess.run(
            [self.python, "-c", COMMAND, "shell", graph],
            env=self._variables,
            input=ask,
            capture_output=True,
            text=True,
            check=True,
        )
        return [
            float(found) for found in re.findall(r"^\((\d+\.\d) ms\)$", done.stdout, re.MULTILINE)
        ]

    def figures(self) -> Mapping[str, Command]:
        return {command.name: command for command in self.commands}

    def _commands(self) -> dict[str, list[str]]:
        python = self.python
        add = ["--name", "add", "--params", json.dumps({"name": "p3", "age": 31})]
        mutate = ["mutate", "--query", str(self._queries), *add, self._changed]
        return {
            "python -c pass": [python, "-c", "pass"],
            "import click": [python, "-c", "import click"],
            "import lance": [python, "-c", "import lance"],
            "omnigraph version": [python, "-c", COMMAND, "version"],
            "omnigraph --help": [python, "-c", COMMAND, "--help"],
            "omnigraph query": [python, "-c", COMMAND, *self._query()],
            "omnigraph mutate": [python, "-c", COMMAND, *mutate],
            "remote query": [python, "-c", COMMAND, *self._query(self._url)],
            "remote branch list": [python, "-c", COMMAND, "branch", "list", "--uri", self._url],
            "open(…).query(…)": [python, "-c", LIBRARY, self._asked, QUERIES],
        }

    def _query(self, graph: str | None = None) -> list[str]:
        name = ["--name", "friends", "--params", json.dumps({"name": "p3"})]
        return ["query", "--query", str(self._queries), *name, graph or self._asked]

    def _cost(self, argv: Sequence[str]) -> Cost:
        started = time.perf_counter()
        child = subprocess.Popen(argv, env=self._variables, stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(child.pid, 0)
        wall = time.perf_counter() - started
        # The process is gone already; Popen would wait for it again.
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            raise RuntimeError(f"{argv} ended with {child.returncode}")
        return Cost(usage.ru_utime, wall)

    def _call(self, argv: Sequence[str]) -> str:
        done = subprocess.run(argv, env=self._variables, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"{argv[:2]} ended with {done.returncode}:\n{done.stderr}")
        return done.stderr


def _records() -> str:
    people = [
        {"type": "Person", "data": {"name": f"p{number}", "age": 20 + number % 60}}
        for number in range(PEOPLE)
    ]
    knows = [
        {"edge": "Knows", "from": f"p{number}", "to": f"p{(number * 7 + 1) % PEOPLE}"}
        for number in range(PEOPLE)
    ]
    return "\n".join(json.dumps(record) for record in [*people, *knows])


def show(environment: Environment) -> None:
    figures = environment.figures()
    width = max(len(name) for name in figures)
    lance = figures["import lance"].user
    print(f"\n{environment.python}")
    print(f"{'':<{width}}  {'user CPU':>10}  {'wall':>10}  {'beyond import lance':>20}")
    for name, command in figures.items():
        beyond = readable(command.user - lance) if command.user > lance else "-"
        print(
            f"{name:<{width}}  {readable(command.user):>10}  {readable(command.wall):>10}  {beyond:>20}"
        )
    ours, dataclasses, modules = environment.loaded_by_a_query()
    print(
        f"a query loads {ours} modules of ours ({modules} in all) and makes {dataclasses} dataclasses"
    )
    beyond_lance = figures["omnigraph query"].user - lance
    kept = "kept" if beyond_lance <= GOAL_SECONDS else "MISSED"
    print(
        f"omnigraph query - import lance: {readable(beyond_lance)} of user CPU; "
        f"goal at most {readable(GOAL_SECONDS)}: {kept}"
    )
    ratio = figures["omnigraph --help"].user / figures["import click"].user
    kept = "kept" if ratio <= GOAL_OF_CLICK else "MISSED"
    print(
        f"omnigraph --help / import click: {ratio:.2f} in user CPU; goal at most {GOAL_OF_CLICK:g}: {kept}"
    )
    answers = environment.answers_of_a_shell()
    kept = "kept" if answers[1] <= GOAL_OF_SHELL_MS else "MISSED"
    print(
        f"shell, {2 * SHELL_PEOPLE:,} rows: first answer {answers[0]:.0f} ms, second {answers[1]:.1f} ms, "
        f"tenth {answers[-1]:.1f} ms; goal at most {GOAL_OF_SHELL_MS:g} ms for the second: {kept}"
    )
    for name in REMOTE:
        ratio = figures[name].user / figures["omnigraph --help"].user
        kept = "kept" if ratio <= GOAL_OF_HELP else "MISSED"
        print(
            f"{name} / omnigraph --help: {ratio:.2f} in user CPU; "
            f"goal at most {GOAL_OF_HELP:g}: {kept}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--python", action="append", help="interpreter of an environment to measure"
    )
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="runs of every command")
    parser.add_argument("--no-bytecode", action="store_true", help="compile the package every time")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        environments = [
            Environment(python, number, Path(folder), bytecode=not options.no_bytecode)
            for number, python in enumerate(options.python or [sys.executable])
        ]
        try:
            for number in range(options.rounds + 1):
                for environment in environments:
                    environment.take_turn(counted=number > 0)
            for environment in environments:
                show(environment)
        finally:
            for environment in environments:
                environment.close()


if __name__ == "__main__":
    main()
