"""Columns of dates are read as the one reader of dates would read each of them."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.language.values import parse_date, parse_datetime
from omnigraph.load.columns import read_dates, read_datetimes

digits = st.integers(0, 99).map(lambda n: f"{n:02d}")
likely = st.builds(
    lambda y, m, d, t, h, mi, s, f, z: f"{y}-{m}-{d}{t}{h}:{mi}:{s}{f}{z}",
    st.sampled_from(["0000", "1900", "1969", "2000", "2024", "9999", "+2020", "20x0"]),
    st.sampled_from(["01", "02", "12", "13", "00", "4"]),
    st.sampled_from(["01", "28", "29", "30", "31", "32", "00", "9"]),
    st.sampled_from(["T", "t", " ", "_", ""]),
    st.sampled_from(["00", "23", "24", "7"]),
    st.sampled_from(["00", "59", "60"]),
    st.sampled_from(["00", "59", "60", "-1"]),
    st.sampled_from(["", ".", ".1", ".12", ".123", ".123456789", ".x"]),
    st.sampled_from(
        ["", "Z", "z", "+00:00", "-23:59", "+24:00", "+0100", "+01", "+1:00", "~00:00"]
    ),
)
days = st.builds("{}-{}-{}".format, st.sampled_from(["2023", "2024", "0000"]), digits, digits)
strange = st.sampled_from(
    ["", "20240229", "20230229", "2026-4-9", "+10999-12-31", "é024-01-01", "x"]
)
texts = st.lists(st.none() | likely | days | strange, max_size=20)


@pytest.mark.parametrize(
    ("read", "parse", "number"),
    [(read_dates, parse_date, pa.int32()), (read_datetimes, parse_datetime, pa.int64())],
    ids=["dates", "datetimes"],
)
@given(given_texts=texts, skipped=st.integers(0, 3))
def test_a_column_reads_like_its_values(read, parse, number, given_texts, skipped):
    column = pa.array([*["2020-01-01"] * skipped, *given_texts], pa.utf8()).slice(skipped)
    expected, wrong = [], []
    for text in given_texts:
        try:
            expected.append(None if text is None else parse(text))
            wrong.append(False)
        except ValueError:
            expected.append(None)
            wrong.append(True)
    values, bad = read(column)
    assert values.view(number).to_pylist() == expected
    assert bad.tolist() == wrong


def test_a_layout_shared_by_all_is_read_without_the_reader_of_single_texts(monkeypatch):
    def unexpected(text):
        raise AssertionError(text)

    monkeypatch.setattr("omnigraph.load.columns.parse_datetime", unexpected)
    for text in ("2020-01-01T00:00:00Z", "2020-01-01 00:00:00.123456+02:00", "2020-01-01"):
        values, _ = read_datetimes(pa.array([text] * 3))
        assert len(values) == 3
