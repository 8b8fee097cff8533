"""The file that makes Java start sooner: where it is, who makes it, and that nothing depends on it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from omnigraph.limits import START_CACHE_SECONDS
from omnigraph.spark.java import Java, find_java
from omnigraph.spark.start_cache import VARIABLE, cache_file, cache_flags, keep, make_later

JAVA = Java(Path("/java"), "25.0.2")


def file_of(java: Java = JAVA, environment: Mapping[str, str] = os.environ) -> Path:
    found = cache_file(java, environment)
    assert found is not None
    return found


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv(VARIABLE, str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def started(monkeypatch):
    """The commands of processes that would have been started."""
    commands = []
    process = "omnigraph.spark.start_cache.subprocess.Popen"
    monkeypatch.setattr(process, lambda command, **_: commands.append(command))
    return commands


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


def test_one_process_makes_the_file(folder, started):
    make_later(JAVA)
    make_later(JAVA)
    assert started == [[sys.executable, "-m", "omnigraph.spark.training"]]


def test_a_file_that_is_there_is_not_made_again(folder, started):
    folder.mkdir()
    file_of().touch()
    make_later(JAVA)
    assert started == []


def test_a_file_whose_maker_died_is_made_by_another(folder, started):
    make_later(JAVA)
    (claim,) = folder.iterdir()
    long_ago = claim.stat().st_mtime - START_CACHE_SECONDS - 1
    os.utime(claim, (long_ago, long_ago))
    make_later(JAVA)
    assert len(started) == 2


def test_a_folder_that_cannot_be_written_is_put_up_with(folder, started):
    folder.write_text("a file")
    make_later(JAVA)
    assert started == []
    assert cache_flags(JAVA) == []


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
def test_a_session_starts_with_the_file_and_with_a_damaged_one(tmp_path):
    environment = {**os.environ, VARIABLE: str(tmp_path)}
    train = [sys.executable, "-m", "omnigraph.spark.training"]
    subprocess.run(train, env=environment, check=True, timeout=900)
    (file,) = tmp_path.iterdir()
    assert file == cache_file(find_java(), environment)
    code = """
from omnigraph.spark.session import _own, open_session
print(open_session().range(5).count())
print(any(a.startswith("-XX:AOTCache=") for a in _own[0].gateway.process.args))
"""
    for content in (None, b"damaged"):
        if content is not None:
            file.write_bytes(content)
        command = [sys.executable, "-c", code]
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=280, check=True
        )
        assert (done.stdout.split(), done.stderr) == (["5", "True"], "")
