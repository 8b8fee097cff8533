"""A small graph behind a counting proxy, and what each operation on it costs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from omnigraph.api.graph import Graph, init
from omnigraph.api.graph import open as open_graph
from tests.cost.counting_proxy import CountingProxy, Traffic

SCHEMA = "node Person { email: String @key\nname: String }\nedge Knows: Person -> Person\n"
QUERY = "query names() { match { $p: Person } return { $p.name } limit 3 }"
INSERT = "query add($e: String) { insert Person { email: $e, name: $e } }"


@dataclass
class MeasuredGraph:
    """A graph whose requests are counted, with the handle that made it."""

    uri: str
    proxy: CountingProxy
    graph: Graph
    commits: int = 1

    @classmethod
    def create(cls, uri: str, proxy: CountingProxy) -> MeasuredGraph:
        made = cls(uri, proxy, init(uri, SCHEMA))
        rows = [{"email": f"p{i}", "name": f"Person {i}"} for i in range(5)]
        made.graph.upsert("Person", rows)
        made.commits = 2
        return made

    def write_until(self, commits: int) -> None:
        """Make commits, each of a single row, until the branch has so many."""
        while self.commits < commits:
            self.insert()
        self.graph.maintenance.wait()

    def insert(self) -> None:
        self.commits += 1
        self.graph.mutate(INSERT, {"e": f"c{self.commits}"})

    def cost(self, call: Callable[[], object]) -> Traffic:
        """What a call costs, with nothing left over from earlier calls."""
        self.graph.maintenance.wait()
        return self.proxy.counted(call)

    def open_and_query(self, *, read_only: bool = False) -> Traffic:
        """A new handle and its first query."""
        return self.cost(lambda: open_graph(self.uri, read_only=read_only).query(QUERY))

    def warm_query(self) -> Traffic:
        """A query on a handle that has run it before."""
        self.graph.query(QUERY)
        return self.cost(lambda: self.graph.query(QUERY))

    def mutation(self) -> Traffic:
        """The insertion of one row by a handle that has written before."""
        self.insert()
        return self.cost(self.insert)

    def branch_creation(self, name: str) -> Traffic:
        return self.cost(lambda: self.graph.branches.create(name))
