"""Spellings of dates and times, and the numbers they stand for."""

from __future__ import annotations

import calendar
import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.language.values import format_date, format_datetime, parse_date, parse_datetime

EPOCH = dt.date(1970, 1, 1)
EPOCH_UTC = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
DAY = 86_400_000


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("1970-01-01", 0),
        ("2021-07-15", 18823),
        ("2020-02-01", 18293),
        ("2026-4-9", 20552),
        ("2026-04-9", 20552),
        ("20260409", 20552),
        ("1969-12-31", -1),
        ("2000-02-29", 11016),
        ("+2026-04-09", 20552),
        ("+10999-12-31", 3298139),
        ("-0001-01-01", -719893),
        ("2026-04-09T23:59:59Z", 20552),
        ("2026-04-09T23:30:00-02:00", 20553),
        ("2026-04-09 00:30:00.5+01", 20551),
    ],
)
def test_a_date_is_read_from_each_of_its_spellings(text, day):
    assert parse_date(text) == day


@pytest.mark.parametrize(
    ("text", "millis"),
    [
        ("2019-05-01T08:00:00Z", 1_556_697_600_000),
        ("2019-05-01t10:00:00+02:00", 1_556_697_600_000),
        ("2019-05-01 10:00:00+0200", 1_556_697_600_000),
        ("2019-05-01T06:00:00-02", 1_556_697_600_000),
        ("2019-05-01T08:00:00", 1_556_697_600_000),
        ("2019-05-01T08:00:00.5", 1_556_697_600_500),
        ("2019-05-01T08:00:00.123999999999Z", 1_556_697_600_123),
        ("1969-12-31T23:59:59.9999Z", -1),
        ("1970-01-01", 0),
        ("1970-1-2", DAY),
        ("19700102", DAY),
        ("0001-01-01T00:00:00Z", -62_135_596_800_000),
        ("9999-12-31T23:59:59.999Z", 253_402_300_799_999),
    ],
)
def test_a_datetime_is_read_from_each_of_its_spellings(text, millis):
    assert parse_datetime(text) == millis


@pytest.mark.parametrize(
    "text",
    [
        "",
        "soon",
        "15/07/2021",
        "2021-07",
        "2021-13-01",
        "2021-00-01",
        "2021-02-29",
        "1900-02-29",
        "2021-04-31",
        "2021-07-00",
        "2021-7-015",
        "21-07-15",
        "10999-12-31",
        "2021-07-15 ",
        " 2021-07-15",
        "2021-07-15\n",
        "２０２１-07-15",
        "2021-07-15T",
        "2021-07-15T10:00",
        "2021-07-15T24:00:00",
        "2021-07-15T10:60:00",
        "2021-07-15T10:00:00.",
        "2021-07-15T10:00:00,5",
        "2021-07-15T10:00:00 Z",
        "2021-07-15T10:00:00Z+1",
        "2021-07-15T10:00:00+1",
        "2021-07-15T10:00:00+25:00",
        "2021-07-15T10:00:00+01:60",
        "2021-07-15X10:00:00",
        "2021-7-15T10:00:00",
        "20210715T100000",
        "1556697600000",
    ],
)
def test_any_other_text_is_neither_a_date_nor_a_datetime(text):
    with pytest.raises(ValueError) as date_error:
        parse_date(text)
    assert str(date_error.value) == f"invalid Date literal '{text}'"
    with pytest.raises(ValueError) as datetime_error:
        parse_datetime(text)
    assert str(datetime_error.value) == f"invalid DateTime literal '{text}'"


@pytest.mark.parametrize("year", [1600, 1900, 2000, 2023, 2024, 2100])
@pytest.mark.parametrize("month", range(1, 13))
def test_every_month_ends_where_the_calendar_says(year, month):
    last = calendar.monthrange(year, month)[1]
    written = f"{year}-{month:02d}-{last}"
    assert format_date(parse_date(written)) == written
    with pytest.raises(ValueError):
        parse_date(f"{year}-{month:02d}-{last + 1}")


def test_an_extended_year_is_no_spelling_of_a_datetime():
    with pytest.raises(ValueError):
        parse_datetime("+10999-12-31")
    with pytest.raises(ValueError):
        parse_datetime("+10999-12-31T00:00:00Z")


@given(st.dates())
def test_days_agree_with_the_calendar(date):
    days = (date - EPOCH).days
    assert parse_date(date.isoformat()) == days
    assert parse_date(date.strftime("%Y%m%d").zfill(8)) == days
    assert format_date(days) == date.isoformat()


@given(st.integers(-(10**6) * 365, 10**6 * 365 - 10**7))
def test_every_day_reads_back_from_its_text(days):
    assert parse_date(format_date(days)) == days


OFFSETS = st.integers(-23 * 60, 23 * 60).map(lambda m: dt.timezone(dt.timedelta(minutes=m)))


@given(st.datetimes(min_value=dt.datetime(1, 1, 2), max_value=dt.datetime(9999, 12, 30)), OFFSETS)
def test_milliseconds_agree_with_the_clock(moment, zone):
    local = moment.replace(tzinfo=zone)
    millis = (local - EPOCH_UTC) // dt.timedelta(milliseconds=1)
    utc = local.astimezone(dt.UTC)
    assert parse_datetime(local.isoformat(timespec="milliseconds")) == millis
    assert parse_datetime(local.isoformat(" ", timespec="microseconds")) == millis
    assert format_datetime(millis) == f"{utc.isoformat(timespec='milliseconds')[:-6]}Z"
    assert parse_datetime(format_datetime(millis)) == millis
    assert parse_date(local.isoformat(timespec="seconds")) == (utc.date() - EPOCH).days
