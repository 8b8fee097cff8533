"""Cutting a stream into records: the quick way and the rule give the same records."""

from __future__ import annotations

import io
import json
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.load.json_text import read_blocks, read_values, split_lines
from tests.unit.load.loading import W, load


def framed(text, block=4 << 20, limit=1 << 30):
    """Every record of a stream: its number, line and text, malformed ones with their problem."""
    found, before = [], 1
    with (
        patch("omnigraph.load.json_text.LOAD_BLOCK_BYTES", block),
        patch("omnigraph.load.json_text.LOAD_RECORD_BYTES", limit),
    ):
        for stretch in read_blocks(io.BytesIO(text)):
            records = stretch.records
            texts = [t.strip() for t in records.texts.to_pylist()]
            at = dict(zip(records.positions.tolist(), texts, strict=True))
            at |= {m.problem.position(): (m.problem.message, m.raw) for m in records.malformed}
            for position, line in enumerate(records.lines.tolist()):
                found.append((before + position, line, at[position]))
            before += records.count
    return found


def test_lines_that_look_like_objects_are_records():
    records = split_lines(b'{"a":1}\n\n{"b":2} \r\n{"c":3}', 5)
    assert records is not None
    assert [t.strip() for t in records.texts.to_pylist()] == [b'{"a":1}', b'{"b":2}', b'{"c":3}']
    assert records.lines.tolist() == [5, 7, 8]


@pytest.mark.parametrize(
    "text",
    [b' {"a":1}\n', b'{"a":1\n}\n', b"[1]\n", b'{"a":1},\n', b"// x\n", b'{"a":1}\n{"b":'],
)
def test_any_other_line_leaves_the_cutting_to_the_rule(text):
    assert split_lines(text, 1) is None


@pytest.mark.parametrize("block", [1, 7, 64, 1 << 20])
def test_records_are_found_in_every_layout(block):
    text = b'{"a": 1}{"b": 2} {"c":\n 3}\n\n[4]\n5 "six"\nnull {"d": {}}'
    assert framed(text, block) == [
        (1, 1, b'{"a": 1}'),
        (2, 1, b'{"b": 2}'),
        (3, 1, b'{"c":\n 3}'),
        (4, 4, b"[4]"),
        (5, 5, b"5"),
        (6, 5, b'"six"'),
        (7, 6, b"null"),
        (8, 6, b'{"d": {}}'),
    ]


@pytest.mark.parametrize("block", [1, 16, 1 << 20])
def test_after_malformed_text_reading_goes_on_at_the_next_line_with_an_object(block):
    text = b'{"a":1}\n{"b":}\n  {"skipped":1}\nnoise\n{"c":3}\n// {"d":4}\n{"e":5}'
    assert framed(text, block) == [
        (1, 1, b'{"a":1}'),
        (2, 2, ("Expecting value", '{"b":}\n  {"skipped":1}\nnoise')),
        (3, 5, b'{"c":3}'),
        (4, 6, ("Expecting value", '// {"d":4}')),
        (5, 7, b'{"e":5}'),
    ]


def test_a_record_cut_off_before_a_value_takes_the_next_line_for_it():
    found = framed(b'{"a":\n{"b":1}\n{"c":1}\n{"d":1}\n')
    assert [(number, line) for number, line, _ in found] == [(1, 1), (2, 3), (3, 4)]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (b'{"a":"\xff"}', "invalid UTF-8"),
        (b'{"a":"\\ud800"}', "half of a surrogate pair"),
        (b'{"a":NaN}', "NaN is not a JSON value"),
        (b'{"a":-Infinity}', "-Infinity is not a JSON value"),
        (b'{"a":' + b"[" * 100_000, "nested too deeply"),
        (b'{"a":"\n"}', "Invalid control character at"),
        (b"{", "Expecting property name enclosed in double quotes"),
    ],
)
def test_a_text_that_is_no_json_says_why(text, problem):
    records, _ = read_values(text, 1, ended=True)
    assert [m.problem.message for m in records.malformed] == [problem]


def test_a_byte_order_mark_is_skipped():
    assert framed(b'\xef\xbb\xbf{"a":1}') == [(1, 1, b'{"a":1}')]


@pytest.mark.parametrize("text", [b"", b" \n\t\r\n "])
def test_an_empty_stream_has_no_records(text):
    assert framed(text) == []


def test_a_record_may_be_longer_than_a_block():
    long = json.dumps({"a": "x" * 5000}).encode()
    text = long + b"\n" + json.dumps({"b": ["y" * 3000]}, indent=1).encode() + b"\n" + long
    assert [line for _, line, _ in framed(text, 64)] == [1, 2, 7]


def test_a_record_beyond_the_limit_is_malformed_and_the_next_one_is_read():
    endless = b'{"a":[\n' + b"1,\n" * 400
    found = framed(endless + b'{"b":2}\n', 64, 256)
    assert found[0][1] == 1
    assert isinstance(found[0][2], tuple)
    assert found[-1][2] == b'{"b":2}'


objects = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner, max_size=2)
    ),
    max_leaves=4,
)
pieces = st.one_of(
    st.dictionaries(st.text(max_size=2), objects, max_size=3).map(json.dumps),
    objects.map(lambda o: json.dumps(o, indent=1)),
    st.sampled_from(["{", "}", '"', "\n", "\n{", " ", ",", ":", "[", "]", "\\", "tru", "{}\n"]),
)


@given(st.lists(pieces, max_size=8).map("".join), st.integers(1, 40))
def test_blocks_of_any_size_give_the_records_of_the_whole(text, block):
    data = text.encode()
    records, _ = read_values(data, 1, ended=True)
    whole = framed(data, block)
    # Cut by lines, a text may still hold several records or none that is well formed.
    if all(isinstance(t, tuple) or _is_json(t) for _, _, t in whole):
        assert len(whole) == records.count
        assert [line for _, line, _ in whole] == records.lines.tolist()


def _is_json(text):
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def test_several_records_in_lines_that_look_like_one_keep_their_numbers():
    two = '{"type":"Shed","data":{"slug":"%s"}}{"type":"Shed","data":{"slug":"%s"}}\n'
    text = two % ("a", "b") + two % ("c", "d") + '{"type":"Shed","data":{"slug":"e"}}'
    result = load(text, W, load_id="x")
    assert result.records == 5
    assert result.types["node:Shed"].rows.column("id").to_pylist() == list("abcde")
