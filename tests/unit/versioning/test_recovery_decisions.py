"""The decision about an interrupted operation: all of it or nothing of it, or a person's."""

from __future__ import annotations

from dataclasses import replace

import pytest

from omnigraph.versioning.commits import TableId
from omnigraph.versioning.recovery.classify import Decision, Finding, TableProgress, decide, undo
from omnigraph.versioning.recovery.sidecar import SidecarTable
from omnigraph.versioning.rows import VersionRef


def finding(progress: TableProgress, *, beyond: tuple[str | None, ...] = ()) -> Finding:
    table = SidecarTable.of("node:Person", TableId("node#1"), "nodes/aa", VersionRef(4, None), None)
    own_head = 4 if progress is TableProgress.NO_MOVEMENT else 5
    return Finding(table, progress, 4, own_head + len(beyond), own_head, beyond)


WRITTEN, UNMOVED = finding(TableProgress.WRITTEN), finding(TableProgress.NO_MOVEMENT)
PARTLY, FOREIGN = finding(TableProgress.PARTIAL), finding(TableProgress.FOREIGN)
IMPOSSIBLE = finding(TableProgress.IMPOSSIBLE)


@pytest.mark.parametrize(
    ("findings", "expected"),
    [
        ([], Decision.ROLL_FORWARD),
        ([WRITTEN], Decision.ROLL_FORWARD),
        ([WRITTEN, WRITTEN], Decision.ROLL_FORWARD),
        ([UNMOVED], Decision.UNTOUCHED),
        ([UNMOVED, UNMOVED], Decision.UNTOUCHED),
        ([WRITTEN, UNMOVED], Decision.ROLL_BACK),
        ([UNMOVED, PARTLY], Decision.ROLL_BACK),
        ([PARTLY], Decision.ROLL_BACK),
        ([WRITTEN, FOREIGN], Decision.QUARANTINE),
        ([UNMOVED, IMPOSSIBLE], Decision.QUARANTINE),
    ],
)
def test_one_decision_covers_all_tables(findings, expected):
    assert decide(findings, ()).decision is expected


def test_finishing_does_not_mind_what_came_on_top():
    assert decide([finding(TableProgress.WRITTEN, beyond=("other",))], ()).decision is (
        Decision.ROLL_FORWARD
    )


def test_undoing_would_take_along_what_is_unexplained():
    covered = finding(TableProgress.PARTIAL, beyond=("other",))
    verdict = decide([covered], ())
    assert verdict.decision is Decision.QUARANTINE
    assert "node:Person" in verdict.reason
    assert decide([covered], {"other"}).decision is Decision.ROLL_BACK
    assert decide([finding(TableProgress.PARTIAL, beyond=(None,))], {"other"}).decision is (
        Decision.QUARANTINE
    )


def test_what_recovered_operations_did_later_does_not_count():
    late = finding(TableProgress.FOREIGN, beyond=("late", "later"))
    assert decide([late], (), {"late", "later"}).decision is Decision.UNTOUCHED
    assert decide([late, WRITTEN], (), {"late", "later"}).decision is Decision.ROLL_BACK
    assert decide([late], (), {"later"}).decision is Decision.QUARANTINE
    assert decide([late], {"later"}, {"late"}).decision is Decision.QUARANTINE
    on_top = replace(late, is_on_top=True)
    assert decide([on_top], (), {"late", "later"}).decision is Decision.ROLL_BACK
    assert decide([on_top], (), {"late"}).decision is Decision.QUARANTINE
    below = finding(TableProgress.PARTIAL, beyond=("late",))
    assert decide([below], (), {"late"}).decision is Decision.ROLL_BACK


def test_a_live_writer_undoes_even_what_is_complete():
    assert undo([WRITTEN, WRITTEN], ()).decision is Decision.ROLL_BACK


def test_the_reason_names_every_culprit():
    reason = decide([FOREIGN, WRITTEN, IMPOSSIBLE], ()).reason
    assert "moved by something else" in reason
    assert "behind the graph" in reason
