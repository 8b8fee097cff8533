"""How long planning a cluster takes in a process that has done it before: `python -m benchmarks.cluster`.

Every graph has a schema of five types, three stored queries and a policy. `plan` validates all files, locks, reads
the ledger and compares; with a changed schema it also opens that graph. The goal is 50 graphs in less than 2 s.
A server that starts on the cluster counts 50 ready graphs in `/readyz` in less than 5 s.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from urllib.error import HTTPError
from urllib.request import urlopen

from omnigraph.cluster.apply import apply, plan
from omnigraph.cluster.resources import validate

GRAPHS = 50
RUNS = 5

SCHEMA = "".join(
    f"node {name} {{\n    slug: String @key\n    label: String? @index\n    size: I32?\n}}\n"
    for name in ("Person", "Team", "Project")
) + ("edge Knows: Person -> Person\nedge WorksAt: Person -> Team { since: Date? }\n")
QUERIES = "".join(
    f"query by_{name.lower()}($slug: String) {{\n"
    f"    match {{ $a: {name} {{ slug: $slug }} }}\n    return {{ $a.label, $a.size }}\n}}\n"
    for name in ("Person", "Team", "Project")
)
POLICY = """\
version: 1
groups: {staff: [ada]}
rules: [{id: all, allow: {actors: {group: staff}, actions: [read, change]}}]
"""


def declare(folder: Path) -> None:
    """Write the declaration of a cluster."""
    lines = ["version: 1", "graphs:"]
    for number in range(GRAPHS):
        name = f"graph-{number:02}"
        (folder / f"{name}.pg").write_text(SCHEMA)
        (folder / f"{name}.gq").write_text(QUERIES)
        (folder / f"{name}.yaml").write_text(POLICY)
        lines += [f"  {name}:", f"    schema: {name}.pg", f"    queries: {name}.gq"]
    lines.append("policies:")
    for number in range(GRAPHS):
        name = f"graph-{number:02}"
        lines += [f"  {name}:", f"    file: {name}.yaml", f"    applies_to: [{name}]"]
    (folder / "cluster.yaml").write_text("\n".join(lines) + "\n")


def measured(what: str, call: object) -> None:
    """Print the median time of a few calls, after one that does not count."""
    assert callable(call)
    call()
    seconds = []
    for _ in range(RUNS):
        began = perf_counter()
        call()
        seconds.append(perf_counter() - began)
    print(f"{what:<40} {median(seconds) * 1000:8.0f} ms")


def seconds_until_ready(folder: Path) -> float:
    """From the start of a server process until all graphs are ready."""
    command = "import sys; from omnigraph.server.command import run; sys.exit(run(sys.argv[1:]))"
    tokens = {"OMNIGRAPH_SERVER_BEARER_TOKENS_JSON": '{"ada": "t-ada"}'}
    began = perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-c", command, "--cluster", str(folder), "--bind", "127.0.0.1:0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=os.environ | tokens,
    )
    assert process.stdout is not None
    try:
        address = process.stdout.readline().strip().partition("=")[2]
        while True:
            try:
                with urlopen(f"http://{address}/readyz") as answer:
                    found = json.load(answer)
            except HTTPError as loading:
                found = json.load(loading)
            if found["ready_graph_count"] == GRAPHS:
                return perf_counter() - began
            assert not found["blocked_graph_count"], found
            time.sleep(0.01)
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()


def main() -> None:
    os.environ["OMNIGRAPH_DURABILITY"] = "none"
    with TemporaryDirectory() as name:
        folder = Path(name)
        declare(folder)
        measured(f"validate, {GRAPHS} graphs", lambda: validate(folder))
        measured("plan, nothing applied", lambda: plan(folder))
        began = perf_counter()
        assert apply(folder).converged
        print(f"{'apply, creating them':<40} {(perf_counter() - began) * 1000:8.0f} ms")
        measured("plan, converged", lambda: plan(folder))
        ready = median(seconds_until_ready(folder) for _ in range(3))
        print(f"{'server process until 50 are ready':<40} {ready * 1000:8.0f} ms")
        (folder / "graph-00.pg").write_text(SCHEMA + "node City {\n    slug: String @key\n}\n")
        measured("plan, one schema changed", lambda: plan(folder))


if __name__ == "__main__":
    main()
