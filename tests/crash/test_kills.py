"""Every step of a writer, and the ways in which it can come to an end there.

At every second point a process is killed, at the others the store fails, with one kind of writer;
`test_every_kill.py` has all points, kinds, hits and ways.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections import Counter

import pytest

import omnigraph
from omnigraph.faults import FAULT_POINTS
from omnigraph.versioning.recovery.recover import Recovery
from tests.crash.aftermath import check_aftermath
from tests.crash.conftest import Wharf
from tests.crash.dangers import check_killing, check_raising
from tests.crash.kinds import KINDS, Kind
from tests.support.faults import FailStorage

NEEDS_OBJECT_STORE = frozenset(["lock.renew", "lock.before_takeover"])
"""Steps of leases, which there are none of on a disk. tests/crash/test_leases.py is for them."""

# A point is known once its module is imported, and some modules are only imported when needed. Importing
# the entry point of the command would have it answer the signals of this process.
for _module in pkgutil.walk_packages(omnigraph.__path__, "omnigraph."):
    if not _module.name.endswith(("__main__", ".cli.entry")):
        importlib.import_module(_module.name)

POINTS = [
    point.name
    for point in FAULT_POINTS.all()
    if point.name not in NEEDS_OBJECT_STORE and not point.name.startswith("cluster.")
]
"""The steps of a graph's writers; those of clusters are in tests/cluster/test_kills.py."""
THOROUGH = [
    "load append",
    "delete",
    "first write on a branch",
    "branch create",
    "shared turn of 7 on main",
    "shared turn of 7 on fresh",
]
"""Writers that lose the power at several steps here, and at every one in the slow tests."""
SYNCS_OF_THE_FIRST_FORK = (5, 17)
"""Of a shared turn: that of the fork itself is among the first, those of its versions follow."""


@pytest.fixture(scope="session")
def passed(wharf: Wharf) -> dict[str, dict[str, int]]:
    """How often each kind of writer passes each point."""
    return {kind.name: wharf.reference(kind).counts() for kind in KINDS.values()}


@pytest.fixture(scope="session")
def chosen(passed: dict[str, dict[str, int]]) -> dict[str, tuple[Kind, int]]:
    """One kind of writer per point, each kind as rarely as possible, and one of its hits."""
    found = {}
    used: Counter[str] = Counter()
    for number, point in enumerate(POINTS):
        kinds = [n for n in KINDS if point in passed[n] and not KINDS[n].is_only_killed]
        if kinds:
            name = min(kinds, key=lambda name: (used[name], -len(passed[name])))
            used[name] += 1
            found[point] = KINDS[name], number % passed[name][point] + 1
    return found


def test_every_point_is_passed_by_a_writer_that_can_be_killed_there(chosen):
    assert sorted(set(POINTS) - set(chosen)) == []


@pytest.mark.parametrize("point", POINTS[::2])
def test_a_process_killed_at_a_step_is_no_loss(wharf, chosen, point):
    kind, hit = chosen[point]
    check_killing(wharf, kind, point, hit)


@pytest.mark.parametrize("point", POINTS[1::2])
def test_a_step_at_which_the_store_fails_is_no_loss(wharf, chosen, point):
    kind, hit = chosen[point]
    check_raising(wharf, kind, point, hit, FailStorage())


SHARED = [
    "recovery.sidecar_written",
    "fork.before_classify",
    "mutation.post_table_commit",
    "mutation.post_finalize_pre_publisher",
    "graph_publish.after_manifest_commit",
]


@pytest.mark.parametrize("point", SHARED)
def test_a_shared_turn_is_published_as_a_whole_or_not_at_all(wharf, point):
    kind = KINDS["shared turn of 7 on fresh"]
    hits = wharf.reference(kind).counts()[point]
    check_killing(wharf, kind, point, (hits + 1) // 2)


@pytest.mark.parametrize(
    ("name", "share"), [(name, (0.4, 0.8)[number % 2]) for number, name in enumerate(THOROUGH)]
)
def test_a_power_loss_takes_nothing_that_was_promised(wharf, name, share):
    kind = KINDS[name]
    point = "durability.before_fsync"
    hit = int(wharf.reference(kind).counts()[point] * share)
    check_killing(wharf, kind, point, hit, losing="much")


@pytest.mark.parametrize("hit", SYNCS_OF_THE_FIRST_FORK)
def test_a_torn_first_fork_of_a_shared_turn_is_recovered(wharf, hit):
    kind = KINDS["shared turn of 7 on fresh"]
    check_killing(wharf, kind, "durability.before_fsync", hit, losing="forks")


# -- the matrix itself -----------------------------------------------------------------------


def test_a_writer_that_syncs_nothing_is_found_out(wharf, monkeypatch):
    kind = KINDS["load append"]
    wharf.reference(kind)
    monkeypatch.setenv("OMNIGRAPH_DURABILITY", "none")
    with pytest.raises(AssertionError, match="what was promised is not there"):
        check_killing(wharf, kind, "graph_publish.after_manifest_commit", 1, losing="much")


def test_a_write_that_is_not_recovered_is_found_out(wharf, monkeypatch):
    kind = KINDS["roll back"]
    reference = wharf.reference(kind)
    root = wharf.restore(kind)
    monkeypatch.setattr(Recovery, "recover_everywhere", lambda _self: None)
    with pytest.raises(AssertionError, match="nothing says what became of"):
        check_aftermath(kind, root, reference)
