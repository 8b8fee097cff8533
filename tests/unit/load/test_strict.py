"""Properties that the schema does not have: a warning with the right name, or a refusal."""

from __future__ import annotations

import json
import pickle
from typing import Any

import pyarrow as pa
import pytest

from omnigraph.errors import LoadError, UnknownPropertiesRefused
from omnigraph.limits import MAX_LOAD_ERRORS
from tests.unit.load.loading import W, load


def maker(number: int, **data: object) -> str:
    return json.dumps({"type": "Maker", "data": {"handle": f"m{number}", **data}})


def refusal(given: object, **options: Any) -> UnknownPropertiesRefused:
    with pytest.raises(UnknownPropertiesRefused) as caught:
        load(given, W, strict=True, **options)
    return caught.value


MISSPELT = [maker(1), maker(2, skils=[]), maker(3, shoe=41), maker(4, skils=None, shoe=42)]


@pytest.mark.parametrize("glue", ["\n", " ", "\n{}\n"])
def test_a_warning_names_the_property_that_was_probably_meant(glue):
    if "{" in glue:  # a bad record makes its neighbours be read one by one
        found = load(glue.join(MISSPELT), W, quarantine=True)
    else:
        found = load(glue.join(MISSPELT), W)
    assert [(w.code, w.message, w.count) for w in found.warnings] == [
        ("unknown_property", "Maker has no property 'shoe'", 2),
        ("unknown_property", "Maker has no property 'skils'; did you mean `skills`?", 2),
    ]


@pytest.mark.parametrize("glue", ["\n", " ", "\n\n"])
def test_a_strict_load_refuses_them_with_their_first_records(glue):
    error = refusal([(maker(0) + "\n").encode(), glue.join(MISSPELT * 2).encode()])
    assert str(error).splitlines() == [
        "load failed: 2 unknown properties, nothing was loaded",
        "  Maker has no property 'shoe' (4 records: <data> record 3, <data> record 4, <data> record 7, …)",
        "  Maker has no property 'skils'; did you mean `skills`? "
        "(4 records: <data> record 2, <data> record 4, <data> record 6, …)",
    ]
    assert [(p.type, p.property, p.records) for p in error.properties] == [
        ("Maker", "shoe", 4),
        ("Maker", "skils", 4),
    ]
    assert pickle.loads(pickle.dumps(error)).properties == error.properties


def test_keys_and_ids_of_a_record_are_no_properties():
    text = '{"type":"Maker","note":1,"data":{"id":"a","handle":"a"}}\n'
    edge = '{"edge":"Mentors","from":"a","to":"a","id":"x","data":{"id":"e"}}'
    assert load(text + edge, W, strict=True).records == 2


def test_bad_records_are_reported_first():
    with pytest.raises(LoadError, match="expects I32"):
        load(maker(1, skils=[]) + maker(2, age="old"), W, strict=True)
    error = refusal(maker(1, skils=[]) + maker(2, age="old"), quarantine=True)
    assert [p.property for p in error.properties] == ["skils"]


def test_a_column_without_a_property_is_refused_unless_a_mapping_says_what_columns_are(tmp_path):
    path = tmp_path / "Maker.csv"
    path.write_text("handle,agee,id\na,3,a\n")
    error = refusal(path)
    assert str(error).splitlines()[1:] == [
        f"  {path}: Maker has no property 'agee'; did you mean `age`?"
    ]
    assert [(p.type, p.property, p.records, p.source) for p in error.properties] == [
        ("Maker", "agee", None, str(path))
    ]
    assert load(path, W).warnings == ()
    edges = pa.table({"from": ["a"], "to": ["a"], "since": [None], "sinse": [None]})
    assert [p.property for p in refusal({"Mentors": edges}).properties] == ["sinse"]
    columns = {"handle": "handle", "age": "agee"}
    mapping = {"version": 1, "sources": [{"path": str(path), "node": "Maker", "columns": columns}]}
    assert load(None, W, mapping=mapping, strict=True).records == 1


def test_the_list_of_unknown_properties_is_capped():
    text = "\n".join(maker(n, **{f"key number {n}": n}) for n in range(MAX_LOAD_ERRORS + 50))
    warnings = load(text, W).warnings
    assert len(warnings) == MAX_LOAD_ERRORS + 1
    assert (warnings[-1].message, warnings[-1].count) == ("50 more properties are unknown", 50)
    error = refusal(text)
    assert len(error.properties) == MAX_LOAD_ERRORS + 50
    assert str(error).endswith("\n  … and 50 more")


def test_long_names_are_cut():
    text = maker(1, **{"k" * 5_000: 1})
    (warning,) = load(text, W).warnings
    assert warning.message == f"Maker has no property '{'k' * 200}… (5,000 characters)'"
    assert len(str(refusal(text))) < 500


# Equal problems


def failure(text: str, **options: Any) -> LoadError:
    with pytest.raises(LoadError) as caught:
        load(text, W, **options)
    return caught.value


def test_equal_problems_are_one_line_with_a_count_and_the_first_records():
    bad = [maker(n, age="old") for n in range(5_900)]
    error = failure("\n".join([maker(-1), *bad, maker(-2, age=2**40)]), max_errors=5_901)
    assert str(error).splitlines() == [
        "load failed: 5901 bad records of 5902, nothing was loaded",
        "  <data> records 2, 3, 4, 5, 6 and 5,895 more: property 'age' expects I32, got string",
        "  <data> record 5902: property 'age': value out of range for I32",
    ]
    assert len(error.load_errors) == 5_901


def test_what_is_not_listed_is_counted_with_its_equals():
    bad = [maker(n, age="old") for n in range(5_900)]
    error = failure("\n".join([*bad, maker(-2, age=2**40)]), max_errors=1)
    assert str(error).splitlines() == [
        "load failed: 5901 bad records of 5901, nothing was loaded",
        "  <data> record 1 and 5,899 more: property 'age' expects I32, got string",
        "  … and 1 more",
    ]
    assert (len(error.load_errors), error.load_errors_total) == (1, 5_901)


def test_no_message_shows_a_long_value():
    error = failure(maker(1, level="x" * 10_000) + maker(2, joined="y" * 10_000))
    assert len(str(error)) < 1_000
    assert all(len(problem.message) < 400 for problem in error.load_errors)
    assert "(10,000 characters)" in error.load_errors[0].message
