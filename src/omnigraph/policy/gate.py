"""Decisions: a policy as the gate that writers and routes ask.

Whatever goes wrong denies: no actor, an actor in no group, no rule, a rule that cannot be evaluated,
cedarpy not installed. Every decision is logged with its reason under `omnigraph.policy`.
Tests: tests/unit/policy/test_gate.py.
"""

from __future__ import annotations

import logging
from collections import deque
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from omnigraph.diagnostics import shortened
from omnigraph.errors import (
    ActorRequired,
    MissingExtra,
    PolicyDenied,
    PolicyInvalid,
    PolicyUndecided,
)
from omnigraph.extras import POLICY, is_installed
from omnigraph.graph.gate import Action, Request
from omnigraph.policy.cedar import CedarPolicy
from omnigraph.policy.document import Policy, PolicyKind, read_policy

if TYPE_CHECKING:
    from omnigraph.catalog.model import Catalog
    from omnigraph.policy.visibility import Visibility
    from omnigraph.read.view import ReadView

KEPT_SCHEMAS: Final = 4
"""Schemas for which views are kept: those of the newest states, and of some that are read."""

_log = logging.getLogger("omnigraph.policy")


class Decision(Struct, frozen=True):
    """The answer to one request. `matched_rule` is the first, by id, of the rules that permit it."""

    actor: str
    action: Action
    is_allowed: bool
    message: str
    branch: str | None = None
    target_branch: str | None = None
    matched_rule: str | None = None


class PolicyGate:
    """A policy in force on a graph or a server. Thread-safe; can be pickled.

    It can be made without cedarpy, so that a graph with a policy can be read; every check then fails.
    """

    def __init__(self, policy: Policy, resource: str = "graph") -> None:
        self.policy = policy
        self._actors = policy.actors
        self._resource = resource
        self._visibilities: deque[Visibility] = deque(maxlen=KEPT_SCHEMAS)

    def __reduce__(self) -> tuple[type[PolicyGate], tuple[Policy, str]]:
        return type(self), (self.policy, self._resource)

    def check(self, request: Request) -> None:
        """Return if the request is permitted.

        Raises `PolicyDenied`, `ActorRequired` or, if the policy cannot be evaluated, `PolicyUndecided`.
        """
        action, branch, target = request.action, request.branch, request.target_branch
        if request.actor is None:
            _log.info("deny %s: no actor", action.value)
            raise ActorRequired(action.value)
        decision = self.decide(request.actor, action, branch, target)
        if not decision.is_allowed:
            raise PolicyDenied(decision.message, request.actor, action.value, branch, target)

    def decide(
        self,
        actor: str,
        action: Action,
        branch: str | None = None,
        target_branch: str | None = None,
    ) -> Decision:
        """Whether the policy permits an action, and why. Raises `PolicyUndecided`.

        Branch names are compared without spaces around them, so that a padded name does not avoid the
        protection of a branch.
        """
        branch, target_branch = _trimmed(branch), _trimmed(target_branch)
        try:
            answer = self._cedar.ask(actor, action, branch, target_branch)
            if answer.errors:
                raise RuntimeError("; ".join(answer.errors))
        except Exception as error:
            _log.error("deny %s for %a: not evaluated: %a", action.value, actor, _reason(error))
            raise PolicyUndecided(action.value, _reason(error)) from error
        if answer.is_allowed:
            rule, reason = answer.rules[0], f"rule {answer.rules[0]!a}"
            message = f"policy allowed action '{action.value}' for actor '{shortened(actor)}'"
        else:
            rule, reason = None, "no rule" if actor in self._actors else "unknown actor"
            message = self._denied(actor, action, branch, target_branch)
        _log.info(
            "%s %s for %a, branch %a, target branch %a: %s",
            "allow" if answer.is_allowed else "deny",
            action.value,
            actor,
            branch,
            target_branch,
            reason,
        )
        return Decision(actor, action, answer.is_allowed, message, branch, target_branch, rule)

    # -- reading ----------------------------------------------------------------------------

    @property
    def limits_reads(self) -> bool:
        """Whether there are read rules."""
        return bool(self.policy.read_rules)

    def view(self, actor: str | None, catalog: Catalog) -> ReadView:
        """What an actor sees of a graph with that schema.

        Raises `PolicyUndecided` if a read rule does not fit the schema.
        """
        visibility = self.visibility(catalog)
        if visibility.problems:
            _log.error("deny read for %a: %a", actor, visibility.problems[0])
            raise PolicyUndecided(
                Action.READ.value, "its read rules do not fit the schema; see the server's log"
            )
        return visibility.view(actor)

    def check_reads(self, catalog: Catalog) -> None:
        """Raises `PolicyInvalid` with every read rule that does not fit a schema."""
        if self.limits_reads and (problems := self.visibility(catalog).problems):
            raise PolicyInvalid(self.policy.name, problems)

    def visibility(self, catalog: Catalog) -> Visibility:
        """The read rules on a schema, kept for the schemas that are in use."""
        for known in self._visibilities:
            if known.catalog is catalog:
                return known
        from omnigraph.policy.visibility import Visibility

        found = Visibility(self.policy, catalog)
        self._visibilities.append(found)
        return found

    def prepare(self) -> None:
        """Compile the policy now and not with the first decision. Raises `MissingExtra`."""
        _ = self._cedar

    @cached_property
    def _cedar(self) -> CedarPolicy:
        if not is_installed("cedarpy"):
            raise POLICY.missing("enforcing a policy")
        return CedarPolicy(self.policy, self._resource)

    def _denied(
        self, actor: str, action: Action, branch: str | None, target_branch: str | None
    ) -> str:
        if actor not in self._actors:
            return f"policy denied action '{action.value}' for unknown actor '{shortened(actor)}'"
        on = "" if branch is None else f" on branch '{shortened(branch)}'"
        to = "" if target_branch is None else f" targeting branch '{shortened(target_branch)}'"
        return f"policy denied action '{action.value}'{on}{to} for actor '{shortened(actor)}'"


def open_gate(
    policy: str | Path, kind: PolicyKind = PolicyKind.GRAPH, resource: str = "graph"
) -> PolicyGate:
    """The gate of a policy in a file or a text. Raises `PolicyInvalid` or `SourceUnreadable`."""
    return PolicyGate(read_policy(policy, kind), resource)


def _trimmed(branch: str | None) -> str | None:
    return None if branch is None else branch.strip()


def _reason(error: Exception) -> str:
    if isinstance(error, MissingExtra):
        return str(error)
    return f"{type(error).__name__}: {shortened(str(error))}"
