"""Text columns: JSON escapes and blankness, for whole columns at once."""

from __future__ import annotations

import json
from functools import cache
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_NEEDS_ESCAPE: Final = r'[\x00-\x1f"\\]'


# What str.strip() removes. Arrow's own notion of white space leaves out the separators U+001C to
# U+001F, and a text must not be blank in one place and present in another.
@cache
def _white_space() -> str:
    return "".join(chr(c) for c in range(0x3001) if chr(c).isspace())


def json_escaped(texts: pa.Array) -> pa.Array:
    """The texts as they stand between the quotes of JSON strings, with as few escapes as possible."""
    if not _may_need_escape(texts):
        return texts
    special = pc.match_substring_regex(texts, _NEEDS_ESCAPE)
    special = pc.fill_null(special, False)
    escaped = [json.dumps(t, ensure_ascii=False)[1:-1] for t in texts.filter(special).to_pylist()]
    return pc.replace_with_mask(texts, special, pa.array(escaped, texts.type))


def _may_need_escape(texts: pa.Array) -> bool:
    """Whether a byte that needs an escape stands anywhere in the texts, or in what nulls hide."""
    _, bounds, data = texts.buffers()
    if data is None:
        return False
    width = np.int64 if pa.types.is_large_string(texts.type) else np.int32
    ends = np.frombuffer(bounds, width)
    used = np.frombuffer(data, np.uint8)[ends[texts.offset] : ends[texts.offset + len(texts)]]
    return bool(((used < ord(" ")) | (used == ord('"')) | (used == ord("\\"))).any())


def is_present(texts: pa.Array) -> pa.Array:
    """Where there is text: neither null nor blank."""
    trimmed = pc.utf8_trim(texts, characters=_white_space())
    return pc.fill_null(pc.not_equal(trimmed, ""), False)
