"""Policy documents: the YAML format, its values and the rules of a valid one.

Every problem of a document is reported, not only the first. Unknown keys are ignored, as the format
demands, but kept in `Policy.unknown_keys`: a misspelt scope would otherwise widen a rule unnoticed.
Nothing here decides anything; that is `policy.gate`. Tests: tests/unit/policy/test_document.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum
from pathlib import Path
from typing import Final

from msgspec import Struct

from omnigraph.diagnostics import shortened, with_hint
from omnigraph.graph.gate import Action
from omnigraph.policy.document_reader import DocumentReader
from omnigraph.policy.read_rules import (
    Attribute,
    ReadRule,
    read_attributes,
    read_rules,
)
from omnigraph.read.source_files import read_source

SERVER_ACTIONS: Final = frozenset({Action.GRAPH_LIST, Action.CONFIG_MANAGE})
"""Actions on a server; all others are on a graph."""

SUFFIXES: Final = (".yaml", ".yml", ".json")
"""Endings by which a text of one line is taken for a path."""

_KEYS: Final = ("version", "groups", "protected_branches", "rules", "read_rules", "attributes")

_SCOPED_BY: Final = {
    "branch_scope": frozenset({Action.READ, Action.EXPORT, Action.CHANGE}),
    "target_branch_scope": frozenset(
        {Action.SCHEMA_APPLY, Action.BRANCH_CREATE, Action.BRANCH_DELETE, Action.BRANCH_MERGE}
    ),
}


class PolicyKind(Enum):
    """What a policy attaches to."""

    GRAPH = "graph"
    SERVER = "server"


class Scope(Enum):
    """Which branches a rule covers."""

    ANY = "any"
    PROTECTED = "protected"
    UNPROTECTED = "unprotected"


class Rule(Struct, frozen=True):
    """Permits actions to a group. At most one of the scopes is given."""

    id: str
    group: str
    actions: tuple[Action, ...]
    branch_scope: Scope | None = None
    target_branch_scope: Scope | None = None


class Policy(Struct, frozen=True):
    """A valid policy. What no rule permits is denied."""

    name: str
    """Where it came from, for messages: a path, or `<policy>` for a text."""
    groups: Mapping[str, tuple[str, ...]]
    protected_branches: frozenset[str]
    rules: tuple[Rule, ...]
    unknown_keys: tuple[str, ...] = ()
    read_rules: tuple[ReadRule, ...] = ()
    attributes: Mapping[str, Mapping[str, Attribute]] = {}
    """What conditions of read rules may ask of an actor."""

    @property
    def actors(self) -> frozenset[str]:
        """The members of all groups."""
        return frozenset(actor for members in self.groups.values() for actor in members)

    @property
    def kind(self) -> PolicyKind:
        """Graph, unless its rules are about a server."""
        used = {action for rule in self.rules for action in rule.actions}
        return PolicyKind.SERVER if used & SERVER_ACTIONS else PolicyKind.GRAPH


def read_policy(policy: str | Path, kind: PolicyKind | None = None) -> Policy:
    """A policy given as the path of a file, or as text.

    A `Path` is a file; a string is text, unless it is one line ending in `.yaml`, `.yml` or `.json`.
    `kind` says what the policy will be attached to; without it either kind is accepted. Raises
    `PolicyInvalid` with every problem, or `SourceUnreadable`.
    """
    if isinstance(policy, Path) or (policy.endswith(SUFFIXES) and "\n" not in policy):
        source = read_source(policy)
        return parse_policy(source.text, source.name, kind)
    return parse_policy(policy, "<policy>", kind)


def parse_policy(text: str, name: str, kind: PolicyKind | None = None) -> Policy:
    """The policy in a text. Raises `PolicyInvalid` with every problem."""
    reader = DocumentReader(name)
    document = reader.document(text, _KEYS)
    policy = Policy(
        name,
        dict(_groups(reader, document)),
        frozenset(reader.names("protected_branches", document.get("protected_branches"), "branch")),
        tuple(_rules(reader, document)),
        tuple(reader.unknown),
        tuple(read_rules(reader, document.get("read_rules"))),
        read_attributes(reader, document.get("attributes")),
    )
    _check_groups(reader, policy)
    _check_kinds(reader, policy, kind)
    reader.finish()
    return policy


# -- groups and rules -----------------------------------------------------------------------


def _groups(
    reader: DocumentReader, document: Mapping[str, object]
) -> Iterator[tuple[str, tuple[str, ...]]]:
    seen: set[str] = set()
    for key, members in reader.mapping("groups", document.get("groups")).items():
        group = key.strip()
        if not group:
            reader.problem("groups: a group name must not be blank")
            continue
        if group in seen:
            reader.problem(f"groups: group '{group}' stands twice")
        seen.add(group)
        actors = reader.names(f"groups.{group}", members, "actor")
        if members is None or members == []:
            reader.problem(f"groups.{group}: a group must not be empty")
        yield group, actors


def _rules(reader: DocumentReader, document: Mapping[str, object]) -> Iterator[Rule]:
    seen: set[str] = set()
    for at, entry in enumerate(reader.sequence("rules", document.get("rules"))):
        place = f"rules[{at}]"
        fields = reader.mapping(place, entry, ("id", "allow"))
        rule_id = reader.text(f"{place}.id", fields.get("id"))
        if rule_id:
            place = f"rule '{shortened(rule_id)}'"
            if rule_id in seen:
                reader.problem(f"duplicate policy rule id '{shortened(rule_id)}'")
            seen.add(rule_id)
        if "allow" not in fields:
            reader.problem(f"{place}: allow is missing")
            continue
        yield _rule(reader, place, rule_id, fields["allow"])


def _rule(reader: DocumentReader, place: str, rule_id: str, value: object) -> Rule:
    allow = reader.mapping(
        f"{place}: allow", value, ("actors", "actions", "branch_scope", "target_branch_scope")
    )
    actors = reader.mapping(f"{place}: actors", allow.get("actors"), ("group",))
    group = reader.text(f"{place}: actors.group", actors.get("group"))
    actions = _actions(reader, place, allow.get("actions"))
    scopes = {
        key: reader.choice(f"{place}: {key}", allow[key], Scope, "scope")
        for key in _SCOPED_BY
        if allow.get(key) is not None
    }
    if len(scopes) > 1:
        reader.problem(f"{place} uses branch_scope and target_branch_scope; use one of them")
    for key in scopes:
        for action in actions:
            if action not in _SCOPED_BY[key]:
                reader.problem(f"{place} uses {key} with unsupported action '{action.value}'")
    if {action in SERVER_ACTIONS for action in actions} == {True, False}:
        reader.problem(f"{place} has actions of a server and of a graph; split into separate rules")
    return Rule(
        rule_id, group, actions, scopes.get("branch_scope"), scopes.get("target_branch_scope")
    )


def _actions(reader: DocumentReader, place: str, value: object) -> tuple[Action, ...]:
    written = reader.sequence(f"{place}: actions", value)
    if not written:
        reader.problem(f"{place}: actions must not be empty")
    found = (reader.choice(f"{place}: actions", word, Action, "action") for word in written)
    return tuple(dict.fromkeys(action for action in found if action is not None))


def _check_groups(reader: DocumentReader, policy: Policy) -> None:
    named = [(f"rule '{rule.id}'", rule.group) for rule in policy.rules]
    named += [(f"read rule '{rule.id}'", rule.group) for rule in policy.read_rules]
    for rule_name, group in named:
        if group and group not in policy.groups:
            problem = f"{rule_name} references unknown group '{group}'"
            reader.problem(with_hint(problem, group, policy.groups))


def _check_kinds(reader: DocumentReader, policy: Policy, kind: PolicyKind | None) -> None:
    wanted = kind or policy.kind
    if policy.read_rules and wanted is PolicyKind.SERVER:
        reader.problem("read_rules are per-graph and do not belong in the policy of a server")
    for rule in policy.rules:
        for action in rule.actions:
            if (action in SERVER_ACTIONS) == (wanted is PolicyKind.SERVER):
                continue
            if wanted is PolicyKind.GRAPH:
                said = "is server-scoped and does not belong in the policy of a graph"
            else:
                said = "is per-graph and does not belong in the policy of a server"
            reader.problem(f"rule '{rule.id}': action '{action.value}' {said}")
