"""Text matches and scores of nodes, whatever rows of a binding table they are in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.embed.queries import query_vector
from omnigraph.engine.read.nodes import Nodes
from omnigraph.engine.read.numbering import Mask, Positions
from omnigraph.language.query.ast import TextFunction
from omnigraph.text.analyse import words_of_query
from omnigraph.text.matching import ScoredRows, allowed_edits, any_word, bm25, near_words, phrase

Scores = npt.NDArray[np.float64]
"""NaN for rows without a score."""

MOST_EDITS: Final = 2

_Value = TypeVar("_Value", bound=np.generic)


def text_matches(
    nodes: Nodes, field: str, function: TextFunction, query: str | None, edits: int | None
) -> Mask:
    """For every node whether its text matches a query."""
    index = nodes.texts(field)
    words = [] if query is None else words_of_query(query)
    match function:
        case TextFunction.SEARCH:
            return any_word(index, (word.text for word in words))
        case TextFunction.MATCH_TEXT:
            return phrase(index, words)
        case TextFunction.FUZZY:
            near: set[str] = set()
            for text in {word.text for word in words}:
                allowed = allowed_edits(text) if edits is None else edits
                near.update(near_words(index, text, allowed))
            return any_word(index, near)


def text_scores(nodes: Nodes, field: str, query: str | None) -> ScoredRows:
    """The nodes whose text answers a query, and how well."""
    index = nodes.texts(field)
    words = [] if query is None else words_of_query(query)
    return bm25(index, (word.text for word in words), nodes.visible)


def query_numbers(query: Any, dimension: int, model: str | None) -> npt.NDArray[np.float64] | None:
    """The vector that is asked for: given in numbers, or as a text that is embedded."""
    if query is None:
        return None
    given = query_vector(query, dimension, model) if isinstance(query, str) else query
    return np.asarray(given, np.float64)


def by_query(
    queries: pa.Array,
    positions: Positions,
    answers: Callable[[str | None, Positions], npt.NDArray[_Value]],
    empty: npt.NDArray[_Value],
) -> npt.NDArray[_Value]:
    """Values of rows that each bring a query of their own, one distinct query at a time."""
    encoded = queries.dictionary_encode()
    codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    for code, query in enumerate(encoded.dictionary.to_pylist()):
        rows = np.flatnonzero(codes == code)
        empty[rows] = answers(query, positions[rows])
    return empty
