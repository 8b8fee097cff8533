"""What a query file may hold besides queries: settings, and the statements that stand alone."""

from __future__ import annotations

import re
from enum import Enum
from typing import TYPE_CHECKING, Final

from omnigraph.language.syntax import NOWHERE, Span, Syntax

if TYPE_CHECKING:
    from omnigraph.language.query.ast import Query


_IGNORED: Final = re.compile(r"(?:\s+|//[^\n]*(?:\n|\Z)|/\*.*?\*/)*", re.DOTALL)
_WORD: Final = re.compile(r"[A-Za-z_]\w*")


def first_word(text: str) -> str | None:
    """The word that a text begins with, behind white space and comments; None without one."""
    # In two steps: as one pattern, a failure would try every way to divide the white space.
    ignored = _IGNORED.match(text)
    found = _WORD.match(text, ignored.end() if ignored else 0)
    return None if found is None else found.group()


class Setting(Syntax, frozen=True):
    """`set name = value;`"""

    name: str
    value: int | str
    span: Span = NOWHERE


class Reset(Syntax, frozen=True):
    """`reset name;`, or of all settings without a name."""

    name: str | None
    span: Span = NOWHERE


class Show(Syntax, frozen=True):
    """`show name;`, or all settings without a name."""

    name: str | None
    span: Span = NOWHERE


class Explain(Syntax, frozen=True):
    query: Query
    span: Span = NOWHERE


class BranchAction(Enum):
    CREATE = "create"
    DELETE = "delete"
    MERGE = "merge"
    LIST = "list"


class BranchStatement(Syntax, frozen=True):
    """`other` is the branch after `from` or `into`."""

    action: BranchAction
    name: str | None = None
    other: str | None = None
    span: Span = NOWHERE


FileStatement = Show | BranchStatement | Explain
