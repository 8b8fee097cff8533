"""The same for every step of every writer: `make test-crash`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.crash.conftest import Wharf
from tests.crash.dangers import check_killing, check_raising
from tests.crash.kinds import KINDS, Kind
from tests.crash.test_kills import SYNCS_OF_THE_FIRST_FORK, THOROUGH
from tests.support.faults import Fail, FailStorage

pytestmark = pytest.mark.slow

SYNCING = "durability.before_fsync"
SYNCED = "durability.after_fsync"


def steps(wharf: Wharf, kind: Kind, syncs: int) -> Iterator[tuple[str, int]]:
    """Every hit of every point, but only so many of the syncs, evenly spread."""
    for point, count in wharf.reference(kind).counts().items():
        hits = list(range(1, count + 1))
        if point in (SYNCING, SYNCED):
            wanted = min(syncs if point == SYNCING else 3, count)
            hits = sorted({hits[number * count // wanted] for number in range(wanted)})
        yield from ((point, hit) for hit in hits)


@pytest.mark.parametrize("action", [Fail(), FailStorage()], ids=["a crash", "the store"])
@pytest.mark.parametrize("name", [kind.name for kind in KINDS.values() if not kind.is_only_killed])
def test_no_step_that_fails_is_a_loss(wharf, name, action, subtests):
    kind = KINDS[name]
    for point, hit in steps(wharf, kind, 12):
        with subtests.test(point=point, hit=hit):
            check_raising(wharf, kind, point, hit, action)


def test_no_step_with_a_power_loss_is_a_loss(wharf, kind, subtests):
    syncs, losing = (25, "anything") if kind.name in THOROUGH else (10, "much")
    for point, hit in steps(wharf, kind, syncs):
        with subtests.test(point=point, hit=hit):
            check_killing(wharf, kind, point, hit, losing=losing)


@pytest.mark.parametrize("hit", SYNCS_OF_THE_FIRST_FORK)
def test_whatever_is_torn_of_a_first_fork_is_recovered(wharf, hit):
    check_killing(wharf, KINDS["shared turn of 7 on fresh"], SYNCING, hit, losing="anything")
