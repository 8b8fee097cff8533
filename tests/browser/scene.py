"""The graph that the browser tests and the screenshots show: a small newsroom with a history.

Texts that a page might run by mistake are on a branch, a type and a commit of their own.
"""

from __future__ import annotations

import json
import math
from pathlib import Path

import omnigraph as og

ATTACK = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"
"""A text that changes the title of a page that does not escape it."""

SCHEMA = """\
node Person @description("Someone who writes, edits or is written about") {
    email: String @key
    name: String @index
    role: enum(author, editor, source)?
    born: I32?
    topics: [String]?
}

node Article @description("What the newsroom publishes") {
    slug: String @key
    title: String @index
    body: String? @index
    published: Date?
    vec: Vector(8)? @index
}

node Place {
    name: String @key
    country: String?
}

node Topic {
    name: String @key
}

edge Wrote: Person -> Article

edge Edited: Person -> Article {
    on: Date?
}

edge Follows: Person -> Person {
    @unique(src, dst)
}

edge LivesIn: Person -> Place

edge About: Article -> Topic {
    weight: F64?
}

edge Cites: Article -> Article
"""

ODD_SCHEMA = """
node Odd @description("Texts <b>that a page</b> must not run <script>document.title='owned'</script>") {
    label: String @key
    note: String?
    notes: [String]?
}

edge Marks: Odd -> Odd {
    why: String?
}
"""

_NAMES = (
    "Ada Byron", "Ben Okafor", "Carla Ruiz", "Dmitri Volkov", "Emma Lind", "Farid Haddad",
    "Grace Kim", "Hugo Martin", "Ines Costa", "Jonas Weber", "Kira Novak", "Liam Walsh",
    "Mina Sato", "Noor Rahman", "Olga Petrova", "Pablo Diaz", "Quinn Parker", "Rita Moreno",
    "Sven Larsen", "Tara Singh",
)  # fmt: skip
_SUBJECTS = (
    "harbour", "lighthouse", "railway", "comet", "orchard", "glacier", "archive", "observatory",
    "festival", "aqueduct", "market", "theatre",
)  # fmt: skip
_ANGLES = (
    "A history of the {}", "The {} at night", "What the {} costs", "Letters about the {}",
    "The {} reopens", "Who owns the {}?",
)  # fmt: skip
_PLACES = (
    ("Lisbon", "Portugal"), ("Oslo", "Norway"), ("Turin", "Italy"), ("Ghent", "Belgium"),
    ("Kyoto", "Japan"), ("Accra", "Ghana"),
)  # fmt: skip
HUB = "city"
HUB_NEIGHBOURS = 5_000


def _email(name: str) -> str:
    return name.lower().replace(" ", ".") + "@example.org"


def _vector(number: int) -> list[float]:
    return [round(math.sin(number * 0.7 + axis * 1.3), 4) for axis in range(8)]


