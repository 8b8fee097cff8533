"""Errors about budgets and permissions."""

from __future__ import annotations

from omnigraph.errors.base import OmnigraphError


class LimitError(OmnigraphError):
    """A budget for rows, bytes, time or depth is used up."""

    code = "OG-B-000"
    kind = "bad_request"


class PolicyError(OmnigraphError):
    """The actor may not do this, or no actor was given where one is needed."""

    code = "OG-P-000"
    kind = "policy"
