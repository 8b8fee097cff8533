"""Every way a source file can be unreadable has its own words."""

from __future__ import annotations

import os

import pytest

from omnigraph.errors import SourceUnreadable
from omnigraph.language.syntax import Source
from omnigraph.limits import MAX_SOURCE_BYTES
from omnigraph.read.source_files import read_source


@pytest.fixture
def failure(tmp_path):
    """The error message for a file with this content, without the path."""

    def read(content: bytes) -> str:
        path = tmp_path / "source.pg"
        path.write_bytes(content)
        with pytest.raises(SourceUnreadable) as caught:
            read_source(path)
        assert caught.value.path == str(path)
        return str(caught.value).removeprefix(f"{path}: ")

    return read


def test_a_file_is_its_text_under_the_name_it_was_given(tmp_path, monkeypatch):
    (tmp_path / "a.pg").write_bytes("node Größe {}\r\n".encode())
    monkeypatch.chdir(tmp_path)
    assert read_source("a.pg") == Source("a.pg", "node Größe {}\r\n")


def test_an_empty_file_is_an_empty_text(tmp_path):
    (tmp_path / "empty.gq").touch()
    assert read_source(tmp_path / "empty.gq").text == ""


def test_a_byte_order_mark_is_dropped(tmp_path):
    (tmp_path / "bom.gq").write_bytes(b"\xef\xbb\xbfquery")
    assert read_source(tmp_path / "bom.gq").text == "query"


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(SourceUnreadable, match=r"nope\.pg: no such file; check the path"):
        read_source(tmp_path / "nope.pg")


def test_a_directory_is_no_source(tmp_path):
    with pytest.raises(SourceUnreadable, match="is a directory; name a file in it"):
        read_source(tmp_path)


def test_a_path_through_a_file_leads_nowhere(tmp_path):
    (tmp_path / "a.pg").touch()
    with pytest.raises(SourceUnreadable, match="not a directory; check the path"):
        read_source(tmp_path / "a.pg" / "b.pg")


def test_a_path_that_no_file_can_have_is_refused():
    with pytest.raises(SourceUnreadable, match="embedded null byte"):
        read_source("a\0b")


def test_a_file_of_another_user_says_permission_denied(tmp_path, monkeypatch):
    # Permission bits do not stop every user, so the refusal of the system is played here.
    def refuse(*_args: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("builtins.open", refuse)
    with pytest.raises(SourceUnreadable, match="permission denied; make the file readable"):
        read_source(tmp_path / "secret.pg")


def test_bytes_that_are_not_utf8_are_located(failure):
    message = failure(b"node A {\n    n\xe4me: String\n}\n")
    assert message == "is not UTF-8 at byte 14 (line 2); save it as UTF-8"


def test_the_place_counts_a_byte_order_mark(failure):
    assert failure(b"\xef\xbb\xbf\xff") == "is not UTF-8 at byte 3 (line 1); save it as UTF-8"


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf16_text_is_called_by_its_name(failure, encoding):
    assert failure("\ufeffnode A".encode(encoding)) == "is UTF-16 text; save it as UTF-8"


def test_a_nul_byte_tells_a_binary_file(failure):
    assert failure(b"a\n\0").startswith("holds a NUL byte at byte 2 (line 2); it is a binary file")


def test_a_file_larger_than_the_limit_is_not_read_whole(failure):
    assert failure(b" " * (MAX_SOURCE_BYTES + 1)).startswith("larger than 4 MiB; ")


def test_a_file_of_exactly_the_limit_is_read(tmp_path):
    path = tmp_path / "big.pg"
    path.write_bytes(b" " * MAX_SOURCE_BYTES)
    assert len(read_source(path).text) == MAX_SOURCE_BYTES


def test_a_pipe_is_read_like_a_file():
    reader, writer = os.pipe()
    os.write(writer, b"query")
    os.close(writer)
    try:
        assert read_source(f"/dev/fd/{reader}").text == "query"
    finally:
        os.close(reader)
