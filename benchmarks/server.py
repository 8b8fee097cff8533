"""What HTTP costs: one call over a connection beside the same call in the process, and many at once.

The server runs in a process of its own, with tokens and a policy, and with fsync. Clients are raw sockets in
two other processes. Goals: HTTP adds less than 2 ms to a small read (p50); 1,000 reads a second on two cores;
32 connections of 32 actors make at least 3 times the commits a second of one connection.

At last 50 connections read and write, and the server is killed in the middle and started again: no answer but
200, 409, 412 and 429, and every write that was acknowledged is there at the end.

`--only reads` measures one section. Every figure comes with the load average of the machine.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from benchmarks.support.http_load import (
    OneConnection,
    Outcome,
    ServerProcess,
    drive,
    request_bytes,
    server_process,
)
from benchmarks.support.timing import readable
from omnigraph.api.graph import init
from omnigraph.api.graph import open as open_graph

SCHEMA = "node Author { slug: String @key  born: I32? }\n"
LIB = """\
query by_slug($slug: String) { match { $a: Author { slug: $slug } } return { $a.slug, $a.born } }
query add_author($slug: String) { insert Author { slug: $slug, born: 1 } }
query set_born($slug: String, $born: I32) { update Author set { born: $born } where slug = $slug }
"""
AUTHORS = 1000
ACTORS = 32
CONNECTIONS = 50
SAMPLES = 300
READ_SECONDS, WRITE_SECONDS, MIXED_SECONDS = 10.0, 10.0, 60.0
GOAL_OVERHEAD_SECONDS, GOAL_READS, GOAL_RATIO = 0.002, 1000.0, 3.0
EXPECTED = frozenset([200, 409, 412, 429])

POLICY = f"""\
version: 1
groups:
  all: [{", ".join(f"actor{number}" for number in range(ACTORS))}]
rules:
  - id: everything
    allow: {{actors: {{group: all}}, actions: [read, change, export]}}
