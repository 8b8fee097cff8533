"""Runs an algorithm on one snapshot as a view shows it, and prepares its values to be written.

Edges come from the adjacency that queries use; only weights are read from the rows of edges. Tests:
tests/behaviour/test_analytics.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.analytics.algorithms import (
    Algorithm,
    bind_parameters,
    find_algorithm,
    result_columns,
)
from omnigraph.analytics.network import (
    BYTES_PER_EDGE,
    BYTES_PER_NODE,
    Network,
    Numbers,
    end_type,
    require_scipy,
)
from omnigraph.analytics.spilled import (
    BYTES_PER_CHUNKED_EDGE,
    BYTES_PER_SPILLED_NODE,
    CHUNK_EDGES,
    SpilledNetwork,
)
from omnigraph.catalog.model import Catalog, EdgeType, NodeType
from omnigraph.errors import InputError, UnknownColumn, UnknownType
from omnigraph.language.types import PropType, Scalar
from omnigraph.plan.ir import Direction
from omnigraph.read.budget import Meter
from omnigraph.read.entities import VisibleRows
from omnigraph.read.positions import Positions
from omnigraph.read.result import Result
from omnigraph.read.source import GraphSource
from omnigraph.temporary import TemporaryFolder

if TYPE_CHECKING:
    from omnigraph.history.commits import Receipt
    from omnigraph.read.reader import Reader
    from omnigraph.read.view import ReadView
    from omnigraph.storage.tables import TableStore
    from omnigraph.versioning.snapshot import Snapshot

_WRITABLE = {
    Scalar.F64: (Scalar.F64, Scalar.F32),
    Scalar.I64: (Scalar.I64, Scalar.I32, Scalar.U64, Scalar.U32, Scalar.F64),
}
"""The types of properties that can hold the values of a column."""


class Analysis(Result):
    """The result of an algorithm: a row for each node, with its type, its id and its values.

    It is a `Result`. `receipt` is that of the commit that wrote values to the branch, if any did.
    """

    __slots__ = ("receipt",)

    def __init__(self, *given: Any, receipt: Receipt | None = None, **named: Any) -> None:
        super().__init__(*given, **named)
        self.receipt = receipt


@dataclass(frozen=True, slots=True)
class AnalysisOptions:
    """What to compute. No types mean all of them."""

    algorithm: str
    parameters: Mapping[str, object]
    nodes: tuple[str, ...] = ()
    edges: tuple[str, ...] = ()
    directed: bool | None = None
    weight: str | None = None
    write: Mapping[str, str] | None = None
    """Columns of the result, and the properties that get their values."""


@dataclass(frozen=True, slots=True)
class AnalysisPlan:
    """Checked options: what runs on which types."""

    name: str
    algorithm: Algorithm
    parameters: Mapping[str, bool | int | float]
    nodes: tuple[NodeType, ...]
    edges: tuple[EdgeType, ...]
    directed: bool
    weight: str | None
    columns: Mapping[str, Scalar]
    write: Mapping[str, str]


def plan_analysis(catalog: Catalog, options: AnalysisOptions) -> AnalysisPlan:
    """Check everything that can be checked before anything is read.

    Raises `InputError`, `ParameterError`, `UnknownType` or `UnknownColumn`.
    """
    name = options.algorithm
    algorithm = find_algorithm(name)
    if algorithm.directed is None and options.directed:
        raise InputError(f"{name} does not look at the direction of edges; leave directed out")
    if options.weight is not None and not algorithm.takes_weight:
        raise InputError(f"{name} takes no weight")
    parameters = bind_parameters(name, algorithm, options.parameters)
    directed = bool(algorithm.directed if options.directed is None else options.directed)
    nodes, edges = _selected(catalog, options.nodes, options.edges)
    if options.weight is not None:
        for edge in edges:
            _require_weight(edge, options.weight)
    columns = result_columns(name, directed, options.weight is not None, parameters)
    write = options.write or {}
    for column, target in write.items():
        if column not in columns:
            raise UnknownColumn(column, f"the result of {name}", columns)
        for node in nodes:
            _require_target(node, column, columns[column], target)
    if len(set(write.values())) < len(write):
        raise InputError("write names a property twice; each column needs its own")
    return AnalysisPlan(
        name, algorithm, parameters, nodes, edges, directed, options.weight, columns, write
    )


def _selected(
    catalog: Catalog, nodes: tuple[str, ...], edges: tuple[str, ...]
) -> tuple[tuple[NodeType, ...], tuple[EdgeType, ...]]:
    """The types to use, in the order of the catalog.

    Edge types alone bring their node types along, node types alone the edge types between them.
    """
    for kind, names, known in (("node", nodes, catalog.nodes), ("edge", edges, catalog.edges)):
        for name in names:
            if name not in known:
                raise UnknownType(kind, name, known)
    chosen = set(nodes) or (set() if edges else set(catalog.nodes))
    for name in edges:
        ends = {catalog.edges[name].from_type, catalog.edges[name].to_type}
        if nodes and not ends <= chosen:
            missing = sorted(ends - chosen)[0]
            raise InputError(
                f"edge type '{name}' ends at '{missing}', which is not among nodes; add it to nodes"
            )
        chosen |= ends
    wanted = set(edges) or {
        name for name, edge in catalog.edges.items() if {edge.from_type, edge.to_type} <= chosen
    }
    return (
        tuple(node for name, node in catalog.nodes.items() if name in chosen),
        tuple(edge for name, edge in catalog.edges.items() if name in wanted),
    )


def _require_weight(edge: EdgeType, weight: str) -> None:
    found = edge.properties.get(weight)
    if found is None:
        raise UnknownColumn(weight, f"weight: edge type {edge.name}", edge.properties)
    if not found.type.scalar.is_numeric or found.type.list:
        raise InputError(
            f"weight '{weight}' of {edge.name} is {found.type.display}; a weight is a number"
        )


def _require_target(node: NodeType, column: str, scalar: Scalar, target: str) -> None:
    found = node.properties.get(target)
    allowed = " or ".join(kind.value for kind in _WRITABLE[scalar][:2])
    if found is None:
        raise InputError(
            f"write: type '{node.name}' has no property '{target}' for '{column}'; "
            f"declare `{target}: {scalar.value}?` in the schema, or leave the type out of nodes"
        )
    if found.type.scalar not in _WRITABLE[scalar] or found.type.list:
        raise InputError(
            f"write: {node.name}.{target} is {found.type.display}, and '{column}' needs {allowed}"
        )
    if target in (node.key or ()):
        raise InputError(f"write: {node.name}.{target} is part of the key and cannot be written")


# -- running ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Computed:
    """The values of all nodes, in the order of the plan's types."""

    plan: AnalysisPlan
    ids: tuple[pa.Array, ...]
    keys: tuple[pa.Table, ...]
    """What a load finds the nodes by; only for types that are written to."""
    values: Mapping[str, pa.Array]

    def table(self, top: int | None = None) -> pa.Table:
        """A row for each node; with `top` only those with the largest values of the first column."""
        names = [pa.repeat(node.name, len(ids)) for node, ids in self._by_type()]
        found = pa.table(
            {
                "type": pa.chunked_array(names, pa.utf8()),
                "id": pa.chunked_array(self.ids, pa.utf8()),
                **self.values,
            }
        )
        if top is None:
            return found
        values = next(iter(self.values.values())).to_numpy(zero_copy_only=False)
        # A stable order: of equal values the first node comes first.
        return found.take(pa.array(np.argsort(-values, kind="stable")[:top]))

    def written(self) -> dict[str, pa.Table]:
        """The rows to patch, by the key of their table."""
        found, begin = {}, 0
        for node, keys in zip(self.plan.nodes, self.keys, strict=True):
            columns = {
                node.properties[target].name: self.values[column].slice(begin, keys.num_rows)
                for column, target in self.plan.write.items()
            }
            begin += keys.num_rows
            if keys.num_rows:
                for name, values in columns.items():
                    keys = keys.append_column(name, values)
                found[node.table_key] = keys
        return found

    def _by_type(self) -> list[tuple[NodeType, pa.Array]]:
        return list(zip(self.plan.nodes, self.ids, strict=True))


