"""Loads that are larger than one request may be: sent in parts, committed by the last one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Final

PATH: Final = "/load/parts"
MSGPACK: Final = "application/msgpack"
PART_BYTES: Final = 24 * 1_048_576
"""Below what a server accepts as one request."""

Query = dict[str, str]


def upload_parts(content: bytes, branch: str) -> Iterator[tuple[Query, bytes, bool]]:
    """The requests that send a body: parameters, bytes, and whether it is the last, which loads.

    Only the last one changes the graph. A body that fits is one request without parameters.
    """
    if len(content) <= PART_BYTES:
        yield {}, content, True
        return
    name = os.urandom(12).hex()
    for offset in range(0, len(content), PART_BYTES):
        is_last = offset + PART_BYTES >= len(content)
        query = {"upload": name, "offset": str(offset), "branch": branch}
        if is_last:
            query["last"] = "true"
        yield query, content[offset : offset + PART_BYTES], is_last
