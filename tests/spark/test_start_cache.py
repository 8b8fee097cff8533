"""The file that makes Java start sooner: where it is, who makes it, and that nothing depends on it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from unittest.mock import patch
from uuid import uuid4

import pytest

from omnigraph.cli.main import main
from omnigraph.errors import StartCacheFailed
from omnigraph.limits import START_CACHE_SECONDS
from omnigraph.spark.java import Java, find_java
from omnigraph.spark.start_cache import (
    VARIABLE,
    StartCache,
    cache_file,
    cache_flags,
    keep,
    warm,
)
from tests.spark.processes import processes_with

JAVA = Java(Path("/java"), "25.0.2")
RUN = "omnigraph.spark.start_cache._run"


def file_of(java: Java = JAVA, environment: Mapping[str, str] = os.environ) -> Path:
    found = cache_file(java, environment)
    assert found is not None
    return found


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv(VARIABLE, str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_the_file_is_in_the_cache_folder_of_the_user(tmp_path):
    assert cache_file(JAVA, {VARIABLE: "off"}) is None
    assert file_of(JAVA, {VARIABLE: str(tmp_path)}).parent == tmp_path
    assert file_of(JAVA, {"XDG_CACHE_HOME": str(tmp_path)}).parent == tmp_path / "omnigraph"
    assert file_of(JAVA, {}).parent == Path.home() / ".cache" / "omnigraph"


def test_every_java_has_a_file_of_its_own_and_old_ones_have_none(folder):
    assert file_of(Java(JAVA.home, "26-ea")) != file_of()
    assert cache_file(Java(JAVA.home, "21.0.8")) is None


def test_a_file_is_used_when_it_is_there(folder):
    assert cache_flags(JAVA) == []
    folder.mkdir()
    file = file_of()
    file.touch()
    assert cache_flags(JAVA) == [f"-XX:AOTCache={file}"]


def test_a_file_that_is_there_is_not_made_again(folder, capsys):
    folder.mkdir()
    file = file_of(find_java())
    file.write_bytes(b"1234")
    with patch(RUN, side_effect=AssertionError):
        assert warm() == StartCache(file, 4, created=False)
        assert main(["spark", "warm"]) == 0
    shown = capsys.readouterr().out
    assert shown == f"{file} is there already (0 MB); delete it to make a new one\n"


@pytest.mark.parametrize("as_json", [False, True])
def test_the_command_says_where_the_file_is_and_what_it_saves(folder, capsys, as_json):
    def run(what, *flags):
        if what == "make":
            Path(flags[0]).write_bytes(bytes(2_000_000))
        return {"make": "", "start": "1.524" if flags else "4.06"}[what]

    with patch(RUN, run):
        assert main(["spark", "warm", *["--json"] * as_json]) == 0
    file, shown = file_of(find_java()), capsys.readouterr()
    assert list(folder.iterdir()) == [file]
    if as_json:
        assert json.loads(shown.out) == {
            "file": str(file),
            "bytes": 2_000_000,
            "created": True,
            "seconds_without": 4.06,
            "seconds_with": 1.52,
        }
        assert len(shown.err.splitlines()) == 3
    else:
        assert shown.out == (
            f"wrote {file} (2 MB)\na session starts in 1.5 s, without the file in 4.1 s\n"
        )


def test_a_cache_that_is_off_is_not_made(monkeypatch, capsys):
    monkeypatch.setenv(VARIABLE, "off")
    assert main(["spark", "warm"]) == 1
    assert capsys.readouterr().err == (
        "error[OG-J-004]: could not create the Java start cache: OMNIGRAPH_SPARK_CACHE is 'off'; unset it, or set "
        "it to a folder\n"
    )


def test_a_java_that_is_too_old_is_named(folder):
    old = Java(Path("/usr/lib/java-21"), "21.0.8")
    with (
        patch("omnigraph.spark.start_cache.find_java", return_value=old),
        pytest.raises(
            StartCacheFailed, match=r"Java 21\.0\.8 at /usr/lib/java-21 cannot.*JAVA_HOME"
        ),
    ):
        warm()


def test_a_folder_that_cannot_be_written_is_named(folder):
    folder.write_text("a file")
    with pytest.raises(StartCacheFailed, match=rf"the folder '{folder}' cannot be written \(.+\)"):
        warm()
    assert cache_flags(JAVA) == []


@pytest.mark.parametrize(("java", "told"), [("false", "did not start"), ("true", "did not start")])
def test_a_java_that_fails_is_told_and_leaves_nothing(folder, tmp_path, monkeypatch, java, told):
    home = tmp_path / "java"
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "java").write_text(f"#!/bin/sh\n{java}\n")
    (home / "bin" / "java").chmod(0o755)
    (home / "release").write_text('JAVA_VERSION="25.0.1"\n')
    monkeypatch.setenv("JAVA_HOME", str(home))
    with pytest.raises(StartCacheFailed, match=told):
        warm()
    assert list(folder.iterdir()) == []


def test_a_java_that_writes_no_file_is_told(folder):
    with patch(RUN, return_value=""), pytest.raises(StartCacheFailed, match="wrote no file"):
        warm()


def test_an_unfinished_file_that_is_old_is_removed(folder):
    folder.mkdir()
    file = file_of()
    old, new, made = (file.with_suffix(f".{n}") for n in (1, 2, 3))
    for path in (old, new, made):
        path.touch()
    long_ago = time.time() - START_CACHE_SECONDS - 1
    os.utime(old, (long_ago, long_ago))
    keep(made, file)
    assert sorted(folder.iterdir()) == sorted([file, new])


def test_files_of_earlier_versions_of_an_installation_go(folder):
    folder.mkdir()
    earlier, file = file_of(Java(JAVA.home, "25.0.1")), file_of()
    other = folder / "spark-another-place.aot"
    made = folder / "made"
    for path in (earlier, other, made):
        path.write_text(path.name)
    keep(made, file)
    assert sorted(folder.iterdir()) == sorted([file, other])
    assert file.read_text() == "made"


@pytest.mark.slow
def test_a_session_starts_with_the_file_and_with_a_damaged_one(folder):
    made = warm()
    assert (made.created, list(folder.iterdir())) == (True, [made.file])
    assert made.file == cache_file(find_java())
    code = """
from omnigraph.spark.session import _own, open_session
print(open_session().range(5).count())
print(any(a.startswith("-XX:AOTCache=") for a in _own[0].gateway.process.args))
"""
    for content in (None, b"damaged"):
        if content is not None:
            made.file.write_bytes(content)
        command = [sys.executable, "-c", code]
        done = subprocess.run(command, capture_output=True, text=True, timeout=280, check=True)
        assert (done.stdout.split(), done.stderr) == (["5", "True"], "")


@pytest.mark.slow
@pytest.mark.parametrize("wait", [0.2, 5, 25])
def test_an_interrupted_command_leaves_no_process_and_no_file(folder, tmp_path, wait):
    mark = f"mark-{uuid4()}"
    code = "from omnigraph.cli.entry import run; raise SystemExit(run())"
    command = [sys.executable, "-c", code, "spark", "warm"]
    process = subprocess.Popen(command, env={**os.environ, "OMNIGRAPH_TEST_MARK": mark})
    time.sleep(wait)
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 130
    assert processes_with(mark) == []
    assert not folder.exists() or list(folder.iterdir()) == []
