"""The Java process behind a session: started here, and ended with this process.

Spark's own launcher insists on a module that small Java runtimes do not have, and takes longer. What
Python needs to find the process is handed over through two variables of the environment, as Spark
has them, and only while a session is made.
Tests: tests/spark/test_session.py.
"""

from __future__ import annotations

import atexit
import os
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from omnigraph.errors import SparkUnavailable
from omnigraph.interrupts import uninterrupted
from omnigraph.limits import SPARK_START_SECONDS
from omnigraph.settings import read_settings
from omnigraph.spark.java import Java, check_pair, find_java
from omnigraph.temporary import remove_folder

_LOGGING: Final = """
rootLogger.level = warn
rootLogger.appenderRef.file.ref = file
appender.file.type = File
appender.file.name = file
appender.file.fileName = {log}
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{{HH:mm:ss}} %p %c{{1}}: %m%n%ex
"""
_GATEWAY: Final = "org.apache.spark.api.python.PythonGatewayServer"
_PORT: Final = "PYSPARK_GATEWAY_PORT"
_FOLDER: Final = "omnigraph-spark-"
_SOCKET: Final = f"{_FOLDER}12345678/.00000000-0000-0000-0000-000000000000.sock"
_SOCKET_PATH: Final = 100
"""Bytes that the path of a socket may have; some systems allow no more than 104."""

_PROPERTIES, _LOG, _ERRORS, _CONTACT = "log4j2.properties", "spark.log", "java.err", "contact"


_running: Final[dict[subprocess.Popen[bytes], Path]] = {}
"""The processes that were started and not ended yet, with their folders."""


@dataclass(frozen=True, slots=True)
class Gateway:
    """A running Java process that waits for the calls of this one."""

    process: subprocess.Popen[bytes]
    folder: Path
    port: int
    secret: str

    @contextmanager
    def offered(self) -> Iterator[None]:
        """Let pyspark find this process for a while. Children must not find it later."""
        given = {_PORT: str(self.port), "PYSPARK_GATEWAY_SECRET": self.secret}
        with _environment({**given, **_worker_environment()}):
            yield

    def close(self, wait_seconds: float = SPARK_START_SECONDS) -> None:
        """End the process: it leaves when its input is closed."""
        assert self.process.stdin is not None
        with suppress(OSError):
            self.process.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(wait_seconds)
        self.end()

    def end(self) -> None:
        """End the process and all its work at once."""
        _end_at_once(self.process, self.folder)


@dataclass(frozen=True, slots=True)
class StartingJava:
    """A Java process that was started and has not reported its port yet."""

    java: Java
    process: subprocess.Popen[bytes]
    folder: Path

    def wait(self) -> Gateway:
        """The process as soon as it listens. Raises `SparkUnavailable`."""
        try:
            _import_meanwhile()
            port, secret = _contact(self.process, self.folder / _CONTACT)
        except (OSError, _NotStarted) as error:
            unavailable = _unavailable(self.java, self.folder, error)
            self.end()
            raise unavailable from None
        except BaseException:
            # Without its folder Java would neither say where it listens nor ever end.
            self.end()
            raise
        return Gateway(self.process, self.folder, port, secret)

    def end(self) -> None:
        """End a process that is not needed after all."""
        _end_at_once(self.process, self.folder)


def was_submitted() -> bool:
    """Whether `spark-submit` started this process, and waits with a Java process of its own."""
    return _PORT in os.environ


def has_room_for_sockets() -> bool:
    """Whether Java and tasks can talk through sockets in the folder for temporary files."""
    try:
        folder = tempfile.gettempdir()
    except OSError:  # There is none, and starting Java will fail for that reason.
        return False
    return len(os.fsencode(os.path.join(folder, _SOCKET))) <= _SOCKET_PATH


def start_java(
    settings: Mapping[str, str], heap_bytes: int, flags: Sequence[str] = ()
) -> StartingJava:
    """Start Java with these settings of Spark, and do not wait for it. Raises `SparkUnavailable`."""
    return uninterrupted(lambda: _start_java(settings, heap_bytes, flags))


