"""Replaying manifest rows into a state: one definition, however many rows are replayed at a time."""

from __future__ import annotations

import random
from itertools import chain

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.errors import ManifestDamaged
from omnigraph.versioning.commits import CommitRecord, TableId
from omnigraph.versioning.manifest import ManifestState, replay
from omnigraph.versioning.manifest_state import Checkpoint
from omnigraph.versioning.rows import Row, TableVersion, commit_rows, registration_row, version_row
from tests.unit.versioning.histories import (
    EMPTY,
    complete,
    histories,
    plain_draft,
    registration,
    tombstone_row,
)


def flat(commits: list[list[Row]]) -> list[Row]:
    return list(chain.from_iterable(commits))


def pins(state: ManifestState) -> dict[str, tuple[int, str | None, int]]:
    return {t: (v.version, v.branch, v.row_count) for t, v in state.tables.items()}


def by_definition(rows: list[Row]) -> dict[str, tuple[int, str | None, int]]:
    """Per table the row of the latest commit; a tombstone means there is none."""
    found = {}
    for table in {row["table_key"] for row in rows if row["object_type"] == "table"}:
        own = [
            row
            for row in rows
            if row["table_key"] == table
            and row["object_type"] in ("table_version", "table_tombstone")
        ]
        last = max(own, key=lambda row: row["commit_seq"])
        if last["object_type"] == "table_version":
            found[table] = (last["table_version"], last["table_branch"], last["row_count"])
    return found


@given(histories())
def test_the_latest_commit_of_a_table_decides(commits):
    state = replay(EMPTY, flat(commits))
    assert pins(state) == by_definition(flat(commits))
    assert (state.sequence, state.head) == (len(commits), f"C{len(commits)}")


@given(histories(), st.data())
def test_replay_in_steps_equals_replay_at_once(commits, data):
    state, rest = EMPTY, commits
    while rest:
        size = data.draw(st.integers(1, len(rest)))
        state, rest = replay(state, flat(rest[:size])), rest[size:]
    assert state == replay(EMPTY, flat(commits))


@given(histories(), st.randoms(use_true_random=False))
def test_the_order_rows_are_read_in_does_not_matter(commits, shuffle: random.Random):
    rows = flat(commits)
    expected = replay(EMPTY, rows)
    shuffle.shuffle(rows)
    assert replay(EMPTY, rows) == expected


@given(histories())
def test_a_checkpoint_and_the_rest_equal_the_full_replay_at_every_version(commits):
    expected = replay(EMPTY, flat(commits))
    for cut in range(1, len(commits) + 1):
        early = replay(EMPTY, flat(commits[:cut]))
        text = msgspec.json.encode(early.to_checkpoint())
        stored = msgspec.json.decode(text, type=Checkpoint)
        resumed = ManifestState.from_checkpoint(None, stored)
        assert resumed == early
        assert replay(resumed, flat(commits[cut:])) == expected


@given(histories())
def test_replaying_nothing_changes_nothing(commits):
    state = replay(EMPTY, flat(commits))
    assert replay(state, []) == state


@given(histories())
def test_a_replay_leaves_the_earlier_state_alone(commits):
    early = replay(EMPTY, commits[0])
    before = early.to_checkpoint()
    replay(early, flat(commits[1:]))
    assert early.to_checkpoint() == before


@given(histories())
def test_unknown_kinds_of_rows_are_ignored(commits):
    strange = {**commits[0][0], "object_type": "weather_report", "object_id": "x"}
    assert replay(EMPTY, [*flat(commits), strange]) == replay(EMPTY, flat(commits))


def test_publish_order_beats_version_numbers():
    """Numbers of two lineages say nothing about each other: 9 on one may be older than 3."""
    table = TableId("node#1")
    rows = [
        registration_row(registration(table), 1),
        version_row(TableVersion(table, 9, "feature", 90, "{}"), 2),
        version_row(TableVersion(table, 3, None, 30, "{}"), 3),
    ]
    assert pins(replay(EMPTY, complete(rows))) == {table: (3, None, 30)}


def test_a_tombstone_drops_the_table_and_keeps_its_registration():
    table = TableId("node#1")
    rows = [
        registration_row(registration(table), 1),
        version_row(TableVersion(table, 1, None, 0, "{}"), 1),
        tombstone_row(table, 2),
    ]
    state = replay(EMPTY, complete(rows))
    assert not state.tables
    assert set(state.registered) == {table}


VERSION = version_row(TableVersion(TableId("node#1"), 1, None, 0, "{}"), 1)
TABLE = registration_row(registration(TableId("node#1")), 1)


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param([VERSION], id="a version without its table"),
        pytest.param([{**TABLE, "location": None}], id="a table without location"),
        pytest.param([{**TABLE, "metadata": None}], id="a table without metadata"),
        pytest.param([TABLE, {**VERSION, "metadata": None}], id="a version without metadata"),
        pytest.param([TABLE, {**VERSION, "table_version": None}], id="a version without number"),
        pytest.param([TABLE, {**VERSION, "row_count": None}], id="a version without row count"),
    ],
)
def test_rows_that_contradict_the_format_are_damage(rows):
    with pytest.raises(ManifestDamaged):
        replay(EMPTY, complete(rows))


def test_only_commits_move_the_head():
    commit = CommitRecord(plain_draft(5), None, 5, None)
    rows = complete([TABLE, VERSION, *commit_rows(commit, "committed")])
    state = replay(EMPTY, rows)
    assert (state.sequence, state.head) == (5, "C5")
    assert replay(EMPTY, complete([TABLE, VERSION])).sequence == 0
