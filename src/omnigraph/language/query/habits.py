"""Hints for what users of Cypher and SQL type where this language has another spelling."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

_QUERY: Final = "a query is `match { $p: Person } return { $p.name }`"
_ARROW: Final = (
    "an edge is `$a knows $b`, with a variable `$a $e: knows $b`; either way `$a <knows> $b`"
)
_INSERT: Final = 'write `insert Person { name: "x" }`'
_FILTER: Final = "conditions are clauses of `match { … }`; they need no `where`"
_BRACES: Final = {
    "match": "a pattern stands in braces: `match { $p: Person }`",
    "return": "results stand in braces: `return { $p.name }`",
    "distinct": "results stand in braces: `return distinct { $p.name }`",
    "order": "keys stand in braces: `order { $p.name desc }`",
    "having": "conditions stand in braces: `having { n > 1 }`",
}
_PATTERNS: Final = ("match", "optional", "not", "exists")

_WORDS: Final = {
    "all": "without `limit` all rows are returned",
    "alter": "types are changed in the schema: `omnigraph schema apply`",
    "ascending": "write `asc`",
    "begin": "a text of changes is one commit; use a branch for several",
    "between": "write `$x.p >= low and $x.p <= high`",
    "by": "groups need no clause: every projection without an aggregate is a group key",
    "call": "there are no procedures",
    "commit": "a text of changes is one commit",
    "create": _INSERT,
    "descending": "write `desc`",
    "describe": "the schema is shown by `omnigraph schema show`",
    "detach": "write `delete`; a node's edges go with it",
    "drop": "types are changed in the schema: `omnigraph schema apply`",
    "ends": "write `ends_with`",
    "exists": "write `exists { … }`",
    "fetch": "write `limit n`",
    "foreach": "write `match { … } insert|update|delete …`",
    "from": _QUERY,
    "group": "every projection without an aggregate is a group key; there is no `group by`",
    "ilike": 'compare `lower($x.p)`, or use `matches($x.p, "(?i)…")`',
    "inner": "name the edge between two variables, as in `$a knows $b`",
    "into": _INSERT,
    "join": "name the edge between two variables, as in `$a knows $b`",
    "left": "write `optional { … }`",
    "like": 'use `contains`, `starts_with`, `ends_with` or `matches($x.p, "…")`',
    "merge": 'write `upsert Person { name: "x" }`',
    "optional": "write `optional { … }` as a clause of `match { … }`",
    "profile": "write `explain`",
    "regexp": 'use `matches($x.p, "…")`',
    "remove": "write `update $x { p: null }`",
    "return": _QUERY,
    "rollback": "a text of changes is one commit; use a branch for several",
    "select": _QUERY,
    "set": "write `update $x { p: 1 }`",
    "shortest": "write `$a shortest knows{1,6} $b`",
    "similar": 'use `matches($x.p, "…")`',
    "skip": "write `offset n`",
    "starts": "write `starts_with`",
    "top": "write `limit n`",
    "union": "use `or`, an edge selection such as `(a | b)`, or two queries",
    "unwind": "use `$x.p in $list` with a list parameter",
    "values": _INSERT,
    "where": _FILTER,
    "with": "there are no pipelines; use block values such as `count { … }`, or two queries",
    "xor": "compare with `!=`, as in `($x.p = 1) != ($x.q = 1)`",
    "->": _ARROW,
    "^": "there is no operator for powers; multiply",
    "?": "write `case when … then … else … end`",
    "~": 'use `matches($x.p, "…")`',
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
        "nulls",
        "first",
        "last",
        "distinct",
        "having",
        "as",
        "optional",
        "exists",
        "contains",
        "starts_with",
        "ends_with",
        "insert",
        "upsert",
        "update",
        "delete",
        "do",
        "set",
        "count",
        "sum",
        "avg",
        "min",
        "max",
        "collect",
        "coalesce",
        "query",
        "explain",
        "show",
        "branch",
        "true",
        "false",
    ]
)
_PAIRS: Final = {
    ("<", ">"): "write `!=`",
    ("=", "="): "equality is one `=`",
    ("|", "|"): "write `or` between conditions and `+` between texts",
    ("=", "~"): 'use `matches($x.p, "…")`',
    ("-", "["): _ARROW,
    (")", "-"): _ARROW,
    ("-", "-"): "a comment is `// …`",
    ("*", "*"): "there is no operator for powers; multiply",
    (":", ":"): "convert with `to_string(…)`, `to_int(…)` or `to_float(…)`",
    ("starts", "with"): "write `starts_with`",
    ("ends", "with"): "write `ends_with`",
    ("order", "by"): "write `order { $p.name desc }`, in lower case and with braces",
    ("insert", "into"): _INSERT,
    ("delete", "from"): "write `delete Person where …`",
    ("optional", "match"): "write `optional { … }` as a clause of `match { … }`",
}
"""Two tokens in a row, whichever of them the error is at."""

_FUNCTIONS: Final = {
    **dict.fromkeys(("toupper", "ucase"), "upper"),
    **dict.fromkeys(("tolower", "lcase"), "lower"),
    **dict.fromkeys(("ltrim", "rtrim", "strip", "btrim"), "trim"),
    **dict.fromkeys(("len", "char_length", "character_length"), "length"),
    **dict.fromkeys(("cardinality", "array_length", "list_size"), "size"),
    **dict.fromkeys(("substr", "mid"), "substring"),
    **dict.fromkeys(("nvl", "ifnull"), "coalesce"),
    **dict.fromkeys(("mean", "average"), "avg"),
    **dict.fromkeys(
        ("collect_list", "collect_set", "array_agg", "list", "group_concat"), "collect"
    ),
    **dict.fromkeys(("string_agg", "listagg"), "collect"),
    **dict.fromkeys(("regexp_like", "regexp_matches", "rlike"), "matches"),
    **dict.fromkeys(("tostring", "str", "text", "string"), "to_string"),
    **dict.fromkeys(("tointeger", "toint", "int", "integer"), "to_int"),
    **dict.fromkeys(("tofloat", "float", "double"), "to_float"),
    **dict.fromkeys(("ceiling",), "ceil"),
    **dict.fromkeys(("dateadd", "timestampadd"), "date_add"),
    **dict.fromkeys(("datediff", "timestampdiff"), "date_diff"),
    **dict.fromkeys(("datetrunc",), "date_trunc"),
    **dict.fromkeys(("datepart", "extract"), "date_part"),
    **dict.fromkeys(("current_date", "current_timestamp", "getdate", "timestamp"), "now"),
}
_CALLS: Final = {
    "concat": "join texts with `+`",
    **dict.fromkeys(("id", "elementid"), "write `$x.@id`"),
    **dict.fromkeys(("labels", "label", "type"), "write `$x.@type`"),
    "startnode": "write `$e.@src`",
    "endnode": "write `$e.@dst`",
    **dict.fromkeys(("properties", "keys"), "write `$x.*`"),
    **dict.fromkeys(("nodes", "relationships", "rels"), "write `$path.nodes` or `$path.edges`"),
    **dict.fromkeys(("shortestpath", "allshortestpaths"), "write `$a shortest knows{1,6} $b`"),
    **dict.fromkeys(("any", "all", "none", "single"), "use `in`, `contains_any` or `contains_all`"),
    **dict.fromkeys(("if", "iif", "nullif", "greatest", "least"), "write `case when … then … end`"),
    **dict.fromkeys(("isnull", "isnan"), "write `$x.p is null`"),
    "exists": "write `$x.p is not null`, or `exists { … }` for a pattern",
    "cast": _PAIRS[":", ":"],
    "mod": "write `a % b`",
    **dict.fromkeys(("pow", "power"), _WORDS["^"]),
    **dict.fromkeys(("year", "month", "day", "hour"), 'write `date_part($x.p, "year")`'),
}
_NAMES: Final = {
    "case": "write `case when $x.p = 1 then … end`",
    "distinct": "write `return distinct { … }`, or `count(distinct $x.p)`",
    **dict.fromkeys(("now", "today", "current_date", "current_timestamp"), "write `now()`"),
}

_WORD: Final = re.compile(r"[A-Za-z_]\w*\Z")
_EXPONENT: Final = re.compile(r"[eE]\d*\Z")
_COMPARISON: Final = re.compile(r"[<>]=?\Z|!=\Z")


def function_hint(name: str) -> str | None:
    """What to write instead of a function that does not exist."""
    lower = name.lower()
    written = _FUNCTIONS.get(lower)
    return f"write `{written}(…)`" if written else _CALLS.get(lower)


def name_hint(name: str) -> str | None:
    """What to write instead of a bare word."""
    if _EXPONENT.match(name):
        return "numbers have no exponents; write all digits, or use a parameter"
    return _NAMES.get(name.lower())


def habit_hint(texts: Sequence[str], at: int, expected: str) -> str | None:
    """What to write instead of the token at a position, where something else was `expected`."""
    text = texts[at]
    before = texts[at - 1].lower() if at else ""
    after = texts[at + 1].lower() if at + 1 < len(texts) else ""
    lower = text.lower()
    pair = _PAIRS.get((before, lower)) or _PAIRS.get((lower, after))
    if pair is not None:
        return pair
    if lower == "is" and text != lower:
        return "write `is null` or `is not null`, in lower case"
    if "expected `{`" in expected:
        return _missing_brace(before, expected)
    if text != lower:
        found = _upper_case(text, after, before, expected)
        if found is not None:
            return found
    return _symbol_hint(texts, at, expected) or _word_hint(texts, at, expected)


def _missing_brace(before: str, expected: str) -> str | None:
    if "assignments" in expected:
        return "assignments stand in braces: `{ age: 3 }`"
    return _BRACES.get(before)


def _upper_case(text: str, after: str, before: str, expected: str) -> str | None:
    """Hints for a word in upper case, or that begins with a capital."""
    lower = text.lower()
    if lower == "match" and after == "(":
        return _QUERY
    if lower in _LOWER_CASE and (lower not in _WORDS or f"`{lower}`" in expected):
        return f"keywords are written in lower case: `{lower}`"
    is_call = after == "(" and _WORD.match(text) and lower not in _WORDS
    if is_call and ("function name" in expected or "expression" in expected):
        return function_hint(text) or f"functions are written in lower case: `{lower}(…)`"
    if lower in _WORDS or not _WORD.match(text):
        return None
    if before.startswith("$") and after.startswith("$"):
        edge = lower if text.isupper() else text[0].lower() + text[1:]
        return f"the name of an edge begins with a lower-case letter in a query: `{edge}`"
    if before.startswith("$"):
        return f"a binding is `{before}: {text}`"
    if after == ".":
        return "a property is read from a variable, as in `$p.name`; in the `where` of a change it stands alone"
    return f"a binding is `$x: {text}`" if "expression" in expected else None


def _symbol_hint(texts: Sequence[str], at: int, expected: str) -> str | None:
    """Hints that depend on what stands around a symbol."""
    text, before = texts[at], texts[at - 1] if at else ""
    owner = _owner(texts, at)
    if text == "," and owner in _PATTERNS:
        return "clauses stand one after the other, without commas; or join conditions with `and`"
    if text == "," and owner == "in":
        return "a list stands in brackets: `in [1, 2]`"
    if text == "," and at > 1 and texts[at - 2].lower() == "limit":
        return "write `limit n offset m`"
    if text in ("(", "{") and before.lower() in ("limit", "offset"):
        return f"write `{before.lower()} 10`"
    if text == ":" and at > 1 and texts[at - 2] == "(":
        return "a node is `$p: Person`, without parentheses"
    if text == ":" and at > 1 and before.startswith("$") and _WORD.match(texts[at - 2]):
        return f"bind the variable in a clause of its own: `{before}: Person`"
    if text in (":", ".") and at > 1 and texts[at - 2] == "@":
        return f"a variable begins with `$`: `${before}`"
    if text == ":" and owner in ("return", "distinct"):
        return "an alias follows its value: `$p.name as n`"
    if text == "." and before.startswith("$"):
        return "an edge joins two variables; a property is compared in a clause of its own"
    if text.startswith("$") and "a property name" in expected:
        return "properties stand without a variable here, as in `name: …`"
    if text == "." and _WORD.match(before):
        return f"a variable begins with `$`: `${before.lower()}`"
    if text == "*" and owner in ("return", "distinct", ""):
        return "all properties of a variable are `$p.*`"
    if text == "{" and before.startswith("$"):
        return "name each property, as in `$p.name`, or write `$p.*`"
    if text == "|":
        return "a binding has one type; edges are chosen as in `$a (knows | likes) $b`"
    if text == "?" and texts[at + 2 : at + 3] in ([":"], ["."]):
        return "a variable begins with `$`: `$p`"
    if text == ".." or (text == "}" and before.isdigit() and "hop bounds" in expected):
        return "bounds are `{1,3}`; exactly two hops are `{2,2}`"
    if "after the property name" in expected:
        if text == "=":
            return f"write `{before}: …`"
        if _COMPARISON.match(text):
            return f"only values are matched in a binding; write `$x.{before} {text} …` as a clause"
    return None


def _word_hint(texts: Sequence[str], at: int, expected: str) -> str | None:
    text = texts[at]
    lower = text.lower()
    after = texts[at + 1] if at + 1 < len(texts) else ""
    if lower == "as" and _owner(texts, at) == "cast":
        return _CALLS["cast"]
    if "after the variable" in expected and _WORD.match(text):
        if after in ("*", "+"):
            return f"several hops are `$a {text}{{1,3}} $b`"
        if _WORD.match(after):
            return f"an edge joins two variables: `$a {text} $b`"
    if after == ":" and "a clause" in expected:
        return f"a variable begins with `$`: `${text}`"
    if not text and "expected `where`" in expected:
        return "`where true` selects every row"
    return _WORDS.get(lower)


def _owner(texts: Sequence[str], at: int) -> str:
    """The word before the innermost bracket that is open at a token."""
    depth = 0
    for i in range(at - 1, -1, -1):
        if texts[i] in (")", "}", "]"):
            depth += 1
        elif texts[i] in ("(", "{", "["):
            if not depth:
                return texts[i - 1].lower() if i else ""
            depth -= 1
    return ""
