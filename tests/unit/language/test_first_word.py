"""The first word of a text, which says whether it is a statement."""

from __future__ import annotations

import time

import pytest

from omnigraph.language.query.file_statements import first_word


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("query q() {}", "query"),
        ("\n\t // note\n /* a */ branch list", "branch"),
        ("/* open branch", None),
        ("// only", None),
        ("", None),
        ("{", None),
    ],
)
def test_white_space_and_comments_are_passed_over(text, found):
    assert first_word(text) == found


def test_white_space_costs_what_reading_it_costs():
    started = time.process_time()
    assert first_word(" \n" * 100_000 + "query") == "query"
    assert first_word("/**/ " * 50_000 + "?") is None
    assert time.process_time() - started < 1
