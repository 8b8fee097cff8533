"""Errors about budgets and permissions."""

from __future__ import annotations

from omnigraph.errors.base import OmnigraphError


class LimitError(OmnigraphError):
    """A budget for rows, bytes, time or depth is used up."""

    code = "OG-B-000"
    kind = "bad_request"


class QueryBudgetExceeded(LimitError):
    """A query would use more rows, bytes or time than it may."""

    code = "OG-B-001"

    def __init__(self, resource: str, needed: str, allowed: str) -> None:
        self.resource = resource
        self.needed = needed
        self.allowed = allowed
        super().__init__(
            f"the query needs {needed} {resource}, and {allowed} are allowed; narrow it down or "
            f"raise the limit on {resource}"
        )


class QueryCancelled(LimitError):
    """A query was stopped from outside."""

    code = "OG-B-002"

    def __init__(self) -> None:
        super().__init__("the query was cancelled")


class PolicyError(OmnigraphError):
    """The actor may not do this, or no actor was given where one is needed."""

    code = "OG-P-000"
    kind = "policy"
