"""Ids for rows that bring none: 26 characters in the form of a ULID, the same on every attempt.

The first 18 characters stand for the load and the source, the last 8 for the record's number. A load
id that is a ULID keeps its time, so generated ids sort by the time of their load.
"""

from __future__ import annotations

import hashlib
import re
from typing import Final

import numpy as np
import pyarrow as pa

from omnigraph.load.typed_rows import Numbers

_ALPHABET: Final = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_LETTERS: Final = np.frombuffer(_ALPHABET.encode(), np.uint8)
_ULID: Final = re.compile(rf"[0-7][{_ALPHABET}]{{25}}")
_TIME_LENGTH: Final = 10
_PREFIX_LENGTH: Final = 18
_LENGTH: Final = 26
_NUMBER_SHIFTS: Final = np.arange(5 * (_LENGTH - _PREFIX_LENGTH - 1), -1, -5, dtype=np.int64)


def id_prefix(load_id: str, source: int) -> str:
    """What the generated ids of one source of a load begin with."""
    digest = hashlib.sha256(f"{source}:{load_id}".encode()).digest()
    number = int.from_bytes(digest[:11], "big")
    text = "".join(_ALPHABET[(number >> shift) & 31] for shift in range(85, -1, -5))
    if _ULID.fullmatch(load_id):
        return load_id[:_TIME_LENGTH] + text[_TIME_LENGTH:]
    return text


def generated_ids(prefix: str, records: Numbers) -> pa.Array:
    """One id per record number."""
    letters = np.empty((len(records), _LENGTH), np.uint8)
    letters[:, :_PREFIX_LENGTH] = np.frombuffer(prefix.encode(), np.uint8)
    letters[:, _PREFIX_LENGTH:] = _LETTERS[(records[:, None] >> _NUMBER_SHIFTS) & 31]
    bounds = np.arange(0, (len(records) + 1) * _LENGTH, _LENGTH, dtype=np.int32)
    buffers = [None, pa.py_buffer(bounds), pa.py_buffer(letters)]
    return pa.Array.from_buffers(pa.utf8(), len(records), buffers)
