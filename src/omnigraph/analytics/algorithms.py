"""The algorithms by name: their parameters, their columns, and the kernel of each."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from omnigraph.diagnostics import with_hint
from omnigraph.errors import InputError, ParameterError
from omnigraph.language.types import Scalar

if TYPE_CHECKING:
    import numpy.typing as npt

    from omnigraph.analytics.centrality import Check
    from omnigraph.analytics.network import Network
    from omnigraph.analytics.spilled import SpilledNetwork

Columns = Mapping[str, "npt.NDArray[Any]"]
Parameters = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of an algorithm. Its default says of which kind its values are."""

    default: bool | int | float
    low: float = 0
    high: float = math.inf

    def checked(self, algorithm: str, name: str, value: object) -> bool | int | float:
        """A value of the caller. Raises `ParameterError`."""
        wanted = {bool: "true or false", int: "a whole number", float: "a number"}[
            type(self.default)
        ]
        if isinstance(self.default, bool):
            if isinstance(value, bool):
                return value
        elif isinstance(value, int | float) and not isinstance(value, bool):
            fits = isinstance(self.default, float) or isinstance(value, int)
            if fits and self.low <= value <= self.high:
                return value if isinstance(self.default, int) else float(value)
            wanted += f" from {self.low:g}" + (f" to {self.high:g}" if self.high < math.inf else "")
        raise ParameterError(name, f"parameter '{name}' of {algorithm} must be {wanted}")


@dataclass(frozen=True, slots=True)
class Algorithm:
    """`directed` is its default, or None if the direction of edges plays no role.

    Kernels are called with the network, the direction, the parameters and a check of the budget.
    """

    help: str
    directed: bool | None
    takes_weight: bool
    parameters: Mapping[str, Parameter]
    kernel: Callable[[Network, bool, Parameters, Check], Columns]
    on_files: Callable[[SpilledNetwork, bool, Parameters, Check], Columns] | None = None
    """The same for edges in files; None if the algorithm needs all edges in memory."""


def _degrees(network: Network, directed: bool, _: Parameters, __: Check) -> Columns:
    from omnigraph.analytics.centrality import degrees, strengths

    return {**degrees(network, directed), **strengths(network, directed)}


def _degrees_on_files(network: SpilledNetwork, directed: bool, _: Parameters, __: Check) -> Columns:
    from omnigraph.analytics.spilled import spilled_degrees

    return spilled_degrees(network, directed)


def _pagerank_on_files(
    network: SpilledNetwork, directed: bool, given: Parameters, check: Check
) -> Columns:
    from omnigraph.analytics.spilled import spilled_pagerank

    return {"score": spilled_pagerank(network, directed=directed, check=check, **given)}


def _components_on_files(network: SpilledNetwork, _: bool, __: Parameters, check: Check) -> Columns:
    from omnigraph.analytics.spilled import spilled_components

    return {"component": spilled_components(network, check)}


def _pagerank(network: Network, directed: bool, given: Parameters, check: Check) -> Columns:
    from omnigraph.analytics.centrality import pagerank

    return {"score": pagerank(network, directed=directed, check=check, **given)}


def _components(network: Network, directed: bool, _: Parameters, __: Check) -> Columns:
    from omnigraph.analytics.communities import components

    return {"component": components(network, directed=directed)}


def _labels(network: Network, directed: bool, given: Parameters, check: Check) -> Columns:
    from omnigraph.analytics.communities import label_propagation

    return {"community": label_propagation(network, directed=directed, check=check, **given)}


def _triangles(network: Network, _: bool, __: Parameters, check: Check) -> Columns:
    from omnigraph.analytics.communities import triangles

    found, share = triangles(network, check)
    return {"triangles": found, "clustering": share}


def _cores(network: Network, _: bool, __: Parameters, check: Check) -> Columns:
    from omnigraph.analytics.communities import core_numbers

    return {"core": core_numbers(network, check)}


