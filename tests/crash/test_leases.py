"""Writers that die while they renew or take over a lease, on an S3-compatible server."""

from __future__ import annotations

import signal
import uuid

import pytest

from omnigraph.api.graph import init
from omnigraph.api.graph import open as open_graph
from omnigraph.faults import FAULT_POINTS
from tests.contract.objects.moto_server import BUCKET, environment_for
from tests.crash.aftermath import look
from tests.crash.graphs import SCHEMA, killed, person, rows
from tests.crash.kinds import KINDS, LEASED_KINDS, short_leases
from tests.crash.test_kills import NEEDS_OBJECT_STORE
from tests.support.faults import Arm, Kill, PauseAcrossProcesses


@pytest.fixture
def uri(s3_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> str:
    for name, value in environment_for(s3_endpoint).items():
        monkeypatch.setenv(name, value)
    return f"s3://{BUCKET}/{uuid.uuid4().hex}"


def test_the_steps_that_need_an_object_store_are_those_of_leases():
    lease = {point.name for point in FAULT_POINTS.all() if point.name.startswith("lock.")}
    assert lease - {"lock.after_acquire"} == NEEDS_OBJECT_STORE


def test_a_lease_is_taken_over_from_a_holder_that_died_renewing_it_and_a_taker_that_died(
    uri, tmp_path
):
    init(uri, SCHEMA).load(rows(person("ada")), "append")
    before = look(uri)
    in_phase_b = PauseAcrossProcesses(tmp_path / "held")
    # One table is changed, the others wait before that. It dies two seconds after it got the lock:
    # on a busy machine the first table takes that long.
    arms = [
        Arm("mutation.pre_table_commit", in_phase_b, first=2),
        Arm("lock.renew", Kill(), first=10),
    ]
    assert killed("load under a lease", uri, arms, tmp_path / "notes") == -signal.SIGKILL
    assert look(uri) == before
    arms = [Arm("lock.before_takeover", Kill())]
    assert killed("recovery under a lease", uri, arms, tmp_path / "notes") == -signal.SIGKILL
    assert look(uri) == before
    LEASED_KINDS["recovery under a lease"].run(uri)
    seen = look(uri)
    assert seen.content == before.content
    assert [commit.recovered for commit in seen.commits["main"][-1:]] == ["RolledBack"]
    with short_leases():
        graph = open_graph(uri)
        assert graph._core.recovery.status().pending == ()
    KINDS["load append"].run(uri)
    assert look(uri).content != before.content
