"""How texts are taken apart into the words that are searched for."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.text.analyse import Word, to_ascii, words_of, words_of_query


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Copper KETTLES", ["copper", "kettl"]),
        ("  ...  ", []),
        ("", []),
        ("snake_case and kebab-case", ["snake", "case", "kebab", "case"]),
        ("naïve Straße Œuvre", ["naiv", "strass", "oeuvr"]),
        ("Öl für Łódź", ["ol", "fur", "lodz"]),
        ("x2 3D-Drucker", ["x2", "3d", "drucker"]),
        ("the of and", []),
        ("Ключ от чайника", ["ключ", "от", "чайника"]),
        ("a" * 40 + " " + "b" * 41, ["a" * 40]),
        ("running runs ran", ["run", "run", "ran"]),
    ],
)
def test_words_are_folded_and_stemmed(text, words):
    assert [word.text for word in words_of_query(text)] == words


def test_positions_count_stop_words_and_words_that_are_too_long():
    found = words_of_query(f"hose of the garden {'x' * 50} end")
    assert found == [Word("hose", 0), Word("garden", 3), Word("end", 5)]


def test_a_column_is_analysed_like_its_texts_one_by_one():
    texts = ["The copper kettle", None, "", "kettles, KETTLES!", "un café"]
    words = words_of(pa.array(texts, pa.utf8()))
    found = [
        (int(row), Word(words.vocabulary[code], int(position)))
        for row, position, code in zip(words.rows, words.positions, words.codes, strict=True)
    ]
    expected = [
        (row, word)
        for row, text in enumerate(texts)
        if text is not None
        for word in words_of_query(text)
    ]
    assert found == expected


@given(st.text(st.characters(max_codepoint=127)))
def test_a_query_in_ascii_is_taken_apart_like_a_stored_text(text):
    words = words_of(pa.array([text, "é"], pa.utf8()))
    mine = words.rows == 0
    found = zip(words.codes[mine].tolist(), words.positions[mine].tolist(), strict=True)
    assert words_of_query(text) == [Word(words.vocabulary[code], place) for code, place in found]


def test_a_part_of_a_column_is_analysed_for_itself():
    texts = pa.array(["one", "two", "three four"])
    words = words_of(texts.slice(1))
    assert [words.vocabulary[code] for code in words.codes] == ["two", "three", "four"]
    assert words.rows.tolist() == [0, 1, 1]


def test_letters_of_other_scripts_stay_as_they_are():
    assert to_ascii("й") == "й"
    assert to_ascii("né") == "ne"