def _rows() -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []

    def node(kind: str, **data: object) -> None:
        rows.append({"type": kind, "data": data})

    def edge(kind: str, start: str, end: str, **data: object) -> None:
        rows.append({"edge": kind, "from": start, "to": end, "data": data})

    for place, country in _PLACES:
        node("Place", name=place, country=country)
    for subject in _SUBJECTS:
        node("Topic", name=subject)
    people = [_email(name) for name in _NAMES]
    for number, name in enumerate(_NAMES):
        node(
            "Person",
            email=people[number],
            name=name,
            role=("author", "author", "editor", "source")[number % 4],
            born=1950 + number * 2,
            topics=[_SUBJECTS[number % 12], _SUBJECTS[(number * 5 + 1) % 12]],
        )
        edge("LivesIn", people[number], _PLACES[number % len(_PLACES)][0])
    for number in range(60):
        subject = _SUBJECTS[number % 12]
        slug = f"article-{number}"
        title = _ANGLES[(number // 12 + number) % len(_ANGLES)].format(subject)
        node(
            "Article",
            slug=slug,
            title=title,
            body=f"{title}. Reported from {_PLACES[number % 6][0]}: the {subject} and the "
            f"{_SUBJECTS[(number + 3) % 12]}, seen by the people who keep them.",
            published=f"2026-{1 + number % 9:02}-{1 + number % 28:02}",
            vec=_vector(number),
        )
        edge("Wrote", people[(number * 7) % 20], slug)
        if number % 3 == 0:
            edge("Wrote", people[(number * 11 + 3) % 20], slug)
        if number % 2 == 0:
            edge("Edited", people[(number * 4 + 2) % 20], slug, on=f"2026-{1 + number % 9:02}-02")
        edge("About", slug, subject, weight=round(1 - number / 80, 2))
        edge("About", slug, _SUBJECTS[(number + 3) % 12], weight=0.25)
        if number > 12:
            edge("Cites", slug, f"article-{number - 12}")
    for number in range(20):
        for other in {(number * 3 + 1) % 20, (number + 7) % 20}:
            edge("Follows", people[number], people[other])
    return rows


def _odd_rows() -> list[dict[str, object]]:
    label = f"odd {ATTACK}"
    return [
        {"type": "Odd", "data": {"label": label, "note": ATTACK, "notes": [ATTACK, "plain"]}},
        {"type": "Odd", "data": {"label": "other", "note": "javascript:document.title='owned'"}},
        {"edge": "Marks", "from": label, "to": "other", "data": {"why": ATTACK}},
    ]


def _hub_rows(count: int) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = [{"type": "Topic", "data": {"name": HUB}}]
    for number in range(count):
        slug = f"brief-{number:04}"
        rows.append({"type": "Article", "data": {"slug": slug, "title": f"City brief {number}"}})
        rows.append({"edge": "About", "from": slug, "to": HUB, "data": {}})
    return rows


def lines(rows: list[dict[str, object]]) -> bytes:
    return "\n".join(json.dumps(row) for row in rows).encode() + b"\n"


def make_scene(root: Path, briefs: int = HUB_NEIGHBOURS, *, odd: bool = True) -> None:
    """Write the graph: loads, changes on branches, a merge, a conflict that waits, odd texts."""
    with og.init(root, schema=SCHEMA + ODD_SCHEMA if odd else SCHEMA) as graph:
        emma, rita, ben = (graph.as_actor(name) for name in ("emma", "rita", "ben"))
        emma.load(lines(_rows()), "append", message="Import the archive")
        rita.upsert("Person", [{"email": "ada.byron@example.org", "name": "Ada Byron-King"}])
        graph.branches.create("review/spring")
        spring = rita.checkout("review/spring")
        spring.upsert(
            "Article",
            [{"slug": "article-3", "title": "The comet, seen from the harbour"}],
            message="Better title for the comet",
        )
        spring.insert(
            "Article",
            [
                {
                    "slug": "scoop",
                    "title": "A new comet",
                    "published": "2026-06-01",
                    "vec": _vector(3),
                }
            ],
            message="The scoop",
        )
        ben.insert("Place", [{"name": "Quito", "country": "Ecuador"}], message="A new office")
        emma.merge("review/spring", message="Take the spring review")
        graph.branches.create("review/june")
        june = rita.checkout("review/june")
        june.upsert(
            "Article",
            [{"slug": "article-7", "title": "What the review calls it"}],
            message="Retitle article 7",
        )
        june.upsert("Place", [{"name": "Ghent", "country": "Flanders"}], message="Rename a country")
        june.insert("Topic", [{"name": "satellite"}], message="A topic for June")
        ben.upsert(
            "Article",
            [{"slug": "article-7", "title": "What main calls it"}],
            message="Retitle article 7 on main",
        )
        emma.load(lines(_hub_rows(briefs)), "append", message=f"{briefs:,} city briefs")
        if odd:
            attacker = graph.as_actor(f"odd {ATTACK}"[:60])
            attacker.load(lines(_odd_rows()), "append", message=f"odd {ATTACK}")
        emma.maintenance.ensure_indexes()
