"""Ordinary input never takes the way of single records."""

from __future__ import annotations

import json

import pytest

from omnigraph.load import json_rows
from omnigraph.load.json_rows import read_records
from tests.unit.load.loading import WORKSHOP_RECORDS, W, catalog_of, load

KINDS = catalog_of(
    """
node Thing {
    k: String @key
    day: Date?  moment: DateTime?  days: [Date]?
    single: F32?  huge: U64?  blob: Blob?  vec: Vector(3)?
}
"""
)


@pytest.fixture
def columns_only(monkeypatch):
    """Reading a single record is an error."""

    def unexpected(catalog, texts, positions, **options):
        raise AssertionError(f"{len(texts)} records were read one by one")

    monkeypatch.setattr(json_rows, "read_records", unexpected)


def stream(*data):
    return "\n".join(
        json.dumps({"type": "Thing", "data": {"k": f"t{n}", **d}}) for n, d in enumerate(data)
    )


@pytest.mark.usefixtures("columns_only")
@pytest.mark.parametrize(
    "text",
    [
        WORKSHOP_RECORDS,
        WORKSHOP_RECORDS.replace("\n", "\r\n"),
        WORKSHOP_RECORDS.replace("\n", "\n\n"),
        "".join(json.dumps(json.loads(line), indent=2) for line in WORKSHOP_RECORDS.splitlines()),
        "\n".join(
            json.dumps(dict(sorted(json.loads(line).items())))
            for line in WORKSHOP_RECORDS.splitlines()
        ),
    ],
    ids=["lines", "crlf", "blank lines", "pretty", "data first"],
)
def test_every_layout_of_the_workshop_is_read_in_columns(text):
    assert load(text, W).records == 19


@pytest.mark.usefixtures("columns_only")
def test_dates_as_numbers_and_as_text_are_read_in_columns():
    load(
        stream({"day": "2020-01-01", "moment": "2020-01-01T00:00:00Z", "days": ["2020-01-01"]}),
        KINDS,
    )
    load(stream({"day": 5}, {"moment": 5}, {"days": [5, None]}, {}), KINDS)
    load(stream({"single": 0.1, "huge": 2**64 - 1, "blob": "base64:SGk=", "vec": [1, 2, 3]}), KINDS)


@pytest.mark.usefixtures("columns_only")
def test_keys_the_schema_does_not_know_are_read_in_columns_and_counted():
    given = [{"a": 1, "b": None}, {"a": 2.5}, {}, {"c": ["x"], "b": None}]
    result = load(stream(*given), KINDS)
    assert [(w.message, w.count) for w in result.warnings] == [
        ("Thing has no property 'a'", 2),
        ("Thing has no property 'b'", 2),
        ("Thing has no property 'c'", 1),
    ]


def test_one_bad_record_sends_only_its_neighbours_the_slow_way(monkeypatch):
    seen = []
    slowly = read_records

    def counting(catalog, texts, positions, **options):
        seen.append(len(texts))
        return slowly(catalog, texts, positions, **options)

    monkeypatch.setattr(json_rows, "read_records", counting)
    text = stream(*({} for _ in range(5000))).replace('"t2500"}', '"t2500","huge":-1}')
    result = load(text, KINDS, quarantine=True)
    assert [bad.record for bad in result.quarantined] == [2501]
    assert seen == [json_rows._SLICE_ROWS]


def test_a_value_that_parses_but_does_not_fit_is_the_only_one_read_again(monkeypatch):
    seen = []
    slowly = read_records

    def counting(catalog, texts, positions, **options):
        seen.append(positions)
        return slowly(catalog, texts, positions, **options)

    monkeypatch.setattr(json_rows, "read_records", counting)
    result = load(stream({"day": "2020-01-01"}, {"day": "x"}, {"vec": [1]}), KINDS, quarantine=True)
    assert [bad.record for bad in result.quarantined] == [2, 3]
    assert seen == [[1, 2]]


@pytest.mark.usefixtures("columns_only")
def test_a_patch_tells_absent_keys_from_nulls_in_columns():
    text = stream({"day": None}, {}, {"vec": None}, {"day": "2020-01-01"})
    assert load(text, KINDS, mode="patch").records == 4
