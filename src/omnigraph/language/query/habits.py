"""Hints for what users of Cypher and SQL type where this language has another spelling."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

_WORDS: Final = {
    "like": 'use `contains`, `starts_with`, `ends_with` or `matches($x.p, "…")`',
    "ilike": "compare `lower($x.p)`",
    "skip": "write `offset n`",
    "between": "write `$x.p >= low and $x.p <= high`",
    "select": "a query is `match { … } return { … }`",
    "from": "a query is `match { … } return { … }`",
    "join": "name the edge between two variables, as in `$a knows $b`",
    "with": "there are no pipelines; use block values such as `count { … }`, or two queries",
    "unwind": "use `$x.p in $list` with a list parameter",
    "union": "use `or`, an edge selection such as `(a | b)`, or two queries",
    "group": "every projection without an aggregate is a group key; there is no `group by`",
    "by": "write `order { $x.p desc }`; groups need no clause",
    "create": "write `insert Type { … }`",
    "merge": "write `upsert Type { … }`",
    "detach": "write `delete`; a node's edges go with it",
    "remove": "write `set { p: null }`",
    "into": "write `insert Type { … }`",
    "values": "write `insert Type { p: 1 }`",
    "exists": "write `exists { … }`",
    "inner": "name the edge between two variables, as in `$a knows $b`",
    "left": "write `optional { … }`",
    "regexp": 'use `matches($x.p, "…")`',
}
_LOWER_CASE: Final = frozenset(
    [
        "match",
        "where",
        "return",
        "and",
        "or",
        "not",
        "in",
        "is",
        "null",
        "case",
        "when",
        "then",
        "else",
        "end",
        "order",
        "limit",
        "offset",
        "asc",
        "desc",
        "distinct",
        "having",
        "as",
        "optional",
        "exists",
        "contains",
        "insert",
        "update",
        "delete",
        "set",
        "count",
        "sum",
        "avg",
        "min",
        "max",
        "collect",
        "coalesce",
        "query",
        "true",
        "false",
    ]
)
_PAIRS: Final = {
    ("<", ">"): "write `!=`",
    ("=", "="): "equality is one `=`",
    ("|", "|"): "write `or` between conditions and `+` between texts",
    ("=", "~"): 'use `matches($x.p, "…")`',
    ("-", "["): "an edge is `$a $e: knows $b`; without its variable `$a knows $b`",
    (")", "-"): "an edge is `$a $e: knows $b`; without its variable `$a knows $b`",
}


def habit_hint(texts: Sequence[str], at: int) -> str | None:
    """What to write instead of the token at a position."""
    text = texts[at]
    hint = _PAIRS.get((texts[at - 1], text)) if at else None
    if hint is not None:
        return hint
    lower = text.lower()
    if lower == "is" and text != lower:
        return "write `is null` or `is not null`, in lower case"
    if lower in _LOWER_CASE and text != lower:
        return f"keywords are written in lower case: `{lower}`"
    return _WORDS.get(lower)
