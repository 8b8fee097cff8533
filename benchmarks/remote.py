"""A small query through a server on the loopback interface, beside the same query in this process.

python -m benchmarks.remote
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter

import omnigraph as og

SCHEMA = "node Person { email: String @key  name: String }\nedge Knows: Person -> Person\n"
QUERY = """query friends($email: String) {
    match { $p: Person { email: $email }  $p knows $f }
    return { $f.name as friend }
}"""
ROUNDS = 300


def main() -> None:
    with TemporaryDirectory() as folder:
        root = Path(folder) / "people.omni"
        with og.init(root, schema=SCHEMA) as graph:
            people = [{"email": f"p{n}@x.org", "name": f"P {n}"} for n in range(1000)]
            knows = [{"from": f"p{n}@x.org", "to": f"p{(n + 1) % 1000}@x.org"} for n in range(1000)]
            graph.load({"Person": people, "Knows": knows}, "append")
            print(f"embedded  {measured(graph):6.2f} ms")
        command = [
            sys.executable,
            "-c",
            "import sys; from omnigraph.server.command import run; sys.exit(run(sys.argv[1:]))",
            str(root),
            "--unauthenticated",
            "--bind",
            "127.0.0.1:0",
            "--log-level",
            "warning",
        ]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert server.stdout is not None
        try:
            address = server.stdout.readline().strip().partition("=")[2]
            with og.connect(f"http://{address}") as remote:
                print(f"remote    {measured(remote):6.2f} ms")
        finally:
            server.terminate()
            server.wait()
            server.stdout.close()


def measured(graph: og.GraphProtocol) -> float:
    """The median time of one query, in milliseconds."""
    times = []
    for number in range(ROUNDS):
        began = perf_counter()
        rows = graph.query(QUERY, {"email": f"p{number}@x.org"})
        times.append(perf_counter() - began)
        assert len(rows) == 1
    return median(times[20:]) * 1e3


if __name__ == "__main__":
    main()
