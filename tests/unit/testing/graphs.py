"""Making reference graphs and running query text on them."""

from __future__ import annotations

from omnigraph.catalog.compile import build_schema
from omnigraph.language.syntax import Source
from omnigraph.plan.compile import compile_query
from omnigraph.plan.params import bind_parameters
from tests.support.model import ReferenceGraph
from tests.support.outcome import MutationResult


def graph_of(schema: str) -> ReferenceGraph:
    return ReferenceGraph(build_schema(Source("<schema>", schema)))


def run(graph: ReferenceGraph, statements: str, branch: str = "main") -> MutationResult:
    """Run mutation statements without parameters."""
    source = Source("<query>", f"query q() {{ {statements} }}")
    return graph.mutate(compile_query(source, graph.catalog).mutation_plan(), branch=branch)


def run_with(graph: ReferenceGraph, query: str, **params: object) -> MutationResult:
    """Run a whole mutation query with parameters."""
    plan = compile_query(Source("<query>", query), graph.catalog).mutation_plan()
    return graph.mutate(plan, bind_parameters(plan.parameters, params))
