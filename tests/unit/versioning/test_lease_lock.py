"""A lease while it is held: a thread renews it, and nothing is left when it is given back."""

from __future__ import annotations

import json
import threading
import time
import uuid

import pytest

from omnigraph.errors import BranchLocked
from omnigraph.storage.memory_objects import MemoryObjects
from omnigraph.storage.uris import normalise_root
from omnigraph.versioning.ids import process_identity
from omnigraph.versioning.locks import LeaseTiming
from omnigraph.versioning.locks.lease_lock import LeaseLocks
from omnigraph.versioning.locks.lease_object import LeaseNote, read_head
from omnigraph.versioning.locks.process_lock import Deadline
from tests.support.faults import FailStorage, Pause, armed

PATH = "__leases/b-feature.json"
QUICK = LeaseTiming(ttl_s=2.0, renew_s=0.02, loss_s=1.5)
LONG = LeaseTiming(ttl_s=20.0, renew_s=0.02, loss_s=15.0)
HASTY = LeaseTiming(ttl_s=0.5, renew_s=0.02, loss_s=0.2)


@pytest.fixture
def objects():
    return MemoryObjects(normalise_root(f"memory://{uuid.uuid4().hex}"))


def hold(objects, timing=QUICK, operation="load", wait_ms=0):
    return LeaseLocks(objects, timing).hold("feature", operation, Deadline.after(wait_ms))


def stored(objects):
    return json.loads(objects.read_text(PATH))


def renewers():
    return [thread for thread in threading.enumerate() if thread.name.startswith("omnigraph lease")]


def wait_until(condition):
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_a_held_lease_is_renewed_by_a_thread_that_ends_with_it(objects):
    with armed("lock.renew", Pause(), first=1000) as renewals:
        with hold(objects) as held:
            (thread,) = renewers()
            assert thread.daemon
            first = stored(objects)
            wait_until(lambda: renewals.count() > 3)
            assert stored(objects)["nonce"] != first["nonce"]
            assert not held.is_lost()
        assert not thread.is_alive()
        assert renewers() == []
    assert stored(objects)["owner"] is None


def test_no_other_process_gets_the_lease_while_it_is_renewed(objects):
    with hold(objects, operation="schema apply"):
        with (
            pytest.raises(BranchLocked, match="schema apply is in progress") as caught,
            hold(objects, wait_ms=300),
        ):
            pass
        assert caught.value.branch == "feature"
        assert (caught.value.operation, caught.value.holder) == ("load", "schema apply")
        assert caught.value.owner == process_identity()


def test_who_waits_gets_the_lease_soon_after_its_release(objects):
    taken = threading.Event()

    def other():
        with hold(objects, LONG, operation="other", wait_ms=10_000):
            taken.set()

    waiter = threading.Thread(target=other)
    with hold(objects, LONG):
        waiter.start()
        assert not taken.wait(0.2)
    assert taken.wait(10)
    waiter.join()


def test_renewals_that_fail_for_a_while_are_tried_again(objects):
    with (
        armed("lock.renew", FailStorage(), times=3) as renewals,
        hold(objects) as held,
    ):
        first = stored(objects)["nonce"]
        wait_until(lambda: renewals.count() > 4)
        wait_until(lambda: stored(objects)["nonce"] != first)
        assert not held.is_lost()


def test_renewals_that_keep_failing_end_in_a_loss(objects):
    with armed("lock.renew", FailStorage()), hold(objects, HASTY) as held:
        (thread,) = renewers()
        assert not held.is_lost()
        wait_until(held.is_lost)
        wait_until(lambda: not thread.is_alive())


def test_a_paused_renewer_loses_the_lease_and_does_not_disturb_the_next_holder(objects):
    pause = Pause()
    with armed("lock.renew", pause, times=1), hold(objects, HASTY) as held:
        pause.wait_until_reached()
        with hold(objects, QUICK, "other", wait_ms=10_000) as other:
            assert stored(objects)["operation"] == "other"
            assert stored(objects)["term"] == 2
            assert held.is_lost()
            pause.release()
            wait_until(lambda: len(renewers()) == 1)
            assert not other.is_lost()
            assert stored(objects)["operation"] == "other"


def test_an_error_in_the_block_gives_the_lease_back(objects):
    with pytest.raises(ZeroDivisionError), hold(objects):
        raise ZeroDivisionError
    assert stored(objects)["owner"] is None
    assert renewers() == []


def test_an_interrupted_wait_takes_nothing(objects, monkeypatch):
    def interrupt(_seconds):
        raise KeyboardInterrupt

    with hold(objects):
        before = stored(objects)
        monkeypatch.setattr(time, "sleep", interrupt)
        with pytest.raises(KeyboardInterrupt), hold(objects, operation="other", wait_ms=10_000):
            pass
        monkeypatch.undo()
        assert stored(objects)["owner"] == before["owner"]
        assert stored(objects)["operation"] == "load"


def test_a_lease_tells_whether_it_was_taken_by_another_since_its_release(objects):
    ours, others = LeaseLocks(objects, LONG), LeaseLocks(objects, LONG)
    seen = []
    for locks in (ours, ours, others, ours, ours):
        with locks.hold("feature", "load", Deadline.after(0)) as held:
            seen.append(held.undisturbed)
    assert seen == [False, True, False, False, True]


def test_a_lease_that_was_taken_over_counts_as_disturbed(objects):
    ours = LeaseLocks(objects, QUICK)
    with ours.hold("feature", "load", Deadline.after(0)):
        pass
    dead = LeaseNote.new("b-feature", "elsewhere", "load", 9, QUICK.ttl_s)
    objects.write_text(PATH, dead.to_text())
    with ours.hold("feature", "load", Deadline.after(10_000)) as held:
        assert not held.undisturbed
        assert stored(objects)["term"] == 10


def test_a_storage_name_is_reserved_once(objects):
    ours = LeaseLocks(objects, LONG)
    assert ours.reserve("feature")
    assert not ours.reserve("feature")
    assert not LeaseLocks(objects, LONG).reserve("feature")
    with ours.hold("feature", "load", Deadline.after(0)) as held:
        assert held.undisturbed
    with ours.hold("other", "load", Deadline.after(0)):
        pass
    assert not ours.reserve("other")


def test_a_lease_carries_what_its_holder_knows_of_the_branch(objects):
    known = iter(["before", "after"])
    locks = LeaseLocks(objects, LONG, lambda branch: f"{branch} {next(known)}")
    with locks.hold("feature", "load", Deadline.after(0)):
        assert stored(objects)["head"] == "feature before"
    assert stored(objects)["head"] == "feature after"
    assert read_head(objects, "feature") == "feature after"
    assert read_head(objects, "other") is None
