"""Text matches and scores of the rows of a binding table.

A score is a column like any other; only the fused rank of two scores depends on which rows there are,
so it is computed once, when all of them are known.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.embed.queries import query_vector
from omnigraph.engine.read.frame import Fused
from omnigraph.engine.read.nodes import Nodes
from omnigraph.engine.read.numbering import (
    Mask,
    Positions,
    distinct_positions,
    distinct_sorted,
)
from omnigraph.engine.read.ordering import sort_keys, sorted_rows
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
    """One of the rankings: the rows with a score, which end of it is best, and how far it counts."""

    rows: Positions
    scores: Scores
    high_is_best: bool
    most: int | None

    def among(self, rows: Positions) -> Arm:
        """The same ranking of some rows, in order, that are all it ranks and others."""
        return replace(self, rows=np.searchsorted(rows, self.rows))


Arms: TypeAlias = tuple[Arm, Arm]


def ranked_rows(arms: Arms, positions: Positions) -> Positions | None:
    """The rows that are in one of the rankings; None if rows share their nodes.

    All rows of a node have its score, and then it takes more to know them.
    """
    if distinct_positions(positions)[1] is not None:
        return None
    return distinct_sorted(np.concatenate([arm.rows for arm in arms]))


def fuse(arms: Arms, nodes: Nodes, positions: Positions, k: int, enough: int | None) -> Fused:
    """Reciprocal rank fusion. `positions` are the nodes that are ranked, one per row.

    With `enough`, only so many best rows will be looked at; the places of others may be wrong.
    """
    distinct, place = distinct_positions(positions)
    best = [_best(arm, len(distinct), place) for arm in arms]
    ranks = [
        _ranks(mine, arm.most, nodes, distinct, None if enough is None else (enough, others))
        for arm, mine, others in zip(arms, best, reversed(best), strict=True)
    ]
    total = np.zeros(len(distinct))
    for rank in ranks:
        ranked = np.flatnonzero(rank != _UNRANKED)
        total[ranked] += 1.0 / (k + rank[ranked])
    total[total == 0.0] = np.nan
    if place is None:
        return Fused(total, ranks[0], ranks[1])
    return Fused(total[place], ranks[0][place], ranks[1][place])


_UNRANKED = np.iinfo(np.int64).max


def _across(group: Positions, first: int) -> tuple[int, int]:
    """Where the equals begin and end that are partly among the first so many and partly beyond."""
    if not 0 < first < len(group) or group[first - 1] != group[first]:
        return 0, 0
    start, stop = np.searchsorted(group, [group[first], group[first] + 1])
    return int(start), int(stop)


def _best(arm: Arm, nodes: int, place: Positions | None) -> Scores:
    """The best score of each distinct node, the higher the better; minus infinity for none."""
    best = np.full(nodes, -np.inf)
    goodness = arm.scores if arm.high_is_best else -arm.scores
    np.fmax.at(best, arm.rows if place is None else place[arm.rows], goodness)
    return best


def _ranks(
    best: Scores,
    most: int | None,
    nodes: Nodes,
    distinct: Positions,
    concerned: tuple[int, Scores] | None,
) -> npt.NDArray[np.int64]:
    """The rank of each distinct node: by its best score, then by its id.

    Ids are looked at for equal scores only and, if not all ranks are `concerned`, only where one of
    the first so many ranks or a node with a score in the other ranking is among the equals.
    """
    ranked = np.flatnonzero(best > -np.inf)
    if most is not None and len(ranked) > most:
        bound = np.partition(best[ranked], len(ranked) - most)[len(ranked) - most]
        ranked = ranked[best[ranked] >= bound]
    ranked = ranked[np.argsort(-best[ranked], kind="stable")]
    scores = best[ranked]
    group = np.cumsum(np.append(False, scores[1:] != scores[:-1])) if len(ranked) else ranked
    unsure = np.bincount(group)[group] > 1 if len(ranked) else np.zeros(0, np.bool_)
    if concerned is not None and unsure.any():
        first, others = concerned
        groups = np.zeros(int(group[-1]) + 1, np.bool_)
        groups[group[others[ranked] > -np.inf]] = True
        start, stop = _across(group, first)
        if start < stop and not groups[group[start]]:
            # Of many equals only the first few count.
            ids = nodes.ids(distinct[ranked[start:stop]])
            leading = pc.bottom_k_unstable(ids, k=first - start).to_numpy()
            equal = ranked[start:stop]
            ranked[start:stop] = np.concatenate([equal[leading], np.delete(equal, leading)])
            unsure[start:stop] = False
        groups[group[:first]] = True
        unsure &= groups[group]
    equals = np.flatnonzero(unsure)
    if len(equals):
        ids = sort_keys(nodes.ids(distinct[ranked[equals]]), descending=False)
        ranked[equals] = ranked[equals][sorted_rows([group[equals], *ids])]
    ranks = np.full(len(distinct), _UNRANKED, np.int64)
    counted = ranked[:most]
    ranks[counted] = np.arange(1, len(counted) + 1)
    return ranks
