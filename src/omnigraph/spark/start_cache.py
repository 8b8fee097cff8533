"""A cache file that halves the start of Java: classes as they are after loading.

`warm()` makes it once for an installation, in the user's cache folder; nothing else does. Sessions use it
when it is there. Nothing depends on it: Java ignores one that does not fit.
Tests: tests/spark/test_start_cache.py.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from omnigraph.errors import StartCacheFailed
from omnigraph.limits import START_CACHE_SECONDS
from omnigraph.progress import SILENT, Progress
from omnigraph.settings import Settings, read_settings
from omnigraph.spark.java import Java, find_java, require_spark

VARIABLE: Final = "OMNIGRAPH_SPARK_CACHE"
"""The folder of such files, or `off` for none."""

_OFF: Final = "off"
_OLDEST: Final = 25
"""Older Java has nothing of the kind."""

_MODULE: Final = "omnigraph.spark.training"


@dataclass(frozen=True, slots=True)
class StartCache:
    """The file, and what it saves. Times are measured when it is made."""

    file: Path
    bytes: int
    created: bool
    seconds_without: float | None = None
    """How long a session takes to start without the file."""
    seconds_with: float | None = None

    def to_json(self) -> dict[str, Any]:
        return {
            "file": str(self.file),
            "bytes": self.bytes,
            "created": self.created,
            "seconds_without": self.seconds_without,
            "seconds_with": self.seconds_with,
        }


def cache_file(java: Java, environment: Mapping[str, str] | None = None) -> Path | None:
    """Where the file for this Java and this installation of Spark is; None when there shall be none."""
    settings = read_settings(environment)
    if java.major < _OLDEST or settings.spark_cache == _OFF:
        return None
    here = hashlib.sha256(sys.prefix.encode()).hexdigest()[:12]
    what = f"{version('pyspark')} {java.version} {java.flags()}"
    content = hashlib.sha256(what.encode()).hexdigest()[:12]
    return _folder(settings) / f"spark-{here}-{content}.aot"


def cache_flags(java: Java) -> list[str]:
    """What makes Java use the file, if it is there."""
    file = cache_file(java)
    return [] if file is None or not file.is_file() else [f"-XX:AOTCache={file}"]


def warm(progress: Progress = SILENT) -> StartCache:
    """Make the file unless it is there, in about a minute.

    Sessions of this process are left alone: Java is started by processes of its own, which have ended
    when this returns. Raises `MissingExtra` and `StartCacheFailed`.
    """
    require_spark("a start cache for Spark")
    java = find_java()
    file = cache_file(java)
    if file is None:
        raise StartCacheFailed(_why_none(java))
    if file.is_file():
        return StartCache(file, file.stat().st_size, created=False)
    part = file.with_suffix(f".{os.getpid()}")
    _make_room(part)
    try:
        progress.stage("run Spark once and write the file")
        _run("make", str(part))
        if not part.is_file():
            raise StartCacheFailed(f"Java {java.version} at {java.home} wrote no file")
        progress.stage("start without the file")
        without = round(float(_run("start")), 2)
        progress.stage("start with the file")
        using = round(float(_run("start", f"-XX:AOTCache={part}")), 2)
        keep(part, file)
    except OSError as error:
        raise _unwritable(file.parent, error) from None
    finally:
        for left in part.parent.glob(f"{part.name}*"):
            left.unlink(missing_ok=True)
    return StartCache(file, file.stat().st_size, True, without, using)


def keep(made: Path, file: Path) -> None:
    """Move a new file to its final name, and remove earlier and unfinished ones."""
    made.replace(file)
    _, here, _ = file.name.split("-", 2)
    oldest = time.time() - START_CACHE_SECONDS
    for other in file.parent.glob(f"spark-{here}-*"):
        with suppress(FileNotFoundError):
            if other != file and (other.suffix == ".aot" or other.stat().st_mtime < oldest):
                other.unlink()


def _why_none(java: Java) -> str:
    if java.major < _OLDEST:
        return (
            f"Java {java.version} at {java.home} cannot write one, Java {_OLDEST} and later can; "
            "unset JAVA_HOME to use the Java of the extra 'spark'"
        )
    return f"{VARIABLE} is '{_OFF}'; unset it, or set it to a folder"


def _make_room(part: Path) -> None:
    """Create the folder, and see whether files can be written there."""
    try:
        part.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        part.touch()
        part.unlink()
    except OSError as error:
        raise _unwritable(part.parent, error) from None


def _unwritable(folder: Path, error: OSError) -> StartCacheFailed:
    reason = error.strerror or str(error)
    return StartCacheFailed(
        f"the folder '{folder}' cannot be written ({reason}); name another one in {VARIABLE}"
    )


def _run(*arguments: str) -> str:
    """What a child process prints. It ends before this call does."""
    command = [sys.executable, "-m", _MODULE, *arguments]
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            output, errors = process.communicate()
        except BaseException:
            # It ends Java on its way out, which it could not if it were killed.
            process.terminate()
            process.wait()
            raise
    if process.returncode:
        lines = errors.strip().splitlines()
        raise StartCacheFailed(lines[-1] if lines else f"status {process.returncode}")
    return output


def _folder(settings: Settings) -> Path:
    if settings.spark_cache:
        return Path(settings.spark_cache)
    general = settings.xdg_cache_home
    return (Path(general) if general else Path.home() / ".cache") / "omnigraph"
