"""A file is written whole or not at all, keeps its mode, and survives a failure."""

from __future__ import annotations

import os

import pytest

from omnigraph.replace_file import replacing


def replace_file(path: str, text: str) -> None:
    with replacing(path) as file:
        file.write(text)


def test_the_content_changes_and_the_mode_stays(tmp_path):
    path = tmp_path / "a.pg"
    path.write_text("old")
    path.chmod(0o640)
    replace_file(str(path), "new é\n")
    assert path.read_bytes() == "new é\n".encode()
    assert path.stat().st_mode & 0o777 == 0o640
    assert os.listdir(tmp_path) == ["a.pg"]


def test_a_symbolic_link_stays_a_link(tmp_path):
    (tmp_path / "real.pg").write_text("old")
    link = tmp_path / "link.pg"
    link.symlink_to("real.pg")
    replace_file(str(link), "new")
    assert link.is_symlink()
    assert (tmp_path / "real.pg").read_text() == "new"


def test_a_failure_leaves_the_old_file_and_no_litter(tmp_path, monkeypatch):
    path = tmp_path / "a.pg"
    path.write_text("old")

    def fail(*_args: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="No space left"):
        replace_file(str(path), "new")
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["a.pg"]


def test_a_read_only_file_is_not_replaced(tmp_path, monkeypatch):
    path = tmp_path / "a.pg"
    path.write_text("old")
    # Permission bits do not stop every user, so the answer of the system is played here.
    monkeypatch.setattr(os, "access", lambda *_args: False)
    with pytest.raises(PermissionError):
        replace_file(str(path), "new")
    assert path.read_text() == "old"


def test_a_new_file_gets_the_mode_of_all_new_files(tmp_path):
    (tmp_path / "other").touch()
    replace_file(str(tmp_path / "a.pg"), "new")
    assert (tmp_path / "a.pg").read_text() == "new"
    assert (tmp_path / "a.pg").stat().st_mode == (tmp_path / "other").stat().st_mode


def test_nothing_is_seen_before_the_end_and_nothing_is_left_of_a_failure(tmp_path):
    path = tmp_path / "a.pg"

    def write_half() -> None:
        with replacing(str(path)) as file:
            file.write("half")
            file.flush()
            assert not path.exists()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_half()
    assert os.listdir(tmp_path) == []


def test_a_device_is_written_as_it_is():
    replace_file(os.devnull, "text")
    assert not os.path.isfile(os.devnull)


def test_a_pipe_is_written_as_it_is():
    reader, writer = os.pipe()
    replace_file(f"/dev/fd/{writer}", "text")
    os.close(writer)
    with open(reader) as pipe:
        assert pipe.read() == "text"