def compute(
    reader: Reader,
    tables: TableStore,
    snapshot: Snapshot,
    target: str | None,
    view: ReadView,
    plan: AnalysisPlan,
    meter: Meter,
) -> Computed:
    """Run an algorithm in this process. Raises `QueryBudgetExceeded` or `QueryCancelled`."""
    require_scipy()
    is_spilled = False
    if not meter.allows_bytes(needed_bytes(snapshot, plan)):
        is_spilled = can_spill(plan) and meter.allows_bytes(spilled_bytes(snapshot, plan))
        if not is_spilled:
            meter.check_size(0, least_bytes(snapshot, plan))
    use = partial(_compute, tables=tables, plan=plan, meter=meter, is_spilled=is_spilled)
    return reader.use_source(snapshot, target, view, use)


def needed_bytes(snapshot: Snapshot, plan: AnalysisPlan) -> int:
    """About the memory that a run takes."""
    nodes = sum(snapshot.entry(node.table_key).row_count for node in plan.nodes)
    edges = sum(snapshot.entry(edge.table_key).row_count for edge in plan.edges)
    directions = 1 if plan.directed else 2
    return BYTES_PER_NODE * nodes + BYTES_PER_EDGE * edges * directions


def can_spill(plan: AnalysisPlan) -> bool:
    """Whether an algorithm can run on edges in files."""
    # Strongly connected components need to follow edges, not only to see each of them.
    return plan.algorithm.on_files is not None and not (plan.name == "components" and plan.directed)


