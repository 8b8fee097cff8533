"""Predicates on stored columns: written once, run by the store or on rows in memory, equal results.

`bind` fits a predicate to the column types; `to_sql` and `matches` are the two ways to run it.
"""

from omnigraph.storage.filters.evaluation import matches, select, to_sql
from omnigraph.storage.filters.model import (
    And,
    Bound,
    Compare,
    Comparison,
    Computed,
    Filter,
    In,
    IsNull,
    Not,
    Operator,
    Or,
    Value,
    bind,
    split,
)

__all__ = [
    "And",
    "Bound",
    "Compare",
    "Comparison",
    "Computed",
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
