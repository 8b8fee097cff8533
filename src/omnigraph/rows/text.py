"""Text columns: JSON escapes and blankness, for whole columns at once."""

from __future__ import annotations

import json
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

_NEEDS_ESCAPE: Final = r'[\x00-\x1f"\\]'

# What str.strip() removes. Arrow's own notion of white space leaves out the separators U+001C to
# U+001F, and a text must not be blank in one place and present in another.
_WHITE_SPACE: Final = "".join(chr(c) for c in range(0x3001) if chr(c).isspace())


def json_escaped(texts: pa.Array) -> pa.Array:
    """The texts as they stand between the quotes of JSON strings, with as few escapes as possible."""
    special = pc.match_substring_regex(texts, _NEEDS_ESCAPE)
    if not pc.any(special).as_py():
        return texts
    special = pc.fill_null(special, False)
    escaped = [json.dumps(t, ensure_ascii=False)[1:-1] for t in texts.filter(special).to_pylist()]
    return pc.replace_with_mask(texts, special, pa.array(escaped, texts.type))


def is_present(texts: pa.Array) -> pa.Array:
    """Where there is text: neither null nor blank."""
    trimmed = pc.utf8_trim(texts, characters=_WHITE_SPACE)
    return pc.fill_null(pc.not_equal(trimmed, ""), False)
