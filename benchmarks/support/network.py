"""A generated social network: who follows whom, who lives where, who likes what.

Some persons are hubs whom many follow. Nobody follows himself, and nobody follows another twice. The
same sizes and seed give the same rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

SCHEMA = """
node Person { number: I64 @key  name: String  gender: String  age: I32  married: Bool }
node City { number: I64 @key  name: String }
node State { number: I64 @key  name: String }
node Country { number: I64 @key  name: String }
node Interest { number: I64 @key  name: String }
edge Follows: Person -> Person
edge LivesIn: Person -> City
edge HasInterest: Person -> Interest { level: I32 }
edge CityIn: City -> State
edge StateIn: State -> Country
"""


Numbers = npt.NDArray[np.int64]

COUNTRIES = ("United States", "United Kingdom", "Canada")
STATES_PER_COUNTRY = 90
INTERESTS = (
    "fine dining", "photography", "tennis", "cooking", "hiking", "chess", "cycling", "painting",
    "gardening", "sailing", "running", "reading", "dancing", "swimming", "knitting", "archery",
    "baking", "birding", "boxing", "camping", "climbing", "drawing", "fencing", "fishing",
    "football", "golf", "history", "jazz", "karate", "lace making", "maps", "mathematics",
    "music", "opera", "pottery", "puzzles", "rowing", "skiing", "theatre", "travel", "yoga",
)  # fmt: skip
_FIRST = ("Ada", "Ben", "Cora", "Dan", "Eve", "Finn", "Gil", "Hana", "Ivo", "June", "Kai", "Lea")
_LAST = ("Abbot", "Baker", "Cole", "Dyer", "Ellis", "Frost", "Grant", "Hale", "Irwin", "Jones")
_TO_HUBS = 0.2
"""Share of all follows that go to hubs."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """How large a network is."""

    persons: int = 100_000
    follows: int = 2_400_000
    hubs: int = 500
    cities: int = 7_000
    interests_each: float = 2.5

    @classmethod
    def of(cls, persons: int) -> Sizes:
        """The usual proportions for another number of persons."""
        if persons == cls().persons:
            return cls()
        return cls(
            persons=persons,
            follows=min(24 * persons, persons * (persons - 1) // 4),
            hubs=max(1, persons // 200),
            cities=max(30, min(7_000, persons // 14)),
        )


@dataclass(frozen=True, slots=True)
class Network:
    """The rows of a network. Nodes have a `number`; edges name the numbers they join."""

    sizes: Sizes
    nodes: dict[str, pa.Table]
    edges: dict[str, pa.Table]
    ends: dict[str, tuple[str, str]]


def generate(sizes: Sizes, seed: int = 7) -> Network:
    chance = np.random.default_rng(seed)
    persons, cities = sizes.persons, sizes.cities
    states = len(COUNTRIES) * STATES_PER_COUNTRY
    state_of = np.arange(cities) % states
    country_of = np.arange(states) % len(COUNTRIES)
    nodes = {
        "Person": _persons(persons, chance),
        "City": pa.table({"number": np.arange(cities), "name": _city_names(cities)}),
        "State": pa.table(
            {
                "number": np.arange(states),
                "name": [f"State {number:03d}" for number in range(states)],
            }
        ),
        "Country": pa.table({"number": np.arange(len(COUNTRIES)), "name": list(COUNTRIES)}),
        "Interest": pa.table({"number": np.arange(len(INTERESTS)), "name": list(INTERESTS)}),
    }
    everyone = np.arange(persons)
    edges = {
        "Follows": _edges(*_follows(sizes, chance)),
        "LivesIn": _edges(everyone, _uneven(cities, persons, chance)),
        "HasInterest": _with_levels(_edges(*_interests(sizes, chance)), seed),
        "CityIn": _edges(np.arange(cities), state_of),
        "StateIn": _edges(np.arange(states), country_of),
    }
    ends = {
        "Follows": ("Person", "Person"),
        "LivesIn": ("Person", "City"),
        "HasInterest": ("Person", "Interest"),
        "CityIn": ("City", "State"),
        "StateIn": ("State", "Country"),
    }
    return Network(sizes, nodes, edges, ends)


def fresh_follows(network: Network, count: int, seed: int = 11) -> list[tuple[int, int]]:
    """Pairs of persons of whom the first does not follow the second yet."""
    follows = network.edges["Follows"]
    size = network.sizes.persons
    known = set((follows["from"].to_numpy() * size + follows["to"].to_numpy()).tolist())
    chance = np.random.default_rng(seed)
    found: list[tuple[int, int]] = []
    while len(found) < count:
        source, target = (int(number) for number in chance.integers(0, size, 2))
        if source != target and source * size + target not in known:
            known.add(source * size + target)
            found.append((source, target))
    return found


def _persons(count: int, chance: np.random.Generator) -> pa.Table:
    first = pa.array(_FIRST).take(pa.array(chance.integers(0, len(_FIRST), count)))
    last = pa.array(_LAST).take(pa.array(chance.integers(0, len(_LAST), count)))
    names = [f"{a} {b} {n}" for n, (a, b) in enumerate(zip(first, last, strict=True))]
    genders = pa.array(["male", "female"]).take(pa.array(chance.integers(0, 2, count)))
    return pa.table(
        {
            "number": np.arange(count),
            "name": names,
            "gender": genders,
            "age": pa.array(chance.integers(18, 80, count), pa.int32()),
            "married": pa.array(chance.integers(0, 2, count).astype(bool)),
        }
    )


def _city_names(count: int) -> list[str]:
    """The first state of the second country is where London is."""
    return ["London" if number == 1 else f"City {number:04d}" for number in range(count)]


def _uneven(choices: int, count: int, chance: np.random.Generator) -> Numbers:
    """ConflictResolution of which the first are much more frequent than the last."""
    return (choices * chance.random(count) ** 1.7).astype(np.int64)


def _follows(sizes: Sizes, chance: np.random.Generator) -> tuple[Numbers, Numbers]:
    persons = sizes.persons
    hubs = chance.choice(persons, sizes.hubs, replace=False)
    keys = np.empty(0, np.int64)
    while len(keys) < sizes.follows:
        missing = sizes.follows - len(keys)
        sources = chance.integers(0, persons, missing)
        targets = chance.integers(0, persons, missing)
        to_hub = chance.random(missing) < _TO_HUBS
        targets[to_hub] = hubs[_uneven(len(hubs), int(to_hub.sum()), chance)]
        apart = sources != targets
        keys = np.unique(np.concatenate([keys, sources[apart] * persons + targets[apart]]))
    return keys // persons, keys % persons


def _interests(sizes: Sizes, chance: np.random.Generator) -> tuple[Numbers, Numbers]:
    count = int(sizes.persons * sizes.interests_each)
    keys = np.unique(
        chance.integers(0, sizes.persons, count) * len(INTERESTS)
        + chance.integers(0, len(INTERESTS), count)
    )
    return keys // len(INTERESTS), keys % len(INTERESTS)


def _with_levels(edges: pa.Table, seed: int) -> pa.Table:
    levels = np.random.default_rng(seed + 1).integers(1, 11, edges.num_rows)
    return edges.append_column("level", pa.array(levels, pa.int32()))


def _edges(sources: Numbers, targets: Numbers) -> pa.Table:
    return pa.table({"from": sources, "to": targets})
