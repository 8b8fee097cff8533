"""Rows that break a rule on single values. The catalog defines rules and messages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.constraints import (
    EnumRule,
    PatternRule,
    RangeRule,
    ValueRule,
    missing_value,
    value_rules,
)
from omnigraph.catalog.model import EntityType, Property

Columns = Mapping[str, pa.Array]
"""Property columns by name, all of one length."""


@dataclass(frozen=True, slots=True)
class Violation:
    """A row that breaks a rule of its type."""

    row: int
    code: str
    message: str
    property: str


@dataclass(frozen=True, slots=True)
class Nulls:
    """Nulls where a value is required, and `@embed` vectors that are still to be computed."""

    missing: list[Violation] = field(default_factory=list)
    pending: dict[str, pa.Array] = field(default_factory=dict)
    """Vector property to the mask of rows that have text and no vector."""


def value_violations(declared: EntityType, columns: Columns) -> Iterator[Violation]:
    """Enum, `@range` and `@check`, rule by rule. Nulls pass."""
    for rule in value_rules(declared):
        column = columns[rule.property]
        if len(column) == 0:
            continue
        try:
            broken = breaks(rule, column)
        except InvalidPattern as error:
            message = error.rule.unusable(declared.name, str(error))
            for row in range(len(column)):
                yield Violation(row, rule.code, message, rule.property)
            continue
        for row in rows_where(broken):
            message = rule.broken(declared.name, column[row].as_py())
            yield Violation(row, rule.code, message, rule.property)


class InvalidPattern(ValueError):
    """A `@check` whose pattern is not a valid regular expression; accepting a schema does not test it."""

    def __init__(self, rule: PatternRule, problem: str) -> None:
        super().__init__(problem)
        self.rule = rule


def breaks(rule: ValueRule, column: pa.Array) -> pa.Array:
    """The mask of rows whose value breaks the rule. Raises `InvalidPattern`."""
    match rule:
        case EnumRule(values=values):
            kept = pc.is_in(column, value_set=pa.array(values, pa.utf8()))
            return pc.and_(pc.invert(kept), column.is_valid())
        case RangeRule(low=low, high=high):
            numbers = pc.cast(column, pa.float64(), safe=False)
            outside = pc.is_nan(numbers)
            if low is not None:
                outside = pc.or_(outside, pc.less(numbers, float(low)))
            if high is not None:
                outside = pc.or_(outside, pc.greater(numbers, float(high)))
            return pc.fill_null(outside, False)
        case PatternRule(pattern=pattern):
            try:
                found = pc.match_substring_regex(column, pattern)
            except pa.ArrowInvalid as error:
                raise InvalidPattern(rule, str(error)) from None
            return pc.fill_null(pc.invert(found), False)


def find_nulls(declared: EntityType, columns: Columns) -> Nulls:
    """Nulls that a write has to report or compute, property by property."""
    found = Nulls()
    for prop, empty, waiting in null_masks(declared, columns):
        if waiting is not None:
            found.pending[prop.name] = waiting
        if not prop.type.nullable:
            message = missing_value(prop)
            for row in rows_where(empty):
                found.missing.append(Violation(row, "missing_value", message, prop.name))
    return found


def null_masks(
    declared: EntityType, columns: Columns
) -> Iterator[tuple[Property, pa.Array, pa.Array | None]]:
    """Per property with nulls: rows that stay null, and rows whose text is still to be embedded."""
    for name, prop in declared.properties.items():
        column = columns[name]
        if column.null_count == 0:
            continue
        empty, waiting = column.is_null(), None
        if prop.embed_source is not None:
            texts = pc.and_(empty, is_present(columns[prop.embed_source]))
            if pc.any(texts).as_py():
                waiting = texts
                empty = pc.and_not(empty, waiting)
        yield prop, empty, waiting


def rows_where(mask: pa.Array) -> list[int]:
    """The positions at which a mask without nulls is true."""
    if not pc.any(mask).as_py():
        return []
    positions: list[int] = np.flatnonzero(mask.to_numpy(zero_copy_only=False)).tolist()
    return positions


# What str.strip() removes. Arrow's own notion of white space leaves out the separators U+001C to
# U+001F, and a text must not be blank to one caller and present to another.
@cache
def _white_space() -> str:
    return "".join(chr(c) for c in range(0x3001) if chr(c).isspace())


def is_present(texts: pa.Array) -> pa.Array:
    """Where there is text: neither null nor blank."""
    trimmed = pc.utf8_trim(texts, characters=_white_space())
    return pc.fill_null(pc.not_equal(trimmed, ""), False)
