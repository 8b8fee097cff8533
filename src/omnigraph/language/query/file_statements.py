"""What a query file may hold besides queries: settings, and the statements that stand alone."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from omnigraph.language.syntax import NOWHERE, Span, Syntax

if TYPE_CHECKING:
    from omnigraph.language.query.ast import Query


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
