"""Reading a stream of JSON records."""

from __future__ import annotations

import pytest

from tests.support.model.records import read_records


def read(text):
    return [(r.number, r.line, r.value if r.problem is None else "bad") for r in read_records(text)]


@pytest.mark.parametrize("text", ["", "  \n\t\r\n"])
def test_nothing_is_no_record(text):
    assert read(text) == []


def test_records_are_numbered_by_position_and_know_their_line():
    assert read('{"a":\n1}\n\n{"b":2}{"c":3} 4') == [
        (1, 1, {"a": 1}),
        (2, 4, {"b": 2}),
        (3, 4, {"c": 3}),
        (4, 4, 4),
    ]


@pytest.mark.parametrize(
    "broken",
    ['{"a" 1}', '{"a":1', '{"a":"x', "{'a':1}", "// note", "nope", "NaN", '{"a":NaN}', "]"],
)
def test_reading_resumes_at_the_next_line_with_an_object(broken):
    assert read(f'{{"a":0}}\n{broken}\n{{"b":2}}') == [
        (1, 1, {"a": 0}),
        (2, 2, "bad"),
        (3, 3, {"b": 2}),
    ]


def test_an_indented_brace_is_not_where_reading_resumes():
    assert read('{"a" [\n  {"b":1}\n]}\n{"c":2}') == [(1, 1, "bad"), (2, 4, {"c": 2})]


def test_an_object_that_never_ends_swallows_what_it_holds():
    assert read('{"type":"T","data":\n{"a":1}') == [(1, 1, "bad")]


def test_what_follows_broken_text_on_its_line_is_part_of_it():
    assert read('oops {"a":1}\n{"b":2}') == [(1, 1, "bad"), (2, 2, {"b": 2})]


def test_nesting_without_end_is_a_bad_record_and_no_crash():
    text = '{"a":' * 200_000
    assert [number for number, _, value in read(text) if value == "bad"] == [1]


def test_the_text_of_a_record_is_kept():
    records = list(read_records('{"a": 1}\n{"b" 2}\n{"c": 3}'))
    assert [r.raw for r in records] == ['{"a": 1}', '{"b" 2}', '{"c": 3}']
