"""Text matches and scores of the rows of a binding table.

A score is a column like any other; only the fused rank of two scores depends on which rows there are,
so it is computed once, when all of them are known.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.embed.queries import query_vector
from omnigraph.engine.read.frame import Fused
from omnigraph.engine.read.nodes import Nodes
from omnigraph.engine.read.numbering import Mask, Positions
from omnigraph.engine.read.ordering import has_ties, sort_keys, sorted_rows
from omnigraph.language.query.ast import TextFunction
from omnigraph.text.analyse import words_of_query
from omnigraph.text.matching import allowed_edits, any_word, bm25, near_words, phrase

Scores = npt.NDArray[np.float64]
"""NaN for rows without a score."""

DEFAULT_K: Final = 60
"""Smooths fused ranks: without it the first of one ranking would always win."""

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


def text_scores(nodes: Nodes, field: str, query: str | None) -> Scores:
    """For every node how well its text answers a query."""
    index = nodes.texts(field)
    words = [] if query is None else words_of_query(query)
    scores = bm25(index, {word.text for word in words}, nodes.visible)
    scores[scores == 0.0] = np.nan
    return scores


def query_numbers(query: Any, dimension: int) -> npt.NDArray[np.float64] | None:
    """The vector that is asked for: given in numbers, or as a text that is embedded."""
    if query is None:
        return None
    given = query_vector(query, dimension) if isinstance(query, str) else query
    return np.asarray(given, np.float64)


def by_query(
    queries: pa.Array,
    positions: Positions,
    whole: Callable[[str | None], npt.NDArray[_Value]],
    empty: npt.NDArray[_Value],
) -> npt.NDArray[_Value]:
    """Values of rows that each bring a query of their own, one distinct query at a time."""
    encoded = queries.dictionary_encode()
    codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    for code, query in enumerate(encoded.dictionary.to_pylist()):
        rows = np.flatnonzero(codes == code)
        empty[rows] = whole(query)[positions[rows]]
    return empty


# -- fusing two rankings ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Arm:
    """One of the rankings: a score per row, which end of it is best, and how far it counts."""

    scores: Scores
    high_is_best: bool
    most: int | None


def fuse(arms: tuple[Arm, Arm], nodes: Nodes, positions: Positions, k: int) -> Fused:
    """Reciprocal rank fusion. `positions` are the nodes that are ranked, one per row."""
    distinct, place = np.unique(positions, return_inverse=True)
    ranks = [_ranks(arm, nodes, distinct, place) for arm in arms]
    total = np.zeros(len(distinct))
    for rank in ranks:
        total += np.where(rank == _UNRANKED, 0.0, 1.0 / (k + rank.astype(np.float64)))
    total[total == 0.0] = np.nan
    return Fused(total[place], ranks[0][place], ranks[1][place])


_UNRANKED = np.iinfo(np.int64).max


def _ranks(
    arm: Arm, nodes: Nodes, distinct: Positions, place: npt.NDArray[np.intp]
) -> npt.NDArray[np.int64]:
    """The rank of each distinct node: by its best score, then by its id."""
    goodness = arm.scores if arm.high_is_best else -arm.scores
    best = np.full(len(distinct), -np.inf)
    np.fmax.at(best, place, goodness)
    ranked = np.flatnonzero(best > -np.inf)
    if arm.most is not None and 0 < arm.most < len(ranked):
        bound = np.partition(best[ranked], len(ranked) - arm.most)[len(ranked) - arm.most]
        ranked = ranked[best[ranked] >= bound]
    keys = sort_keys(pa.array(best[ranked]), descending=True)
    order = sorted_rows(keys)
    if has_ties(keys, order):
        order = sorted_rows([*keys, *sort_keys(nodes.ids(distinct[ranked]), descending=False)])
    ranks = np.full(len(distinct), _UNRANKED, np.int64)
    counted = order[: arm.most]
    ranks[ranked[counted]] = np.arange(1, len(counted) + 1)
    return ranks
