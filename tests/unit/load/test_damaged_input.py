"""Bytes of any kind end in a load or in a typed error with the record's number, never in a crash."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from omnigraph.errors import LoadError
from omnigraph.load.json_table import JsonMismatch, SeveralRecords, parse_objects
from tests.unit.load.fuzzing import CATALOG
from tests.unit.load.loading import load, rows_of

ROOT = Path(__file__).parents[3]
GOOD = '{"type":"P","data":{"k":"%s"}}'


def fuzz(seed: int, rounds: int, seconds: int) -> None:
    """A crash of the reader, signal 11 for one, ends the child and not the tests."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.unit.load.fuzzing", str(seed), str(rounds)],
        cwd=ROOT,
        capture_output=True,
        timeout=seconds,
        check=False,
    )
    last = done.stdout.splitlines()[-1:]
    assert done.returncode == 0, (done.returncode, last, done.stderr.decode()[-2000:])


def test_damaged_bytes_never_end_the_process():
    fuzz(seed=1, rounds=150, seconds=600)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 12))
def test_many_more_damaged_bytes_never_end_the_process(seed):
    fuzz(seed, rounds=3_000, seconds=3_600)


@pytest.mark.parametrize(
    ("texts", "error"),
    [
        ([b"null\n"], JsonMismatch),
        ([b"{}\n", b"null\n"], JsonMismatch),
        ([b"[null]\n"], JsonMismatch),
        ([b" {}\n"], JsonMismatch),
        ([b"{}null{}\n"], SeveralRecords),
        ([b'{"a":"x"}\n', b'{"a":"} null"} \r\t null {}\n'], SeveralRecords),
    ],
)
def test_no_text_that_is_not_one_object_reaches_arrow(monkeypatch, texts, error):
    monkeypatch.setattr("pyarrow.json.read_json", None)
    with pytest.raises(error):
        parse_objects(pa.array(texts, pa.binary()), pa.schema([("a", pa.utf8())]))


def test_a_null_in_a_string_is_text():
    texts = pa.array([b'{"a":"} null {"}\n', b'{"a":"\\"} null"}\n'], pa.binary())
    table = parse_objects(texts, pa.schema([("a", pa.utf8())]))
    assert table.column("a").to_pylist() == ["} null {", '"} null']


def refusal(given: object, **options: Any) -> LoadError:
    with pytest.raises(LoadError) as caught:
        load(given, CATALOG, **options)
    return caught.value


def listed(error: LoadError) -> list[tuple[int | None, str, str]]:
    return [(p.record, p.code, p.message) for p in error.load_errors]


@pytest.mark.parametrize(
    ("record", "key"),
    [
        ('{"type":"P","data":{"k":"a","k":"b"}}', "k"),
        ('{"type":"P","data":{"k":"a","n":null,"n":1}}', "n"),
        ('{"type":"P","data":{"k":"a","\\u006b":"b"}}', "k"),
        ('{"type":"P","type":"P","data":{"k":"a"}}', "type"),
        ('{"data":{"k":"a"},"type":"P","data":{"k":"a"}}', "data"),
        ('{"type":"P","data":{"k":"a","other":1,"other":2}}', "other"),
        ('{"type":"P","data":{"k":"a"},"note":{"x":[{"y":1,"y":2}]}}', "y"),
        ('{"edge":"E","from":"a","to":"b","to":"c"}', "to"),
    ],
)
@pytest.mark.parametrize("at", [0, 2, 4])
def test_a_key_that_an_object_has_twice_is_refused(record, key, at):
    records = [GOOD % n for n in range(4)]
    records.insert(at, record)
    wanted = [(at + 1, "bad_record", f"an object has the key '{key}' twice")]
    assert listed(refusal("\n".join(records))) == wanted
    assert listed(refusal(" ".join(records) + "\n")) == wanted


@pytest.mark.parametrize(
    "other",
    ['"n":1,"n":1', '"x":1,"x":1', '"x":{"y":1,"y":1}', '"x":[{"y":null,"y":null}]', '"x":NaN'],
)
@pytest.mark.parametrize("before", ['"x":1', '"x":{"y":1}', '"x":[{"y":null}]', '"z":[1,"a"]'])
def test_plain_objects_are_read_alike_in_columns_and_one_by_one(tmp_path, before, other):
    path = tmp_path / "people.json"
    lines = [f'{{"k":"p{n}",{before}}}' for n in range(3)]
    path.write_text("\n".join(lines))
    mapping = {"version": 1, "sources": [{"path": str(path), "node": "P"}]}
    assert len(rows_of(load(None, CATALOG, mapping=mapping), "node:P")) == 3
    path.write_text("\n".join([*lines, f'{{"k":"bad",{other}}}']))
    error = refusal(None, mapping=mapping)
    assert [p.record for p in error.load_errors] == [4]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"type":"P",}', "Expecting property name enclosed in double quotes (line 2, column 13)"),
        ('{"type":\n  "P",\n  bad}', "Expecting property name enclosed in double quotes (line 4, column 3)"),
        ('{"type":"P","data":{"f":NaN}}', "NaN is not a JSON value (line 2, column 25)"),
        ('{"type":"P","data":{"n":%s}}' % ("9" * 5_000), "a number has more than 4,300 digits (line 2, column 25)"),
        ('{"type":"P","data":{"k":"\\ud800"}}', "half of a surrogate pair (line 2, column 26)"),
        ('{"type":"P","data":{"k":' + "[" * 300 + "]" * 300 + "}}", "nested too deeply (line 2, column 1)"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("later", [0, 70])
def test_broken_json_is_reported_with_line_and_column(text, message, later):
    text = "\n".join([GOOD % "a", text, *(GOOD % n for n in range(later))])
    found = listed(refusal(text))
    assert found == [(2, "invalid_json", f"invalid JSON at record 2: {message}")]


def test_lines_and_columns_are_those_of_the_file_in_every_layout():
    text = json.dumps({"type": "P", "data": {"k": "a"}}, indent=2) + "\n  {\n"
    (found,) = listed(refusal(text))
    assert found[2].endswith("(line 8, column 1)")


def test_bytes_that_are_not_utf8_are_shown_with_their_place():
    (found,) = listed(refusal((GOOD % "a").encode() + b'\n{"type":"P","data":{"k":"\xff"}}'))
    assert found == (
        2,
        "invalid_json",
        "invalid JSON at record 2: invalid UTF-8 (line 2, column 26)",
    )
