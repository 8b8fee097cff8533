"""Processes made by one that has imported everything: imports take longer than most of their work.

That process opens nothing and starts no thread, so a fork of it loses none. Linux and macOS have
fork; a process that is forked and killed leaves behind what one that was started by a command does.
"""

from __future__ import annotations

import atexit
import os
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).parents[2]

IMPORTED = (
    "tests.cluster.dying",
    "tests.crash.dying",
    "tests.processes.branching",
    "tests.processes.changing",
    "tests.processes.sharing",
    "tests.processes.working",
    "tests.processes.writing",
    "tests.server.starting",
    "tests.upgrade.opening",
)
"""The modules whose functions the processes run."""


class ForkedProcess:
    """A process of the fork server, with the methods of `subprocess.Popen` that tests use."""

    def __init__(self, server: ForkServer, pid: int) -> None:
        self._server = server
        self.pid = pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        if self.returncode is None:
            self.returncode = self._server.ask("poll", self.pid)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        began = time.monotonic()
        while (code := self.poll()) is None:
            waited = time.monotonic() - began
            if timeout is not None and waited > timeout:
                raise TimeoutError(f"process {self.pid} has not ended in {timeout} s")
            # Asking costs time of both processes: often at first, then as often as is noticed.
            time.sleep(min(0.002 + waited / 20, 0.02))
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class ForkServer:
    """The process that makes the others, with these modules in it. It ends with the tests."""

    def __init__(self, modules: Sequence[str] = IMPORTED) -> None:
        ours, theirs = Pipe()
        # The one thread that numbers would be crunched by, and that a fork would lose.
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.fork_server", str(theirs.fileno()), *modules],
            cwd=PROJECT,
            env=environment,
            pass_fds=[theirs.fileno()],
        )
        theirs.close()
        self._orders = ours
        self._one_at_a_time = threading.Lock()
        atexit.register(self.close)

    def close(self) -> None:
        self._orders.close()
        self._process.wait()

    def start(
        self,
        work: str,
        arguments: Sequence[object],
        environment: Mapping[str, str],
        output: str | None = None,
    ) -> ForkedProcess:
        """A process that runs a function, given as `module:name`; what it prints goes to `output`."""
        order = (work, tuple(arguments), dict(environment), output)
        return ForkedProcess(self, self.ask("start", order))

    def ask(self, what: str, about: object) -> Any:
        with self._one_at_a_time:
            self._orders.send((what, about))
            return self._orders.recv()


@cache
def fork_server() -> ForkServer:
    return ForkServer()


# -- in the fork server -----------------------------------------------------------------------


def serve(orders: Connection, modules: Sequence[str]) -> None:
    """Start processes and tell how they ended, until nothing more is asked for."""
    for module in modules:
        import_module(module)
    while True:
        try:
            what, about = orders.recv()
        except EOFError:
            return
        orders.send(_start(orders, *about) if what == "start" else _ending(about))


def _start(orders: Connection, *order: Any) -> int:
    child = os.fork()
    if child == 0:
        orders.close()
        # As at the end of any program: threads and what is registered for the exit come first.
        sys.exit(_work(*order))
    return child


def _ending(pid: int) -> int | None:
    ended, status = os.waitpid(pid, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if ended else None


def _work(
    work: str, arguments: Sequence[Any], environment: Mapping[str, str], output: str | None
) -> int:
    os.environ.clear()
    os.environ.update(environment)
    if output is not None:
        file = os.open(output, os.O_WRONLY | os.O_TRUNC | os.O_CREAT)
        for standard in (1, 2):
            os.dup2(file, standard)
    module, _, name = work.partition(":")
    try:
        getattr(import_module(module), name)(*arguments)
    except SystemExit as end:
        return int(end.code or 0)
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


if __name__ == "__main__":
    serve(Connection(int(sys.argv[1])), sys.argv[2:])