def spilled_bytes(snapshot: Snapshot, plan: AnalysisPlan) -> int:
    """About the memory that a run on edges in files takes."""
    nodes = sum(snapshot.entry(node.table_key).row_count for node in plan.nodes)
    edges = sum(snapshot.entry(edge.table_key).row_count for edge in plan.edges)
    return BYTES_PER_SPILLED_NODE * nodes + BYTES_PER_CHUNKED_EDGE * min(edges, CHUNK_EDGES)


def least_bytes(snapshot: Snapshot, plan: AnalysisPlan) -> int:
    """The memory that a run takes at least."""
    needed = needed_bytes(snapshot, plan)
    return min(needed, spilled_bytes(snapshot, plan)) if can_spill(plan) else needed


def _compute(
    source: GraphSource, *, tables: TableStore, plan: AnalysisPlan, meter: Meter, is_spilled: bool
) -> Computed:
    def check(nbytes: int) -> None:
        meter.check_size(0, nbytes)

    places = {node.name: source.nodes(node.name).all() for node in plan.nodes}
    numbers, size = _numbers(source, places)
    given = plan.directed, plan.parameters, check
    if is_spilled:
        assert plan.algorithm.on_files is not None, "asked before"
        with TemporaryFolder("omnigraph-analyze-") as folder:
            shown = (VisibleRows(source.snapshot, tables, e, source.view) for e in plan.edges)
            parts = (_spilled(rows, source, plan.weight, numbers, meter) for rows in shown)
            files = SpilledNetwork.write(Path(folder), size, chain.from_iterable(parts))
            values = plan.algorithm.on_files(files, *given)
    else:
        network = _network(source, plan, numbers, size)
        meter.check()
        values = plan.algorithm.kernel(network, *given)
    ids = tuple(source.nodes(name).ids(at) for name, at in places.items())
    keys = tuple(
        _keys(source, node, places[node.name], found) if plan.write else pa.table({})
        for node, found in zip(plan.nodes, ids, strict=True)
    )
    return Computed(plan, ids, keys, {name: pa.array(values[name]) for name in plan.columns})


def _keys(source: GraphSource, node: NodeType, at: Positions, ids: pa.Array) -> pa.Table:
    if node.key is None:
        return pa.table({"id": ids})
    return pa.table({name: source.nodes(node.name).values(name, at) for name in node.key})


def _numbers(
    source: GraphSource, places: Mapping[str, Positions]
) -> tuple[dict[str, Numbers], int]:
    """The number of each position of a type, with all nodes numbered one after the other; -1 for none."""
    numbers, size = {}, 0
    for name, at in places.items():
        found = np.full(source.nodes(name).size, -1, np.int64)
        found[at] = np.arange(size, size + len(at))
        numbers[name] = found
        size += len(at)
    return numbers, size


