"""A standalone Spark cluster on loopback: a master and two workers, from the installed package alone."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pyspark

from omnigraph.spark.java import find_java

_HOME = Path(pyspark.__file__).parent
_SHIM = """#!/bin/sh
# Executors are started with a module that the bundled Java does not have, and does not need.
n=$#
while [ "$n" -gt 0 ]; do
    argument=$1
    shift
    n=$((n - 1))
    [ "$argument" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$argument"
done
exec "{java}" "$@"
"""
_EXECUTOR = "CoarseGrainedExecutorBackend"


@dataclass
class Cluster:
    """A running cluster. What is killed stays dead."""

    master: str
    environment: dict[str, str]
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def executors(self) -> list[int]:
        """The processes that run tasks' Java side."""
        return [
            child
            for worker in self.workers
            if worker.poll() is None
            for child in children(worker.pid)
            if _EXECUTOR in command_of(child)
        ]


@contextmanager
def running_cluster(folder: Path, workers: int = 2) -> Iterator[Cluster]:
    java = find_java()
    home = folder / "java"
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "java").write_text(_SHIM.format(java=java.command))
    (home / "bin" / "java").chmod(0o755)
    shutil.copy(java.home / "release", home / "release")
    environment = {
        **os.environ,
        "JAVA_HOME": str(home),
        "SPARK_HOME": str(_HOME),
        "SPARK_SCALA_VERSION": "2.13",
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
        "CLASSPATH": os.pathsep.join(sorted(map(str, (_HOME / "jars").glob("*.jar")))),
    }
    port = free_port()
    cluster = Cluster(f"spark://127.0.0.1:{port}", environment)

    def start(name: str, log: str, *arguments: str) -> subprocess.Popen[bytes]:
        command = [java.command, "-Xmx256m", *java.flags(), name, *arguments]
        with (folder / log).open("wb") as output:
            return subprocess.Popen(command, env=environment, stdout=output, stderr=output)

    master = start(
        "org.apache.spark.deploy.master.Master", "master.log",
        "--host", "127.0.0.1", "--port", str(port), "--webui-port", "0",
    )  # fmt: skip
    try:
        wait_until(lambda: is_open(port))
        for number in range(workers):
            work = folder / f"worker-{number}"
            work.mkdir()
            place = ["--host", f"127.0.0.{2 + number}", "--work-dir", str(work)]
            room = ["--cores", "1", "--memory", "1g", "--webui-port", "0"]
            name, log = "org.apache.spark.deploy.worker.Worker", f"worker-{number}.log"
            cluster.workers.append(start(name, log, *place, *room, cluster.master))
        yield cluster
    finally:
        for process in [*cluster.workers, master]:
            for child in children(process.pid):
                kill(child)
            process.kill()
            process.wait()


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def is_open(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def wait_until(condition: object, seconds: float = 280.0) -> None:
    assert callable(condition)
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.05)


def children(process: int) -> Sequence[int]:
    found = []
    try:
        for thread in Path(f"/proc/{process}/task").iterdir():
            found += [int(child) for child in (thread / "children").read_text().split()]
    except OSError:
        return found
    return found


def command_of(process: int) -> str:
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""


def kill(process: int) -> None:
    """As the kernel does when memory runs out. Fine if it is gone."""
    try:
        os.kill(process, signal.SIGKILL)
    except ProcessLookupError:
        return
