"""Python values survive the way through JSON."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta, timezone
from uuid import UUID

import msgspec
import numpy as np
import pytest

from omnigraph.wire.values import tagged, untagged

VALUES = [
    None,
    True,
    0,
    -(2**63),
    2**63 - 1,
    2**63,
    -(10**40),
    1.5,
    math.inf,
    "",
    "ü\u2028",
    b"",
    b"\0\xff",
    date(1, 1, 1),
    datetime(2024, 2, 29, 12, 34, 56, 789012, tzinfo=UTC),
    datetime(1969, 1, 1, tzinfo=timezone(timedelta(hours=5, minutes=30))),
    UUID(int=7),
    [1, [date(2000, 1, 1), None], b"x"],
    {"a": date(2000, 1, 1), "b": {"c": [b"y"]}},
    {"@date": "not alone", "x": 1},
]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_a_value_comes_back(value):
    found = untagged(msgspec.json.decode(msgspec.json.encode(tagged(value))))
    assert (type(found), found) == (type(value), value)


def test_a_number_that_is_none_comes_back():
    assert math.isnan(untagged(tagged(math.nan)))


def test_a_time_without_a_zone_is_utc():
    assert untagged(tagged(datetime(2024, 1, 1))) == datetime(2024, 1, 1, tzinfo=UTC)


def test_arrays_become_lists():
    assert tagged(np.array([1.5, 2.5])) == [1.5, 2.5]
    assert tagged(np.int64(7)) == 7
    assert tagged((1, 2)) == [1, 2]


def test_other_values_are_refused():
    with pytest.raises(TypeError, match="type object is not supported"):
        tagged(object())


@pytest.mark.parametrize(
    "wrong", [{"@date": "x"}, {"@int": "zz"}, {"@bytes": "!"}, {"@uuid": ""}, {"@date": 7}]
)
def test_a_tag_with_another_content_is_refused(wrong):
    with pytest.raises(ValueError):
        untagged(wrong)
