"""A result as a networkx graph. The library is handed in, as it is not one of our dependencies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from omnigraph.errors import InputError, UnknownColumn

if TYPE_CHECKING:
    from omnigraph.read.result import Result


def to_networkx(result: Result, networkx: Any, source: str | None, target: str | None) -> Any:
    """A `networkx.MultiDiGraph` with one edge per row. The arguments are those of `Result.to_networkx`."""
    columns = result.columns
    for name in (source, target):
        if name is not None and name not in columns:
            raise UnknownColumn(name, "the result", columns)
    if source is None or target is None:
        free = [name for name in columns if name not in (source, target)]
        if len(columns) < 2 or (source is None and target is None and len(free) < 2):
            raise InputError("a graph needs two columns: one for the source, one for the target")
        source = source if source is not None else free.pop(0)
        target = target if target is not None else free.pop(0)
    network = networkx.MultiDiGraph()
    for row in result:
        start, end = row.pop(source), row.pop(target)
        for column, node in ((source, start), (target, end)):
            if node is not None:
                network.add_node(node, **_node_attributes(result, column))
        if start is not None and end is not None:
            network.add_edge(start, end, **row)
    return network


def _node_attributes(result: Result, column: str) -> dict[str, str]:
    found = result.entities.get(column)
    return {} if found is None else {"type": found}
