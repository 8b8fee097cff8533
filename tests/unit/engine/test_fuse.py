"""FusedRanks ranks against plain loops: ties, nodes of several rows, and only the best of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.read.frame import FusedRanks
from omnigraph.read.positions import distinct_positions
from omnigraph.read.ranks import ScoredList, fill_unranked, fuse

IDS = ["d", "b", "a", "ab", "c", "ba", "é", "Z"]
SCORES = st.dictionaries(st.integers(0, 15), st.sampled_from([0.0, 0.5, 1.0, 2.0]), max_size=16)
ROWS = st.lists(st.integers(0, len(IDS) - 1), min_size=16, max_size=16) | st.just(
    [*range(len(IDS))]
)


class Named:
    """Nodes that are asked for nothing but their ids."""

    def ids(self, positions):
        return pa.array([IDS[position] for position in positions], pa.utf8())

    def distinct(self, positions):
        return distinct_positions(positions)


NODES: Any = Named()


def arm_of(scores: dict[int, float], rows: list[int], most: int | None) -> ScoredList:
    ranked = sorted(row for row in scores if row < len(rows))
    return ScoredList(np.array(ranked, np.int64), np.array([scores[row] for row in ranked]), most)


def ranks_of(scores: dict[int, float], rows: list[int], most: int | None) -> dict[int, int]:
    """The rank of each node in one ranking."""
    best: dict[int, float] = {}
    for row, score in scores.items():
        if row < len(rows):
            best[rows[row]] = max(score, best.get(rows[row], score))
    ordered = sorted(best, key=lambda node: (-best[node], IDS[node].encode()))
    return {node: place for place, node in enumerate(ordered[:most], 1)}


def places(
    rows: list[int], k: int, first: dict[int, int], second: dict[int, int]
) -> list[tuple[float, int, int]]:
    """What each row is sorted by; those in no ranking are last."""
    never = int(np.iinfo(np.int64).max)
    found = []
    for node in rows:
        score = sum((1.0 / (k + ranks[node]) for ranks in (first, second) if node in ranks), 0.0)
        found.append((-score, first.get(node, never), second.get(node, never)))
    return found


def sorted_by(fused: FusedRanks) -> list[tuple[float, int, int]]:
    scores = np.where(np.isnan(fused.scores), 0.0, -fused.scores)
    return list(zip(scores.tolist(), fused.first.tolist(), fused.second.tolist(), strict=True))


@given(ROWS, SCORES, SCORES, st.none() | st.integers(0, 8), st.integers(1, 60))
def test_every_row_has_the_rank_of_its_node(rows, first, second, most, k):
    arms = arm_of(first, rows, most), arm_of(second, rows, None)
    found, fused = fuse(arms, NODES, np.array(rows, np.int64), k, None)
    expected = places(rows, k, ranks_of(first, rows, most), ranks_of(second, rows, None))
    assert sorted_by(fill_unranked(found, fused, len(rows))) == expected


@pytest.mark.parametrize("few", [0, 32])
@given(
    rows=ROWS,
    first=SCORES,
    second=SCORES,
    cut=st.tuples(st.booleans(), st.booleans()),
    k=st.integers(1, 4),
    best=st.integers(0, 6),
)
def test_the_best_rows_are_the_first_of_all(few, rows, first, second, cut, k, best):
    limits = [best if is_cut else None for is_cut in cut]
    arms = arm_of(first, rows, limits[0]), arm_of(second, rows, limits[1])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("omnigraph.read.ranks.MAX_COUNTED_TIES", few)
        found, fused = fuse(arms, NODES, np.array(rows, np.int64), k, best)
    rankings = [ranks_of(s, rows, m) for s, m in zip((first, second), limits, strict=True)]
    expected = places(rows, k, rankings[0], rankings[1])
    given = dict(zip(found.tolist(), sorted_by(fused), strict=True))
    assert all(expected[row] == place for row, place in given.items())
    leading = sorted(place for place in expected if place[0] < 0)[:best]
    assert sorted(given.values())[: len(leading)] == leading
