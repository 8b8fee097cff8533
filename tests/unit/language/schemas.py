"""The schemas that most tests of the languages are written against."""

from __future__ import annotations

PAGES = """\
node Page {
    slug: String @key
    title: String @index
    vec: Vector(3)? @index
}
"""

NOTES = """\
node Note {
    slug: String @key
    body: String?
    vec: Vector(4)? @embed(body)
}
"""


def read_query(match: str, returned: str = "$m", tail: str = "", params: str = "") -> str:
    """A query named `q` around these parts."""
    return f"query q({params}) {{ match {{ {match} }} return {{ {returned} }} {tail} }}"
