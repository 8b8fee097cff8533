"""Which properties a record has: absent, or there with a null.

Only patches ask. The answer travels beside the rows in one column, a flag per property.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.ir import compact_json
from omnigraph.catalog.model import EntityType

Mask = npt.NDArray[np.bool_]

GIVEN: Final = "__given"
"""The column of flags: a struct with a boolean per property, and one for the id."""


def given_type(declared: EntityType) -> pa.DataType:
    """The type of the column. With the id it has a field, and so a length, in every case."""
    return pa.struct([(name, pa.bool_()) for name in ("id", *declared.properties)])


def given_column(declared: EntityType, count: int, given: Mapping[str, Mask]) -> pa.StructArray:
    """The flags of so many rows; a property that `given` does not have is there in all of them."""
    always = np.ones(count, np.bool_)
    kind = given_type(declared)
    flags = [pa.array(given.get(field.name, always)) for field in kind]
    return pa.StructArray.from_arrays(flags, fields=list(kind))


def given_flags(rows: pa.Table, name: str) -> Mask:
    """The flags of one property."""
    flags: Mask = pc.struct_field(rows.column(GIVEN), name).to_numpy()
    return flags


def has_key(key: str, texts: pa.Array) -> pa.Array:
    """Which texts of objects have a key, whatever its value.

    Between quotes and before a colon the name of a key can only be that key: inside a string its
    quotes would be escaped. It may be the key of an inner object.
    """
    return pc.match_substring_regex(texts, re.escape(compact_json(key)) + r"\s*:")


def given_in_texts(
    columns: Mapping[str, tuple[str, pa.Array]], texts: pa.Array, unclear: Collection[str]
) -> tuple[dict[str, Mask], Mask]:
    """By property, the records that have its key; and the records whose text leaves that open.

    `columns` has the key of each property and its values. `unclear` are properties whose key may
    stand elsewhere in a record as well.
    """
    given: dict[str, Mask] = {}
    doubtful = np.zeros(len(texts), np.bool_)
    # A key may be spelled with escapes.
    escaped = pc.match_substring(texts, "\\u").to_numpy(zero_copy_only=False)
    for name, (key, column) in columns.items():
        if not column.null_count:
            continue
        empty = column.is_null().to_numpy(zero_copy_only=False)
        found = np.zeros(len(texts), np.bool_)
        matches = has_key(key, texts.filter(pa.array(empty)))
        found[empty] = matches.to_numpy(zero_copy_only=False)
        doubtful |= empty & escaped
        if name in unclear:
            doubtful |= found
        given[name] = ~empty | found
    return given, doubtful
