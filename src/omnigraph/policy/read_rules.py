"""Read rules: which types, properties and rows of a graph a group sees.

A type that some rule names is limited: an actor sees of it what the rules of the actor's groups allow, and
nothing without one. A type that no rule names is visible to all. `policy.visibility` makes a view of this.
Unlike elsewhere in a policy an unknown key is an error: ignored, it would show too much.
Tests: tests/unit/policy/test_read_rules.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from msgspec import Struct

from omnigraph.diagnostics import shortened
from omnigraph.errors import LanguageError
from omnigraph.language.query.parse import parse_condition
from omnigraph.language.syntax import Source
from omnigraph.policy.document_reader import DocumentReader

Attribute = str | int | float | bool | tuple[str | int | float | bool, ...]

ALL_TYPES: Final = "*"
"""Stands for every type, also those that are added later."""

ACTOR: Final = "actor"
"""The parameter with the name of the actor."""

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


class Grant(Struct, frozen=True):
    """What one rule shows of one type."""

    type: str
    where: str | None = None
    """A condition on its rows; None shows all."""
    properties: tuple[str, ...] | None = None
    """Only these, besides the key; None shows all but those in `hidden`."""
    hidden: tuple[str, ...] = ()


class ReadRule(Struct, frozen=True):
    """Shows types to a group."""

    id: str
    group: str
    grants: tuple[Grant, ...]

    def of(self, type_name: str) -> Grant | None:
        """What the rule shows of a type: its own entry comes before that of all types."""
        named = {grant.type: grant for grant in self.grants}
        return named.get(type_name) or named.get(ALL_TYPES)


def read_rules(reader: DocumentReader, value: object) -> Iterator[ReadRule]:
    """The rules of a document; problems are reported to the reader."""
    seen: set[str] = set()
    for at, entry in enumerate(reader.sequence("read_rules", value)):
        place = f"read_rules[{at}]"
        fields = _strict(reader, place, entry, ("id", "allow"))
        rule_id = reader.text(f"{place}.id", fields.get("id"))
        if rule_id:
            place = f"read rule '{shortened(rule_id)}'"
            if rule_id in seen:
                reader.problem(f"duplicate read rule id '{shortened(rule_id)}'")
            seen.add(rule_id)
        if "allow" not in fields:
            reader.problem(f"{place}: allow is missing")
            continue
        allow = _strict(reader, f"{place}: allow", fields["allow"], ("actors", "types"))
        actors = _strict(reader, f"{place}: actors", allow.get("actors"), ("group",))
        group = reader.text(f"{place}: actors.group", actors.get("group"))
        types = reader.mapping(f"{place}: types", allow.get("types"))
        if not types:
            reader.problem(f"{place}: types must not be empty")
        grants = tuple(
            _grant(reader, f"{place}: types.{name}", str(name), types[name]) for name in types
        )
        yield ReadRule(rule_id, group, grants)


def _grant(reader: DocumentReader, place: str, name: str, value: object) -> Grant:
    fields = _strict(reader, place, value, ("where", "properties", "except"))
    if name == ALL_TYPES and fields:
        reader.problem(f"{place} shows types as they are; limit a type under its own name")
    where = reader.text(f"{place}.where", fields["where"]) if "where" in fields else None
    if where:
        try:
            parse_condition(Source(f"<rows of {name}>", where))
        except LanguageError as error:
            reader.problem(f"{place}.where: {error}")
    if "properties" in fields and "except" in fields:
        reader.problem(f"{place} has properties and except; use one of them")
    shown = None
    if "properties" in fields:
        shown = reader.names(f"{place}.properties", fields["properties"], "property")
    hidden = reader.names(f"{place}.except", fields.get("except"), "property")
    return Grant(name, where or None, shown, hidden)


def read_attributes(reader: DocumentReader, value: object) -> dict[str, Mapping[str, Attribute]]:
    """The attributes of actors by their names."""
    found: dict[str, Mapping[str, Attribute]] = {}
    for actor, given in reader.mapping("attributes", value).items():
        place = f"attributes.{actor}"
        own: dict[str, Attribute] = {}
        for name, attribute in reader.mapping(place, given).items():
            if not _NAME.match(str(name)) or name == ACTOR:
                reader.problem(f"{place}: '{shortened(str(name))}' cannot name an attribute")
            if isinstance(attribute, list) and all(_is_plain(one) for one in attribute):
                own[name] = tuple(attribute)
            elif _is_plain(attribute):
                own[name] = attribute  # type: ignore[assignment]  # checked just now
            else:
                reader.problem(
                    f"{place}.{name} must be a text, a number, true, false or a list of these"
                )
        found[str(actor).strip()] = own
    return found


def _is_plain(value: object) -> bool:
    return isinstance(value, str | int | float | bool)


def _strict(
    reader: DocumentReader, place: str, value: object, known: tuple[str, ...]
) -> Mapping[str, object]:
    """Keys and values, of which an unknown one is an error."""
    found = reader.mapping(place, value)
    for key in found:
        if key not in known:
            reader.problem(f"{place}: unknown key '{shortened(str(key))}'; use {', '.join(known)}")
    return found
