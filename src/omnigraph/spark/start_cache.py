"""A file with which Java starts in half the time: classes as they are after they have been loaded.

It is made once for an installation, by a process of its own after the first session has ended
(`omnigraph.spark.training`), and kept in the user's cache folder. Nothing depends on it: Java ignores
one that does not fit, and where none can be written sessions start as they would without.
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
from importlib.metadata import version
from pathlib import Path
from typing import Final

from omnigraph.interrupts import ending
from omnigraph.limits import START_CACHE_SECONDS
from omnigraph.spark.java import Java

VARIABLE: Final = "OMNIGRAPH_SPARK_CACHE"
"""The folder of such files, or `off` for none."""

_OFF: Final = "off"
_OLDEST: Final = 25
"""Older Java has nothing of the kind."""


def cache_file(java: Java, environment: Mapping[str, str] = os.environ) -> Path | None:
    """Where the file for this Java and this installation of Spark is; None when there shall be none."""
    wanted = environment.get(VARIABLE)
    if java.major < _OLDEST or wanted == _OFF:
        return None
    here = hashlib.sha256(sys.prefix.encode()).hexdigest()[:12]
    what = f"{version('pyspark')} {java.version} {java.flags()}"
    content = hashlib.sha256(what.encode()).hexdigest()[:12]
    return _folder(wanted, environment) / f"spark-{here}-{content}.aot"


def cache_flags(java: Java) -> list[str]:
    """What makes Java use the file, if it is there."""
    file = cache_file(java)
    return [] if file is None or not file.is_file() else [f"-XX:AOTCache={file}"]


def make_later(java: Java) -> None:
    """Have the file made by a process that outlives this one, unless it is there or being made."""
    file = cache_file(java)
    if file is None or file.is_file() or ending.is_set() or not _claim(file):
        return
    with suppress(OSError):
        subprocess.Popen(
            [sys.executable, "-m", "omnigraph.spark.training"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )


def keep(made: Path, file: Path) -> None:
    """Put a file that was made in its place, and remove those of earlier versions."""
    made.replace(file)
    _, here, _ = file.name.split("-", 2)
    for other in file.parent.glob(f"spark-{here}-*.aot"):
        if other != file:
            other.unlink(missing_ok=True)


def give_up_claim(file: Path) -> None:
    """Say that nobody is making the file any more."""
    _claim_of(file).unlink(missing_ok=True)


def _claim(file: Path) -> bool:
    """Whether it falls to this process to have the file made. A claim that is old is nobody's."""
    claim = _claim_of(file)
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with suppress(FileNotFoundError):
            if time.time() - claim.stat().st_mtime > START_CACHE_SECONDS:
                claim.unlink(missing_ok=True)
        claim.open("x").close()
    except OSError:
        return False
    return True


def _claim_of(file: Path) -> Path:
    return file.with_suffix(".claim")


def _folder(wanted: str | None, environment: Mapping[str, str]) -> Path:
    if wanted:
        return Path(wanted)
    general = environment.get("XDG_CACHE_HOME")
    return (Path(general) if general else Path.home() / ".cache") / "omnigraph"
