"""The schemas that most tests of the languages are written against."""

from __future__ import annotations

WORKSHOP = """\
// who builds what, with which tool, kept where
node Maker {
    handle: String @key
    joined: Date?
    age: I32?
    score: F64?
    active: Bool?
    skills: [String]?
    level: enum(novice, skilled, master)?
}
node Tool {
    code: String @key
    label: String @index
    weight: F32?
    serial: String? @unique
    @range(weight, 0.0..500.0)
    @check(code, "^[a-z]{2}-[0-9]+$")
}
node Shed {
    slug: String @key
    openedAt: DateTime?
}
edge Mentors: Maker -> Maker { since: Date? }
edge Borrows: Maker -> Tool { note: String? }
edge StoredIn: Tool -> Shed @card(0..1)
"""

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