def _betweenness(network: Network, directed: bool, given: Parameters, check: Check) -> Columns:
    from omnigraph.analytics.centrality import betweenness

    return {"score": betweenness(network, directed=directed, check=check, **given)}


def _hops(network: Network, directed: bool, given: Parameters, check: Check) -> Columns:
    from omnigraph.analytics.centrality import hop_sizes

    found = hop_sizes(network, directed=directed, check=check, **given)
    return {f"hop_{distance}": sizes for distance, sizes in enumerate(found, 1)}


_SEED: Final = Parameter(0, 0, 2**32 - 1)

ALGORITHMS: Final[Mapping[str, Algorithm]] = {
    "degrees": Algorithm("Edges at each node.", True, True, {}, _degrees, _degrees_on_files),
    "pagerank": Algorithm(
        "Importance of each node by the importance of the nodes that point at it.",
        True,
        True,
        {
            "damping": Parameter(0.85, 0.0, 1.0),
            "iterations": Parameter(100, 1),
            "tolerance": Parameter(1e-6),
        },
        _pagerank,
        _pagerank_on_files,
    ),
    "components": Algorithm(
        "Connected components; with a direction, strongly connected ones.",
        False,
        False,
        {},
        _components,
        _components_on_files,
    ),
    "label_propagation": Algorithm(
        "Communities of nodes with many edges between them.",
        False,
        True,
        {"iterations": Parameter(100, 1), "seed": _SEED},
        _labels,
    ),
    "triangles": Algorithm(
        "Triangles at each node, and its clustering coefficient.", None, False, {}, _triangles
    ),
    "k_core": Algorithm("Core number of each node.", None, False, {}, _cores),
    "betweenness": Algorithm(
        "Share of shortest paths through each node, from a sample of start nodes.",
        True,
        False,
        {"samples": Parameter(100, 1), "seed": _SEED, "normalized": Parameter(True)},
        _betweenness,
    ),
    "k_hop": Algorithm(
        "Number of nodes at each distance from each node.",
        True,
        False,
        {"hops": Parameter(2, 1, 64)},
        _hops,
    ),
}


def find_algorithm(name: str) -> Algorithm:
    """An algorithm by its name. Raises `InputError` with a suggestion."""
    found = ALGORITHMS.get(name)
    if found is None:
        known = ", ".join(ALGORITHMS)
        raise InputError(with_hint(f"unknown algorithm '{name}': {known}", name, ALGORITHMS))
    return found


def bind_parameters(
    name: str, algorithm: Algorithm, given: Mapping[str, object]
) -> dict[str, bool | int | float]:
    """All parameters of a call. Raises `ParameterError` for a wrong or unknown one."""
    declared = algorithm.parameters
    for wrong in given.keys() - declared.keys():
        takes = f"takes {', '.join(declared)}" if declared else "takes no parameters"
        message = f"{name} has no parameter '{wrong}'; it {takes}"
        raise ParameterError(str(wrong), with_hint(message, str(wrong), declared))
    return {
        parameter: found.checked(name, parameter, given[parameter])
        if parameter in given
        else found.default
        for parameter, found in declared.items()
    }


def result_columns(
    name: str, directed: bool, weighted: bool, parameters: Parameters
) -> dict[str, Scalar]:
    """The columns of a result and their types, before it is computed."""
    match name:
        case "degrees":
            prefixes = ("in_", "out_", "") if directed else ("",)
            found = {f"{prefix}degree": Scalar.I64 for prefix in prefixes}
            return found | ({f"{p}strength": Scalar.F64 for p in prefixes} if weighted else {})
        case "pagerank" | "betweenness":
            return {"score": Scalar.F64}
        case "components":
            return {"component": Scalar.I64}
        case "label_propagation":
            return {"community": Scalar.I64}
        case "triangles":
            return {"triangles": Scalar.I64, "clustering": Scalar.F64}
        case "k_core":
            return {"core": Scalar.I64}
        case _:
            return {f"hop_{hop}": Scalar.I64 for hop in range(1, parameters["hops"] + 1)}
