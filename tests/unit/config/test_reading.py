"""Every configuration file: what can be read, and where a message points."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from omnigraph.config.operator import parse_operator_config
from omnigraph.config.reading import read_config_text
from omnigraph.errors import ConfigFileError, InputError, OperatorConfigError
from omnigraph.limits import MAX_CONFIG_BYTES

FILE = Path("/home/ada/.omnigraph/config.yaml")


def problem_of(text: str) -> OperatorConfigError:
    with pytest.raises(OperatorConfigError) as caught:
        parse_operator_config(text, FILE)
    return caught.value


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("servers: [", (1, 11)),
        ("a: 1\n  b: 2\n", (2, 4)),
        ("servers:\n\tdev: x\n", (2, 1)),
        ("a: 'open\n", (2, 1)),
        ("a: *nothing\n", (1, 4)),
        ("operator: !!python/object/apply:os.system [ls]\n", (1, 11)),
        ("profiles:\n  one: {store: a}\n  two: {store: b}\n  one: {store: c}\n", (4, 3)),
        ("operator: {actor: a}\noperator: {actor: b}\n", (2, 1)),
        ("a: &a [*a]\n", (1, 4)),
        ("--- 1\n--- 2\n", (2, 1)),
        ("? [a]\n: 1\n", (1, 3)),
    ],
)
def test_text_that_is_not_a_document_is_refused_with_its_place(text, place):
    error = problem_of(text)
    assert (error.line, error.column) == place
    assert str(error).startswith(f"could not parse operator config {FILE}:{place[0]}:{place[1]}: ")


def test_a_key_that_stands_twice_is_named():
    assert "key 'one' stands twice" in str(problem_of("profiles: {one: {}, one: {}}"))


@pytest.mark.parametrize("text", ["", "\n", "# nothing\n", "---\n", "null\n", "\ufeff"])
def test_an_empty_file_is_like_none(text):
    assert parse_operator_config(text.removeprefix("\ufeff"), FILE).warnings == ()


@pytest.mark.parametrize("text", ["- a\n", "text\n", "7\n", "true\n", '"quoted"\n'])
def test_a_document_without_keys_is_refused(text):
    assert "the document must have keys and values" in str(problem_of(text))


def test_deep_nesting_is_an_error_and_no_crash():
    assert "nested too deeply" in str(problem_of("a: " + "[" * 20_000))


def test_references_to_references_cost_nothing():
    levels = [f"k{n}: &k{n} [{', '.join([f'*k{n - 1}'] * 10)}]" for n in range(1, 30)]
    text = "k0: &k0 [a]\n" + "\n".join(levels) + "\n"
    begun = time.monotonic()
    assert len(parse_operator_config(text, FILE).warnings) == 30
    assert time.monotonic() - begun < 5


def test_a_file_that_does_not_exist_has_no_text(tmp_path):
    assert read_config_text(tmp_path / "config.yaml", ConfigFileError) is None
    assert read_config_text(tmp_path / "config.yaml" / "more", ConfigFileError) is None


def test_a_byte_order_mark_is_not_part_of_the_text(tmp_path):
    (tmp_path / "c").write_bytes(b"\xef\xbb\xbfa: 1\r\n")
    assert read_config_text(tmp_path / "c", ConfigFileError) == "a: 1\r\n"


def test_a_file_that_is_not_text_is_refused_with_its_line(tmp_path):
    (tmp_path / "c").write_bytes(b"a: 1\nb: \xff\n")
    with pytest.raises(ConfigFileError) as caught:
        read_config_text(tmp_path / "c", ConfigFileError)
    assert str(caught.value) == f"{tmp_path}/c:2: it is not UTF-8 text"


def test_a_directory_is_refused(tmp_path):
    with pytest.raises(ConfigFileError, match="not a regular file"):
        read_config_text(tmp_path, ConfigFileError)


def test_a_pipe_is_refused_without_waiting_for_a_writer(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ConfigFileError, match="not a regular file"):
        read_config_text(tmp_path / "pipe", ConfigFileError)


def test_a_file_that_is_too_large_is_refused(tmp_path):
    (tmp_path / "c").write_bytes(b"#" * MAX_CONFIG_BYTES)
    assert read_config_text(tmp_path / "c", ConfigFileError) is not None
    (tmp_path / "c").write_bytes(b"#" * (MAX_CONFIG_BYTES + 1))
    with pytest.raises(ConfigFileError, match="more than 256 KiB"):
        read_config_text(tmp_path / "c", ConfigFileError)


def test_a_program_can_catch_the_errors_as_bad_input():
    assert issubclass(OperatorConfigError, ConfigFileError)
    assert issubclass(ConfigFileError, InputError)