def _spilled(
    rows: VisibleRows,
    source: GraphSource,
    weight: str | None,
    numbers: Mapping[str, Numbers],
    meter: Meter,
) -> Iterator[tuple[Numbers, Numbers, np.ndarray[Any, Any] | None]]:
    """The edges of a type in chunks: both ends, and weights if they matter."""
    edge = rows.shown
    assert isinstance(edge, EdgeType), "nodes have no ends"
    names = ["src", "dst"] if weight is None else ["src", "dst", weight]
    for chunk in _chunks(rows.read(names, None)):
        meter.check()
        sources = source.nodes(edge.from_type).positions_of(chunk.column("src"))
        targets = source.nodes(edge.to_type).positions_of(chunk.column("dst"))
        known = (sources >= 0) & (targets >= 0)
        begin = numbers[edge.from_type][sources[known]]
        end = numbers[edge.to_type][targets[known]]
        seen = (begin >= 0) & (end >= 0)
        weights = None
        if weight is not None:
            values = chunk.column(weight).combine_chunks().filter(pa.array(known))
            weights = _weights(edge, weight, values)[seen]
        yield begin[seen], end[seen], weights


def _chunks(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """The same rows, more at a time: for every look-up, the ids of all nodes are hashed."""
    held: list[pa.RecordBatch] = []
    count = 0
    for batch in batches:
        held.append(batch)
        count += batch.num_rows
        if count >= CHUNK_EDGES:
            yield pa.Table.from_batches(held)
            held, count = [], 0
    if held:
        yield pa.Table.from_batches(held)


def _network(
    source: GraphSource, plan: AnalysisPlan, numbers: Mapping[str, Numbers], size: int
) -> Network:
    parts = [_edges(source, edge, plan.weight, numbers) for edge in plan.edges]
    kind = end_type(size)
    empty: Numbers = np.empty(0, np.int64)
    sources, targets, last = (
        np.concatenate([empty, *(part[index] for part in parts)]) for index in range(3)
    )
    sources, targets = sources.astype(kind), targets.astype(kind)
    if plan.weight is not None:
        return Network(size, sources, targets, weights=last.astype(np.float64))
    is_counted = bool(len(last)) and int(last.max()) > 1
    return Network(size, sources, targets, last.astype(np.int64) if is_counted else None)


def _edges(
    source: GraphSource, edge: EdgeType, weight: str | None, numbers: Mapping[str, Numbers]
) -> tuple[Numbers, Numbers, np.ndarray[Any, Any]]:
    """Both ends of the edges of a type, and how often each counts or what it weighs."""
    if weight is None:
        sources, targets, last = source.adjacency(edge.name, Direction.OUT).pairs()
    else:
        rows = source.edges(edge.name)
        at = rows.all()
        sources, targets = rows.ends(at)
        last = _weights(edge, weight, rows.values(weight, at))
    begin, end = numbers[edge.from_type][sources], numbers[edge.to_type][targets]
    seen = (begin >= 0) & (end >= 0)
    if seen.all():
        return begin, end, last
    return begin[seen], end[seen], last[seen]


def _weights(edge: EdgeType, name: str, values: pa.Array) -> np.ndarray[Any, Any]:
    """Weights as numbers. Raises `InputError` for edges without a usable one."""
    numbers = pc.cast(values, pa.float64(), safe=False)
    usable = pc.fill_null(pc.and_(pc.is_finite(numbers), pc.greater_equal(numbers, 0.0)), False)
    wrong = len(usable) - (pc.sum(usable).as_py() or 0)
    if wrong:
        raise InputError(
            f"weight '{name}' is missing, negative or not finite in {wrong:,} of {len(usable):,} "
            f"edges of {edge.name}; a weight is a number from 0"
        )
    return np.asarray(numbers.to_numpy(zero_copy_only=False))


def result_of(
    computed: Computed, snapshot: Snapshot, target: str | None, top: int | None = None
) -> Analysis:
    """The rows that a call returns."""
    text = PropType(Scalar.STRING)
    types = (text, text, *(PropType(scalar) for scalar in computed.plan.columns.values()))
    return Analysis(
        computed.plan.name,
        computed.table(top),
        types,
        branch=snapshot.branch if target is None else None,
        snapshot=target,
        commit_id=snapshot.commit_id,
    )
