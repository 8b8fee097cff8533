"""A generated social graph: persons, companies, who knows whom, who works where.

One fifth of the records are persons, three fifths are acquaintances; the order is shuffled, so that
types alternate as they do in an export of an application. The same seed gives the same bytes.
"""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Iterator
from pathlib import Path

SCHEMA = """\
node Person {
    handle: String @key
    name: String
    age: I32?
    city: String?
    active: Bool?
    score: F64?
    joined: Date?
    tags: [String]?
    level: enum(guest, member, editor)?
    @range(age, 0..150)
    @check(handle, "^person-[0-9]+$")
}
node Company { code: String @key  label: String  founded: Date?  seen: DateTime? }
edge Knows: Person -> Person { since: Date? }
edge WorksAt: Person -> Company @card(0..50) { title: String?  since: Date? }
"""


def write_social_graph(path: Path, records: int, seed: int = 1) -> None:
    """Write about so many records as JSON lines."""
    chance = random.Random(seed)
    lines = list(_lines(chance, records))
    chance.shuffle(lines)
    path.write_text("".join(lines))


def _lines(chance: random.Random, records: int) -> Iterator[str]:
    persons = max(1, records // 5)
    companies = max(1, persons // 20)
    known = records * 3 // 5
    for n in range(persons):
        yield (
            f'{{"type":"Person","data":{{"handle":"person-{n:07d}","name":"Name {n} Surname",'
            f'"age":{chance.randrange(18, 90)},"city":"City {chance.randrange(500)}",'
            f'"active":{chance.choice(("true", "false"))},"score":{chance.random() * 100:.3f},'
            f'"joined":"{_day(chance)}","tags":["t{chance.randrange(50)}","t{chance.randrange(50)}"],'
            f'"level":"{chance.choice(("guest", "member", "editor"))}"}}}}\n'
        )
    for n in range(companies):
        seen = dt.datetime(2020, 1, 1) + dt.timedelta(seconds=chance.randrange(10**8))
        yield (
            f'{{"type":"Company","data":{{"code":"co-{n:06d}","label":"Company {n}",'
            f'"founded":"{_day(chance)}","seen":"{seen.isoformat()}Z"}}}}\n'
        )
    for _ in range(known):
        yield (
            f'{{"edge":"Knows","from":"person-{chance.randrange(persons):07d}",'
            f'"to":"person-{chance.randrange(persons):07d}","data":{{"since":"{_day(chance)}"}}}}\n'
        )
    for n in range(records - persons - companies - known):
        yield (
            f'{{"edge":"WorksAt","from":"person-{n % persons:07d}",'
            f'"to":"co-{chance.randrange(companies):06d}",'
            f'"data":{{"title":"Title {chance.randrange(100)}","since":"{_day(chance)}"}}}}\n'
        )


def _day(chance: random.Random) -> dt.date:
    return dt.date(2000, 1, 1) + dt.timedelta(chance.randrange(8000))
