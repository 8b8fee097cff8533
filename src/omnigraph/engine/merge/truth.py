"""The truth table of a merge: what becomes of a row, from how three states have it.

A pure function over masks, one entry per row. Being absent is a state like any other.
Tests: tests/unit/engine/test_merge_truth.py.
"""

from __future__ import annotations

from dataclasses import dataclass

from omnigraph.rows.equality import Mask


@dataclass(frozen=True, slots=True)
class Presence:
    """Which rows each state has, and which of those that two of them have are the same there."""

    base: Mask
    source: Mask
    target: Mask
    source_as_base: Mask
    target_as_base: Mask
    source_as_target: Mask


@dataclass(frozen=True, slots=True)
class Verdicts:
    """What becomes of each row: the source's state is taken, a conflict, or else the target stays."""

    taken: Mask
    divergent_insert: Mask
    divergent_update: Mask
    delete_vs_update: Mask


def judge(rows: Presence) -> Verdicts:
    """One verdict per row. The target stays wherever the source changed nothing, or the same."""
    source_kept = _same(rows.source, rows.base, rows.source_as_base)
    target_kept = _same(rows.target, rows.base, rows.target_as_base)
    agreed = _same(rows.source, rows.target, rows.source_as_target)
    undecided = ~source_kept & ~target_kept & ~agreed
    everywhere = rows.base & rows.source & rows.target
    return Verdicts(
        taken=~source_kept & target_kept & ~agreed,
        divergent_insert=undecided & ~rows.base,
        divergent_update=undecided & everywhere,
        delete_vs_update=undecided & rows.base & ~everywhere,
    )


def _same(left: Mask, right: Mask, equal: Mask) -> Mask:
    return ~(left ^ right) & (~left | equal)
