"""The decision table of a merge: every combination of a row in three states."""

from __future__ import annotations

import numpy as np
import pytest

from omnigraph.merge.rows import Presence, decide

KINDS = ("taken", "divergent_insert", "divergent_update", "delete_vs_update")


def decision(base: int | None, source: int | None, target: int | None) -> str:
    """The decision for a row with these values; None if it is absent."""

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
    found = [kind for kind in KINDS if getattr(decide(rows), kind)[0]]
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
    assert decision(base, source, target) == expected
