"""The file of tokens: what is read, what is refused, and what a change leaves alone."""

from __future__ import annotations

import os
import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from omnigraph.config.credentials import (
    Token,
    remove_token,
    store_token,
    stored_token,
)
from omnigraph.errors import CredentialsError, UsageError

SECRET = "s3cr3t-Zq9"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "home" / "credentials"


def write(path: Path, text: str | bytes, mode: int = 0o600) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    path.chmod(mode)


def mode_of(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_a_stored_token_is_private_to_its_owner(path):
    before = os.umask(0)
    try:
        store_token(path, "dev", SECRET)
    finally:
        os.umask(before)
    assert path.read_text() == f'[dev]\ntoken = "{SECRET}"\n'
    assert (mode_of(path), mode_of(path.parent)) == (0o600, 0o700)
    assert os.listdir(path.parent) == ["credentials"]
    assert stored_token(path, "dev") == SECRET


def test_without_a_file_there_is_no_token(path):
    assert stored_token(path, "dev") is None
    assert remove_token(path, "dev") is False
    assert not path.parent.exists()


OTHERS = (
    b"# mine\r\n"
    b"[a]   # first\r\n"
    b"\ttoken='x'   # old\r\n"
    b"\r\n"
    b"# about dev\n"
    b"[dev]\n"
    b"# rotate in May\n"
    b"token = old\n"
    b"user = ada\n"
    b"# about b\n"
    b"[b]\n"
    b"token = \"y\""
)  # fmt: skip


def test_other_sections_are_kept_byte_for_byte(path):
    write(path, OTHERS)
    store_token(path, "dev", SECRET)
    old = b"[dev]\n# rotate in May\ntoken = old\nuser = ada\n"
    assert path.read_bytes() == OTHERS.replace(old, f'[dev]\ntoken = "{SECRET}"\n'.encode())
    assert [stored_token(path, name) for name in ("a", "dev", "b")] == ["x", SECRET, "y"]
    assert remove_token(path, "dev") is True
    assert path.read_bytes() == OTHERS.replace(old, b"")
    assert remove_token(path, "dev") is False


def test_a_new_section_begins_on_its_own_line(path):
    write(path, b"[b]\ntoken = y")
    store_token(path, "dev", SECRET)
    assert path.read_bytes() == f'[b]\ntoken = y\n[dev]\ntoken = "{SECRET}"\n'.encode()


@pytest.mark.parametrize(
    ("line", "token"),
    [
        ("token = abc", "abc"),
        ("token=abc", "abc"),
        ("  token\t=  abc  ", "abc"),
        ("token = abc # note", "abc"),
        ("token = a#b", "a#b"),
        ("token = 'abc'", "abc"),
        ('token = " abc "', "abc"),
        ('token = "a#b" # note', "a#b"),
        ('token = "it\'s"', "it's"),
        ("token = a=b==", "a=b=="),
        ("token =", None),
        ("token = ''", None),
        ("token = # none", None),
        ("tokens = abc", None),
    ],
)
def test_how_a_token_may_be_written(path, line, token):
    write(path, f"[dev]\n{line}\n")
    assert stored_token(path, "dev") == token


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o660, 0o602, 0o666, 0o610, 0o601])
def test_a_file_that_others_can_access_is_refused(path, mode):
    write(path, f"[dev]\ntoken = {SECRET}\n", mode)
    for use in (
        lambda: stored_token(path, "dev"),
        lambda: store_token(path, "dev", "new"),
        lambda: remove_token(path, "dev"),
    ):
        with pytest.raises(CredentialsError, match=f"run `chmod 600 {path}`") as caught:
            use()
        assert SECRET not in str(caught.value)
    assert path.read_text() == f"[dev]\ntoken = {SECRET}\n"


def test_a_private_file_behind_a_link_is_used_and_stays_behind_it(path, tmp_path):
    write(tmp_path / "real", "[dev]\ntoken = old\n")
    path.parent.mkdir()
    path.symlink_to(tmp_path / "real")
    store_token(path, "dev", SECRET)
    assert path.is_symlink()
    assert stored_token(tmp_path / "real", "dev") == SECRET
    (tmp_path / "real").chmod(0o644)
    with pytest.raises(CredentialsError, match="chmod 600"):
        stored_token(path, "dev")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (f"[dev]\ntoken = {SECRET} {SECRET}\n", ":2: the value has a blank"),
        (f"[dev]\ntoken = '{SECRET}\n", ":2: the value has a blank or an unmatched quote"),
        (f"[dev]\ntoken: {SECRET}\n", ":2: the line is not a section"),
        (f"[dev]\n{SECRET}\n", ":2: the line is not a section"),
        (f"token = {SECRET}\n", ":1: a value stands before the first section"),
        (f"[dev]\ntoken = {SECRET}\ntoken = {SECRET}\n", ":3: key 'token' stands twice"),
        (f"[dev]\ntoken = {SECRET}\n[b]\n[dev]\n", ":4: section [dev] stands twice"),
        (f"[dev\ntoken = {SECRET}\n", ":1: the line is not a section"),
        (b"[dev]\ntoken = " + SECRET.encode() + b"\xff\n", ":2: it is not UTF-8 text"),
    ],
)
def test_a_file_that_is_not_understood_is_refused_and_never_shown(path, text, problem):
    write(path, text)
    with pytest.raises(CredentialsError) as caught:
        stored_token(path, "dev")
    assert str(caught.value).startswith(f"{path}{problem}")
    assert SECRET not in str(caught.value)
    assert SECRET not in repr(caught.value)
    assert SECRET not in str(pickle.loads(pickle.dumps(caught.value)))


@pytest.mark.parametrize(
    "name", ["", "a b", "../dev", "a/b", "dev]", "[dev", "a\nb", "-dev", "é", "a" * 65, "."]
)
def test_a_name_that_would_be_another_section_is_refused(path, name):
    for use in (lambda: store_token(path, name, SECRET), lambda: remove_token(path, name)):
        with pytest.raises(UsageError, match="is not a valid server name"):
            use()
    assert not path.exists()


@pytest.mark.parametrize("token", ["", "two words", "a\n[b]", "a\ttab", "naïve", "a\x00b", "a\x7f"])
def test_a_token_that_no_header_can_have_is_refused_and_not_shown(path, token):
    with pytest.raises(UsageError) as caught:
        store_token(path, "dev", token)
    assert not token or token not in str(caught.value)
    assert not path.exists()


@given(st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=1))
@example("'a\"b'")
@example("\"#'")
@example("''#\"\"")
def test_any_token_is_read_back(tmp_path_factory, token):
    path = tmp_path_factory.mktemp("home") / "credentials"
    store_token(path, "dev", token)
    assert stored_token(path, "dev") == token


def test_writers_at_the_same_time_lose_nothing(path):
    names = [f"s{n}" for n in range(24)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda name: store_token(path, name, f"token-{name}"), names))
    assert [stored_token(path, name) for name in names] == [f"token-{name}" for name in names]


def test_a_write_that_fails_leaves_the_file_and_no_other(path, monkeypatch):
    store_token(path, "dev", "old")

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(CredentialsError, match="no space left"):
        store_token(path, "dev", SECRET)
    assert os.listdir(path.parent) == ["credentials"]
    assert stored_token(path, "dev") == "old"


def test_a_token_does_not_show_itself():
    assert SECRET not in repr(Token(SECRET, "somewhere"))
    assert SECRET not in str(Token(SECRET, "somewhere"))
