"""The call that runs a graph algorithm, and writes its values to the branch if asked to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from omnigraph.api.arguments import (
    commit_argument,
    kind_of,
    names_argument,
    only_one,
    optional_text,
    parameters_argument,
    rows_argument,
    text_argument,
)
from omnigraph.api.changing import Changes
from omnigraph.errors import HeadMoved, InputError
from omnigraph.graph.gate import Action

if TYPE_CHECKING:
    from omnigraph.analytics.run import Analysis
    from omnigraph.history.refs import Ref
    from omnigraph.read.budget import CancelToken, QueryBudget

_ATTEMPTS: Final = 5
"""How often values are computed again because the branch moved before they were written."""


class Analyses(Changes):
    """The call for graph algorithms."""

    def analyze(
        self,
        algorithm: str,
        params: Mapping[str, object] | None = None,
        *,
        nodes: Iterable[str] = (),
        edges: Iterable[str] = (),
        directed: bool | None = None,
        weight: str | None = None,
        top: int | None = None,
        write: Mapping[str, str] | None = None,
        branch: str | None = None,
        at: Ref | None = None,
        budget: QueryBudget | None = None,
        cancel: CancelToken | None = None,
        message: str | None = None,
        expected_head: Ref | None = None,
        idempotency_key: str | None = None,
    ) -> Analysis:
        """Run a graph algorithm: a row for each node, with its type, its id and its values.

        `algorithm` is `degrees`, `pagerank`, `components`, `label_propagation`, `triangles`, `k_core`,
        `betweenness` or `k_hop`; the analytics page of the documentation has their parameters.
        `nodes` and `edges` name the types to use; edge types alone bring their node types along.
        `directed` says whether an edge leads one way, `weight` is a property of the edges. With
        `top`, only rows with the largest values come back.

        `write` maps columns of the result to properties that get their values in one commit, of which
        the result has the `receipt`. If the branch moves meanwhile, the values are computed again.
        Raises `QueryBudgetExceeded` before it would take more memory than `budget` allows.

        >>> graph.analyze("pagerank", {"damping": 0.9}, edges=["Knows"], top=1)["id"].to_pylist()
        ['bo@x.org']
        """
        from omnigraph.analytics.run import AnalysisOptions

        options = AnalysisOptions(
            algorithm=text_argument("algorithm", algorithm),
            parameters=parameters_argument(params),
            nodes=names_argument("nodes", nodes),
            edges=names_argument("edges", edges),
            directed=directed,
            weight=optional_text("weight", weight),
            write=_targets(write),
        )
        rows_argument("top", top)
        if options.write is None:
            for name, value in (("message", message), ("expected_head", expected_head)):
                if value is not None:
                    raise InputError(f"{name} belongs to a write; give write as well")
            return self._state(branch, at)._analyze(options, top, budget, cancel)
        only_one(write=write, at=at)
        self._writable("analyze")
        expected = commit_argument("expected_head", expected_head)
        self._allow(Action.CHANGE, self._ref(branch).public)
        for attempt in range(_ATTEMPTS):
            state = self._state(branch, None)
            computed = state._compute(options, budget, cancel)
            try:
                done = self.load(
                    computed.written(),
                    "patch",
                    branch=branch,
                    load_id=optional_text("idempotency_key", idempotency_key),
                    message=optional_text("message", message),
                    expected_head=state.commit_id if expected is None else expected,
                    engine="inline",
                )
            except HeadMoved:
                if expected is not None or attempt == _ATTEMPTS - 1:
                    raise
                continue
            break
        return state._analysis_of(computed, top, done.receipt)


def _targets(write: object) -> dict[str, str] | None:
    if write is None:
        return None
    if not isinstance(write, Mapping) or not write:
        example = '{"score": "rank"}'
        raise InputError(
            f"write must map columns to properties, such as {example}, not {kind_of(write)}"
        )
    return {
        text_argument("write", key): text_argument("write", value) for key, value in write.items()
    }
