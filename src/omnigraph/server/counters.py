"""Counters of a server, and their text in the format of Prometheus.

Tests: tests/server/test_metrics.py.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from itertools import accumulate
from typing import Final

MEDIA_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
BUCKETS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Counters:
    """Requests, commits and conflicts since the server started. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests: Counter[tuple[str, int]] = Counter()
        self._buckets = [0] * (len(BUCKETS) + 1)
        self._seconds = 0.0
        self._commits: Counter[tuple[str, str]] = Counter()
        self._conflicts: Counter[str] = Counter()

    def add_request(self, route: str, status: int, seconds: float) -> None:
        """Count a request that was answered."""
        with self._lock:
            self._requests[route, status] += 1
            self._buckets[bisect_left(BUCKETS, seconds)] += 1
            self._seconds += seconds

    def add_commit(self, graph_id: str, operation: str) -> None:
        with self._lock:
            self._commits[graph_id, operation] += 1

    def add_conflict(self, graph_id: str) -> None:
        with self._lock:
            self._conflicts[graph_id] += 1

    def lines(self, *, with_graphs: bool) -> list[str]:
        """The counters; the names of graphs only if the caller may know them."""
        with self._lock:
            requests, buckets = dict(self._requests), tuple(self._buckets)
            commits, conflicts = dict(self._commits), dict(self._conflicts)
            seconds = self._seconds
        by_route = Counter(
            {f'route="{route}",status="{status}"': n for (route, status), n in requests.items()}
        )
        by_operation: Counter[str] = Counter()
        for (graph, operation), n in commits.items():
            named = f'graph="{graph}",' if with_graphs else ""
            by_operation[f'{named}operation="{operation}"'] += n
        by_graph: Counter[str] = Counter()
        for graph, n in conflicts.items():
            by_graph[f'graph="{graph}"' if with_graphs else ""] += n
        return [
            *series("omnigraph_requests_total", "counter", "Requests answered.", by_route),
            *_histogram(buckets, seconds),
            *series("omnigraph_commits_total", "counter", "Commits made.", by_operation),
            *series("omnigraph_conflicts_total", "counter", "Writes refused with 409.", by_graph),
        ]


def series(name: str, kind: str, meaning: str, values: dict[str, int]) -> Iterator[str]:
    """One metric: its values by labels."""
    yield f"# HELP {name} {meaning}"
    yield f"# TYPE {name} {kind}"
    for labels, value in sorted(values.items()):
        yield f"{name}{f'{{{labels}}}' if labels else ''} {value}"


def _histogram(buckets: tuple[int, ...], seconds: float) -> Iterator[str]:
    name = "omnigraph_request_seconds"
    yield f"# HELP {name} Time until an answer begins."
    yield f"# TYPE {name} histogram"
    totals = list(accumulate(buckets))
    for bound, total in zip((*map(str, BUCKETS), "+Inf"), totals, strict=True):
        yield f'{name}_bucket{{le="{bound}"}} {total}'
    yield f"{name}_sum {seconds:.6f}"
    yield f"{name}_count {totals[-1]}"
