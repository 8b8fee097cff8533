"""What operations cost on an object store whose every answer takes 30 ms longer.

A proxy in front of an S3-compatible server on this machine adds the delay and counts requests. Goals:
a one-row mutation takes at most 400 ms, a warm query 45 ms, creating a branch 350 ms, and 16 threads of
one process make at least 15 commits a second. Proxy, server and writers share the cores of this machine,
so a busy machine is visible in the figures.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import count

from benchmarks.support.timing import readable
from omnigraph.api.graph import Graph, init
from tests.contract.objects.moto_server import BUCKET, environment_for, running_server
from tests.cost.counting_proxy import CountingProxy, Traffic, counting_proxy
from tests.cost.operations import DELAY_S, MeasuredGraph

ROUNDS = 9
COMMITS = 10
WRITERS = 16
TYPES = 8
SECONDS = 10.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="calls of each operation")
    parser.add_argument("--commits", type=int, default=COMMITS, help="commits made beforehand")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="how long writers write")
    given = parser.parse_args()
    with running_server() as server, counting_proxy(server) as proxy:
        os.environ.update(environment_for(proxy.endpoint))
        print_operations(proxy, given.rounds, given.commits)
        for types in (1, TYPES):
            print_writers(proxy, types, given.seconds)


def print_operations(proxy: CountingProxy, rounds: int, commits: int) -> None:
    measured = MeasuredGraph.create(f"s3://{BUCKET}/operations", proxy)
    measured.write_until(commits)
    proxy.delay_s = DELAY_S
    numbers = count()
    operations: dict[str, tuple[Callable[[], Traffic], float | None]] = {
        "open and first query": (lambda: measured.open_and_query(read_only=False), None),
        "warm query": (measured.warm_query, 0.045),
        "mutation": (measured.mutation, 0.4),
        "branch create": (lambda: measured.branch_creation(f"b{next(numbers)}"), 0.35),
    }
    print(f"after {commits} commits, {readable(DELAY_S)} added to every request")
    print(f"{'':<22}{'requests':>10}{'in sequence':>13}{'p50':>12}{'goal':>12}")
    for name, (call, goal) in operations.items():
        used = [call() for _ in range(rounds)]
        requests = statistics.median(len(traffic) for traffic in used)
        chain = statistics.median(traffic.in_sequence for traffic in used)
        took = statistics.median(traffic.seconds for traffic in used)
        wanted = "" if goal is None else f"<= {readable(goal)}"
        print(f"{name:<22}{requests:>10.0f}{chain:>13.0f}{readable(took):>12}{wanted:>12}")
    measured.graph.maintenance.wait()
    proxy.delay_s = 0.0


def print_writers(proxy: CountingProxy, types: int, seconds: float) -> None:
    """Threads that each insert one row after the other, into one type or into several."""
    schema = "\n".join(f"node T{i} {{ k: String @key }}" for i in range(types))
    graph = init(f"s3://{BUCKET}/writers{types}", schema)
    proxy.delay_s = DELAY_S
    end = time.monotonic() + seconds

    def write(writer: int) -> list[float]:
        took: list[float] = []
        while (started := time.monotonic()) < end:
            insert(graph, f"T{writer % types}", f"{writer}-{len(took)}")
            took.append(time.monotonic() - started)
        return took

    started = time.monotonic()
    with ThreadPoolExecutor(WRITERS) as pool:
        took = [one for of_writer in pool.map(write, range(WRITERS)) for one in of_writer]
    rate = len(took) / (time.monotonic() - started)
    name = f"{WRITERS} writers, {types} {'type' if types == 1 else 'types'}"
    slowest = readable(max(took))
    print(f"{name:<22}{rate:>8.1f} commits/s (goal >= 15), slowest {slowest}")
    graph.maintenance.wait()
    proxy.delay_s = 0.0


def insert(graph: Graph, type: str, key: str) -> None:
    graph.mutate(f"query add($k: String) {{ insert {type} {{ k: $k }} }}", {"k": key})


if __name__ == "__main__":
    main()
