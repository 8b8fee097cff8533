"""Parameters of a query, given as a mapping, as keywords, or both."""

from __future__ import annotations

from collections.abc import Mapping

from omnigraph.errors import (
    InputError,
)


def joined_parameters(
    params: Mapping[str, object] | None, more: Mapping[str, object]
) -> Mapping[str, object]:
    """Parameters given both ways. Raises `InputError` for one that is given twice."""
    if not more:
        return params or {}
    for name in more:
        if params is not None and name in params:
            raise InputError(f"parameter '{name}' is given twice; give it once")
    return {**(params or {}), **more}