def _start_java(settings: Mapping[str, str], heap_bytes: int, flags: Sequence[str]) -> StartingJava:
    java = find_java()
    check_pair(java, version("pyspark"))
    try:
        folder = Path(tempfile.mkdtemp(prefix=_FOLDER))
    except OSError as error:
        raise SparkUnavailable("Java cannot create a folder for its files", str(error)) from None
    command = [
        java.command,
        f"-Xmx{heap_bytes >> 20}m",
        *java.flags(),
        *flags,
        f"-Dlog4j2.configurationFile=file:{folder / _PROPERTIES}",
        *(f"-D{key}={value}" for key, value in settings.items()),
        f"-Djava.io.tmpdir={folder}",
        f"-Dspark.local.dir={folder}",
        f"-Dspark.sql.warehouse.dir={folder}",
        "-DSPARK_SUBMIT=true",
        "-Dspark.submit.pyFiles=",
        "-Dspark.submit.deployMode=client",
        _GATEWAY,
    ]
    variables = _java_environment(java, folder / _CONTACT)
    try:
        (folder / _PROPERTIES).write_text(_LOGGING.format(log=folder / _LOG))
        with (folder / _ERRORS).open("wb") as errors:
            process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                env={**os.environ, **variables, **_worker_environment(), "TMPDIR": str(folder)},
                # An interrupt at the terminal is for this process; it ends the other by leaving.
                start_new_session=True,
            )
    except OSError as error:
        remove_folder(folder)
        raise _unavailable(java, folder, error) from None
    _running[process] = folder
    return StartingJava(java, process, folder)


def _end_at_once(process: subprocess.Popen[bytes], folder: Path) -> None:
    """End Java without giving it time to tidy up. All its files are in a folder of ours.

    Python processes of tasks see that Java is gone and end too; until then they may add files.
    """

    def end() -> None:
        with process:  # Also closes our end of its input.
            process.kill()
        remove_folder(folder)
        _running.pop(process, None)

    uninterrupted(end)


@atexit.register
def _end_all() -> None:
    """End what is left when an interrupt came before its owner had it, or while it was ended."""
    for process, folder in list(_running.items()):
        _end_at_once(process, folder)


def _unavailable(java: Java, folder: Path, error: Exception) -> SparkUnavailable:
    reason = str(error) + _last_words(folder / _ERRORS, folder / _LOG)
    return SparkUnavailable(f"Java at {java.home} did not start", reason)


def _import_meanwhile() -> None:
    """Load what a session needs on this side while Java is starting on its own."""
    for name in ("pyspark.sql.pandas.types", "pandas"):
        import_module(name)


class _NotStarted(Exception):
    """Java ended, or said nothing for too long."""


def _contact(process: subprocess.Popen[bytes], contact: Path) -> tuple[int, str]:
    """Where the process listens, once it does. The file appears complete."""
    deadline = time.monotonic() + SPARK_START_SECONDS
    while not contact.is_file():
        if process.poll() is not None:
            raise _NotStarted(f"it ended with status {process.returncode}")
        if time.monotonic() > deadline:
            raise _NotStarted(f"no answer within {SPARK_START_SECONDS:.0f} seconds")
        time.sleep(0.01)
    content = contact.read_bytes()
    port, length = struct.unpack("!ii", content[:8])
    return port, content[8 : 8 + length].decode()


def _java_environment(java: Java, contact: Path) -> dict[str, str]:
    # Found and not imported: that takes longer than to start Java.
    found = find_spec("pyspark")
    assert found is not None, "Java was found before it was started"
    home = Path(str(found.origin)).parent
    return {
        "SPARK_HOME": str(home),
        "JAVA_HOME": str(java.home),
        "SPARK_CONNECT_MODE": "0",
        "SPARK_SCALA_VERSION": "2.13",
        "_PYSPARK_DRIVER_CONN_INFO_PATH": str(contact),
        "CLASSPATH": os.pathsep.join(sorted(map(str, (home / "jars").glob("*.jar")))),
        **_user(),
    }


def _user() -> dict[str, str]:
    """A name for a user that the system has none for, as in some containers."""
    import pwd

    try:
        pwd.getpwuid(os.geteuid())
    except KeyError:
        return {"SPARK_USER": read_settings().spark_user or "omnigraph"}
    return {}


def _worker_environment() -> dict[str, str]:
    """Tasks run on this interpreter, unless the environment names another."""
    return {"PYSPARK_PYTHON": read_settings().pyspark_python or sys.executable}


@contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _last_words(*files: Path) -> str:
    for file in files:
        with suppress(OSError):
            lines = file.read_text(errors="replace").strip().splitlines()
            if lines:
                return f"; {lines[-1].strip()}"
    return ""
