"""`tools/install.sh`: what each level installs, when it does nothing, and that it never goes back.

A stand-in for Python notes what pip is asked for; creating real environments takes minutes.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
STAND_IN = f"""\
#!/bin/sh
case "$1 $2 $3" in
"-m venv "*)
    mkdir -p "$3/bin"
    cp "$0" "$3/bin/python"
    echo created >>"$LOG"
    ;;
"-m pip --version") ;;
"-m pip install")
    for last; do :; done
    echo "$last" >>"$LOG"
    echo "Collecting numpy>=2 (from omnigraph==0.1.0)"
    echo "  Downloading numpy-2.4.6-cp311-cp311-manylinux_x86_64.whl (16.9 MB)"
    echo "  Using cached rich-15.0.0-py3-none-any.whl (310 kB)"
    echo "  Building wheel for pyspark (pyproject.toml): started"
    echo "Installing collected packages: numpy, rich, pyspark"
    [ -z "$FAIL" ] || {{ echo "no space left" >&2; exit 3; }}
    touch .venv/bin/omnigraph
    chmod +x .venv/bin/omnigraph
    ;;
*) exec {sys.executable} "$@" ;;
esac
"""


class Clone:
    """A folder with the files that the script looks at."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "clone"
        (self.folder / "tools").mkdir(parents=True)
        for name in ("tools/install.sh", "pyproject.toml", "constraints.txt"):
            shutil.copy(ROOT / name, self.folder / name)
        self.python = folder / "python"
        self.python.write_text(STAND_IN)
        self.python.chmod(0o755)
        self.log = folder / "log"

    def install(self, *level: str, fail: bool = False) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.folder / "tools" / "install.sh", *level],
            env={
                "PATH": os.environ["PATH"],
                "PYTHON": str(self.python),
                "LOG": str(self.log),
                "FAIL": "1" if fail else "",
            },
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def did(self, *level: str) -> list[str]:
        """What one more run does."""
        self.log.write_text("")
        done = self.install(*level)
        assert done.returncode == 0, done.stderr
        return self.log.read_text().split()


@pytest.fixture
def clone(tmp_path):
    return Clone(tmp_path)


@pytest.mark.parametrize(
    ("level", "extras"),
    [
        (["demo"], ".[all]"),
        (["dev"], ".[all,dev]"),
        ([], ".[all,dev]"),
        (["bench"], ".[all,dev,bench]"),
    ],
)
def test_a_level_installs_what_it_needs_and_then_nothing(clone, level, extras):
    assert clone.did(*level) == ["created", extras]
    assert clone.did(*level) == []


def test_a_higher_level_adds_and_a_lower_one_removes_nothing(clone):
    assert clone.did("demo") == ["created", ".[all]"]
    assert clone.did("dev") == [".[all,dev]"]
    assert clone.did("demo") == []


def test_other_pins_are_installed_at_the_level_that_is_there(clone):
    clone.did("dev")
    with (clone.folder / "constraints.txt").open("a") as pins:
        pins.write("another==1.0\n")
    assert clone.did("demo") == [".[all,dev]"]


def test_settings_of_checkers_install_nothing(clone):
    clone.did("demo")
    with (clone.folder / "pyproject.toml").open("a") as settings:
        settings.write("\n[tool.other]\n")
    assert clone.did("demo") == []


def test_it_shows_what_is_installed_and_how_long_that_takes(clone):
    lines = clone.install("demo").stdout.splitlines()
    assert lines[0].startswith("Creating .venv with Python 3.")
    assert lines[1].startswith("Installing omnigraph with all extras: 1.3 GB, usually ")
    assert lines[2:6] == [
        "  numpy-2.4.6 (16.9 MB)",
        "  rich-15.0.0 (310 kB)",
        "  building pyspark",
        "  unpacking 3 packages",
    ]
    assert lines[6].startswith(".venv is ready (Python 3.")


def test_an_installation_that_fails_is_told_and_tried_again(clone):
    failed = clone.install("demo", fail=True)
    assert failed.returncode == 1
    assert "no space left" in failed.stderr
    assert "The installation failed" in failed.stderr
    assert clone.did("demo") == [".[all]"]


def test_an_environment_that_was_moved_is_made_again(clone):
    clone.did("dev")
    clone.folder = clone.folder.rename(clone.folder.with_name("elsewhere"))
    assert clone.did("demo") == ["created", ".[all]"]


def test_an_unknown_level_is_refused(clone):
    refused = clone.install("everything")
    assert (refused.returncode, refused.stderr) == (
        2,
        "unknown level 'everything'; use demo, dev or bench\n",
    )
