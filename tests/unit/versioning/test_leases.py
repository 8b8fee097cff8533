"""The protocol of leases: who may take one, who has lost one, and that clocks do not matter.

Time is what the test says it is. The store is a real one, in memory.
"""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass, replace
from typing import Any

import pytest

from omnigraph.errors import StoreCallFailed
from omnigraph.limits import LEASE_LOSS_SECONDS, LEASE_RENEW_SECONDS, LEASE_TTL_SECONDS
from omnigraph.storage.memory_objects import MemoryObjects
from omnigraph.storage.uris import normalise_root
from omnigraph.versioning.ids import now_micros
from omnigraph.versioning.locks import LeaseTiming
from omnigraph.versioning.locks.lease_lock import Lease, LeaseContender
from omnigraph.versioning.locks.lease_object import LeaseObject
from tests.support.faults import Call, armed

PATH = "__leases/main.json"
HOUR_MS = 3_600_000
TTL, RENEW, LOSS = LEASE_TTL_SECONDS, LEASE_RENEW_SECONDS, LEASE_LOSS_SECONDS


class Clock:
    """A monotonic clock that moves when it is told to."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += seconds


class Network(MemoryObjects):
    """The way to the store: it may be cut, or lose the answers to writes."""

    def __init__(self, uri: str) -> None:
        super().__init__(normalise_root(uri))
        self.cut = False
        self.answers_get_lost = False

    def read_text_versioned(self, path: str) -> Any:
        self._pass("read", path)
        return super().read_text_versioned(path)

    def write_text_if_absent(self, path: str, text: str) -> Any:
        self._pass("create", path)
        created = super().write_text_if_absent(path, text)
        self._answer("create", path)
        return created

    def write_text_if_match(self, path: str, text: str, token: Any) -> Any:
        self._pass("update", path)
        written = super().write_text_if_match(path, text, token)
        self._answer("update", path)
        return written

    def _pass(self, action: str, path: str) -> None:
        if self.cut:
            raise StoreCallFailed(action, path, "no route to host")

    def _answer(self, action: str, path: str) -> None:
        if self.answers_get_lost:
            raise StoreCallFailed(action, path, "connection reset")


@dataclass
class Machine:
    """A process with a clock and a network of its own."""

    objects: Network
    clock: Clock
    owner: str

    def contender(self, operation: str = "load") -> LeaseContender:
        stored = LeaseObject(self.objects, "main")
        return LeaseContender(stored, self.owner, operation, LeaseTiming(), self.clock)

    def take(self) -> Lease:
        lease = self.contender().attempt()
        assert lease is not None
        return lease

    def stored(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(MemoryObjects.read_text(self.objects, PATH))
        return found


@pytest.fixture
def machines():
    uri = f"memory://{uuid.uuid4().hex}"
    return [Machine(Network(uri), Clock(), owner) for owner in ("A", "B", "C")]


@pytest.fixture
def one(machines):
    return machines[0]


@pytest.fixture
def two(machines):
    return machines[1]


# -- taking it -------------------------------------------------------------------------------


def test_a_lease_says_who_holds_it(one):
    before = now_micros() // 1000
    one.take()
    stored = one.stored()
    assert list(stored) == [
        "lease_version", "name", "owner", "operation", "term", "nonce", "acquired_at", "expires_at",
    ]  # fmt: skip
    assert (stored["lease_version"], stored["name"], stored["term"]) == (1, "main", 1)
    assert (stored["owner"], stored["operation"]) == ("A", "load")
    assert before <= stored["acquired_at"] <= now_micros() // 1000
    assert stored["expires_at"] == stored["acquired_at"] + 1000 * TTL


def test_a_held_lease_is_not_given_to_another(one, two):
    one.take()
    contender = two.contender()
    assert contender.attempt() is None
    holder = contender.holder()
    assert holder is not None
    assert (holder.owner, holder.operation) == ("A", "load")


def test_a_released_lease_is_free_at_once(one, two):
    one.take().release()
    assert one.stored()["owner"] is None
    assert two.take().term == 2
    assert two.stored()["owner"] == "B"


def test_an_abandoned_lease_is_taken_over_after_it_was_unchanged_for_its_term(one, two):
    one.take()
    contender = two.contender()
    assert contender.attempt() is None
    two.clock.advance(TTL - 0.001)
    assert contender.attempt() is None
    two.clock.advance(0.001)
    lease = contender.attempt()
    assert lease is not None
    assert lease.term == two.stored()["term"] == 2
    assert two.stored()["owner"] == "B"


def test_a_renewal_restarts_the_watch(one, two):
    held = one.take()
    contender = two.contender()
    for _ in range(10):
        assert contender.attempt() is None
        for machine in (one, two):
            machine.clock.advance(RENEW)
        held.renew()
    assert not held.is_lost()
    assert contender.attempt() is None
    two.clock.advance(TTL)
    assert contender.attempt() is not None


def test_what_a_slow_look_brought_back_is_not_older_than_its_answer(one, two):
    one.take()
    contender = two.contender()
    slow = two.objects.read_text_versioned

    def slowly(path: str) -> Any:
        answer = slow(path)
        two.clock.advance(TTL)
        return answer

    two.objects.read_text_versioned = slowly
    assert contender.attempt() is None
    assert contender.attempt() is None
    assert contender.attempt() is not None


@pytest.mark.acceptance("S-169")
@pytest.mark.parametrize("hours_ahead", [-5, 0, 5])
def test_of_two_contenders_for_an_abandoned_lease_one_wins_whatever_the_clocks_say(
    machines, hours_ahead
):
    dead, two, three = machines
    dead.take()
    shift = hours_ahead * HOUR_MS
    stored = dead.stored()
    moved = {name: stored[name] + shift for name in ("acquired_at", "expires_at")}
    dead.objects.write_text(PATH, json.dumps({**stored, **moved}))
    three.clock.advance(12_345)
    contenders = [two.contender(), three.contender()]
    assert [contender.attempt() for contender in contenders] == [None, None]
    for machine in (two, three):
        machine.clock.advance(TTL)
    # The second one is about to replace the lease when the first one does.
    early: list[Lease | None] = []
    overtaking = Call(lambda _hit: early.append(contenders[0].attempt()))
    with armed("lock.before_takeover", overtaking, times=1):
        late = contenders[1].attempt()
    assert late is None
    assert early[0] is not None
    assert early[0].term == two.stored()["term"] == 2
    assert two.stored()["owner"] == "B"
    assert contenders[1].attempt() is None


def test_a_lease_that_is_renewed_just_before_the_takeover_stays_where_it_is(one, two):
    held = one.take()
    contender = two.contender()
    contender.attempt()
    two.clock.advance(TTL)
    one.clock.advance(LOSS - 1)
    with armed("lock.before_takeover", Call(lambda _hit: held.renew())):
        assert contender.attempt() is None
    assert not held.is_lost()
    two.clock.advance(TTL - 1)
    assert contender.attempt() is None


def test_of_two_that_find_no_lease_one_gets_it(one, two):
    create = two.objects.write_text_if_absent
    held: list[Lease] = []

    def late(path, text):
        held.append(one.take())
        return create(path, text)

    two.objects.write_text_if_absent = late
    assert two.contender().attempt() is None
    assert two.stored()["owner"] == "A"
    assert not held[0].is_lost()


@pytest.mark.parametrize(
    "text", ["", "lease", "[]", "{}", '{"lease_version": 1, "term": "x"}', '{"lease_version": 2}']
)
def test_an_unreadable_text_is_a_lease_for_a_term(one, text):
    one.objects.write_text(PATH, text)
    contender = one.contender()
    assert contender.attempt() is None
    assert contender.holder() is None
    one.clock.advance(TTL)
    lease = contender.attempt()
    assert lease is not None
    assert lease.term == 1


# -- keeping and losing it -------------------------------------------------------------------


def test_every_text_has_a_fresh_nonce_and_a_renewal_keeps_the_term(one):
    held = one.take()
    texts = [one.stored()]
    for _ in range(3):
        held.renew()
        texts.append(one.stored())
    held.release()
    texts.append(one.stored())
    assert len({text["nonce"] for text in texts}) == 5
    assert {text["term"] for text in texts} == {1}
    assert len({text["acquired_at"] for text in texts}) == 1


def test_a_holder_whose_renewal_is_refused_has_lost_the_lease(one, two):
    held = one.take()
    contender = two.contender()
    contender.attempt()
    two.clock.advance(TTL)
    assert contender.attempt() is not None
    assert not held.is_lost()
    held.renew()
    assert held.is_lost()
    taken = two.stored()
    held.renew()
    held.release()
    assert two.stored() == taken


def test_a_holder_that_cannot_reach_the_store_loses_the_lease_before_another_may_take_it(one, two):
    held = one.take()
    contender = two.contender()
    contender.attempt()
    one.objects.cut = True
    for _ in range(2):
        one.clock.advance(RENEW)
        with pytest.raises(StoreCallFailed):
            held.renew()
        assert not held.is_lost()
    one.clock.advance(LOSS - 2 * RENEW)
    two.clock.advance(LOSS)
    assert held.is_lost()
    assert contender.attempt() is None
    one.objects.cut = False
    held.renew()
    assert held.is_lost()


def test_a_store_that_comes_back_in_time_costs_nothing(one):
    held = one.take()
    one.objects.cut = True
    one.clock.advance(LOSS - 1)
    with pytest.raises(StoreCallFailed):
        held.renew()
    one.objects.cut = False
    held.renew()
    one.clock.advance(LOSS - 1)
    assert not held.is_lost()


def test_a_renewer_that_was_paused_does_not_come_back(one, two):
    held = one.take()
    contender = two.contender()
    contender.attempt()
    for machine in (one, two):
        machine.clock.advance(TTL)
    other = contender.attempt()
    assert other is not None
    held.renew()
    assert held.is_lost()
    assert not other.is_lost()
    assert two.stored()["owner"] == "B"


def test_a_renewal_counts_from_when_it_was_sent(one):
    held = one.take()
    replace_text = one.objects.write_text_if_match

    def slowly(*arguments: Any) -> Any:
        written = replace_text(*arguments)
        one.clock.advance(RENEW)
        return written

    one.objects.write_text_if_match = slowly
    one.clock.advance(RENEW)
    held.renew()
    one.clock.advance(LOSS - RENEW - 0.001)
    assert not held.is_lost()
    one.clock.advance(0.001)
    assert held.is_lost()


def test_a_renewal_that_arrives_too_late_does_not_undo_the_loss(one):
    held = one.take()
    replace_text = one.objects.write_text_if_match

    def slowly(*arguments: Any) -> Any:
        written = replace_text(*arguments)
        one.clock.advance(LOSS)
        return written

    one.objects.write_text_if_match = slowly
    held.renew()
    assert held.is_lost()


def test_who_lost_the_lease_to_time_still_frees_it_for_the_next(one, two):
    held = one.take()
    one.clock.advance(LOSS)
    assert held.is_lost()
    held.release()
    assert two.take().term == 2


# -- answers that get lost -------------------------------------------------------------------


def test_a_lost_answer_does_not_cost_the_lease(one):
    one.objects.answers_get_lost = True
    held = one.take()
    held.renew()
    held.renew()
    assert not held.is_lost()
    one.objects.answers_get_lost = False
    held.release()
    assert one.stored()["owner"] is None


def test_a_released_lease_whose_answer_got_lost_is_left_alone(one, two):
    held = one.take()
    one.objects.answers_get_lost = True
    held.release()
    assert one.stored()["owner"] is None
    assert two.take().term == 2


def test_a_store_that_refuses_to_take_the_release_is_no_error(one, two, caplog):
    held = one.take()
    one.objects.cut = True
    held.release()
    assert "lease 'main' was not released" in caplog.text
    contender = two.contender()
    assert contender.attempt() is None
    two.clock.advance(TTL)
    assert contender.attempt() is not None


def test_an_attempt_that_was_interrupted_after_it_succeeded_is_given_back(one, two):
    create = one.objects.write_text_if_absent

    def interrupted(path: str, text: str) -> bool:
        create(path, text)
        raise KeyboardInterrupt

    one.objects.write_text_if_absent = interrupted
    contender = one.contender()
    with pytest.raises(KeyboardInterrupt):
        contender.attempt()
    assert one.stored()["owner"] == "A"
    contender.give_back()
    assert one.stored()["owner"] is None


def test_giving_back_does_not_touch_what_is_anothers(one, two):
    two.take()
    contender = one.contender()
    contender.attempt()
    contender.give_back()
    assert two.stored()["owner"] == "B"


# -- times that make sense -------------------------------------------------------------------


@pytest.mark.parametrize("wrong", [{"renew_s": 0.0}, {"renew_s": 7.0}, {"loss_s": 10.0}])
def test_a_holder_stops_before_another_may_begin(wrong):
    with pytest.raises(ValueError, match="lease"):
        replace(LeaseTiming(), **wrong)
