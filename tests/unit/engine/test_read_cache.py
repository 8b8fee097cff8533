"""What reads keep: within one budget, and what a read of the past keeps pushes nothing out."""

from __future__ import annotations

from dataclasses import dataclass

from omnigraph.read.cache import ByteCache, GuestCache


@dataclass(frozen=True)
class Thing:
    nbytes: int


def test_the_least_recently_used_goes_first():
    cache = ByteCache(100)
    first, second = Thing(60), Thing(40)
    cache.put("first", first)
    cache.put("second", second)
    assert cache.get("first") is first
    cache.put("third", Thing(30))
    assert cache.get("second") is None
    assert cache.get("first") is first


def test_what_exceeds_the_budget_alone_is_not_kept():
    cache = ByteCache(100)
    cache.put("small", Thing(10))
    cache.put("large", Thing(101))
    assert cache.get("large") is None
    assert cache.get("small") is not None


def test_a_guest_finds_what_the_host_keeps_and_leaves_it_alone():
    cache = ByteCache(100)
    present, past = Thing(60), Thing(30)
    cache.put("edges", present)
    guest = GuestCache(cache, "commit")
    assert guest.get("edges") is present
    guest.put("edges", past)
    assert guest.get("edges") is past
    assert cache.get("edges") is present


def test_a_guest_pushes_nothing_out():
    cache = ByteCache(100)
    cache.put("edges", Thing(60))
    guest = GuestCache(cache, "commit")
    guest.put("columns", Thing(50))
    assert guest.get("columns") is None
    assert cache.get("edges") is not None


def test_two_guests_of_one_state_share_what_they_keep():
    cache = ByteCache(100)
    kept = Thing(10)
    GuestCache(cache, "commit").put("columns", kept)
    assert GuestCache(cache, "commit").get("columns") is kept
    assert GuestCache(cache, "other").get("columns") is None
