"""Stories about a graph, told in text files: a schema, some data, steps, and what comes of each.
They run on anything that offers the few calls of `Backend`, so one suite judges every engine."""

from tests.support.cases.backend import Backend, ModelBackend
from tests.support.cases.parse import CaseError, read_cases
from tests.support.cases.run import run_case
from tests.support.cases.story import Case, CaseFailure

__all__ = [
    "Backend",
    "Case",
    "CaseError",
    "CaseFailure",
    "ModelBackend",
    "read_cases",
    "run_case",
]
