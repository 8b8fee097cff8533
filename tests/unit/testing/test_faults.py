"""Traps at fault points, in this process and in real children."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import omnigraph
from omnigraph.errors import StorageError
from omnigraph.faults import FaultPoints
from tests.support.faults import (
    DECLARED_IN,
    ENVIRONMENT_VARIABLE,
    Arm,
    Call,
    Fail,
    FailStorage,
    InjectedFault,
    Kill,
    Pause,
    PauseAcrossProcesses,
    arm_from_environment,
    armed,
    describe,
    parse_arms,
    recording,
)

PACKAGE = Path(omnigraph.__file__).parent


def test_every_module_that_declares_points_is_loaded():
    declaring = [
        ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
        for path in sorted(PACKAGE.rglob("*.py"))
        if " = declare(" in (text := path.read_text()) or ": Final = declare(" in text
    ]
    assert [name for name in declaring if name != "omnigraph.faults"] == list(DECLARED_IN)


def test_the_injected_fault_passes_by_what_handles_errors_and_crosses_processes():
    error = pickle.loads(pickle.dumps(InjectedFault("publish.before")))
    assert not isinstance(error, Exception)
    assert str(error) == "injected failpoint triggered: publish.before"
    assert error.point == "publish.before"


@pytest.fixture
def points():
    declared = FaultPoints()
    declared.declare("write.before", "before anything is written")
    declared.declare("write.after", "after everything was written")
    return declared


def outcomes(points, hits, name="write.before"):
    """What each of a number of hits leads to: nothing, or the name of an error."""
    seen: list[str | None] = []
    for number in range(hits):
        try:
            points[name].hit(number=number)
            seen.append(None)
        except (InjectedFault, StorageError) as error:
            seen.append(type(error).__name__)
    return seen


# In this process


def test_a_failing_point_raises_the_injected_error(points):
    with (
        armed("write.before", Fail(), points=points),
        pytest.raises(InjectedFault, match=r"^injected failpoint triggered: write\.before$"),
    ):
        points["write.before"].hit()


def test_a_storage_failure_looks_like_one_of_the_store(points):
    with (
        armed("write.before", FailStorage(), points=points),
        pytest.raises(StorageError, match=r"^storage: .*write\.before") as error,
    ):
        points["write.before"].hit()
    assert not isinstance(error.value, InjectedFault)


def test_the_trap_is_gone_after_the_block_even_after_an_error(points):
    with pytest.raises(InjectedFault), armed("write.before", Fail(), points=points):
        points["write.before"].hit()
    points["write.before"].hit()


@pytest.mark.parametrize(
    ("first", "times", "expected"),
    [
        (1, None, ["InjectedFault"] * 4),
        (1, 2, ["InjectedFault", "InjectedFault", None, None]),
        (3, None, [None, None, "InjectedFault", "InjectedFault"]),
        (2, 1, [None, "InjectedFault", None, None]),
    ],
)
def test_a_trap_acts_on_the_hits_it_is_meant_for(points, first, times, expected):
    with armed("write.before", Fail(), first=first, times=times, points=points) as record:
        assert outcomes(points, 4) == expected
    assert record.count() == 4


def test_a_trap_concerns_its_own_point_only(points):
    with armed("write.before", Fail(), points=points) as record:
        points["write.after"].hit()
    assert record.count() == 0


def test_hits_are_counted_from_one():
    with pytest.raises(ValueError, match="from 1"):
        Arm("write.before", Fail(), first=0)
    with pytest.raises(ValueError, match="from 1"):
        Arm("write.before", Fail(), times=0)


def test_arming_an_undeclared_point_is_an_error(points):
    with pytest.raises(KeyError, match=r"no fault point 'write\.never'"):
        armed("write.never", Fail(), points=points).__enter__()


def test_the_record_holds_what_the_step_said(points):
    with armed("write.before", Call(lambda hit: None), points=points) as record:
        points["write.before"].hit(path="a/b", table="node:Maker")
    (hit,) = record.hits
    assert (hit.name, hit.context) == ("write.before", {"path": "a/b", "table": "node:Maker"})


def test_a_callback_gets_the_hit_in_the_thread_that_reached_the_point(points):
    seen = []
    call = Call(lambda hit: seen.append((hit.context, threading.current_thread().name)))
    with armed("write.before", call, points=points):
        thread = threading.Thread(target=points["write.before"].hit, name="writer")
        thread.start()
        thread.join()
    assert seen == [({}, "writer")]


def test_recording_tells_points_that_are_hit_from_those_that_never_are(points):
    with recording(points) as record:
        points["write.before"].hit()
        points["write.before"].hit()
    assert record.counts() == {"write.before": 2}
    missed = {p.name for p in points.all()} - record.counts().keys()
    assert missed == {"write.after"}


def test_recording_and_arming_work_together(points):
    with recording(points) as record, armed("write.after", Fail(), points=points):
        assert outcomes(points, 1, "write.before") == [None]
        assert outcomes(points, 1, "write.after") == ["InjectedFault"]
    assert record.counts() == {"write.after": 1, "write.before": 1}


def test_a_paused_thread_waits_until_it_is_released(points):
    pause = Pause()
    passed = threading.Event()

    def write():
        points["write.before"].hit()
        passed.set()

    with armed("write.before", pause, points=points):
        thread = threading.Thread(target=write)
        thread.start()
        pause.wait_until_reached()
        assert not passed.is_set()
        pause.release()
        thread.join(timeout=30)
    assert passed.is_set()


def test_waiting_for_a_pause_that_is_never_reached_ends(points):
    with pytest.raises(TimeoutError):
        Pause().wait_until_reached(timeout_s=0.01)


def test_many_threads_share_one_count(points):
    raised = []

    def hit_often():
        for _ in range(200):
            try:
                points["write.before"].hit()
            except InjectedFault:
                raised.append(1)

    with armed("write.before", Fail(), first=101, times=300, points=points) as record:
        threads = [threading.Thread(target=hit_often) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(raised) == 300
    assert record.count() == 800


# The text form


def test_arms_are_read_from_text(tmp_path):
    path = tmp_path / "gate"
    text = f" a.b=kill@2; c.d=fail ;e.f=storage*3;g.h=pause:{path}@4*5;"
    assert parse_arms(text) == (
        Arm("a.b", Kill(), first=2),
        Arm("c.d", Fail()),
        Arm("e.f", FailStorage(), times=3),
        Arm("g.h", PauseAcrossProcesses(path), first=4, times=5),
    )
    assert parse_arms("") == ()


def test_text_and_arms_are_two_forms_of_one_thing(tmp_path):
    arms = parse_arms(f"a.b=kill@2;c.d=fail*3;e.f=storage;g.h=pause:{tmp_path / 'gate'}@4*5")
    assert parse_arms(describe(arms)) == arms


@pytest.mark.parametrize("text", ["a.b", "a.b=explode", "a.b=fail@0", "a.b=fail@x", "a.b=pause:"])
def test_text_that_is_no_arm_is_an_error(text):
    with pytest.raises(ValueError, match="not of the form"):
        parse_arms(text)


def test_a_callback_cannot_be_put_into_words():
    with pytest.raises(ValueError, match="another process"):
        describe([Arm("a.b", Call(print))])


def test_an_environment_that_names_an_undeclared_point_is_an_error(points):
    with pytest.raises(KeyError, match=r"write\.never"):
        arm_from_environment({ENVIRONMENT_VARIABLE: "write.never=fail"}, points)


def test_an_empty_environment_arms_nothing(points):
    record = arm_from_environment({}, points)
    points["write.before"].hit()
    assert record.hits == ()


# In another process

CHILD = """
import sys
from omnigraph.faults import declare
from tests.support.faults import arm_from_environment

