"""A policy as Cedar: one `permit` per rule, actors as members of groups, and the request context.

Rules become Cedar's JSON form, in which an id or a name may hold any character. This is the only module
that imports cedarpy. Tests: tests/unit/policy/test_cedar.py.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from omnigraph.policy.document import SERVER_ACTIONS, Policy, Rule, Scope

if TYPE_CHECKING:
    from omnigraph.graph.gate import Action

_NAMESPACE: Final = "Omnigraph"
_SERVER: Final = "root"
REMEMBERED_ANSWERS: Final = 4096
"""A request has the same answer every time, and finding it takes Cedar about 50 µs."""


class Answer(NamedTuple):
    """Cedar's answer: the ids of the rules that permit the request, and what failed on the way."""

    is_allowed: bool
    rules: tuple[str, ...]
    errors: tuple[str, ...]


class CedarPolicy:
    """A policy that Cedar has parsed. Thread-safe: nothing in it changes."""

    def __init__(self, policy: Policy, resource: str) -> None:
        import cedarpy

        self._is_authorized = cedarpy.is_authorized
        self._rules = cedarpy.PolicySet.from_json_str(json.dumps(rules_json(policy)))
        self._entities = cedarpy.Entities.from_json_str(json.dumps(list(_entities(policy))))
        self._protected = policy.protected_branches
        self._graph = _uid("Graph", resource)
        self._answers = lru_cache(REMEMBERED_ANSWERS)(self._evaluate)

    def ask(
        self, actor: str, action: Action, branch: str | None, target_branch: str | None
    ) -> Answer:
        """What the rules say. Raises whatever Cedar raises for a request that it cannot read."""
        return self._answers(actor, action, branch, target_branch)

    def _evaluate(
        self, actor: str, action: Action, branch: str | None, target_branch: str | None
    ) -> Answer:
        is_server = action in SERVER_ACTIONS
        result = self._is_authorized(
            {
                "principal": _uid("Actor", actor),
                "action": _uid("Action", action.value),
                "resource": _uid("Server", _SERVER) if is_server else self._graph,
                "context": {
                    **self._context("branch", branch),
                    **self._context("target_branch", target_branch),
                },
            },
            self._rules,
            self._entities,
        )
        found = result.diagnostics
        return Answer(result.allowed, tuple(sorted(found.reasons)), tuple(found.errors))

    def _context(self, key: str, branch: str | None) -> dict[str, object]:
        return {
            f"has_{key}": branch is not None,
            key: branch or "",
            f"{key}_protected": branch in self._protected,
        }


def rules_json(policy: Policy) -> dict[str, object]:
    """The rules in Cedar's JSON form, under their ids."""
    return {
        "staticPolicies": {rule.id: _permit(rule) for rule in policy.rules},
        "templates": {},
        "templateLinks": [],
    }


def _permit(rule: Rule) -> dict[str, object]:
    is_server = any(action in SERVER_ACTIONS for action in rule.actions)
    scopes = (("branch", rule.branch_scope), ("target_branch", rule.target_branch_scope))
    return {
        "effect": "permit",
        "principal": {"op": "in", "entity": _uid("Group", rule.group)},
        "action": {"op": "in", "entities": [_uid("Action", one.value) for one in rule.actions]},
        "resource": {
            "op": "is",
            "entity_type": f"{_NAMESPACE}::{'Server' if is_server else 'Graph'}",
        },
        "conditions": [
            {"kind": "when", "body": _in_scope(key, scope)}
            for key, scope in scopes
            if scope is not None and scope is not Scope.ANY
        ],
    }


def _in_scope(key: str, scope: Scope) -> dict[str, object]:
    is_protected: dict[str, object] = _context_value(f"{key}_protected")
    if scope is Scope.UNPROTECTED:
        is_protected = {"!": {"arg": is_protected}}
    return {"&&": {"left": _context_value(f"has_{key}"), "right": is_protected}}


def _context_value(name: str) -> dict[str, object]:
    return {".": {"left": {"Var": "context"}, "attr": name}}


def _entities(policy: Policy) -> Iterator[dict[str, object]]:
    groups: dict[str, list[str]] = {}
    for group, members in policy.groups.items():
        yield {"uid": _uid("Group", group), "attrs": {}, "parents": []}
        for actor in members:
            groups.setdefault(actor, []).append(group)
    for actor, memberships in groups.items():
        parents = [_uid("Group", group) for group in memberships]
        yield {"uid": _uid("Actor", actor), "attrs": {}, "parents": parents}


def _uid(kind: str, name: str) -> Mapping[str, str]:
    return {"type": f"{_NAMESPACE}::{kind}", "id": name}