"""


def token(client: int) -> str:
    return f"token-{client % ACTORS}"


def ask_read(client: int, number: int) -> tuple[str, str, dict[str, Any], str | None]:
    slug = f"a{(client * 7919 + number) % AUTHORS}"
    body = {"query": LIB, "name": "by_slug", "params": {"slug": slug}}
    return "read", "/query", body, token(client)


def ask_write(client: int, number: int) -> tuple[str, str, dict[str, Any], str | None]:
    slug = f"w{os.getpid()}-{client}-{number}"
    body = {"query": LIB, "name": "add_author", "params": {"slug": slug}}
    return "write", "/mutate", body, token(client)


def ask_either(client: int, number: int) -> tuple[str, str, dict[str, Any], str | None]:
    """Nine reads, then a write; every fourth client updates one row that all of them update."""
    if number % 10 != client % 10:
        return ask_read(client, number)
    if client % 4:
        return ask_write(client, number)
    body = {"query": LIB, "name": "set_born", "params": {"slug": "a0", "born": number}}
    return "update", "/mutate", body, token(client)


def load_average() -> str:
    return f"load {os.getloadavg()[0]:.1f}"


def p50(values: list[float]) -> float:
    return statistics.median(values)


def p99(values: list[float]) -> float:
    return statistics.quantiles(values, n=100)[98] if len(values) > 1 else values[0]


def verdict(is_met: bool, goal: str) -> str:
    return f"goal {goal}: {'met' if is_met else 'MISSED'} ({load_average()})"


def measure_overhead(server: ServerProcess, root: Path) -> None:
    """The same read over HTTP and in this process, in turns."""
    connection = OneConnection(server.address)
    over_http: list[float] = []
    embedded: list[float] = []
    health: list[float] = []
    alive = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
    with open_graph(root) as graph:
        for number in range(SAMPLES + 20):
            _, path, body, bearer = ask_read(0, number)
            sent = request_bytes(path, body, bearer)
            began = time.perf_counter()
            assert connection.call(sent) == 200
            between = time.perf_counter()
            graph.query(LIB, body["params"], name="by_slug").rows_json()
            after = time.perf_counter()
            connection.call(alive)
            over_http.append(between - began)
            embedded.append(after - between)
            health.append(time.perf_counter() - after)
    connection.close()
    added = p50(over_http[20:]) - p50(embedded[20:])
    print(
        f"  read over HTTP     p50 {readable(p50(over_http[20:]))}  p99 {readable(p99(over_http[20:]))}"
    )
    print(
        f"  read in process    p50 {readable(p50(embedded[20:]))}  p99 {readable(p99(embedded[20:]))}"
    )
    print(f"  /healthz           p50 {readable(p50(health[20:]))}")
    print(
        f"  added by HTTP      {readable(added)}  {verdict(added < GOAL_OVERHEAD_SECONDS, '2 ms')}"
    )


def measure_reads(server: ServerProcess) -> None:
    for clients in (1, 8, 32):
        found = drive(server.address, ask_read, clients, READ_SECONDS, min(2, clients))
        rate = found.total / READ_SECONDS
        line = f"  {clients:2} connections  {rate:7,.0f} reads/s  {_latency(found, 'read')}"
        goal = verdict(rate >= GOAL_READS, "1,000/s") if clients == 32 else load_average()
        print(f"{line}  {goal}")


def measure_writers(server: ServerProcess) -> None:
    rates: dict[int, list[float]] = {1: [], ACTORS: []}
    for _ in range(2):
        for clients, known in rates.items():
            found = drive(server.address, ask_write, clients, WRITE_SECONDS, min(2, clients))
            wrong = {key: n for key, n in found.statuses.items() if key[1] not in EXPECTED}
            assert not wrong, wrong
            known.append(len(found.acknowledged) / WRITE_SECONDS)
            line = (
                f"  {clients:2} connections  {known[-1]:6.1f} commits/s  {_latency(found, 'write')}"
            )
            print(f"{line}  {load_average()}")
    ratio = p50(rates[ACTORS]) / p50(rates[1])
    print(f"  {ACTORS} against 1: {ratio:.1f} times  {verdict(ratio >= GOAL_RATIO, '3 times')}")


def measure_mixed(server: ServerProcess, root: Path) -> None:
    def interrupt() -> None:
        time.sleep(MIXED_SECONDS / 2)
        server.kill()
        server.start()

    killer = threading.Thread(target=interrupt)
    killer.start()
    found = drive(server.address, ask_either, CONNECTIONS, MIXED_SECONDS)
    killer.join()
    with open_graph(root) as graph:
        stored = {
            row["slug"] for row in graph.scan("Author", columns=["slug"]).read_all().to_pylist()
        }
    lost = [slug for slug in found.acknowledged if slug not in stored]
    others = {key: n for key, n in found.statuses.items() if key[1] not in EXPECTED}
    by_status = ", ".join(
        f"{kind} {code}: {n:,}" for (kind, code), n in sorted(found.statuses.items())
    )
    print(
        f"  {found.total / MIXED_SECONDS:,.0f} answers/s; {by_status}; {found.broken} broken by the kill"
    )
    for kind in sorted(found.seconds):
        print(f"  {kind:6} {_latency(found, kind)}")
    print(
        f"  {len(found.acknowledged):,} writes acknowledged, {len(lost)} lost, other answers: {others}"
    )
    print(f"  {verdict(not lost and not others, 'nothing lost, no other answer')}")


def _latency(found: Outcome, kind: str) -> str:
    seconds = found.seconds.get(kind) or [0.0]
    return f"p50 {readable(p50(seconds))}  p99 {readable(p99(seconds))}"


SECTIONS = ("overhead", "reads", "writers", "mixed")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=SECTIONS)
    wanted = parser.parse_args().only
    tokens = json.dumps({f"actor{number}": token(number) for number in range(ACTORS)})
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        root = folder / "authors.omni"
        with init(root, schema=SCHEMA) as graph:
            graph.upsert("Author", [{"slug": f"a{n}", "born": n} for n in range(AUTHORS)])
        (folder / "policy.yaml").write_text(POLICY)
        config = folder / "omnigraph.yaml"
        config.write_text("policy:\n  file: policy.yaml\n")
        env = {"OMNIGRAPH_SERVER_BEARER_TOKENS_JSON": tokens}
        with server_process(folder, str(root), "--config", str(config), env=env) as server:
            for section in SECTIONS:
                if wanted in (None, section):
                    print(f"{section} ({load_average()})")
                    match section:
                        case "overhead":
                            measure_overhead(server, root)
                        case "reads":
                            measure_reads(server)
                        case "writers":
                            measure_writers(server)
                        case "mixed":
                            measure_mixed(server, root)


if __name__ == "__main__":
    main()
