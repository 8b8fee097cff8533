"""The metrics of a server, and their text in the format of Prometheus.

The engine reports through `omnigraph.instruments`; requests, commits and conflicts are counted here. What a
process uses of memory and processors is added where the system tells.
Tests: tests/server/test_metrics.py.
"""

from __future__ import annotations

import threading
from collections import Counter as Tally
from collections.abc import Callable, Iterator
from typing import Final

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
)
from prometheus_client.exposition import generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, Metric

from omnigraph.instruments import Event, Step
from omnigraph.server.admission import Admission

MEDIA_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
BUCKETS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)

INFLIGHT_KINDS: Final = ("read", "stream", "write")

_COUNTED: Final = {
    Event.CACHE_LOOKUP: (
        "omnigraph_cache_lookups",
        "Looks into caches of reads.",
        ("cache", "result"),
    ),
    Event.COMPACTION: ("omnigraph_compactions", "Compactions in the background.", ("result",)),
    Event.RECOVERY: (
        "omnigraph_recoveries",
        "Interrupted writes that recovery has looked at.",
        ("result",),
    ),
}


class ServerMetrics:
    """What a server has done since it started, and what it does now. Thread-safe."""

    def __init__(self) -> None:
        # The time at which a series began is of no use here, and doubles the text.
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = registry = CollectorRegistry()
        self._requests = Counter(
            "omnigraph_requests", "Requests answered.", ("route", "status"), registry=registry
        )
        self._seconds = Histogram(
            "omnigraph_request_seconds",
            "Time until an answer begins.",
            ("route",),
            buckets=BUCKETS,
            registry=registry,
        )
        self._inflight = Gauge(
            "omnigraph_inflight", "Requests in progress.", ("kind",), registry=registry
        )
        self._reads_waiting = Gauge(
            "omnigraph_reads_waiting", "Reads that wait to begin.", registry=registry
        )
        self._open_graphs = Gauge("omnigraph_open_graphs", "Open graphs.", registry=registry)
        self._rows = Counter("omnigraph_rows", "Rows that reads have returned.", registry=registry)
        self._slow = Counter(
            "omnigraph_slow_queries", "Reads that took longer than allowed.", registry=registry
        )
        self._cut = Counter(
            "omnigraph_cut_answers", "Answers whose clients stopped reading.", registry=registry
        )
        self._events = {
            event: Counter(name, meaning, labels, registry=registry)
            for event, (name, meaning, labels) in _COUNTED.items()
        }
        self._steps = Histogram(
            "omnigraph_step_seconds",
            "Time of steps of the engine.",
            ("step",),
            buckets=BUCKETS,
            registry=registry,
        )
        self._lock_waits = Histogram(
            "omnigraph_lock_wait_seconds",
            "Time that writers waited for the lock of a branch.",
            buckets=BUCKETS,
            registry=registry,
        )
        ProcessCollector(registry=registry)
        self._admission: Admission | None = None
        self._lock = threading.Lock()
        self._commits: Tally[tuple[str, str]] = Tally()
        self._conflicts: Tally[str] = Tally()

    # -- what happens -----------------------------------------------------------------------

    def add_request(self, route: str, status: int, seconds: float) -> None:
        """Count a request that was answered."""
        self._requests.labels(route, status).inc()
        self._seconds.labels(route).observe(seconds)

    def add_commit(self, graph_id: str, operation: str) -> None:
        with self._lock:
            self._commits[graph_id, operation] += 1

    def add_conflict(self, graph_id: str) -> None:
        with self._lock:
            self._conflicts[graph_id] += 1

    def add_rows(self, rows: int) -> None:
        self._rows.inc(rows)

    def add_slow_query(self) -> None:
        self._slow.inc()

    def add_cut_answer(self) -> None:
        self._cut.inc()

    def count(self, event: Event, labels: tuple[str, ...]) -> None:
        self._events[event].labels(*labels).inc()

    def took(self, step: Step, seconds: float) -> None:
        if step is Step.LOCK_WAIT:
            self._lock_waits.observe(seconds)
        else:
            self._steps.labels(step.value).observe(seconds)

    # -- what is now ------------------------------------------------------------------------

    def watch_inflight(self, kind: str, value: Callable[[], float]) -> None:
        """Ask for the number of requests of a kind when the metrics are read."""
        self._inflight.labels(kind).set_function(value)

    def watch_waiting_reads(self, value: Callable[[], float]) -> None:
        self._reads_waiting.set_function(value)

    def watch_admission(self, admission: Admission) -> None:
        self._admission = admission
        self.watch_inflight("write", lambda: admission.running)

    def watch_open_graphs(self, value: Callable[[], float]) -> None:
        self._open_graphs.set_function(value)

    # -- the text ---------------------------------------------------------------------------

    def text(self, *, with_graphs: bool) -> bytes:
        """All metrics; the names of graphs only if the caller may know them."""
        return generate_latest(_Shown(self, with_graphs))

    def families(self, *, with_graphs: bool) -> Iterator[Metric]:
        yield from self.registry.collect()
        with self._lock:
            commits, conflicts = dict(self._commits), dict(self._conflicts)
        graph = ["graph"] if with_graphs else []
        made = CounterMetricFamily(
            "omnigraph_commits", "Commits made.", labels=[*graph, "operation"]
        )
        by_operation: Tally[tuple[str, ...]] = Tally()
        for (name, operation), number in commits.items():
            by_operation[(name, operation) if with_graphs else (operation,)] += number
        refused = CounterMetricFamily(
            "omnigraph_conflicts", "Writes refused with 409.", labels=graph
        )
        by_graph: Tally[tuple[str, ...]] = Tally()
        for name, number in conflicts.items():
            by_graph[(name,) if with_graphs else ()] += number
        for family, found in ((made, by_operation), (refused, by_graph)):
            for labels, number in sorted(found.items()):
                family.add_metric(labels, number)
            yield family
        if self._admission is not None:
            yield CounterMetricFamily(
                "omnigraph_admission_admitted", "Writes admitted.", self._admission.admitted
            )
            yield CounterMetricFamily(
                "omnigraph_admission_rejected", "Writes refused with 429.", self._admission.rejected
            )


class _Shown:
    """What one caller may see."""

    def __init__(self, metrics: ServerMetrics, with_graphs: bool) -> None:
        self._metrics = metrics
        self._with_graphs = with_graphs

    def collect(self) -> Iterator[Metric]:
        return self._metrics.families(with_graphs=self._with_graphs)
