"""The options of a read or a write, checked, and the graph they name."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from omnigraph.diagnostics import with_hint
from omnigraph.errors import InputError

if TYPE_CHECKING:
    import omnigraph as og

_READING: Final = (
    "graph",
    "type",
    "branch",
    "at",
    "columns",
    "filter",
    "params",
    "changes",
    "since",
)
_WRITING: Final = ("graph", "type", "branch", "load_mode", "load_id", "message", "actor", "strict")
_OURS: Final = ("path", "checkpointlocation", "querytimeout")
"""Options that Spark itself passes on."""


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """What the caller asked for. Names of options are case-insensitive."""

    graph: str
    type: str
    branch: str | None = None
    at: str | None = None
    columns: tuple[str, ...] | None = None
    filter: str | None = None
    params: Mapping[str, object] = field(default_factory=dict)
    changes: bool = False
    since: str | None = None
    load_mode: str | None = None
    load_id: str | None = None
    message: str | None = None
    actor: str | None = None
    strict: bool = True

    @classmethod
    def of(cls, given: Mapping[str, str], *, writes: bool = False) -> SourceOptions:
        """Raises `InputError` for a missing, unknown or contradictory option."""
        known = _WRITING if writes else _READING
        options = {name.lower(): value for name, value in given.items()}
        options.setdefault("graph", options.get("path", ""))
        for name in options:
            if name not in known and name not in _OURS:
                words = ", ".join(known)
                what = "writing" if writes else "reading"
                problem = f"format('omnigraph') has no option '{name}' for {what}: {words}"
                raise InputError(with_hint(problem, name, known))
        for name in ("graph", "type"):
            if not options.get(name):
                raise InputError(f"format('omnigraph') needs the option '{name}'")
        if options["graph"].startswith("memory://"):
            raise InputError("Spark cannot read an in-memory graph; use one on a disk or in S3")
        found = cls(
            graph=options["graph"],
            type=options["type"],
            branch=options.get("branch"),
            at=options.get("at"),
            columns=_names(options.get("columns")),
            filter=options.get("filter"),
            params=_params(options.get("params")),
            changes=_flag("changes", options.get("changes"), False),
            since=options.get("since"),
            load_mode=options.get("load_mode"),
            load_id=options.get("load_id"),
            message=options.get("message"),
            actor=options.get("actor"),
            strict=_flag("strict", options.get("strict"), True),
        )
        if found.branch is not None and found.at is not None:
            raise InputError("pass either the option branch or at, not both")
        if found.changes and (found.at is not None or found.filter is not None):
            raise InputError("changes are read of a branch as a whole; leave out at and filter")
        if found.since is not None and not found.changes:
            raise InputError("since is about changes; set the option changes to true as well")
        return found


def _names(text: str | None) -> tuple[str, ...] | None:
    """Names between commas."""
    if text is None:
        return None
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _params(text: str | None) -> Mapping[str, object]:
    """Parameters of a filter as a JSON object."""
    if text is None:
        return {}
    try:
        found = json.loads(text)
    except ValueError as error:
        raise InputError(f"the option params is not valid JSON: {error}") from None
    if not isinstance(found, dict):
        raise InputError("the option params must be a JSON object")
    return found


def _flag(name: str, text: str | None, default: bool) -> bool:
    if text is None:
        return default
    if text.lower() not in ("true", "false"):
        raise InputError(f"the option {name} must be true or false, not '{text}'")
    return text.lower() == "true"


@lru_cache(maxsize=8)
def opened(uri: str, branch: str | None) -> og.Graph:
    """The graph, for reading. A Python process of Spark does many tasks and opens it once."""
    import omnigraph as og

    return og.open(uri, branch=branch or "main", read_only=True)
