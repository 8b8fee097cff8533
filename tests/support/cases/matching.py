"""Comparing what a story writes down with what was found.

`"<ulid>"` stands for any generated id. Order does not matter here; where it does, the step says so.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from tests.support.cases.story import CaseFailure
from tests.support.outcome import Json

ANY_ULID = "<ulid>"
_ULID = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}\Z")


def matches(expected: Json, found: Json) -> bool:
    """Whether a found value is the expected one. Numbers compare by value, kinds never mix."""
    if expected == ANY_ULID:
        return isinstance(found, str) and _ULID.match(found) is not None
    if isinstance(expected, dict) and isinstance(found, dict):
        return expected.keys() == found.keys() and all(
            matches(expected[key], found[key]) for key in expected
        )
    if isinstance(expected, list) and isinstance(found, list):
        return len(expected) == len(found) and all(map(matches, expected, found))
    return isinstance(expected, bool) == isinstance(found, bool) and expected == found


def expect_same_rows(expected: Sequence[Json], found: Sequence[dict[str, Json]], noun: str) -> None:
    """Every expected row is there and no other. Raises `CaseFailure` that lists the differences."""
    left = list(found)
    missing: list[Json] = []
    # Rows without a generated id first: they cannot be mistaken for another one.
    for row in sorted(expected, key=lambda row: ANY_ULID in json.dumps(row)):
        match = next((candidate for candidate in left if matches(row, candidate)), None)
        if match is None:
            missing.append(row)
        else:
            left.remove(match)
    if missing or left:
        lines = [f"missing {noun} {_shown(row)}" for row in missing]
        lines += [f"unexpected {noun} {_shown(row)}" for row in left]
        raise CaseFailure("\n  ".join(lines))


def _shown(row: Json) -> str:
    return json.dumps(row, ensure_ascii=False)
