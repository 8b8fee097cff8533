"""How long planning a cluster takes in a process that has done it before: `python -m benchmarks.cluster`.

Every graph has a schema of five types, three stored queries and a policy. `plan` validates all files, locks, reads
the ledger and compares; with a changed schema it also opens that graph. The goal is 50 graphs in less than 2 s.
"""

from __future__ import annotations

import os
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter

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
        (folder / "graph-00.pg").write_text(SCHEMA + "node City {\n    slug: String @key\n}\n")
        measured("plan, one schema changed", lambda: plan(folder))


if __name__ == "__main__":
    main()
