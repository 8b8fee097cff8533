"""Text analysis for search: split into words, map to ASCII, drop stop words, stem.

Tests: tests/unit/text.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from Stemmer import Stemmer

MAX_WORD_CHARS: Final = 40
"""Longer words are noise, such as encoded data, and are dropped."""

STOP_WORDS: Final = frozenset(
    {
        *("a", "an", "and", "are", "as", "at", "be", "but", "by", "for", "if", "in", "into"),
        *("is", "it", "no", "not", "of", "on", "or", "such", "that", "the", "their", "then"),
        *("there", "these", "they", "this", "to", "was", "will", "with"),
    }
)

_SEPARATORS: Final = r"[^\p{L}\p{N}]+"
_ASCII_SEPARATORS: Final = re.compile(r"[^A-Za-z0-9]+")

# Letters that Unicode does not decompose into an ASCII letter and marks.
_ASCII_LETTERS: Final = str.maketrans(
    {
        "æ": "ae", "œ": "oe", "ß": "ss", "þ": "th", "ð": "d", "đ": "d", "ø": "o", "ħ": "h",
        "ı": "i", "ł": "l", "ŋ": "n", "ŧ": "t", "ƀ": "b", "ƃ": "b", "ɓ": "b", "ƈ": "c", "ƌ": "d",
        "ɖ": "d", "ɗ": "d", "ǝ": "e", "ɛ": "e", "ƒ": "f", "ǥ": "g", "ɠ": "g", "ɨ": "i", "ƙ": "k",
        "ƚ": "l", "ɲ": "n", "ƞ": "n", "ɵ": "o", "ƥ": "p", "ʀ": "r", "ʃ": "s", "ƭ": "t", "ʈ": "t",
        "ƫ": "t", "ʉ": "u", "ʋ": "v", "ƴ": "y", "ƶ": "z", "ȥ": "z", "ĸ": "q", "ȷ": "j",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a query. Positions count all words of the text, including stop words."""

    text: str
    position: int


@dataclass(frozen=True, slots=True)
class Words:
    """The words of many texts, in order: row, position in the text, index into the vocabulary."""

    rows: npt.NDArray[np.int32]
    positions: npt.NDArray[np.int32]
    codes: npt.NDArray[np.int32]
    vocabulary: list[str]


def words_of_query(text: str) -> list[Word]:
    """The words of one text, in order."""
    if text.isascii():
        # Most queries are. Arrow's Unicode pattern takes two milliseconds to compile.
        stems = enumerate(map(stem, filter(None, _ASCII_SEPARATORS.split(text))))
        return [Word(found, position) for position, found in stems if found is not None]
    words = words_of(pa.array([text], pa.utf8()))
    found = zip(words.codes.tolist(), words.positions.tolist(), strict=True)
    return [Word(words.vocabulary[code], position) for code, position in found]


def words_of(texts: pa.Array) -> Words:
    """The words of a text column. A null has none."""
    split = pc.split_pattern_regex(texts, _SEPARATORS)
    rows = pc.list_parent_indices(split).to_numpy()
    spelled = pc.list_flatten(split)
    is_word = pc.not_equal(pc.binary_length(spelled), 0)
    rows = rows[is_word.to_numpy(zero_copy_only=False)].astype(np.int32)
    positions = _positions(rows)
    encoded = spelled.filter(is_word).dictionary_encode()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    stems = [stem(word) for word in encoded.dictionary.to_pylist()]
    vocabulary = sorted({word for word in stems if word is not None})
    number = {word: code for code, word in enumerate(vocabulary)}
    renumbered = np.array([-1 if w is None else number[w] for w in stems], np.int32)
    codes = renumbered[encoded.indices.to_numpy()] if len(renumbered) else np.zeros(0, np.int32)
    kept = codes >= 0
    return Words(rows[kept], positions[kept], codes[kept], vocabulary)


def stem(word: str) -> str | None:
    """The indexed form of a word; None for stop words and words that are too long."""
    if len(word) > MAX_WORD_CHARS:
        return None
    plain = to_ascii(word.lower())
    return None if plain in STOP_WORDS else str(_stemmer().stemWord(plain))


def to_ascii(word: str) -> str:
    """Latin letters as ASCII, without accents; letters of other scripts unchanged."""
    if word.isascii():
        return word
    return "".join(map(_letter_to_ascii, word.translate(_ASCII_LETTERS)))


_MARKS: Final = re.compile(r"[̀-ͯ]")


@cache
def _letter_to_ascii(letter: str) -> str:
    plain = _MARKS.sub("", unicodedata.normalize("NFKD", letter))
    return plain if plain.isascii() else letter


def _positions(rows: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """The position of each word within its row; rows are ascending."""
    if not len(rows):
        return np.zeros(0, np.int32)
    starts = np.flatnonzero(np.diff(rows, prepend=rows[0] - 1))
    lengths = np.diff(starts, append=len(rows))
    return (np.arange(len(rows)) - np.repeat(starts, lengths)).astype(np.int32)


@cache
def _stemmer() -> Stemmer:
    from Stemmer import Stemmer

    return Stemmer("english")
