"""What is to become of an interrupted operation: all of it, or nothing of it.

Tests: tests/unit/versioning/test_recovery_decisions.py.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import Enum

from omnigraph.versioning.recovery.classify import Problem, Standing


class Decision(Enum):
    UNTOUCHED = "nothing happened"
    ROLL_FORWARD = "finish it"
    ROLL_BACK = "undo it"
    QUARANTINE = "leave it to an operator"


@dataclass(frozen=True, slots=True)
class Verdict:
    """A decision with its grounds."""

    decision: Decision
    findings: tuple[Problem, ...]
    reason: str = ""


def decide(findings: Sequence[Problem], pending: Collection[str]) -> Verdict:
    """The one decision for all tables of a sidecar.

    `pending` are the operations of all sidecars that still wait. Their versions may lie on top of this
    operation's, and go with them when it is undone; so may its own, where undoing it was begun.
    """
    grounds = tuple(findings)
    standings = [finding.standing for finding in grounds]
    unclear = [f for f in grounds if f.standing in (Standing.FOREIGN, Standing.IMPOSSIBLE)]
    if unclear:
        return _quarantine(grounds, unclear)
    if standings and all(s is Standing.NO_MOVEMENT for s in standings):
        return Verdict(Decision.UNTOUCHED, grounds)
    if all(s is Standing.WRITTEN for s in standings):
        return Verdict(Decision.ROLL_FORWARD, grounds)
    return undo(grounds, pending)


def undo(findings: Sequence[Problem], pending: Collection[str]) -> Verdict:
    """Undo an operation, unless that would take away something nobody can account for."""
    grounds = tuple(findings)
    covered = [f for f in grounds if any(operation not in pending for operation in f.beyond)]
    if covered:
        return _quarantine(grounds, covered)
    return Verdict(Decision.ROLL_BACK, grounds)


def _quarantine(findings: tuple[Problem, ...], culprits: Sequence[Problem]) -> Verdict:
    reason = "; ".join(finding.describe() for finding in culprits)
    return Verdict(Decision.QUARANTINE, findings, reason)
