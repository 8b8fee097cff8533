"""What a process does in the background is done when the process has ended."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from omnigraph.api.graph import open as open_graph

WRITER = """
import sys
import omnigraph
from omnigraph.commit import background

background.MAX_SMALL_FRAGMENTS = 3
graph = omnigraph.init(sys.argv[1], "node Person { name: String @key }")
for number in range(4):
    row = {"type": "Person", "data": {"name": f"p{number}"}}
    receipt = graph.load([row], mode="append").receipt
print(receipt.graph_commit_id)
"""


@pytest.mark.parametrize("durability", ["fsync", "none"])
def test_a_process_that_ends_right_after_its_write_compacts_first(tmp_path, durability):
    uri = str(tmp_path / "graph")
    ended = subprocess.run(
        [sys.executable, "-c", WRITER, uri],
        env={**os.environ, "OMNIGRAPH_DURABILITY": durability},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ended.stderr == ""
    graph = open_graph(uri, read_only=True)
    told = [(c.id, c.operation) for c in graph.log(reverse=True)]
    assert told[-2:] == [(ended.stdout.strip(), "load"), (graph.head().id, "optimize")]
    assert graph._core.recovery.status().pending == ()
    entry = graph._snapshot().entry("node:Person")
    assert len(graph._core.tables.open(entry.location).fragments()) == 1
