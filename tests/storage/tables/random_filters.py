"""A table with every scalar type and awkward values, and random predicates over it."""

from __future__ import annotations

import itertools
import math
import random
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from omnigraph.storage.filters import And, Comparison, Filter, In, IsNull, Not, Or

TEXTS = ("", "a", "A", "ab", "b", "it's", 'say "x"', "100%", "_", "\\", "ä", "é", "é", "🦉", "zz")
WORDS = ("", "a", "b", "'", '"', "%", "_", "\\", "é", "🦉", "x")
FLOATS = (-math.inf, -1.5, -0.0, 0.0, 0.1, 1.0, 2.7, 3.0, 1e300, math.inf, math.nan)
SMALL = (-3, -1, 0, 1, 2, 3, 4, 7)
I32 = (-(2**31), *SMALL, 2**31 - 1)
I64 = (-(2**63), *SMALL, 2**53 + 1, 2**63 - 1)
U32 = (0, 1, 2, 3, 7, 2**32 - 1)
U64 = (0, 1, 2, 3, 2**63, 2**64 - 1)
DAYS = (-719_528, -1, 0, 1, 19_875, 3_000_000)
MILLIS = (-62_167_219_200_000, -1, 0, 1, 86_400_000, 1_717_200_000_123, 253_402_300_800_000)
DATE_TEXTS = ("1970-01-01", "2024-06-01", "1970-1-2", "not-a-date", "", "3", "+10183-11-27")
DATETIME_TEXTS = ("1970-01-01", "1970-01-01T00:00:00.001Z", "2024-06-01", "soon", "0")

AWKWARD: tuple[Any, ...] = (
    True, False, 5_000_000_000, -5_000_000_000, 2**64, -(2**70), 10**400, 2.0, 2.7, -0.5, 1e300,
    "2", "true", "x",
)  # fmt: skip

COLUMNS: dict[str, tuple[pa.DataType, tuple[Any, ...], tuple[Any, ...]]] = {
    "text": (pa.string(), TEXTS, TEXTS),
    "flag": (pa.bool_(), (True, False), (True, False)),
    "countI32": (pa.int32(), I32, (*I32, *FLOATS)),
    "i64": (pa.int64(), I64, (*I64, *FLOATS)),
    "Unsigned 32": (pa.uint32(), U32, (*U32, -1, *FLOATS)),
    "u64": (pa.uint64(), U64, (*U64, -1, *FLOATS)),
    "f32": (pa.float32(), FLOATS, (*FLOATS, 3, 2**31)),
    "f64": (pa.float64(), FLOATS, (*FLOATS, 3, 2**53 + 1)),
    "Day": (pa.date32(), DAYS, (*DAYS, *DATE_TEXTS, 2**31)),
    "moment": (pa.date64(), MILLIS, (*MILLIS, *DATETIME_TEXTS)),
}
LISTS: dict[str, tuple[pa.DataType, tuple[Any, ...]]] = {
    "words": (pa.string(), TEXTS),
    "numbers": (pa.int32(), I32),
    "reals": (pa.float64(), FLOATS),
    "days": (pa.date32(), DAYS),
}


def sample_rows(rows: int) -> pa.Table:
    """The same rows at every call, with every value of every column many times."""
    dice = random.Random(1)
    columns = {"id": pa.array([f"r{n}" for n in range(rows)])}
    for name, (kind, stored, _) in COLUMNS.items():
        columns[name] = _array(dice.choices((None, *stored), k=rows), kind)
    for name, (kind, stored) in LISTS.items():
        columns[name] = _lists(kind, stored, rows, dice)
    return pa.table(columns)


def _array(values: list[Any], kind: pa.DataType) -> pa.Array:
    if not pa.types.is_date(kind):
        return pa.array(values, kind)
    storage = pa.int32() if pa.types.is_date32(kind) else pa.int64()
    return pa.array(values, storage).view(kind)


def _lists(kind: pa.DataType, stored: tuple[Any, ...], rows: int, dice: random.Random) -> pa.Array:
    offsets = [0, *itertools.accumulate(dice.choices((0, 1, 2, 3), k=rows))]
    elements = _array(dice.choices((None, *stored), k=offsets[-1]), kind)
    null_lists = pa.array(dice.choices((True, False), (1, 8), k=rows))
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), elements, mask=null_lists)


ORDERS = ("=", "!=", "<", "<=", ">", ">=")


def _leaves() -> st.SearchStrategy[Filter]:
    scalars = st.sampled_from(sorted(COLUMNS))
    comparisons = scalars.flatmap(
        lambda name: st.builds(
            Comparison,
            st.just(name),
            st.sampled_from(ORDERS),
            st.sampled_from((*COLUMNS[name][2], *AWKWARD, None)),
        )
    )
    members = scalars.flatmap(
        lambda name: st.builds(
            In,
            st.just(name),
            st.lists(st.sampled_from((*COLUMNS[name][2], *AWKWARD)), max_size=4).map(tuple),
        )
    )
    texts = st.builds(
        Comparison,
        st.just("text"),
        st.sampled_from(("contains", "starts_with")),
        st.sampled_from((*WORDS, None, 1, True)),
    )
    elements = st.sampled_from(sorted(LISTS)).flatmap(
        lambda name: st.builds(
            Comparison,
            st.just(name),
            st.just("contains"),
            st.sampled_from((*LISTS[name][1], *AWKWARD, None)),
        )
    )
    nulls = st.builds(IsNull, st.sampled_from((*COLUMNS, *LISTS)))
    return st.one_of(comparisons, members, texts, elements, nulls)


def filters() -> st.SearchStrategy[Filter]:
    """Random predicates, a few levels deep."""

    def deeper(inner: st.SearchStrategy[Filter]) -> st.SearchStrategy[Filter]:
        parts = st.lists(inner, max_size=3).map(tuple)
        return st.one_of(st.builds(And, parts), st.builds(Or, parts), st.builds(Not, inner))

    return st.recursive(_leaves(), deeper, max_leaves=6)
