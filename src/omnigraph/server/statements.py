"""Branch statements, which contract 0.13 takes in place of a query: `branch create "a/b" from main`.

Tests: tests/server/test_statements.py.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Final, Literal, cast

from omnigraph.server.problems import HttpProblem

Verb = Literal["list", "create", "delete", "merge"]

_NAME: Final = r'([A-Za-z_]\w*|"(?:[^"\\\n]|\\.)*")'
_STATEMENT: Final = re.compile(
    rf"""branch\s+(?:(list)
    |(create)\s+{_NAME}(?:\s+from\s+{_NAME})?
    |(delete)\s+{_NAME}
    |(merge)\s+{_NAME}(?:\s+into\s+{_NAME})?)\s*;?\s*\Z""",
    re.VERBOSE | re.ASCII,
)
_LEADING: Final = re.compile(r"(?:\s+|//[^\n]*(?:\n|\Z)|/\*.*?\*/)*", re.DOTALL)
_KEYWORD: Final = re.compile(r"branch\b")


@dataclass(frozen=True, slots=True)
class BranchStatement:
    """What to do with a branch. `other` is the source of a new branch or the target of a merge."""

    verb: Verb
    name: str | None = None
    other: str | None = None


def branch_statement(text: str) -> BranchStatement | None:
    """The statement that a text is; None for a query. Raises `HttpProblem` 400 for a broken one."""
    start = _LEADING.match(text)
    rest = text[start.end() :] if start else text
    if _KEYWORD.match(rest) is None:
        return None
    found = _STATEMENT.match(rest)
    if found is None:
        raise HttpProblem(
            400,
            "not a branch statement; use branch list, branch create NAME [from NAME], "
            "branch delete NAME or branch merge NAME [into NAME], alone in its text",
        )
    verb, *names = [part for part in found.groups() if part is not None]
    return BranchStatement(cast("Verb", verb), *map(_name, names))


def _name(written: str) -> str:
    if not written.startswith('"'):
        return written
    try:
        return str(json.loads(written))
    except ValueError:
        raise HttpProblem(400, f"{written[:80]} is not a valid name") from None
