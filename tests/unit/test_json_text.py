"""JSON that people write."""

from __future__ import annotations

import pytest

from omnigraph.json_text import JsonError, parse_json


def test_json_is_read():
    assert parse_json('\ufeff {"a": [1, 2.5, null, "x"]}') == {"a": [1, 2.5, None, "x"]}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a":\n  ,}', "line 2, column 3: expecting value"),
        ("", "line 1, column 1: expecting value"),
        ('{"a": 1} x', "line 1, column 10: extra data"),
        ("[" * 100_000, "it is nested too deeply"),
        ('{"a":' * 100_000, "it is nested too deeply"),
        ("[" * 50_000 + "]" * 50_000, "it is nested too deeply"),
        ('{"n": ' + "9" * 5_000 + "}", "a number has too many digits"),
        ('{"a": {"b": 1, "c": 2, "b": 3}}', "key 'b' stands twice in an object"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(text, message):
    with pytest.raises(JsonError) as caught:
        parse_json(text)
    assert str(caught.value) == message
