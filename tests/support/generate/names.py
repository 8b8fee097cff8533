"""Names and texts for generated sources: few enough to collide, odd enough to find mistakes."""

from __future__ import annotations

from hypothesis import strategies as st

KEYWORDS = ("node", "edge", "match", "return", "order", "limit", "not", "contains", "as", "count")
"""Words of the grammar that are also legal identifiers somewhere."""

idents = st.one_of(
    st.sampled_from(["a", "b", "name", "age", "_x", "camelCase", "with_under_score", "x9"]),
    st.sampled_from(KEYWORDS),
    st.from_regex(r"[a-z_][A-Za-z0-9_]{0,8}", fullmatch=True),
)

type_names = st.one_of(
    st.sampled_from(["A", "B", "Person", "Knows", "HTTPThing", "T_1"]),
    st.from_regex(r"[A-Z][A-Za-z0-9_]{0,8}", fullmatch=True),
)

# NUL and surrogates cannot stand in a source file; everything else may.
texts = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=12)

enum_values = st.from_regex(r"[A-Za-z0-9_-]{1,8}", fullmatch=True)


def decimal_floats(*, signed: bool) -> st.SearchStrategy[str]:
    """Digits, a point, digits: the only way the languages write a float."""
    digits = st.from_regex(r"[0-9]{1,6}\.[0-9]{1,6}", fullmatch=True)
    if not signed:
        return digits
    return st.builds(lambda sign, text: sign + text, st.sampled_from(["", "-"]), digits)
