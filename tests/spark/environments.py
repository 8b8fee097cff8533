"""Python environments with another PySpark.

Building one takes minutes and a package index; it stays in the user's cache folder for the next run.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from omnigraph.spark.java import Java, find_java

CACHE = Path.home() / ".cache" / "omnigraph-tests"
PARENT = Path(sysconfig.get_path("purelib"))


def with_pyspark(version: str) -> Path:
    """The Python of an environment like this one, but with another PySpark."""

    def fill(python: Path) -> None:
        _install(python, f"pyspark=={version}")
        # What it has itself comes first.
        _packages(python).joinpath("parent.pth").write_text(f"{PARENT}\n")

    return _environment(f"pyspark-{version}", fill)


def older_java() -> Java:
    """A Java on which PySpark before 4.3 runs; the test is skipped without one."""
    homes = [Path("/usr/lib/jvm"), Path("/Library/Java/JavaVirtualMachines")]
    for home in sorted(path for folder in homes if folder.is_dir() for path in folder.iterdir()):
        release = home / "release"
        if release.is_file() and any(f'="{n}.' in release.read_text() for n in (17, 21)):
            return Java(home, "17" if '="17.' in release.read_text() else "21")
    pytest.skip(f"needs a Java 17 or 21, and there is only {find_java().version}")


def _environment(name: str, fill: object) -> Path:
    assert callable(fill)
    folder = CACHE / f"{name}-{sys.version_info.major}.{sys.version_info.minor}"
    python = folder / "bin" / "python"
    if not (folder / "complete").is_file():
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
        fill(python)
        (folder / "complete").touch()
    return python


def _install(python: Path, *requirements: str) -> None:
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "-q", *requirements]
    done = subprocess.run(pip, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"the environment cannot be built: {done.stderr.strip().splitlines()[-1:]}")


def _packages(python: Path) -> Path:
    (found,) = (python.parent.parent / "lib").glob("python*/site-packages")
    return found