step = declare("child.step", "one step of the child's work")
arm_from_environment()
try:
    for number in range(1, 4):
        step.hit(number=number)
        print("passed", number, flush=True)
finally:
    print("tidied up", flush=True)
"""


def start_child(*arms: Arm) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", CHILD],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, ENVIRONMENT_VARIABLE: describe(arms)},
    )


def test_a_killed_child_dies_at_the_step_without_tidying_up():
    child = start_child(Arm("child.step", Kill(), first=2))
    out, _ = child.communicate(timeout=60)
    assert child.returncode == -9
    assert out.splitlines() == ["passed 1"]


def test_a_child_fails_as_told():
    child = start_child(Arm("child.step", Fail(), first=3))
    out, err = child.communicate(timeout=60)
    assert child.returncode == 1
    assert out.splitlines() == ["passed 1", "passed 2", "tidied up"]
    assert "injected failpoint triggered: child.step" in err


def test_an_unarmed_child_runs_through():
    child = start_child()
    out, _ = child.communicate(timeout=60)
    assert child.returncode == 0
    assert out.splitlines() == ["passed 1", "passed 2", "passed 3", "tidied up"]


def test_a_paused_child_waits_until_it_is_released(tmp_path: Path):
    pause = PauseAcrossProcesses(tmp_path / "gate")
    child = start_child(Arm("child.step", pause, first=2, times=1))
    pause.wait_until_reached(timeout_s=60)
    assert child.poll() is None
    pause.release()
    out, _ = child.communicate(timeout=60)
    assert child.returncode == 0
    assert out.splitlines() == ["passed 1", "passed 2", "passed 3", "tidied up"]


def test_waiting_for_a_process_that_never_comes_ends(tmp_path: Path):
    with pytest.raises(TimeoutError):
        PauseAcrossProcesses(tmp_path / "gate").wait_until_reached(timeout_s=0.01)
