"""How much one actor may write at a time."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from omnigraph.errors import TooManyRequests
from omnigraph.server.admission import Admission
from tests.server.serving import serving

DATA = "".join(f'{{"type":"Author","data":{{"slug":"a{n}"}}}}\n' for n in range(3000))


@pytest.mark.acceptance("U-092", partly="a second actor over HTTP")
def test_too_many_loads_of_one_actor(graph_root, tmp_path):
    env = {"OMNIGRAPH_PER_ACTOR_INFLIGHT_MAX": "1"}
    with serving(tmp_path, graph_root, "--unauthenticated", env=env) as server:
        with ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(lambda _: server.post("/load", {"data": DATA}), range(8)))
        statuses = [answer.status_code for answer in answers]
        assert set(statuses) == {200, 429}
        refused = answers[statuses.index(429)]
        assert refused.json()["code"] == "too_many_requests"
        assert refused.headers["retry-after"] == "60"
        assert "actor in-flight count cap 1 exceeded" in refused.json()["error"]
        assert server.post("/load", {"data": DATA}).status_code == 200
        assert "omnigraph_admission_rejected_total" in server.get("/metrics").text


def test_the_bytes_of_an_actor_are_limited(graph_root, tmp_path):
    env = {"OMNIGRAPH_PER_ACTOR_BYTES_MAX": "1000", "OMNIGRAPH_PER_ACTOR_INFLIGHT_MAX": "many"}
    with serving(tmp_path, graph_root, "--unauthenticated", env=env) as server:
        refused = server.post("/load", {"data": DATA})
        assert refused.status_code == 429
        assert "byte budget 1000" in refused.json()["error"]
        assert server.post("/branches", {"name": "small"}).status_code == 200
        assert "OMNIGRAPH_PER_ACTOR_INFLIGHT_MAX" in server.log


@pytest.mark.acceptance("U-092")
def test_reservations_are_exact_and_actors_independent():
    admission, ready, leave = Admission(16), threading.Barrier(33), threading.Event()

    def enter(actor):
        ready.wait()
        try:
            with admission.admit(actor, 1):
                leave.wait()
        except TooManyRequests:
            return 429
        return 200

    with ThreadPoolExecutor(33) as pool:
        waiting = [pool.submit(enter, "amy") for _ in range(32)]
        other = pool.submit(enter, None)
        while admission.running + admission.rejected < 33:
            pass
        leave.set()
        answers = sorted(one.result() for one in waiting)
    assert answers == [200] * 16 + [429] * 16
    assert other.result() == 200
    assert admission.running == 0
    with admission.admit("amy", 1):
        assert admission.running == 1
