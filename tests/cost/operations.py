"""A small graph behind a counting proxy, and what each operation on it costs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from omnigraph.api.graph import Graph, init
from omnigraph.api.graph import open as open_graph
from tests.cost.counting_proxy import CountingProxy, Traffic

SCHEMA: Final = """
node Person { email: String @key  name: String  age: I32?  city: String? }
node Note { slug: String @key }
"""
QUERY: Final = "query names() { match { $p: Person } return { $p.name } }"
INSERT: Final = "query add($slug: String) { insert Note { slug: $slug } }"

MUTATION_REQUESTS: Final = 14
MUTATION_IN_SEQUENCE: Final = 8
DELAY_S: Final = 0.03
"""Added to every request while the longest chain of requests is measured."""


@dataclass
class MeasuredGraph:
    """A graph whose requests are counted, with the handle that made it.

    The people that the query reads are loaded at once. Each further commit inserts one note.
    """

    uri: str
    proxy: CountingProxy
    graph: Graph
    commits: int = 1

    @classmethod
    def create(cls, uri: str, proxy: CountingProxy) -> MeasuredGraph:
        made = cls(uri, proxy, init(uri, SCHEMA))
        made.graph.upsert("Person", [{"email": f"p{i}", "name": f"Person {i}"} for i in range(5)])
        made.commits = 2
        return made

    def write_until(self, commits: int) -> None:
        """Make commits, each of a single row, until the branch has so many."""
        while self.commits < commits:
            self.insert()
        self.graph.maintenance.wait()

    def insert(self) -> None:
        self.commits += 1
        self.graph.mutate(INSERT, {"slug": f"n{self.commits}"})

    def cost(self, call: Callable[[], object]) -> Traffic:
        """What a call costs, when nothing is left to do of earlier calls."""
        self.graph.maintenance.wait()
        return self.proxy.counted(call)

    def open_and_query(self, *, read_only: bool) -> Traffic:
        """A new handle and its first query."""
        return self.cost(lambda: open_graph(self.uri, read_only=read_only).query(QUERY))

    def warm_query(self) -> Traffic:
        """A query on a handle that has run it before."""
        self.graph.query(QUERY)
        return self.cost(lambda: self.graph.query(QUERY))

    def mutation(self) -> Traffic:
        """The insertion of one row by a handle that has written before, until its caller is answered."""
        self.insert()
        return self.cost(self.insert)

    def whole_mutation(self) -> Traffic:
        """The same until nothing is left to be done of it."""
        self.insert()
        return self.cost(self._insert_and_wait)

    def _insert_and_wait(self) -> None:
        self.insert()
        self.graph._core.writer.endings.wait()

    def branch_creation(self, name: str) -> Traffic:
        return self.cost(lambda: self.graph.branches.create(name))


def check_mutation(measured: MeasuredGraph) -> None:
    """Assert what a mutation may cost, and how much of it one request after the other."""
    used = measured.whole_mutation()
    assert len(used) <= MUTATION_REQUESTS, used
    measured.proxy.delay_s = DELAY_S
    used = measured.mutation()
    assert used.in_sequence <= MUTATION_IN_SEQUENCE, used
