"""Predicates on stored columns: written once, run by the store or on rows in memory, equal results.

`bind` fits a predicate to the column types; `to_sql` and `matches` are the two ways to run it.
"""

from omnigraph.storage.filters.bind import bind
from omnigraph.storage.filters.bound import Bound, Compare, split
from omnigraph.storage.filters.memory import matches, select
from omnigraph.storage.filters.model import (
    And,
    Comparison,
    Filter,
    In,
    IsNull,
    Not,
    Operator,
    Or,
    Value,
)
from omnigraph.storage.filters.sql import to_sql

__all__ = [
    "And",
    "Bound",
    "Compare",
    "Comparison",
    "Filter",
    "In",
    "IsNull",
    "Not",
    "Operator",
    "Or",
    "Value",
    "bind",
    "matches",
    "select",
    "split",
    "to_sql",
]
