"""What the engine reports about its work, and to whom."""

from __future__ import annotations

import pytest

import omnigraph as og
from omnigraph import instruments
from omnigraph.instruments import Event, Step, install, timed


class Heard:
    """Keeps everything it is told."""

    def __init__(self):
        self.events = []
        self.steps = []

    def count(self, event, labels):
        self.events.append((event, *labels))

    def took(self, step, seconds):
        self.steps.append(step)


@pytest.fixture
def heard():
    listener = Heard()
    before = instruments._INSTALLED.listener
    install(listener)
    yield listener
    install(before)


def test_a_step_is_reported_even_if_it_fails(heard):
    with pytest.raises(ValueError), timed(Step.READ):
        raise ValueError
    assert heard.steps == [Step.READ]


def test_nobody_has_to_listen():
    install(None)
    instruments.count(Event.RECOVERY, "resolved")
    with timed(Step.READ):
        pass


def test_reads_and_writes_report_their_steps_and_caches(heard):
    with og.init("memory://instruments", schema="node A { name: String @key }\n") as graph:
        graph.insert("A", [{"name": "x"}])
        assert Step.LOCK_WAIT in heard.steps
        assert Step.COMMIT in heard.steps
        heard.steps.clear()
        for _ in range(2):
            graph.query("query q() { match { $a: A } return { $a.name } }")
    assert heard.steps == [Step.READ, Step.READ]
    looked = [event[1:] for event in heard.events if event[0] is Event.CACHE_LOOKUP]
    for cache in ("queries", "plans"):
        found = [result for name, result in looked if name == cache]
        assert found == ["miss", "hit"]
