"""A few rows are written value by value, and the text is the same as that of many."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph.catalog.arrow import arrow_type
from omnigraph.language.types import PropType, Scalar
from omnigraph.read import result
from omnigraph.read.result import ELEMENTS, INDENTED, LINES, json_rows

VALUES: dict[Scalar, st.SearchStrategy[Any]] = {
    Scalar.STRING: st.text(),
    Scalar.BOOL: st.booleans(),
    Scalar.I32: st.integers(-(2**31), 2**31 - 1),
    Scalar.I64: st.integers(-(2**63), 2**63 - 1),
    Scalar.U32: st.integers(0, 2**32 - 1),
    Scalar.U64: st.integers(0, 2**64 - 1),
    Scalar.F64: st.floats(allow_nan=False, allow_infinity=False),
}


@st.composite
def tables(draw: st.DrawFn) -> tuple[pa.Table, list[PropType]]:
    types = [
        PropType(s, nullable=True)
        for s in draw(st.lists(st.sampled_from([*VALUES]), min_size=1, max_size=4))
    ]
    rows = draw(st.integers(0, 4))
    columns = [
        pa.array([draw(st.none() | VALUES[kind.scalar]) for _ in range(rows)], arrow_type(kind))
        for kind in types
    ]
    return pa.table(columns, names=[f'"c{number}' for number in range(len(types))]), types


@given(tables(), st.sampled_from([ELEMENTS, INDENTED, LINES]), st.booleans())
@settings(max_examples=200, deadline=None)
def test_the_text_of_a_few_rows_is_that_of_many(made, layout, js_safe):
    table, types = made

    def text() -> bytes:
        return b"".join(map(memoryview, json_rows(table, types, layout, js_safe=js_safe)))

    few = text()
    with patch.object(result, "FEW_ROWS", -1):
        assert text() == few


def test_single_values_are_written_by_python(monkeypatch):
    monkeypatch.setattr(result, "joined", lambda _: pytest.fail("Arrow has written the rows"))
    table, types = pa.table({"a": ["x\n"]}), [PropType(Scalar.STRING)]
    assert result.rows_json(table, types) == b'[{"a":"x\\n"}]'
