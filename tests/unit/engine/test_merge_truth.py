"""The truth table of a merge: every way in which three states can have a row."""

from __future__ import annotations

import numpy as np
import pytest

from omnigraph.engine.merge.truth import Presence, judge

KINDS = ("taken", "divergent_insert", "divergent_update", "delete_vs_update")


def verdict(base: int | None, source: int | None, target: int | None) -> str:
    """What becomes of a row that holds these values; None where it is not there."""

    def mask(holds: bool) -> np.ndarray:
        return np.array([holds])

    def same(one: int | None, other: int | None) -> np.ndarray:
        return mask(one is not None and one == other)

    rows = Presence(
        mask(base is not None),
        mask(source is not None),
        mask(target is not None),
        same(source, base),
        same(target, base),
        same(source, target),
    )
    found = [kind for kind in KINDS if getattr(judge(rows), kind)[0]]
    assert len(found) <= 1
    return found[0] if found else "kept"


@pytest.mark.parametrize(
    ("base", "source", "target", "expected"),
    [
        (None, 1, None, "taken"),
        (None, None, 2, "kept"),
        (None, 1, 1, "kept"),
        (None, 1, 2, "divergent_insert"),
        (0, 0, 0, "kept"),
        (0, 0, 2, "kept"),
        (0, 0, None, "kept"),
        (0, 1, 0, "taken"),
        (0, 1, 1, "kept"),
        (0, 1, 2, "divergent_update"),
        (0, 1, None, "delete_vs_update"),
        (0, None, 0, "taken"),
        (0, None, 2, "delete_vs_update"),
        (0, None, None, "kept"),
        (None, None, None, "kept"),
    ],
)
def test_three_states_decide(base, source, target, expected):
    assert verdict(base, source, target) == expected
