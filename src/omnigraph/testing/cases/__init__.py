"""Stories about a graph, told in text files: a schema, some data, steps, and what comes of each.
They run on anything that offers the few calls of `Backend`, so one suite judges every engine."""

from omnigraph.testing.cases.backend import Backend, ModelBackend
from omnigraph.testing.cases.parse import CaseError, read_cases
from omnigraph.testing.cases.run import run_case
from omnigraph.testing.cases.story import Case, CaseFailure

__all__ = [
    "Backend",
    "Case",
    "CaseError",
    "CaseFailure",
    "ModelBackend",
    "read_cases",
    "run_case",
]
