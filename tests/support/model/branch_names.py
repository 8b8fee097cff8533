"""Which branch names there may be."""

from __future__ import annotations

import re

from tests.support.outcome import Refusal

MAIN = "main"
_RESERVED = "__schema_apply_lock__"
_LONGEST = 120
_NAME = re.compile(r"[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*\Z")


def public_name(given: str) -> str:
    """The name without surrounding white space. Raises `Refusal` when it cannot be used."""
    name = given.strip()
    if not name:
        raise Refusal("bad_request", "branch name cannot be empty")
    if name.lstrip("/") == _RESERVED:
        raise Refusal("bad_request", f"branch '{name}' is an internal system ref")
    allowed = _NAME.match(name) and ".." not in name and not name.endswith(".lock")
    if not allowed or len(name) > _LONGEST:
        raise Refusal("bad_request", f"invalid branch name '{name}'")
    return name
