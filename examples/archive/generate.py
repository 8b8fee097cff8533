"""Writes the archive, the same on every machine: 22,400 nodes and 90,000 edges as JSON lines.

Every topic has a direction in 32 dimensions and some words; an article mixes those of its two topics.
"""

import json
import math
import random
from datetime import date, timedelta
from pathlib import Path

ARTICLES, AUTHORS, TOPICS, DIMENSIONS = 20_000, 2_000, 400, 32
SECTIONS = ("politics", "science", "culture", "sport")
WORDS = (
    "harbour bridge comet reactor orchestra stadium senate glacier lantern archive vineyard turbine "
    "falcon quarry tunnel monsoon ballad goalkeeper treaty microscope canal observatory ferry marathon "
    "library volcano satellite theatre election coral railway telescope drought festival museum robot "
    "lighthouse parliament vaccine sculpture regatta fossil tram opera beehive antenna mill chess "
    "granite planet sonata budget referee pollen compass fresco tide engine ballot choir meadow"
)
FILLER = "after years of work the city says a new plan will change how people live near it"
NAMES = "Ada Bea Cal Dov Eli Fay Gus Hal Ida Jon Kim Lea Max Nia Oda Per Quin Ren Sol Tess"
FAMILIES = "Abel Brandt Costa Dahl Eriks Fuchs Grau Holm Ivers Jansen"
CITIES = ("Bergen", "Porto", "Graz", "Lyon", "Turku")


def main() -> None:
    choose = random.Random(20_240_607)
    words_known, filler = WORDS.split(), FILLER.split()
    names, families = NAMES.split(), FAMILIES.split()
    directions = [[choose.gauss(0, 1) for _ in range(DIMENSIONS)] for _ in range(TOPICS)]
    vocabulary = [choose.sample(words_known, 3) for _ in range(TOPICS)]
    first = date(2000, 1, 1)
    with Path("archive.jsonl").open("w", encoding="utf-8") as out:

        def write(record: dict[str, object]) -> None:
            out.write(json.dumps(record, separators=(",", ":")) + "\n")

        for number in range(TOPICS):
            write({"type": "Topic", "data": {"slug": f"topic-{number}"}})
        for number in range(AUTHORS):
            name = f"{choose.choice(names)} {choose.choice(families)}"
            data = {"handle": f"author-{number}", "name": name, "city": choose.choice(CITIES)}
            write({"type": "Author", "data": data})
        for number in range(ARTICLES):
            topics = choose.sample(range(TOPICS), 2)
            words = [word for topic in topics for word in vocabulary[topic]]
            body = choose.choices(words, k=14) + choose.choices(filler, k=14)
            choose.shuffle(body)
            mixed = [
                2 * a + b + choose.gauss(0, 0.4)
                for a, b in zip(directions[topics[0]], directions[topics[1]], strict=True)
            ]
            length = math.hypot(*mixed)
            slug = f"article-{number}"
            data = {
                "slug": slug,
                "title": f"The {words[0]} and the {words[3]}",
                "body": " ".join(body),
                "section": SECTIONS[topics[0] % len(SECTIONS)],
                "published": (first + timedelta(days=number * 9_000 // ARTICLES)).isoformat(),
                "embedding": [round(value / length, 4) for value in mixed],
            }
            write({"type": "Article", "data": data})
            author = f"author-{choose.randrange(AUTHORS)}"
            write({"edge": "Wrote", "from": author, "to": slug})
            for topic in topics:
                write({"edge": "About", "from": slug, "to": f"topic-{topic}"})
            for cited in choose.sample(range(max(number, 3)), 3 if number % 2 else 0):
                write({"edge": "Cites", "from": slug, "to": f"article-{cited}"})
    longest = max(directions[7], key=abs)
    asked = {
        "words": " ".join(vocabulary[7][:2]),
        "like": [round(value / abs(longest), 4) for value in directions[7]],
        "since": "2015-01-01",
    }
    Path("question.json").write_text(json.dumps(asked))


if __name__ == "__main__":
    main()
