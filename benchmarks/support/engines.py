"""OmniGraph and its peers behind one face: hold a network in a folder, answer, take one more edge."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from benchmarks.support.network import SCHEMA, Network
from benchmarks.support.questions import Question

Rows = list[tuple[Any, ...]]

VERSIONS = {"duckdb": "2.0.0", "ladybug": "0.22.0"}
"""Of the peers, as `pyproject.toml` names them too; other versions are not measured."""

_ADD = "query add($a: String, $b: String) { insert Follows { from: $a, to: $b } }"


class Engine(Protocol):
    """One engine with the network in it."""

    def ask(self, question: Question) -> Rows: ...

    def follow(self, source: int, target: int) -> None:
        """Commit one more edge."""
        ...

    def close(self) -> None: ...


class OmniGraph:
    """Ourselves, through the public calls."""

    @staticmethod
    def prepare() -> None:
        import omnigraph.api.graph  # noqa: F401

    def __init__(self, folder: Path, policy: str | None = None, actor: str | None = None) -> None:
        from omnigraph.api.graph import open as open_graph

        self.graph = open_graph(folder / "graph", policy=policy, actor=actor)

    @staticmethod
    def make(folder: Path, network: Network) -> None:
        from omnigraph.api.graph import init

        graph = init(folder / "graph", SCHEMA)
        graph.load(dict(network.nodes), mode="append")
        texts = {name: _with_text_ends(edges) for name, edges in network.edges.items()}
        graph.load(texts, mode="append")

    def ask(self, question: Question) -> Rows:
        result = self.graph.query(question.gq, question.parameters)
        return [tuple(row.values()) for row in result.to_dicts()]

    def follow(self, source: int, target: int) -> None:
        self.graph.mutate(_ADD, {"a": str(source), "b": str(target)})

    def close(self) -> None:
        pass


class LadybugDB:
    @staticmethod
    def prepare() -> None:
        import ladybug  # noqa: F401

    def __init__(self, folder: Path) -> None:
        import ladybug

        assert ladybug.__version__ == VERSIONS["ladybug"], ladybug.__version__
        self._database = ladybug.Database(str(folder / "ladybug.db"))
        self._connection = ladybug.Connection(self._database)

    @staticmethod
    def make(folder: Path, network: Network) -> None:
        peer = LadybugDB(folder)
        for name, nodes in network.nodes.items():
            columns = ", ".join(f"{f.name} {_cypher_type(f.type)}" for f in nodes.schema)
            peer._run(f"CREATE NODE TABLE {name}({columns}, PRIMARY KEY(number))")
            peer._run(f"COPY {name} FROM $rows", {"rows": nodes})
        for name, edges in network.edges.items():
            source, target = network.ends[name]
            more = [f"{f.name} {_cypher_type(f.type)}" for f in list(edges.schema)[2:]]
            peer._run(
                f"CREATE REL TABLE {name}({', '.join([f'FROM {source} TO {target}', *more])})"
            )
            peer._run(f"COPY {name} FROM $rows", {"rows": edges})
        peer._run("CHECKPOINT")
        peer.close()

    def ask(self, question: Question) -> Rows:
        return [tuple(row) for row in self._run(question.cypher, question.parameters)]

    def follow(self, source: int, target: int) -> None:
        self._run(
            "MATCH (a:Person), (b:Person) WHERE a.number = $a AND b.number = $b"
            " CREATE (a)-[:Follows]->(b)",
            {"a": source, "b": target},
        )

    def close(self) -> None:
        self._connection.close()
        self._database.close()

    def _run(self, text: str, parameters: dict[str, Any] | None = None) -> list[Any]:
        found: Any = self._connection.execute(text, parameters or {})
        return list(found.get_all())


class DuckDB:
    @staticmethod
    def prepare() -> None:
        import duckdb  # noqa: F401

    def __init__(self, folder: Path) -> None:
        import duckdb

        assert duckdb.__version__ == VERSIONS["duckdb"], duckdb.__version__
        self._connection = duckdb.connect(str(folder / "duck.db"))

    @staticmethod
    def make(folder: Path, network: Network) -> None:
        peer = DuckDB(folder)
        for name, rows in network.nodes.items():
            peer._connection.register("rows", rows)
            peer._connection.execute(f"CREATE TABLE {name} AS SELECT * FROM rows")
        for name, rows in network.edges.items():
            names = ["source", "target", *rows.column_names[2:]]
            peer._connection.register("rows", rows.rename_columns(names))
            peer._connection.execute(f"CREATE TABLE {name} AS SELECT * FROM rows")
        peer._connection.execute("CHECKPOINT")
        peer.close()

    def ask(self, question: Question) -> Rows:
        found: Rows = self._connection.execute(question.sql, question.parameters).fetchall()
        return found

    def follow(self, source: int, target: int) -> None:
        self._connection.execute("INSERT INTO Follows VALUES (?, ?)", [source, target])

    def close(self) -> None:
        self._connection.close()


ENGINES: dict[str, type[OmniGraph] | type[LadybugDB] | type[DuckDB]] = {
    "OmniGraph": OmniGraph,
    "LadybugDB": LadybugDB,
    "DuckDB": DuckDB,
}


def _with_text_ends(edges: pa.Table) -> pa.Table:
    ends = {name: edges[name].cast(pa.string()) for name in ("from", "to")}
    return pa.table({**{name: edges[name] for name in edges.column_names}, **ends})


def _cypher_type(kind: pa.DataType) -> str:
    return {pa.int64(): "INT64", pa.int32(): "INT32", pa.bool_(): "BOOL"}.get(kind, "STRING")
