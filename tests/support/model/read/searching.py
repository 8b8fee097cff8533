"""Search and ranking, one text and one vector at a time."""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import cache
from typing import Final

import Stemmer

from omnigraph.language.query.ast import TextFunction
from tests.support.model.read.aggregates import Rounded

_STOP_WORDS: Final = frozenset(
    re.findall(
        r"\w+",
        "a an and are as at be but by for if in into is it no not of on or such that the their "
        "then there these they this to was will with",
    )
)
_STEMMER: Final = Stemmer.Stemmer("english")

Placed = tuple[int, str]
"""A word and its number in the text."""


@cache
def analysed(text: str) -> tuple[Placed, ...]:
    found = []
    for place, word in enumerate(re.findall(r"[^\W_]+", text)):
        plain = unicodedata.normalize("NFKD", word.lower())
        plain = "".join(letter for letter in plain if not unicodedata.combining(letter))
        if len(word) <= 40 and plain not in _STOP_WORDS:
            found.append((place, _STEMMER.stemWord(plain)))
    return tuple(found)


def matches(function: TextFunction, text: str | None, query: str | None, edits: int | None) -> bool:
    """Whether a text matches a query."""
    if text is None or query is None:
        return False
    words, wanted = analysed(text), analysed(query)
    there = {word for _, word in words}
    match function:
        case TextFunction.SEARCH:
            return any(word in there for _, word in wanted)
        case TextFunction.MATCH_TEXT:
            return _has_phrase(words, wanted)
        case TextFunction.FUZZY:
            return any(
                _distance(word, other) <= (_edits(word) if edits is None else edits)
                for _, word in wanted
                for other in there
            )


def _has_phrase(words: Sequence[Placed], wanted: Sequence[Placed]) -> bool:
    for start, _ in words:
        moved = {(start + place - wanted[0][0], word) for place, word in wanted} if wanted else {0}
        if moved <= set(words):
            return True
    return False


def _edits(word: str) -> int:
    return 0 if len(word) < 3 else 1 if len(word) < 6 else 2


def _distance(left: str, right: str) -> int:
    """Levenshtein's distance, row by row of his table."""
    row = list(range(len(right) + 1))
    for i, a in enumerate(left, 1):
        above, row[0] = row[0], i
        for j, b in enumerate(right, 1):
            above, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, above + (a != b))
    return row[-1]


def bm25(text: str | None, query: str | None, texts: Iterable[str | None]) -> Score | None:
    """The score of a text among all texts of its column."""
    if text is None or query is None:
        return None
    column = [analysed(other) for other in texts if other is not None]
    mean = sum(map(len, column)) / len(column)
    words = Counter(word for _, word in analysed(text))
    parts = []
    for wanted in {word for _, word in analysed(query)} & words.keys():
        holders = sum(any(word == wanted for _, word in other) for other in column)
        rarity = math.log(1 + (len(column) - holders + 0.5) / (holders + 0.5))
        size = 1.2 * (0.25 + 0.75 * words.total() / mean)
        parts.append(rarity * words[wanted] * 2.2 / (words[wanted] + size))
    return about(math.fsum(parts)) if parts else None


def distance(vector: Sequence[float] | None, query: Sequence[float] | None) -> Score | None:
    """One minus the cosine of the angle between two vectors."""
    if vector is None or query is None:
        return None
    lengths = math.sqrt(math.fsum(x * x for x in vector)) * math.sqrt(
        math.fsum(x * x for x in query)
    )
    if lengths == 0:
        return None
    return about(1 - math.fsum(x * y for x, y in zip(vector, query, strict=True)) / lengths)


class Score(Rounded):
    """A number whose last digits are open, but rows that are alike have the same."""


def about(value: float) -> Score:
    return Score(Fraction(value), 1e-9)


class Fused(Score):
    """The score of two rankings together; between equals the ranks decide."""

    ranks: tuple[float, float]


def fused(arms: Sequence[Sequence[str]], k: int) -> dict[str, Fused]:
    """The score of every id that is in one of two rankings, best first each."""
    ranks = [{id: rank for rank, id in enumerate(arm, 1)} for arm in arms]
    found = {}
    for id in {*arms[0], *arms[1]}:
        places = [rank.get(id, math.inf) for rank in ranks]
        score = Fused(Fraction(math.fsum(1 / (k + place) for place in places)), 1e-12)
        score.ranks = (places[0], places[1])
        found[id] = score
    return found
